// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * sd_notify(3): one datagram a message. The socket is kept, so that STOPPING=1 can be sent when
 * nothing can be opened any more. A manager that is gone is an error of the caller's to pass over.
 */
#include "notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int notify_fd = -1;

int mote_notify_open(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len;
	int fd;

	if (!path || !*path)
		return 0;
	len = strlen(path);
	if (*path != '/' && *path != '@') /* vsock: of virtual machines */
		return -EAFNOSUPPORT;
	if (len >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, len);
	if (*path == '@') /* abstract: a leading NUL, and no trailing one */
		addr.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&addr,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len))) {
		int r = -errno;

		close(fd);
		return r;
	}
	mote_notify_close();
	notify_fd = fd;
	return 0;
}

int mote_notify(const char *state)
{
	if (notify_fd < 0)
		return 0;
	return send(notify_fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

void mote_notify_close(void)
{
	if (notify_fd >= 0)
		close(notify_fd);
	notify_fd = -1;
}
