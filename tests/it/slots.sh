#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Slots reused under four writers, and every rule of theirs broken; see tests/slots/stress.c.
. "${MOTE_TOP:-.}/tests/it/bpf_here"
exec "${MOTE_BUILD:-build}/tests/helpers/slots" short
