// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * edges MOTED FOLDER [OPTIONS...]: the scenarios of docs/ATTRIBUTION.md. Each is a process of its
 * own that moves known bytes between files and a TCP socket; what edges it must have is written
 * beside it, and nothing else may have any. Prints TAP.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <net/if.h>
#include <unistd.h>

#include "../files/actor.h"
#include "../files/session.h"
#include "tap.h"

struct book *book;

#define EDGES_MAX 4
#define LARGE     (100 << 20)

/* What a scenario must leave; in memory that its process shares. */
struct outcome {
	uint64_t pid;
	unsigned int n;
	struct expected {
		uint64_t ino, sent, received;
		const char *how;
	} edge[EDGES_MAX];
	uint64_t read_ino, read; /* what the file stream must have, too */
	uint64_t over_socket;    /* and the flow */
	bool skipped;
};

/* What a scenario works with: three files of 64 KiB, a socket, and who is at its other end. */
struct stage {
	int a, b, c, socket, peer;
	char folder[256];
	struct outcome *out;
};

static char buf[65536];

static void must(ssize_t n, ssize_t expected)
{
	need(n == expected, "a call that returns what it was asked for");
}

static void expect(struct stage *s, int fd, const char *how, uint64_t sent, uint64_t received)
{
	struct stat st;

	need(!fstat(fd, &st) && s->out->n < EDGES_MAX, "a file");
	s->out->edge[s->out->n++] = (struct expected){ st.st_ino, sent, received, how };
}

static void send_n(struct stage *s, size_t n)
{
	must(send(s->socket, buf, n, 0), (ssize_t)n);
}

/* The other end is somebody else's process: see peer(). */
static void receive_n(struct stage *s, uint32_t n)
{
	must(write(s->peer, &n, sizeof(n)), sizeof(n));
	must(recv(s->socket, buf, n, MSG_WAITALL), n);
}

static void one_file(struct stage *s)
{
	must(read(s->a, buf, 1000), 1000);
	send_n(s, 1000);
	expect(s, s->a, "credit", 1000, 0);
}

static void more_sent(struct stage *s)
{
	must(read(s->a, buf, 1000), 1000);
	send_n(s, 1500);
	send_n(s, 10);
	expect(s, s->a, "credit", 1000, 0);
}

static void less_sent(struct stage *s)
{
	must(read(s->a, buf, 1000), 1000);
	send_n(s, 300);
	send_n(s, 200);
	expect(s, s->a, "credit", 500, 0);
}

static void two_files(struct stage *s)
{
	must(read(s->a, buf, 100), 100);
	must(read(s->b, buf, 50), 50);
	send_n(s, 150);
	expect(s, s->a, "credit", 100, 0);
	expect(s, s->b, "credit", 50, 0);
}

static void two_files_in_part(struct stage *s)
{
	must(read(s->a, buf, 100), 100);
	must(read(s->b, buf, 50), 50);
	send_n(s, 60);
	expect(s, s->a, "credit", 10, 0);
	expect(s, s->b, "credit", 50, 0);
}

static void three_files(struct stage *s)
{
	must(read(s->a, buf, 100), 100);
	must(read(s->b, buf, 100), 100);
	must(read(s->c, buf, 100), 100);
	send_n(s, 300);
	expect(s, s->b, "credit", 100, 0);
	expect(s, s->c, "credit", 100, 0);
}

static void in_turn(struct stage *s)
{
	for (int i = 0; i < 5; i++) {
		must(read(s->a, buf, 100), 100);
		must(read(s->b, buf, 10), 10);
		send_n(s, 110);
	}
	expect(s, s->a, "credit", 500, 0);
	expect(s, s->b, "credit", 50, 0);
}

static void back_again(struct stage *s)
{
	must(read(s->a, buf, 100), 100);
	must(read(s->b, buf, 20), 20);
	must(read(s->a, buf, 50), 50);
	send_n(s, 170);
	expect(s, s->a, "credit", 150, 0);
	expect(s, s->b, "credit", 20, 0);
}

static void same_bytes_twice(struct stage *s)
{
	must(pread(s->a, buf, 100, 0), 100);
	must(pread(s->a, buf, 100, 0), 100);
	send_n(s, 250);
	expect(s, s->a, "credit", 200, 0);
}

static void *read_in_thread(void *arg)
{
	must(read(((struct stage *)arg)->a, buf, 1000), 1000);
	return NULL;
}

static void other_thread(struct stage *s)
{
	pthread_t thread;

	need(!pthread_create(&thread, NULL, read_in_thread, s), "a thread");
	pthread_join(thread, NULL);
	send_n(s, 1000);
}

static void nothing_read(struct stage *s)
{
	send_n(s, 1000);
}

static void by_write(struct stage *s)
{
	must(read(s->a, buf, 1000), 1000);
	must(write(s->socket, buf, 1000), 1000);
	expect(s, s->a, "credit", 1000, 0);
}

static void by_sendfile(struct stage *s)
{
	off_t at = 0;

	must(sendfile(s->socket, s->a, &at, 30000), 30000);
	send_n(s, 500); /* of nothing: what sendfile read is sent */
	expect(s, s->a, "sendfile", 30000, 0);
}

/* It fails before the kernel counts it as a call. */
static void failed_sendfile(struct stage *s)
{
	must(read(s->a, buf, 1000), 1000);
	send_n(s, 1000);
	need(sendfile(s->socket, -1, NULL, 500) < 0, "a sendfile that fails");
	send_n(s, 500);
	expect(s, s->a, "credit", 1000, 0);
}

static void sendfile_and_credit(struct stage *s)
{
	off_t at = 0;

	must(sendfile(s->socket, s->a, &at, 10000), 10000);
	must(read(s->a, buf, 100), 100);
	send_n(s, 300);
	at = 0;
	must(sendfile(s->socket, s->a, &at, 5000), 5000);
	expect(s, s->a, "sendfile", 15000, 0);
	expect(s, s->a, "credit", 100, 0);
}

/* B4: once on the file, once on the socket, once on the edge. */
static void large_sendfile(struct stage *s)
{
	char path[512];
	int fd = open_new(s->folder, "large", LARGE, 0, path);
	struct stat st;

	need(fd >= 0 && !fstat(fd, &st), path);
	s->out->pid = (uint64_t)getpid();
	for (off_t at = 0; at < LARGE;)
		need(sendfile(s->socket, fd, &at, (size_t)(LARGE - at)) > 0, "sendfile");
	unlink(path);
	expect(s, fd, "sendfile", LARGE, 0);
	s->out->read_ino = st.st_ino;
	s->out->read = s->out->over_socket = LARGE;
}

static void receive_and_write(struct stage *s)
{
	receive_n(s, 700);
	must(write(s->b, buf, 700), 700);
	expect(s, s->b, "credit", 0, 700);
}

static void less_written(struct stage *s)
{
	receive_n(s, 700);
	must(write(s->b, buf, 300), 300);
	receive_n(s, 100);
	must(write(s->b, buf, 200), 200);
	expect(s, s->b, "credit", 0, 500);
}

static void more_written(struct stage *s)
{
	receive_n(s, 700);
	must(write(s->b, buf, 1000), 1000);
	must(write(s->c, buf, 1000), 1000);
	expect(s, s->b, "credit", 0, 700);
}

static void peeked(struct stage *s)
{
	uint32_t n = 100;

	must(write(s->peer, &n, sizeof(n)), sizeof(n));
	must(recv(s->socket, buf, n, MSG_PEEK | MSG_WAITALL), n);
	must(recv(s->socket, buf, n, MSG_PEEK | MSG_WAITALL), n);
	must(recv(s->socket, buf, n, MSG_WAITALL), n);
	must(write(s->b, buf, 300), 300);
	expect(s, s->b, "credit", 0, 100);
}

/* The line of its log is shorter than the request: by credit that is where it came from. */
static void proxy(struct stage *s)
{
	receive_n(s, 200);
	must(read(s->a, buf, 1000), 1000);
	send_n(s, 1000);
	must(write(s->b, buf, 80), 80);
	expect(s, s->a, "credit", 1000, 0);
	expect(s, s->b, "credit", 0, 80);
}

static void pipe_of(int pair[2])
{
	need(!pipe(pair), "a pipe");
}

static void by_splice(struct stage *s)
{
	loff_t at = 0;
	int pair[2];

	pipe_of(pair);
	for (int i = 0; i < 3; i++) {
		must(splice(s->a, &at, pair[1], NULL, 4096, 0), 4096);
		must(splice(pair[0], NULL, s->socket, NULL, 4096, 0), 4096);
	}
	send_n(s, 100); /* of nothing */
	expect(s, s->a, "splice", 3 * 4096, 0);
}

static void two_files_by_splice(struct stage *s)
{
	loff_t at[2] = { 0, 0 };
	int pair[2];

	pipe_of(pair);
	must(splice(s->a, &at[0], pair[1], NULL, 3000, 0), 3000);
	must(splice(s->b, &at[1], pair[1], NULL, 2000, 0), 2000);
	must(splice(pair[0], NULL, s->socket, NULL, 5000, 0), 5000);
	expect(s, s->a, "splice", 3000, 0);
	expect(s, s->b, "splice", 2000, 0);
}

/* Files a, b and c, b again, and so on: n parts of 1000 bytes. */
static void put_in_turn(struct stage *s, int pipe, int n)
{
	const int file[] = { s->a, s->b, s->c, s->b };
	loff_t at = 0;

	for (int i = 0; i < n; i++, at = 0)
		must(splice(file[i % 4], &at, pipe, NULL, 1000, 0), 1000);
}

static void four_sources(struct stage *s)
{
	int pair[2];

	pipe_of(pair);
	put_in_turn(s, pair[1], 4);
	must(splice(pair[0], NULL, s->socket, NULL, 2500, 0), 2500);
	must(splice(pair[0], NULL, s->socket, NULL, 1500, 0), 1500);
	expect(s, s->a, "splice", 1000, 0);
	expect(s, s->b, "splice", 2000, 0);
	expect(s, s->c, "splice", 1000, 0);
}

static void too_many_sources(struct stage *s)
{
	int pair[2];

	pipe_of(pair);
	put_in_turn(s, pair[1], 5);
	must(splice(pair[0], NULL, s->socket, NULL, 5000, 0), 5000);
	put_in_turn(s, pair[1], 1);
	must(splice(pair[0], NULL, s->socket, NULL, 1000, 0), 1000);
	expect(s, s->a, "splice", 1000, 0);
}

static void read_of_pipe(struct stage *s)
{
	int pair[2];

	pipe_of(pair);
	put_in_turn(s, pair[1], 1);
	must(read(pair[0], buf, 600), 600);
	put_in_turn(s, pair[1], 2);
	must(splice(pair[0], NULL, s->socket, NULL, 2400, 0), 2400);
	put_in_turn(s, pair[1], 1);
	must(splice(pair[0], NULL, s->socket, NULL, 1000, 0), 1000);
	expect(s, s->a, "splice", 1000, 0);
}

static void write_to_pipe(struct stage *s)
{
	int pair[2];

	pipe_of(pair);
	must(write(pair[1], buf, 600), 600);
	put_in_turn(s, pair[1], 1);
	must(splice(pair[0], NULL, s->socket, NULL, 1600, 0), 1600);
}

struct taker {
	struct stage *stage;
	int pipe;
};

static void *take_in_thread(void *arg)
{
	const struct taker *taker = arg;

	must(splice(taker->pipe, NULL, taker->stage->socket, NULL, 1000, 0), 1000);
	return NULL;
}

static void two_threads_at_pipe(struct stage *s)
{
	struct taker taker = { .stage = s };
	pthread_t thread;
	int pair[2];

	pipe_of(pair);
	taker.pipe = pair[0];
	put_in_turn(s, pair[1], 1);
	need(!pthread_create(&thread, NULL, take_in_thread, &taker), "a thread");
	pthread_join(thread, NULL);
	put_in_turn(s, pair[1], 1);
	must(splice(pair[0], NULL, s->socket, NULL, 1000, 0), 1000);
	expect(s, s->a, "splice", 1000, 0);
}

static void splice_into_file(struct stage *s)
{
	uint32_t n = 3000;
	ssize_t done = 0;
	loff_t at = 0;
	int pair[2];

	pipe_of(pair);
	must(write(s->peer, &n, sizeof(n)), sizeof(n));
	while (done < (ssize_t)n) {
		ssize_t in = splice(s->socket, NULL, pair[1], NULL, n - (size_t)done, 0);

		need(in > 0, "splice from a socket");
		must(splice(pair[0], NULL, s->b, &at, (size_t)in, 0), in);
		done += in;
	}
	expect(s, s->b, "splice", 0, 3000);
}

static void copy(struct stage *s)
{
	must(read(s->a, buf, 1000), 1000);
	must(write(s->b, buf, 1000), 1000);
}

static const struct scenario {
	const char *name;
	void (*act)(struct stage *stage);
} scenarios[] = {
	{ "one file, then one socket", one_file },
	{ "more is sent than was read", more_sent },
	{ "less is sent than was read", less_sent },
	{ "two files, and all of both", two_files },
	{ "two files, and a part: the last one first", two_files_in_part },
	{ "three files: the first is forgotten", three_files },
	{ "two files in turn", in_turn },
	{ "back to the first file", back_again },
	{ "the same bytes twice", same_bytes_twice },
	{ "read by one thread, sent by another: no file", other_thread },
	{ "nothing was read: no file", nothing_read },
	{ "write() to the socket", by_write },
	{ "sendfile, and then bytes of no file", by_sendfile },
	{ "a sendfile that fails, and then bytes of no file", failed_sendfile },
	{ "sendfile and credit of one file are told apart", sendfile_and_credit },
	{ "100 MiB by sendfile", large_sendfile },
	{ "received, then written", receive_and_write },
	{ "less is written than was received", less_written },
	{ "more is written than was received", more_written },
	{ "a look by MSG_PEEK is no credit", peeked },
	{ "a proxy with a log", proxy },
	{ "splice through a pipe, and then bytes of no file", by_splice },
	{ "two files through one pipe", two_files_by_splice },
	{ "four sources in one pipe, and two calls", four_sources },
	{ "five sources in one pipe: no file, until it is empty", too_many_sources },
	{ "read() from the pipe: no file, until it is empty", read_of_pipe },
	{ "write() to the pipe: no file", write_to_pipe },
	{ "another thread at the pipe: no file, until it is empty", two_threads_at_pipe },
	{ "splice from a socket into a file", splice_into_file },
	{ "file to file: no edge", copy },
};

#define SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

/* Takes all that comes, and sends as many bytes as it is told to. */
static void *drain(void *arg)
{
	static char sink[1 << 16];

	while (read(*(int *)arg, sink, sizeof(sink)) > 0)
		;
	_exit(0);
}

static void peer(int socket, int orders)
{
	pthread_t thread;
	uint32_t n;

	need(!pthread_create(&thread, NULL, drain, &socket), "a thread");
	while (read(orders, &n, sizeof(n)) == sizeof(n))
		must(send(socket, buf, n, 0), n);
	pthread_join(thread, NULL);
	_exit(0);
}

static void connect_pair(int pair[2])
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	need(!bind(listener, (struct sockaddr *)&at, sizeof(at)) && !listen(listener, 1) &&
		     !getsockname(listener, (struct sockaddr *)&at, &len),
	     "a listener");
	pair[0] = socket(AF_INET, SOCK_STREAM, 0);
	need(!connect(pair[0], (struct sockaddr *)&at, sizeof(at)), "connect");
	pair[1] = accept(listener, NULL, NULL);
	need(pair[1] >= 0, "accept");
	close(listener);
}

static void stage_run(const struct scenario *scenario, const char *folder, struct outcome *out)
{
	struct stage s = { .out = out };
	int pair[2], orders[2], status = -1;
	char path[512];
	pid_t other, pid;

	snprintf(s.folder, sizeof(s.folder), "%s", folder);
	connect_pair(pair);
	need(!pipe(orders), "a pipe");
	fflush(stdout);
	other = fork();
	if (!other) {
		close(pair[0]);
		close(orders[1]);
		peer(pair[1], orders[0]);
	}
	close(pair[1]);
	close(orders[0]);
	s.socket = pair[0];
	s.peer = orders[1];
	s.a = open_new(folder, "a", 65536, 0, path);
	s.b = open_new(folder, "b", 65536, 0, path);
	s.c = open_new(folder, "c", 65536, 0, path);
	pid = fork();
	if (!pid) {
		out->pid = (uint64_t)getpid();
		scenario->act(&s);
		_exit(0);
	}
	need(waitpid(pid, &status, 0) == pid && !status, scenario->name);
	close(s.a);
	close(s.b);
	close(s.c);
	close(pair[0]);
	close(orders[1]);
	waitpid(other, NULL, 0);
}

static const struct row *edge_of(const struct outcome *out, const struct expected *e)
{
	for (size_t i = 0; i < stream_edge.n; i++) {
		const struct row *row = &stream_edge.row[i];

		if (row->given && rows_value(&stream_edge, row, "pid") == out->pid &&
		    rows_value(&stream_edge, row, "inode") == e->ino &&
		    rows_value(&stream_edge, row, "how") == rows_text(e->how, strlen(e->how)))
			return row;
	}
	return NULL;
}

static unsigned int edges_of(uint64_t pid)
{
	unsigned int n = 0;

	for (size_t i = 0; i < stream_edge.n; i++)
		n += stream_edge.row[i].given &&
		     rows_value(&stream_edge, &stream_edge.row[i], "pid") == pid;
	return n;
}

static uint64_t sum_of(const struct rows *rows, uint64_t pid, uint64_t ino, const char *field)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < rows->n; i++) {
		const struct row *row = &rows->row[i];

		if (row->given && rows_value(rows, row, "pid") == pid &&
		    (!ino || rows_value(rows, row, "inode") == ino))
			sum += rows_value(rows, row, field);
	}
	return sum;
}

static bool fits(const struct outcome *out)
{
	for (unsigned int i = 0; i < out->n; i++) {
		const struct row *row = edge_of(out, &out->edge[i]);

		if (!row || rows_value(&stream_edge, row, "bytes_sent") != out->edge[i].sent ||
		    rows_value(&stream_edge, row, "bytes_received") != out->edge[i].received)
			return false;
	}
	if (out->read && sum_of(&stream_file, out->pid, out->read_ino, "bytes_read") != out->read)
		return false;
	if (out->over_socket && sum_of(&stream_flow, out->pid, 0, "bytes_sent") != out->over_socket)
		return false;
	return edges_of(out->pid) == out->n;
}

static void say(const struct outcome *out, const char *name)
{
	if (tap(fits(out), "%s", name))
		return;
	for (unsigned int i = 0; i < out->n; i++) {
		const struct expected *e = &out->edge[i];

		printf("# expected: inode %llu by %s: bytes sent %llu, received %llu\n",
		       (unsigned long long)e->ino, e->how, (unsigned long long)e->sent,
		       (unsigned long long)e->received);
	}
	for (size_t i = 0; i < stream_edge.n; i++) {
		const struct row *row = &stream_edge.row[i];

		if (!row->given || rows_value(&stream_edge, row, "pid") != out->pid)
			continue;
		printf("# seen: inode %llu by %s: bytes sent %llu, received %llu\n",
		       (unsigned long long)rows_value(&stream_edge, row, "inode"),
		       rows_value(&stream_edge, row, "how") == rows_text("credit", 6) ? "credit"
										      : "sendfile",
		       (unsigned long long)rows_value(&stream_edge, row, "bytes_sent"),
		       (unsigned long long)rows_value(&stream_edge, row, "bytes_received"));
	}
	if (out->read)
		printf("# file: %llu bytes read, flow: %llu sent; expected %llu\n",
		       (unsigned long long)sum_of(&stream_file, out->pid, out->read_ino,
						  "bytes_read"),
		       (unsigned long long)sum_of(&stream_flow, out->pid, 0, "bytes_sent"),
		       (unsigned long long)out->read);
}

static bool all_fit(const struct outcome *outcomes)
{
	for (unsigned int i = 0; i < SCENARIOS; i++) {
		if (!fits(&outcomes[i]))
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	struct outcome *outcomes;
	char socket_path[64], *folder;
	uint64_t until;
	pid_t moted;

	if (argc < 3) {
		fprintf(stderr, "usage: edges MOTED FOLDER [OPTIONS...]\n");
		return 2;
	}
	ioctl(socket(AF_INET, SOCK_DGRAM, 0), SIOCSIFFLAGS, &lo);
	outcomes = mmap(NULL, SCENARIOS * sizeof(*outcomes), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(outcomes != MAP_FAILED, "memory");
	snprintf(socket_path, sizeof(socket_path), "/tmp/edges.%d", getpid());
	folder = argv[2];
	argv[2] = argv[1];
	moted = session_moted(argv + 2, socket_path);
	if (!tap(session_open(socket_path, "subscribe edge,file,flow,process interval=20ms"),
		 "moted has the stream edge"))
		return 1;
	printf("# file: %s, network: %s\n", session_tier("file"), session_tier("network"));
	for (unsigned int i = 0; i < SCENARIOS; i++) {
		stage_run(&scenarios[i], folder, &outcomes[i]);
		session_listen(60);
	}
	until = session_ms() + 5000;
	while (!all_fit(outcomes) && session_ms() < until && session_listen(100))
		;
	for (unsigned int i = 0; i < SCENARIOS; i++)
		say(&outcomes[i], scenarios[i].name);
	printf("1..%u\n", tap_n);
	session_close();
	kill(moted, SIGTERM);
	waitpid(moted, NULL, 0);
	return tap_failed != 0;
}
