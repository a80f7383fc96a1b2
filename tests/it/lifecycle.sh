#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Births, execs and deaths, counted exactly; see tests/helpers/lifecycle.c.
. "${MOTE_TOP:-.}/tests/it/bpf_here"
exec "${MOTE_BUILD:-build}/tests/helpers/lifecycle"
