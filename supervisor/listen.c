// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The listening socket. A bound unix socket refuses connections until listen(), so its mode and
 * group are set between the two. Between looking at an old socket and replacing it the directory is
 * locked, so that two motes that start at once cannot take each other's socket away.
 */
#include "listen.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "options.h"

#ifndef SO_PEERGROUPS
#	define SO_PEERGROUPS 59 /* Linux 4.13 */
#endif

#define ACTIVATION_FD 3 /* SD_LISTEN_FDS_START */
#define PEER_GROUPS   1024
#define LOCK_TRIES    100 /* of 10 ms */

static struct {
	uid_t uid;
	gid_t gid;
	dev_t dev;
	ino_t ino; /* 0: not made by us */
	gid_t peer_groups[PEER_GROUPS];
} self;

__attribute__((format(printf, 4, 5))) static int fail(int error, char *err, size_t size,
						      const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(err, size, fmt, args);
	va_end(args);
	return -error;
}

/* By name or number. May allocate and read files: NSS. */
static int find_group(const char *name, gid_t *gid)
{
	const struct group *group;
	unsigned long number;
	char *end;

	if (*name >= '0' && *name <= '9') {
		errno = 0;
		number = strtoul(name, &end, 10);
		if (errno || *end || number >= (gid_t)-1)
			return -EINVAL;
		*gid = (gid_t)number;
		return 0;
	}
	group = getgrnam(name);
	if (!group)
		return -ENOENT;
	*gid = group->gr_gid;
	return 0;
}

static int find_owner(const struct mote_options *options, char *err, size_t size)
{
	self.uid = geteuid();
	self.gid = getegid();
	memset(self.peer_groups, 0xff, sizeof(self.peer_groups)); /* no page fault later */
	if (*options->socket_group && find_group(options->socket_group, &self.gid))
		return fail(
			EINVAL, err, size,
			"[socket] group: '%s' is no group of this host: make it with groupadd, or set another",
			options->socket_group);
	return 0;
}

/* systemd's socket activation, sd_listen_fds(3). 0: not activated. */

static int socket_option(int fd, int option)
{
	int value;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &len) ? -errno : value;
}

static int take_activated(char *err, size_t size)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	int flags;

	if (!pid || !fds || strtol(pid, NULL, 10) != getpid())
		return 0;
	if (strcmp(fds, "1"))
		return fail(
			EINVAL, err, size,
			"socket activation: %s sockets were passed, mote takes exactly one: give mote.socket one ListenStream",
			fds);
	if (socket_option(ACTIVATION_FD, SO_DOMAIN) != AF_UNIX ||
	    socket_option(ACTIVATION_FD, SO_TYPE) != SOCK_STREAM ||
	    socket_option(ACTIVATION_FD, SO_ACCEPTCONN) != 1)
		return fail(
			EINVAL, err, size,
			"socket activation: descriptor 3 is not a listening unix stream socket: use ListenStream=/PATH and Accept=no");
	flags = fcntl(ACTIVATION_FD, F_GETFL);
	if (flags < 0 || fcntl(ACTIVATION_FD, F_SETFL, flags | O_NONBLOCK) ||
	    fcntl(ACTIVATION_FD, F_SETFD, FD_CLOEXEC))
		return fail(errno, err, size, "socket activation: descriptor 3: %s",
			    strerror(errno));
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return ACTIVATION_FD;
}

/* A socket of our own */

/*
 * Returns the directory's descriptor. Anybody who can read the directory can hold its lock, so it
 * is not waited for longer than a second: it guards against a rare race only.
 */
static int lock_directory(const char *path, char *err, size_t size)
{
	const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
	char copy[sizeof(((struct mote_options *)0)->socket_path)];
	const char *dir;
	int fd;

	snprintf(copy, sizeof(copy), "%s", path);
	dir = dirname(copy);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fail(
			errno, err, size,
			"%s: its directory %s cannot be opened: %s; make it, or set [socket] path",
			path, dir, strerror(errno));
	for (int i = 0; i < LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK; i++)
		nanosleep(&pause, NULL);
	return fd;
}

/* 0: somebody answers. -ECONNREFUSED: nobody does. */
static int try_connect(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), r = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)))
		r = -errno;
	close(fd);
	return r == -EAGAIN ? 0 : r; /* its backlog is full: alive, if not well */
}

static int remove_stale(const struct sockaddr_un *addr, char *err, size_t size)
{
	struct stat st;
	int r;

	if (lstat(addr->sun_path, &st))
		return errno == ENOENT
			       ? 0
			       : fail(errno, err, size, "%s: %s", addr->sun_path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return fail(EEXIST, err, size,
			    "%s: exists and is not a socket: remove it, or set [socket] path",
			    addr->sun_path);
	r = try_connect(addr);
	if (!r)
		return fail(EADDRINUSE, err, size,
			    "%s: another process answers there: stop it, or set [socket] path",
			    addr->sun_path);
	if (r != -ECONNREFUSED)
		return fail(
			-r, err, size,
			"%s: exists, and whether somebody answers there cannot be told: %s; remove it, or set [socket] path",
			addr->sun_path, strerror(-r));
	if (unlink(addr->sun_path) && errno != ENOENT)
		return fail(errno, err, size, "%s: a stale socket that cannot be removed: %s",
			    addr->sun_path, strerror(errno));
	return 0;
}

static int bind_with_mode(int fd, const struct sockaddr_un *addr, unsigned int mode)
{
	mode_t before = umask(0777 & ~mode);
	int r = bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) ? -errno : 0;

	umask(before);
	return r;
}

static int set_group(const struct mote_options *options, char *err, size_t size)
{
	if (!*options->socket_group ||
	    !fchownat(AT_FDCWD, options->socket_path, (uid_t)-1, self.gid, AT_SYMLINK_NOFOLLOW))
		return 0;
	return fail(
		errno, err, size,
		"%s: group '%s' cannot be set: %s; run as root or as a member, or change [socket] group",
		options->socket_path, options->socket_group, strerror(errno));
}

static int bind_and_listen(int fd, const struct mote_options *options, char *err, size_t size)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;
	int r;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", options->socket_path);
	r = bind_with_mode(fd, &addr, options->socket_mode);
	if (r == -EADDRINUSE) {
		r = remove_stale(&addr, err, size);
		if (r)
			return r;
		r = bind_with_mode(fd, &addr, options->socket_mode);
	}
	if (r)
		return fail(-r, err, size, "%s: cannot be made: %s; set [socket] path",
			    addr.sun_path, strerror(-r));
	if (!lstat(addr.sun_path, &st)) {
		self.dev = st.st_dev;
		self.ino = st.st_ino;
	}
	r = set_group(options, err, size);
	if (!r && listen(fd, (int)options->socket_subscribers))
		r = fail(errno, err, size, "%s: listen: %s", addr.sun_path, strerror(errno));
	return r;
}

static int make_socket(const struct mote_options *options, char *err, size_t size)
{
	int dir = lock_directory(options->socket_path, err, size), fd, r;

	if (dir < 0)
		return dir;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	r = fd < 0 ? fail(errno, err, size, "socket: %s", strerror(errno))
		   : bind_and_listen(fd, options, err, size);
	if (r && fd >= 0)
		mote_listen_close(options, fd);
	close(dir); /* and its lock */
	return r ? r : fd;
}

int mote_listen(const struct mote_options *options, char *err, size_t size)
{
	int r;

	self.ino = 0;
	r = find_owner(options, err, size);
	if (!r)
		r = take_activated(err, size);
	return r ? r : make_socket(options, err, size);
}

void mote_listen_close(const struct mote_options *options, int fd)
{
	struct stat st;

	close(fd);
	if (self.ino && !lstat(options->socket_path, &st) && st.st_dev == self.dev &&
	    st.st_ino == self.ino)
		unlink(options->socket_path);
	self.ino = 0;
}

/* Who may connect. The kernel has checked the socket's mode; an inherited socket may have another.
 */

bool mote_peer_allowed(const struct mote_options *options, const struct ucred *peer)
{
	return !peer->uid || peer->uid == self.uid || (options->socket_mode & 0002) ||
	       ((options->socket_mode & 0020) && peer->gid == self.gid);
}

int mote_peer_check(int fd, const struct mote_options *options)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return -errno;
	if (mote_peer_allowed(options, &peer))
		return 0;
	if (!(options->socket_mode & 0020))
		return -EACCES;
	/* ERANGE: more groups than are looked at. */
	len = sizeof(self.peer_groups);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, self.peer_groups, &len))
		return errno == ENODATA ? -EACCES : -errno;
	for (unsigned int i = 0; i < len / sizeof(gid_t); i++) {
		if (self.peer_groups[i] == self.gid)
			return 0;
	}
	return -EACCES;
}
