/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Classes: the different intervals in use. A class is due when its interval's multiple of the
 * monotonic clock passes; so all intervals are in step and no class keeps a timer.
 */
#ifndef MOTE_CLASS_H
#define MOTE_CLASS_H

#include <stdbool.h>
#include <stdint.h>

#include "bits.h"
#include "frame.h"
#include "schema.h"
#include "table.h"

#define MOTE_CLASSES 8

struct mote_class {
	uint32_t interval_ms; /* 0: not in use */
	uint64_t since;       /* when it came into use: it was not due before */
	uint32_t users[MOTE_STREAMS];
	uint64_t last[MOTE_STREAMS]; /* time of the last update of the stream */
	uint64_t sequence[MOTE_STREAMS];
	uint32_t open; /* streams whose update is not encoded to its end yet */
	struct mote_update update[MOTE_STREAMS];
	struct mote_progress progress[MOTE_STREAMS];
};

struct mote_classes {
	unsigned int max, peak;
	uint32_t used; /* bit per class: those that are not are not looked at each tick */
	uint64_t refused;
	struct mote_class class[MOTE_CLASSES];
};

void mote_classes_init(struct mote_classes *classes, unsigned int max);
/* The class's index, or -EMFILE when `max` other intervals are in use. */
int mote_classes_join(struct mote_classes *classes, uint32_t interval_ms, unsigned int stream,
		      uint64_t now);
void mote_classes_leave(struct mote_classes *classes, unsigned int index, unsigned int stream);

bool mote_class_due(const struct mote_class *class, uint64_t before, uint64_t now);
uint32_t mote_classes_due(const struct mote_classes *classes, uint64_t before, uint64_t now);
uint32_t mote_classes_streams(const struct mote_classes *classes);
uint32_t mote_classes_period_ms(const struct mote_classes *classes); /* 0: none */
void mote_classes_fill(const struct mote_classes *classes, struct mote_fill *fill);

#endif
