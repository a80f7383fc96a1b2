// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * runs N PATH: runs PATH N times, one after the other, as fast as vfork() can, and waits for each.
 * Says how many it ran; exits non-zero if one could not be run or did not exit with 0.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int run(char *path)
{
	char *argv[] = { path, NULL };
	int status;
	pid_t pid = vfork();

	if (pid == 0) {
		execve(path, argv, environ);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

int main(int argc, char **argv)
{
	int n = argc == 3 ? atoi(argv[1]) : 0;

	if (n <= 0) {
		fprintf(stderr, "usage: runs N PATH\n");
		return 2;
	}
	for (int i = 0; i < n; i++) {
		int status = run(argv[2]);

		if (status) {
			fprintf(stderr, "runs: run %d of %s: %s%x\n", i + 1, argv[2],
				status < 0 ? "not started, " : "wait status 0x",
				(unsigned int)status);
			return 1;
		}
	}
	printf("%d\n", n);
	return 0;
}
