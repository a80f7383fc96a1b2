/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An engine whose kernel is the test: what was pushed waits in a list, and the test completes it
 * by hand, in any order.
 */
#ifndef FAKE_ENGINE_H
#define FAKE_ENGINE_H

#include <errno.h>
#include <string.h>

#include "engine.h"
#include "tag.h"

#define FAKE_MAX 4096

struct fake_engine {
	struct mote_engine base;
	struct mote_sqe pushed[FAKE_MAX];
	unsigned int n, limit;
	unsigned int chains_ended;
};

static int fake_push(struct mote_engine *engine, const struct mote_sqe *sqe)
{
	struct fake_engine *fake = (struct fake_engine *)engine;

	if (fake->n == fake->limit)
		return -EBUSY;
	fake->pushed[fake->n++] = *sqe;
	return 0;
}

static void fake_end_chain(struct mote_engine *engine)
{
	((struct fake_engine *)engine)->chains_ended++;
}

static int fake_wait(struct mote_engine *engine, unsigned int want, struct mote_cqe *cqes,
		     unsigned int max)
{
	return -ENOSYS;
}

static unsigned int fake_room(const struct mote_engine *engine)
{
	const struct fake_engine *fake = (const struct fake_engine *)engine;

	return fake->limit - fake->n;
}

static const struct mote_engine_ops fake_ops = {
	.name = "fake",
	.push = fake_push,
	.end_chain = fake_end_chain,
	.wait = fake_wait,
	.room = fake_room,
};

static inline void fake_engine_init(struct fake_engine *fake, bool direct)
{
	memset(fake, 0, sizeof(*fake));
	fake->base = (struct mote_engine){ .ops = &fake_ops, .direct = direct, .blocking_max = 1 };
	fake->limit = FAKE_MAX;
}

/* Takes operation `i` out of the list. */
static inline struct mote_sqe fake_take(struct fake_engine *fake, unsigned int i)
{
	struct mote_sqe sqe = fake->pushed[i];

	memmove(fake->pushed + i, fake->pushed + i + 1, (--fake->n - i) * sizeof(fake->pushed[0]));
	return sqe;
}

#endif
