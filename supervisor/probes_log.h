/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * libbpf's own messages, kept instead of printed: the first complaint of an attempt, and what the
 * verifier said last.
 */
#ifndef MOTE_PROBES_LOG_H
#define MOTE_PROBES_LOG_H

/* From now on libbpf prints nothing; forgets what was kept. */
void mote_probes_log_begin(void);

/* The line kept, or "". Valid until the next begin. */
const char *mote_probes_log_line(void);

/* The name of the program that was complained about last, or "". Valid as long. */
const char *mote_probes_log_program(void);

#endif
