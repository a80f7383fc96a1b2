// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * From the start to the loop and out of it: see run.h. Not a part of agent.c, whose pages are gone
 * when the memory has settled.
 */
#include "run.h"

#include <string.h>

#include "log.h"
#include "notify.h"
#include "settle.h"

static void tell_ready(void)
{
	int err = mote_notify_open();

	if (!err)
		err = mote_notify("READY=1");
	if (err)
		mote_log(MOTE_LOG_WARNING,
			 "$NOTIFY_SOCKET: %s: the service manager is not told that mote is ready",
			 strerrordesc_np(-err));
}

int mote_run(struct mote_loop *loop, struct mote_self *self)
{
	int err;

	mote_settle_memory();
	mote_self_started(self);
	tell_ready();
	err = mote_loop_run(loop);
	mote_notify("STOPPING=1");
	return err;
}
