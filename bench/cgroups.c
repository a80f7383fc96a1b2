// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * cgroups WAY CGROUPS SCRAPES PAUSE_MS [PROGRAM [SOURCE]]: what it takes to read all of so many
 * cgroups, so many times, with a pause between. WAY: `unbounded`, a thread for each cgroup that
 * reads its files at once, as agents do; `bounded`, one thread after the other; `moted`, `poll
 * cgroup` of a moted with [cgroup] source = SOURCE; `cadvisor`, GET /metrics, and what it does in
 * the pauses counts. The first two read all files each time, moted some of them each time and the
 * rest when it is their turn. To compare like with like: `pooled` reads those files of version 2
 * that the iterator takes the place of, which stay open, and parses nothing; SOURCE `walk` is the
 * iterator, and no file's turn comes; `rows` is the same without a walk: what it takes to tell the
 * rows alone. Each cgroup has a process with some memory, one in sixteen works. Prints a line: way,
 * cgroups, CPU time a scrape in ms (of the kernel and user space), median and largest latency in
 * ms. In a VM without cgroupfs it mounts version 2.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cgroup_layout.h"
#include "libmote.h"
#include "parse_cgroup.h"

#define TOP         "mote-bench"
#define MAX         8192
#define SOCKET      "/tmp/bench-cgroups.sock"
#define CONFIG      "/tmp/bench-cgroups.conf"
#define MEMORY      (256 * 1024)
#define SCRAPES_MAX 1000

#define CADVISOR_PORT 18080u

static struct mote_cgroup_layout layout;
static const struct mote_cgroup_file *files;
static unsigned int nfiles, ngroups;
static pid_t children[MAX];
static pid_t agent;

static void die(const char *what)
{
	fprintf(stderr, "bench/cgroups: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double seconds(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void nap(unsigned int ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l }, NULL);
}

static bool in_use(unsigned int controller)
{
	return layout.root[controller] >= 0 &&
	       (layout.version == 2) == (controller == MOTE_CGROUP_UNIFIED);
}

static void put(unsigned int controller, const char *path, const char *name, const char *text)
{
	char full[512];
	int fd;

	snprintf(full, sizeof(full), "%s/%s", path, name);
	fd = openat(layout.root[controller], full, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0 && errno != EINVAL && errno != ENOENT)
		perror(full);
	close(fd);
}

static void each(void (*what)(unsigned int controller, const char *path), const char *path)
{
	for (unsigned int i = 0; i < MOTE_CGROUP_CONTROLLERS; i++) {
		if (in_use(i))
			what(i, path);
	}
}

static void enable(unsigned int controller, const char *path)
{
	static const char *const wanted[] = { "+cpu", "+memory", "+pids", "+io" };

	for (unsigned int i = 0; controller == MOTE_CGROUP_UNIFIED && i < 4; i++)
		put(controller, path, "cgroup.subtree_control", wanted[i]);
}

static void make(unsigned int controller, const char *path)
{
	if (mkdirat(layout.root[controller], path, 0755) && errno != EEXIST)
		die(path);
}

static void unmake(unsigned int controller, const char *path)
{
	unlinkat(layout.root[controller], path, AT_REMOVEDIR);
}

static void join(unsigned int controller, const char *path)
{
	put(controller, path, "cgroup.procs", "0");
}

static void path_of(unsigned int i, char path[64])
{
	snprintf(path, 64, TOP "/group%u", i);
}

static void work(unsigned int i)
{
	char path[64], *memory;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	path_of(i, path);
	each(join, path);
	memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(memory, 1, MEMORY);
	for (;;) {
		if (i % 16) {
			pause();
			continue;
		}
		madvise(memory, MEMORY, MADV_DONTNEED);
		memset(memory, 1, MEMORY);
		nap(20);
	}
}

static void make_groups(void)
{
	char path[64];

	each(enable, ".");
	each(make, TOP);
	each(enable, TOP);
	for (unsigned int i = 0; i < ngroups; i++) {
		path_of(i, path);
		each(make, path);
		children[i] = fork();
		if (!children[i])
			work(i);
	}
}

static void clean(void)
{
	char path[64];

	for (unsigned int i = 0; i < ngroups && children[i] > 0; i++)
		kill(children[i], SIGKILL);
	for (unsigned int i = 0; i < ngroups && children[i] > 0; i++)
		waitpid(children[i], NULL, 0);
	nap(100);
	for (unsigned int i = 0; i < ngroups; i++) {
		path_of(i, path);
		each(unmake, path);
	}
	each(unmake, TOP);
}

static void *read_group(void *arg)
{
	char path[160], text[16384], group[64];

	path_of((unsigned int)(uintptr_t)arg, group);
	for (unsigned int i = 0; i < nfiles; i++) {
		struct mote_cgroup_values values = { 0 };
		ssize_t len;
		int fd;

		if (layout.root[files[i].controller] < 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", group, files[i].name);
		fd = openat(layout.root[files[i].controller], path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		len = read(fd, text, sizeof(text));
		close(fd);
		if (len > 0)
			mote_parse_cgroup(&files[i], (struct mote_text){ text, (size_t)len },
					  &values);
	}
	return NULL;
}

static void unbounded(struct mote_client *client)
{
	static pthread_t threads[MAX];

	for (unsigned int i = 0; i < ngroups; i++) {
		if (pthread_create(&threads[i], NULL, read_group, (void *)(uintptr_t)i))
			die("pthread_create");
	}
	for (unsigned int i = 0; i < ngroups; i++)
		pthread_join(threads[i], NULL);
}

static void bounded(struct mote_client *client)
{
	for (unsigned int i = 0; i < ngroups; i++)
		read_group((void *)(uintptr_t)i);
}

static int *pool;
static unsigned int pooled_files;

static void open_pool(void)
{
	const uint64_t walked = (1ull << MOTE_CGROUP_FAST) - 1;
	struct rlimit limit = { .rlim_cur = MAX * 20, .rlim_max = MAX * 20 };
	char path[160], group[64];

	setrlimit(RLIMIT_NOFILE, &limit);
	pool = calloc((size_t)ngroups * nfiles, sizeof(*pool));
	for (unsigned int i = 0; pool && i < ngroups * nfiles; i++) {
		int fd;

		if (files[i % nfiles].gives & ~walked)
			continue;
		path_of(i / nfiles, group);
		snprintf(path, sizeof(path), "%s/%s", group, files[i % nfiles].name);
		fd = openat(layout.root[MOTE_CGROUP_UNIFIED], path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			pool[pooled_files++] = fd;
		else if (errno != ENOENT)
			die(path);
	}
}

static void pooled(struct mote_client *client)
{
	char text[16384];

	for (unsigned int i = 0; i < pooled_files; i++) {
		if (pread(pool[i], text, sizeof(text), 0) < 0)
			die("pread");
	}
}

static void polled(struct mote_client *client)
{
	struct mote_message message = { 0 };
	size_t rows = 0;

	if (mote_request(client, "poll cgroup"))
		die("poll");
	while (mote_next(client, &message, 60000) == 1) {
		rows += message.type == MOTE_MESSAGE_DATA ? message.nrows : 0;
		if (message.type == MOTE_MESSAGE_DATA && !message.more)
			break;
	}
	if (rows < ngroups)
		die("too few rows");
}

static struct mote_client *start(const char *program, const char *source)
{
	bool rows = !strcmp(source, "rows"), walk = rows || !strcmp(source, "walk");
	struct mote_client *client = NULL;
	FILE *file = fopen(CONFIG, "we");

	if (!file)
		die(CONFIG);
	fprintf(file,
		"[tables]\ncgroups = %u\n[cgroup]\nsource = %s\nslow = %s\nfreshness = %s\n"
		"[socket]\nqueue = 16MiB\narena = 64MiB\n",
		ngroups + 256, walk ? "iterator" : source, walk ? "1h" : "10s",
		rows ? "1h" : "0ms");
	fclose(file);
	unlink(SOCKET);
	agent = fork();
	if (!agent) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(program, program, "--socket", SOCKET, "--config", CONFIG, NULL);
		_exit(127);
	}
	for (unsigned int i = 0; i < 3000 && mote_open(SOCKET, &client); i++)
		nap(100);
	if (!client)
		die("moted does not listen");
	polled(client);
	return client;
}

static int connect_to(unsigned int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && !connect(fd, (struct sockaddr *)&to, sizeof(to)))
		return fd;
	close(fd);
	return -1;
}

/* One GET /metrics, all of it; the cgroups of ours that it has, or -1: nobody listens. */
static int cadvisor_groups(void)
{
	static const char get[] = "GET /metrics HTTP/1.0\r\n\r\n";
	int fd = connect_to(CADVISOR_PORT), groups = 0;
	FILE *file = fd >= 0 ? fdopen(fd, "r+") : NULL;
	size_t size = 0;
	char *line = NULL;

	if (!file)
		return -1;
	if (write(fd, get, sizeof(get) - 1) != (ssize_t)sizeof(get) - 1)
		die("GET");
	while (getline(&line, &size, file) > 0)
		groups += !strncmp(line, "container_cpu_user_seconds_total{", 33) &&
			  strstr(line, "/" TOP "/");
	free(line);
	fclose(file);
	return groups;
}

static void cadvised(struct mote_client *client)
{
	if (cadvisor_groups() < (int)ngroups)
		die("too few cgroups");
}

/* By its defaults: it reads each cgroup once a second, or up to 15 s apart if that does little. */
static void start_cadvisor(const char *program)
{
	char port[24];

	snprintf(port, sizeof(port), "-port=%u", CADVISOR_PORT);
	agent = fork();
	if (!agent) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!freopen("/dev/null", "w", stderr))
			_exit(127);
		execl(program, program, "-listen_ip=127.0.0.1", port, NULL);
		_exit(127);
	}
	for (unsigned int i = 0; i < 600 && cadvisor_groups() < (int)ngroups; i++)
		nap(200);
	nap(5000);
	cadvised(NULL);
}

/* CPU time of all threads of an agent, io_uring's workers included, s. */
static double cpu_of_agent(void)
{
	char pattern[64];
	uint64_t sum = 0, ns;
	glob_t found;

	snprintf(pattern, sizeof(pattern), "/proc/%d/task/*/schedstat", agent);
	if (glob(pattern, 0, NULL, &found))
		die("the agent's threads");
	for (size_t i = 0; i < found.gl_pathc; i++) {
		FILE *file = fopen(found.gl_pathv[i], "re");

		if (file && fscanf(file, "%" SCNu64, &ns) == 1)
			sum += ns;
		if (file)
			fclose(file);
	}
	globfree(&found);
	return (double)sum / 1e9;
}

static double cpu(void)
{
	return agent ? cpu_of_agent() : seconds(CLOCK_PROCESS_CPUTIME_ID);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(const char *way, void (*scrape)(struct mote_client *),
		    struct mote_client *client, unsigned int n, unsigned int pause_ms)
{
	static double took[SCRAPES_MAX];
	double began = cpu(), spent;

	for (unsigned int i = 0; i < n; i++) {
		double at;

		nap(pause_ms);
		at = seconds(CLOCK_MONOTONIC);
		scrape(client);
		took[i] = seconds(CLOCK_MONOTONIC) - at;
	}
	spent = cpu() - began;
	qsort(took, n, sizeof(took[0]), compare);
	printf("%-22s %8u %14.2f %12.2f %12.2f\n", way, ngroups, spent * 1e3 / n, took[n / 2] * 1e3,
	       took[n - 1] * 1e3);
}

int main(int argc, char **argv)
{
	struct mote_client *client = NULL;
	unsigned int n, pause_ms;
	char way[32];

	if (argc < 5 || (!strcmp(argv[1], "moted") && argc < 7) ||
	    (!strcmp(argv[1], "cadvisor") && argc < 6)) {
		fprintf(stderr,
			"usage: cgroups unbounded|bounded|pooled|moted|cadvisor CGROUPS SCRAPES "
			"PAUSE_MS [PROGRAM [SOURCE]]\n");
		return 2;
	}
	ngroups = (unsigned int)atoi(argv[2]);
	n = (unsigned int)atoi(argv[3]);
	pause_ms = (unsigned int)atoi(argv[4]);
	if (ngroups > MAX || n > SCRAPES_MAX || !n)
		return 2;
	mote_cgroup_layout_open(&layout, NULL);
	if (!layout.version) {
		mkdir("/sys/fs/cgroup", 0755);
		mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, NULL);
		mote_cgroup_layout_open(&layout, NULL);
	}
	if (!layout.version)
		die("no cgroupfs");
	if (!strcmp(argv[1], "pooled") || (argc > 6 && strcmp(argv[6], "files")))
		mote_cgroup_layout_unify(&layout);
	files = mote_cgroup_files(layout.version, &nfiles);
	atexit(clean);
	make_groups();
	nap(500);
	snprintf(way, sizeof(way), "%s %s", argv[1], argc > 6 ? argv[6] : "");
	if (!strcmp(argv[1], "moted"))
		client = start(argv[5], argv[6]);
	if (!strcmp(argv[1], "cadvisor"))
		start_cadvisor(argv[5]);
	if (!strcmp(argv[1], "pooled"))
		open_pool();
	measure(way,
		!strcmp(argv[1], "unbounded") ? unbounded
		: client                      ? polled
		: agent                       ? cadvised
		: pool                        ? pooled
					      : bounded,
		client, n, pause_ms);
	if (agent)
		kill(agent, SIGTERM);
	return 0;
}
