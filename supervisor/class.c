// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The table of intervals in use, see class.h.
 */
#include "class.h"

#include <errno.h>
#include <string.h>

#define NS_PER_MS 1000000ull

void mote_classes_init(struct mote_classes *classes, unsigned int max)
{
	memset(classes, 0, sizeof(*classes));
	classes->max = max < MOTE_CLASSES ? max : MOTE_CLASSES;
}

static unsigned int in_use(const struct mote_classes *classes)
{
	return (unsigned int)__builtin_popcount(classes->used);
}

static int find(const struct mote_classes *classes, uint32_t interval_ms)
{
	for (unsigned int i = 0; i < classes->max; i++) {
		if (classes->class[i].interval_ms == interval_ms)
			return (int)i;
	}
	return -EMFILE;
}

int mote_classes_join(struct mote_classes *classes, uint32_t interval_ms, unsigned int stream,
		      uint64_t now)
{
	int index = find(classes, interval_ms);
	struct mote_class *class;

	if (index < 0) {
		index = find(classes, 0);
		if (index < 0) {
			classes->refused++;
			return index;
		}
		memset(&classes->class[index], 0, sizeof(classes->class[index]));
		classes->class[index].interval_ms = interval_ms;
		classes->class[index].since = now;
		classes->used |= 1u << index;
		if (in_use(classes) > classes->peak)
			classes->peak = in_use(classes);
	}
	class = &classes->class[index];
	/* Nobody had this stream here: what changed before is in the newcomer's keyframe. */
	if (!class->users[stream]++)
		class->last[stream] = now;
	return index;
}

void mote_classes_leave(struct mote_classes *classes, unsigned int index, unsigned int stream)
{
	struct mote_class *class = &classes->class[index];
	uint32_t users = 0;

	class->users[stream]--;
	for (unsigned int i = 0; i < MOTE_STREAMS; i++)
		users += class->users[i];
	if (!users) {
		class->interval_ms = 0;
		classes->used &= ~(1u << index);
	}
}

bool mote_class_due(const struct mote_class *class, uint64_t before, uint64_t now)
{
	uint64_t interval = class->interval_ms * NS_PER_MS;

	if (before < class->since)
		before = class->since;
	return interval && before / interval != now / interval;
}

uint32_t mote_classes_due(const struct mote_classes *classes, uint64_t before, uint64_t now)
{
	uint32_t streams = 0;
	unsigned int c;

	mote_for_each_bit (c, classes->used) {
		if (!mote_class_due(&classes->class[c], before, now))
			continue;
		for (unsigned int i = 0; i < MOTE_STREAMS; i++)
			streams |= (uint32_t)(classes->class[c].users[i] != 0) << i;
	}
	return streams;
}

uint32_t mote_classes_streams(const struct mote_classes *classes)
{
	uint32_t streams = 0;
	unsigned int c;

	mote_for_each_bit (c, classes->used) {
		for (unsigned int i = 0; i < MOTE_STREAMS; i++)
			streams |= (uint32_t)(classes->class[c].users[i] != 0) << i;
	}
	return streams;
}

static uint32_t gcd(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

uint32_t mote_classes_period_ms(const struct mote_classes *classes)
{
	uint32_t period = 0;
	unsigned int c;

	mote_for_each_bit (c, classes->used)
		period = gcd(period, classes->class[c].interval_ms);
	return period;
}

void mote_classes_fill(const struct mote_classes *classes, struct mote_fill *fill)
{
	*fill = (struct mote_fill){ .size = classes->max,
				    .fill = in_use(classes),
				    .peak = classes->peak,
				    .dropped = classes->refused };
}
