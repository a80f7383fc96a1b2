// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The face of both engines: dispatch to the one that was opened.
 */
#include "engine.h"

void mote_engine_close(struct mote_engine *engine)
{
	if (engine)
		engine->ops->close(engine);
}

const char *mote_engine_name(const struct mote_engine *engine)
{
	return engine->ops->name;
}

bool mote_engine_direct(const struct mote_engine *engine)
{
	return engine->direct;
}

bool mote_engine_ready(const struct mote_engine *engine)
{
	return engine->ready;
}

bool mote_engine_hold(struct mote_engine *engine, int fd, int slot)
{
	return engine->ops->hold && engine->ops->hold(engine, fd, slot);
}

unsigned int mote_engine_blocking_max(const struct mote_engine *engine)
{
	return engine->blocking_max;
}

unsigned int mote_engine_room(const struct mote_engine *engine)
{
	return engine->ops->room(engine);
}

int mote_engine_push(struct mote_engine *engine, const struct mote_sqe *sqe)
{
	return engine->ops->push(engine, sqe);
}

int mote_engine_wait(struct mote_engine *engine, unsigned int want, struct mote_cqe *cqes,
		     unsigned int max)
{
	return engine->ops->wait(engine, want, cqes, max);
}

void mote_engine_end_chain(struct mote_engine *engine)
{
	engine->ops->end_chain(engine);
}
