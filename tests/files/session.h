/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A moted of the test's own, and one subscriber of it. */
#ifndef MOTE_FILES_SESSION_H
#define MOTE_FILES_SESSION_H

#include "../conserve/rows.h"

#include <sys/types.h>

/* What has come of these. */
extern struct rows stream_file, stream_total, stream_edge, stream_flow;

/* argv: the program and its options. Waits until it listens. */
pid_t session_moted(char **argv, const char *socket);
/* false: why is printed */
bool session_open(const char *socket, const char *request);
void session_close(void);
/* Takes what comes for some time; false: the connection is over. */
bool session_listen(unsigned int ms);
/* A tier's choice; "none". */
const char *session_tier(const char *name);
uint64_t session_ms(void);

#endif
