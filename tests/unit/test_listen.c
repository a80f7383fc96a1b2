// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The listening socket: permissions before anybody can connect, stale and live sockets (E7), what
 * is not a socket, activation, who may connect, and that only our own socket is removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "listen.h"
#include "options.h"

static char dir[] = "/tmp/mote-test-listen.XXXXXX";
static struct mote_options options;
static char err[512];

static int make_dir(void **state)
{
	return mkdtemp(dir) && !chmod(dir, 0755) ? 0 : -1;
}

static int remove_dir(void **state)
{
	return rmdir(dir); /* fails if a test left something */
}

static int set_options(void **state)
{
	mote_options_default(&options);
	snprintf(options.socket_path, sizeof(options.socket_path), "%s/s", dir);
	err[0] = '\0';
	return 0;
}

static int open_listener(void)
{
	int fd = mote_listen(&options, err, sizeof(err));

	if (fd < 0)
		fail_msg("%s", err);
	return fd;
}

static int connect_to(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	close(fd);
	return -errno;
}

static void leave_stale(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", options.socket_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 1), 0);
	close(fd);
}

static bool there(void)
{
	struct stat st;

	return !lstat(options.socket_path, &st);
}

/* Refused, with this in the line. */
static void refused(int error, const char *says)
{
	assert_int_equal(mote_listen(&options, err, sizeof(err)), -error);
	if (!strstr(err, says))
		fail_msg("'%s' is not in '%s'", says, err);
	assert_null(strchr(err, '\n'));
}

static void test_listens(void **state)
{
	mode_t before = umask(0123);
	struct stat st;
	int fd, client;

	options.socket_mode = 0666;
	fd = open_listener();
	assert_int_equal(umask(before), 0123); /* put back */
	assert_int_equal(lstat(options.socket_path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0666);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(accept(fd, NULL, NULL), -1);
	assert_int_equal(errno, EAGAIN);
	client = connect_to(options.socket_path);
	assert_true(client >= 0);
	close(client);
	mote_listen_close(&options, fd);
	assert_false(there());
}

static void test_stale_is_replaced(void **state)
{
	int fd, client;

	leave_stale();
	assert_int_equal(connect_to(options.socket_path), -ECONNREFUSED);
	fd = open_listener();
	client = connect_to(options.socket_path);
	assert_true(client >= 0);
	close(client);
	mote_listen_close(&options, fd);
	assert_false(there());
}

static void test_live_is_refused(void **state)
{
	int fd = open_listener(), client;

	refused(EADDRINUSE, "another process answers there");
	client = connect_to(options.socket_path); /* and still answers */
	assert_true(client >= 0);
	close(client);
	close(fd);
	unlink(options.socket_path);
}

/* Its backlog is full: it does not answer, but it lives. */
static void test_busy_is_alive(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), clients[2];

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", options.socket_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 0), 0);
	clients[0] = connect_to(options.socket_path);
	assert_true(clients[0] >= 0);
	refused(EADDRINUSE, "another process answers there");
	close(clients[0]);
	close(fd);
	unlink(options.socket_path);
}

static void test_what_is_no_socket_stays(void **state)
{
	int fd = open(options.socket_path, O_CREAT | O_WRONLY, 0600);

	close(fd);
	refused(EEXIST, "exists and is not a socket");
	assert_true(there());
	unlink(options.socket_path);
	/* A link to a stale socket is not followed, nor removed. */
	assert_int_equal(symlink("/nonexistent", options.socket_path), 0);
	refused(EEXIST, "exists and is not a socket");
	assert_true(there());
	unlink(options.socket_path);
	assert_int_equal(mkdir(options.socket_path, 0700), 0);
	refused(EEXIST, "exists and is not a socket");
	rmdir(options.socket_path);
}

static void test_no_directory(void **state)
{
	snprintf(options.socket_path, sizeof(options.socket_path), "%s/no/s", dir);
	refused(ENOENT, "its directory");
}

static void test_unknown_group(void **state)
{
	snprintf(options.socket_group, sizeof(options.socket_group), "no-such-group");
	refused(EINVAL, "'no-such-group' is no group of this host");
	snprintf(options.socket_group, sizeof(options.socket_group), "12x");
	refused(EINVAL, "'12x' is no group");
	assert_false(there());
}

static void test_group(void **state)
{
	gid_t group = geteuid() ? getegid() : 12345;
	struct stat st;
	int fd;

	snprintf(options.socket_group, sizeof(options.socket_group), "%u", group);
	fd = open_listener();
	assert_int_equal(lstat(options.socket_path, &st), 0);
	assert_int_equal(st.st_gid, group);
	assert_int_equal(st.st_mode, S_IFSOCK | 0660);
	mote_listen_close(&options, fd);
}

static void test_only_ours_is_removed(void **state)
{
	int fd = open_listener();

	unlink(options.socket_path);
	leave_stale(); /* another's */
	mote_listen_close(&options, fd);
	assert_true(there());
	unlink(options.socket_path);
}

static void test_allowed(void **state)
{
	struct ucred root = { 1, 0, 99 }, own = { 1, geteuid(), 99 }, other = { 1, 4321, 99 },
		     member = { 1, 4321, getegid() };
	int fd;

	fd = open_listener();
	assert_true(mote_peer_allowed(&options, &root));
	assert_true(mote_peer_allowed(&options, &own));
	assert_true(mote_peer_allowed(&options, &member));
	assert_false(mote_peer_allowed(&options, &other));
	options.socket_mode = 0600; /* the group may not write */
	assert_false(mote_peer_allowed(&options, &member));
	options.socket_mode = 0666;
	assert_true(mote_peer_allowed(&options, &other));
	mote_listen_close(&options, fd);
}

/* Connects as user 4321 with these groups; what mote_peer_check() says of it. */
static int check_as(int fd, gid_t gid, size_t ngroups, const gid_t *groups)
{
	int client, r, status;
	pid_t pid = fork();

	if (!pid) {
		if (setgroups(ngroups, groups) || setgid(gid) || setuid(4321))
			_exit(1);
		client = connect_to(options.socket_path);
		_exit(client < 0 || read(client, &r, 1) ? 2 : 0);
	}
	for (int i = 0; i < 500 && (client = accept(fd, NULL, NULL)) < 0; i++)
		usleep(10000);
	assert_true(client >= 0);
	r = mote_peer_check(client, &options);
	close(client);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return r;
}

static void test_peer_groups(void **state)
{
	const gid_t with[] = { 7, 12345, 9 }, without[] = { 7, 9 };
	gid_t many[2000];
	int fd;

	if (geteuid()) {
		print_message("# only root can connect as somebody else: not tested\n");
		return;
	}
	for (unsigned int i = 0; i < 2000; i++)
		many[i] = 20000 + i;
	/* The socket lets all connect, so that it is mote's check that is tested. */
	options.socket_mode = 0666;
	snprintf(options.socket_group, sizeof(options.socket_group), "12345");
	fd = open_listener();
	assert_int_equal(check_as(fd, 99, 2, without), 0);
	options.socket_mode = 0660;
	assert_int_equal(check_as(fd, 99, 2, without), -EACCES);
	assert_int_equal(check_as(fd, 99, 0, NULL), -EACCES);
	assert_int_equal(check_as(fd, 99, 3, with), 0);
	assert_int_equal(check_as(fd, 12345, 0, NULL), 0);
	assert_int_equal(check_as(fd, 99, 2000, many), -ERANGE);
	options.socket_mode = 0600;
	assert_int_equal(check_as(fd, 99, 3, with), -EACCES);
	mote_listen_close(&options, fd);
}

/* In a child, whose descriptor 3 is `passed`. Exits with the (positive) errno. */
static int activate(int passed, const char *fds, bool ours)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		char text[16];
		int fd;

		dup2(passed, 3);
		snprintf(text, sizeof(text), "%d", ours ? getpid() : getppid());
		setenv("LISTEN_PID", text, 1);
		setenv("LISTEN_FDS", fds, 1);
		fd = mote_listen(&options, err, sizeof(err));
		if (fd < 0)
			_exit(-fd);
		if (fd == 3 && (getenv("LISTEN_FDS") || !(fcntl(3, F_GETFL) & O_NONBLOCK) ||
				!(fcntl(3, F_GETFD) & FD_CLOEXEC)))
			_exit(200);
		mote_listen_close(&options, fd);
		_exit(fd == 3 ? 0 : 201);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_activation(void **state)
{
	int fd = open_listener(), pair[2];

	assert_int_equal(activate(fd, "1", true), 0);
	assert_true(there()); /* it is systemd's to remove */
	assert_int_equal(activate(fd, "2", true), EINVAL);
	assert_int_equal(activate(fd, "0", true), EINVAL);
	/* Not meant for this process: it makes its own, and finds the live one. */
	assert_int_equal(activate(fd, "1", false), EADDRINUSE);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(activate(pair[0], "1", true), EINVAL); /* not listening */
	assert_int_equal(activate(STDERR_FILENO, "1", true), EINVAL);
	close(pair[0]);
	close(pair[1]);
	mote_listen_close(&options, fd);
}

/* A process of the race: 0 if it had the socket until `done` was closed, else the errno. */
static void race(const int gate[2], const int done[2])
{
	char c;
	int fd;

	close(gate[1]);
	close(done[1]);
	(void)!read(gate[0], &c, 1);
	fd = mote_listen(&options, err, sizeof(err));
	if (fd >= 0)
		(void)!read(done[0], &c, 1);
	_exit(fd < 0 ? -fd : 0);
}

/* Starts that meet at a stale socket: one wins, the others say that it is taken. */
static void race_once(void)
{
	enum { RACERS = 6 };
	int gate[2], done[2], status;

	leave_stale();
	assert_int_equal(pipe(gate), 0);
	assert_int_equal(pipe(done), 0);
	for (int i = 0; i < RACERS; i++) {
		if (!fork())
			race(gate, done);
	}
	close(gate[1]);
	/* The losers end by themselves; then the winner is let go. */
	for (int i = 0; i < RACERS; i++) {
		if (i == RACERS - 1)
			close(done[1]);
		assert_true(waitpid(-1, &status, 0) > 0);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), i < RACERS - 1 ? EADDRINUSE : 0);
	}
	close(gate[0]);
	close(done[0]);
	unlink(options.socket_path);
}

static void test_race(void **state)
{
	alarm(30); /* two winners would wait for ever */
	for (int i = 0; i < 100; i++)
		race_once();
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_listens, set_options),
		cmocka_unit_test_setup(test_stale_is_replaced, set_options),
		cmocka_unit_test_setup(test_live_is_refused, set_options),
		cmocka_unit_test_setup(test_busy_is_alive, set_options),
		cmocka_unit_test_setup(test_what_is_no_socket_stays, set_options),
		cmocka_unit_test_setup(test_no_directory, set_options),
		cmocka_unit_test_setup(test_unknown_group, set_options),
		cmocka_unit_test_setup(test_group, set_options),
		cmocka_unit_test_setup(test_only_ours_is_removed, set_options),
		cmocka_unit_test_setup(test_allowed, set_options),
		cmocka_unit_test_setup(test_peer_groups, set_options),
		cmocka_unit_test_setup(test_activation, set_options),
		cmocka_unit_test_setup(test_race, set_options),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
