#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The choice of network hooks, and what each sees; see tests/helpers/network_probes.c.
. "${MOTE_TOP:-.}/tests/it/bpf_here"
exec "${MOTE_BUILD:-build}/tests/helpers/network_probes"
