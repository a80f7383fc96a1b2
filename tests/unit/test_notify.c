// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * sd_notify: messages arrive at a path and at an abstract name; without a manager all succeeds.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "notify.h"

static int manager(const char *name)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	memcpy(addr.sun_path, name, strlen(name));
	if (*name == '@')
		addr.sun_path[0] = '\0';
	assert_int_equal(bind(fd, (struct sockaddr *)&addr,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
			 0);
	setenv("NOTIFY_SOCKET", name, 1);
	return fd;
}

static void arrives(int fd, const char *text)
{
	char buf[256];
	ssize_t n = recv(fd, buf, sizeof(buf) - 1, MSG_DONTWAIT);

	assert_true(n >= 0);
	buf[n] = '\0';
	assert_string_equal(buf, text);
}

static void talk(const char *name)
{
	int fd = manager(name);

	assert_int_equal(mote_notify_open(), 0);
	assert_int_equal(mote_notify("READY=1\nSTATUS=x"), 0);
	assert_int_equal(mote_notify("STOPPING=1"), 0);
	arrives(fd, "READY=1\nSTATUS=x");
	arrives(fd, "STOPPING=1");
	close(fd);
	assert_int_equal(mote_notify("STATUS=y"), -ECONNREFUSED); /* the manager is gone */
	mote_notify_close();
	assert_int_equal(mote_notify("STATUS=z"), 0);
}

static void test_path(void **state)
{
	char name[64];

	snprintf(name, sizeof(name), "/tmp/mote-test-notify.%d", getpid());
	talk(name);
	unlink(name);
}

static void test_abstract(void **state)
{
	char name[64];

	snprintf(name, sizeof(name), "@mote-test-notify.%d", getpid());
	talk(name);
}

static void test_none(void **state)
{
	char longest[200] = "/";

	unsetenv("NOTIFY_SOCKET");
	assert_int_equal(mote_notify_open(), 0);
	assert_int_equal(mote_notify("READY=1"), 0);
	setenv("NOTIFY_SOCKET", "vsock:2:1234", 1);
	assert_int_equal(mote_notify_open(), -EAFNOSUPPORT);
	setenv("NOTIFY_SOCKET", "/nonexistent/notify", 1);
	assert_int_equal(mote_notify_open(), -ENOENT);
	memset(longest + 1, 'x', sizeof(longest) - 2);
	setenv("NOTIFY_SOCKET", longest, 1);
	assert_int_equal(mote_notify_open(), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_abstract),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
