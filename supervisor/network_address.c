// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Addresses as text, see network_address.h. A keyframe has thousands of them, and printf() costs
 * ten times as much.
 */
#include "network_address.h"

struct run {
	unsigned int at, length; /* groups of zeros */
};

static char *put_decimal(char *out, unsigned int value)
{
	if (value >= 100)
		*out++ = (char)('0' + value / 100);
	if (value >= 10)
		*out++ = (char)('0' + value / 10 % 10);
	*out++ = (char)('0' + value % 10);
	return out;
}

static char *put_v4(char *out, const uint8_t *address)
{
	for (unsigned int i = 0; i < 4; i++) {
		if (i)
			*out++ = '.';
		out = put_decimal(out, address[i]);
	}
	return out;
}

static unsigned int group(const uint8_t *address, unsigned int i)
{
	return (unsigned int)address[2 * i] << 8 | address[2 * i + 1];
}

static char *put_group(char *out, unsigned int value)
{
	static const char digits[] = "0123456789abcdef";

	for (int shift = 12; shift >= 0; shift -= 4) {
		if (value >> shift || !shift)
			*out++ = digits[value >> shift & 15];
	}
	return out;
}

/* The longest run of zeros, the first of equals; one group alone is not shortened. */
static struct run longest_run(const uint8_t *address, unsigned int groups)
{
	struct run best = { groups, 1 }, run = { 0, 0 };

	for (unsigned int i = 0; i < groups; i++) {
		if (group(address, i)) {
			run = (struct run){ i + 1, 0 };
			continue;
		}
		run.length++;
		if (run.length > best.length)
			best = run;
	}
	return best;
}

static bool begins_with_zeros(const uint8_t *address, unsigned int bytes)
{
	for (unsigned int i = 0; i < bytes; i++) {
		if (address[i])
			return false;
	}
	return true;
}

/* ::ffff:a.b.c.d, and ::a.b.c.d but for :: and ::1 */
static bool holds_v4(const uint8_t *address)
{
	if (!begins_with_zeros(address, 10))
		return false;
	return group(address, 5) == 0xffff || (!group(address, 5) && group(address, 6));
}

static char *put_v6(char *out, const uint8_t *address)
{
	unsigned int groups = holds_v4(address) ? 6 : 8;
	struct run run = longest_run(address, groups);

	for (unsigned int i = 0; i < groups; i++) {
		if (i == run.at) {
			*out++ = ':';
			i += run.length - 1;
			if (i + 1 == 8)
				*out++ = ':';
			continue;
		}
		if (i)
			*out++ = ':';
		out = put_group(out, group(address, i));
	}
	if (groups == 8)
		return out;
	*out++ = ':';
	return put_v4(out, address + 12);
}

unsigned int mote_address_text(const uint8_t address[16], bool v6, char text[MOTE_ADDRESS_TEXT])
{
	return (unsigned int)((v6 ? put_v6(text, address) : put_v4(text, address)) - text);
}
