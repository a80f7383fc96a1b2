/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The listening socket: made here or taken over from systemd, and who may connect to it. There is
 * one in a process; what was found out about it at start (its group, its inode) is kept inside.
 */
#ifndef MOTE_LISTEN_H
#define MOTE_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

struct mote_options;
struct ucred;

/*
 * Returns the descriptor (non-blocking, close-on-exec, listening), or a negative errno with one
 * line in `err`. Permissions and group are set before anybody can connect. A socket that nobody
 * answers on is replaced; a live one, or what is not a socket, is left alone and refused. Call it
 * before threads are started: it sets the umask for a moment.
 */
int mote_listen(const struct mote_options *options, char *err, size_t size);

/* Closes `fd` and removes the socket, if the path still leads to the one made by mote_listen(). */
void mote_listen_close(const struct mote_options *options, int fd);

/*
 * Whether a peer with these credentials may connect: root, mote's own user, anybody if [socket]
 * mode lets others write, and who has the group as primary group, if it lets the group write.
 */
bool mote_peer_allowed(const struct mote_options *options, const struct ucred *peer);

/*
 * The same of a connection, supplementary groups included: 0, -EACCES, or the errno of
 * getsockopt(). Makes one or two getsockopt() calls and does not allocate.
 */
int mote_peer_check(int fd, const struct mote_options *options);

#endif
