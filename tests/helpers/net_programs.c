// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* See net_programs/exchange.h. */
#include "net_programs/exchange.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

int main(int argc, char **argv)
{
	static const char *const names[] = {
		[TP] = "tp", [KPROBE] = "kprobe", [FENTRY] = "fentry"
	};
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	const char *name = argc > 1 ? argv[1] : "tp";

	for (set = TP; set <= FENTRY && strcmp(name, names[set]); set++)
		;
	if (set > FENTRY)
		return fprintf(stderr, "usage: net_programs tp|kprobe|fentry\n"), 2;
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	see_tracefs();
	before_load();
	load();
	cases_of_seeds();
	cases_of_tcp();
	cases_of_lost();
	cases_of_sharing();
	cases_of_udp();
	cases_of_room();
	cases_of_events();
	check(!inside(), "every program that entered has left");
	printf("1..%u\n", tests);
	return failures != 0;
}
