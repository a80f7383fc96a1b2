/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where cases run: a process that was forked before there were threads and connections forks
 * another one for each case, in a network namespace of its own if that can be had.
 */
#ifndef MOTE_CONSERVE_NURSERY_H
#define MOTE_CONSERVE_NURSERY_H

#include <stdbool.h>

#include "cases.h"

enum word_kind {
	WORD_COMPARE, /* the calls so far are over, it waits for nursery_go() */
	WORD_NOTE,
	WORD_SKIP, /* it ends without a verdict */
	WORD_FAIL, /* it ends: the test itself went wrong */
	WORD_END,  /* its process has ended, and those it made */
	WORD_LATE, /* nothing was said in time */
};

struct word {
	int kind;
	char text[240];
};

/* Once, before there are threads. `isolate`: a network namespace of its own. */
bool nursery_start(const struct test_case *const *cases, unsigned int n, bool isolate);
void nursery_begin(unsigned int i);
/* What the case says next. */
struct word nursery_listen(unsigned int seconds);
void nursery_go(void);
/* Kills what still runs. */
void nursery_stop(void);

#endif
