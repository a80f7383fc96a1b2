// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The proc connector, see connector.h. It owns nothing: the socket is the caller's once it is open.
 * Opening it fails where the kernel has no connector or does not let us listen; after that nothing
 * fails, and a datagram that is not what it should be is refused whole.
 */
#include "connector.h"

#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECEIVE_BUFFER (1 << 20)
#define ANSWER_MS      500
#define ANSWER_TRIES   4096 /* other events may come before the answer */

/* Later headers have them inside struct proc_event, earlier ones inside an enum of it. */
#define EVENT_NONE 0x00000000u
#define EVENT_FORK 0x00000001u
#define EVENT_EXEC 0x00000002u
#define EVENT_EXIT 0x80000000u

#define EVENT_HEAD offsetof(struct proc_event, event_data)

/* The connector's message of a datagram; its data follows it. */
static int find_message(const void *data, size_t len, struct cn_msg *cn)
{
	struct nlmsghdr nl;

	if (len < NLMSG_HDRLEN + sizeof(*cn))
		return -EBADMSG;
	memcpy(&nl, data, sizeof(nl));
	memcpy(cn, (const char *)data + NLMSG_HDRLEN, sizeof(*cn));
	if (nl.nlmsg_len > len || nl.nlmsg_len < NLMSG_HDRLEN + sizeof(*cn) ||
	    cn->len > nl.nlmsg_len - NLMSG_HDRLEN - sizeof(*cn))
		return -EBADMSG;
	return cn->id.idx == CN_IDX_PROC && cn->id.val == CN_VAL_PROC ? 1 : 0;
}

/* The event, as long as this kernel has it; what it does not have is 0. */
static int find_event(const void *data, size_t len, struct cn_msg *cn, struct proc_event *event)
{
	int found = find_message(data, len, cn);

	if (found <= 0)
		return found;
	if (cn->len < EVENT_HEAD)
		return -EBADMSG;
	memset(event, 0, sizeof(*event));
	memcpy(event, (const char *)data + NLMSG_HDRLEN + sizeof(*cn),
	       cn->len < sizeof(*event) ? cn->len : sizeof(*event));
	return 1;
}

/* How much of an event there must be at least. */
#define NEEDS(member, last)                                    \
	(offsetof(struct proc_event, event_data.member.last) + \
	 sizeof(((struct proc_event *)NULL)->event_data.member.last))

static int take_fork(const struct proc_event *in, size_t len, struct mote_event_exit *out)
{
	if (len < NEEDS(fork, child_tgid))
		return -EBADMSG;
	if (in->event_data.fork.child_pid != in->event_data.fork.child_tgid)
		return 0;
	out->event.kind = MOTE_EVENT_FORK;
	out->event.pid = (u32)in->event_data.fork.child_tgid;
	out->event.ppid = (u32)in->event_data.fork.parent_tgid;
	return 1;
}

static int take_exec(const struct proc_event *in, size_t len, struct mote_event_exit *out)
{
	if (len < NEEDS(exec, process_tgid))
		return -EBADMSG;
	out->event.kind = MOTE_EVENT_EXEC;
	out->event.pid = (u32)in->event_data.exec.process_tgid;
	return 1;
}

static int take_exit(const struct proc_event *in, size_t len, struct mote_event_exit *out)
{
	if (len < NEEDS(exit, exit_signal))
		return -EBADMSG;
	if (in->event_data.exit.process_pid != in->event_data.exit.process_tgid)
		return 0;
	out->event.kind = MOTE_EVENT_EXIT;
	out->event.pid = (u32)in->event_data.exit.process_tgid;
	out->event.ppid = (u32)in->event_data.exit.parent_tgid;
	out->exit_code = in->event_data.exit.exit_code;
	return 1;
}

int mote_connector_parse(const void *data, size_t len, struct mote_event_exit *event)
{
	struct mote_event_exit out = { 0 };
	struct proc_event in;
	struct cn_msg cn;
	int found = find_event(data, len, &cn, &in);

	if (found <= 0)
		return found;
	out.event.time = in.timestamp_ns;
	switch ((u32)in.what) {
	case EVENT_FORK:
		found = take_fork(&in, cn.len, &out);
		break;
	case EVENT_EXEC:
		found = take_exec(&in, cn.len, &out);
		break;
	case EVENT_EXIT:
		found = take_exit(&in, cn.len, &out);
		break;
	default:
		return 0;
	}
	if (found == 1)
		*event = out;
	return found;
}

/* Put together by hand, as struct cn_msg ends with a flexible array. */
static int send_op(int fd, enum proc_cn_mcast_op op, uint32_t ack)
{
	char request[NLMSG_HDRLEN + sizeof(struct cn_msg) + sizeof(op)];
	struct nlmsghdr nl = { .nlmsg_len = sizeof(request), .nlmsg_type = NLMSG_DONE };
	struct cn_msg cn = { .id = { .idx = CN_IDX_PROC, .val = CN_VAL_PROC },
			     .ack = ack,
			     .len = sizeof(op) };

	_Static_assert(sizeof(nl) == NLMSG_HDRLEN, "the header needs no padding");
	memcpy(request, &nl, sizeof(nl));
	memcpy(request + NLMSG_HDRLEN, &cn, sizeof(cn));
	memcpy(request + NLMSG_HDRLEN + sizeof(cn), &op, sizeof(op));
	return send(fd, request, sizeof(request), 0) < 0 ? -errno : 0;
}

/* 1: `data` is the answer to our request, and `err` what it says. */
static int is_answer(const void *data, size_t len, uint32_t ack, int *err)
{
	struct proc_event in;
	struct cn_msg cn;

	if (find_event(data, len, &cn, &in) != 1 || (u32)in.what != EVENT_NONE || cn.ack != ack + 1)
		return 0;
	*err = -(int)in.event_data.ack.err;
	return 1;
}

/* In a container the kernel takes the request and says nothing, then or ever. */
static int await_answer(int fd, uint32_t ack)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	char buf[512];
	int err;

	for (unsigned int i = 0; i < ANSWER_TRIES && poll(&ready, 1, ANSWER_MS) > 0; i++) {
		ssize_t len = recv(fd, buf, sizeof(buf), 0);

		if (len < 0 && errno != ENOBUFS && errno != EAGAIN)
			return -errno;
		if (len > 0 && is_answer(buf, (size_t)len, ack, &err))
			return err;
	}
	return -ENODATA;
}

static int set_up(int fd)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC };
	int bytes = RECEIVE_BUFFER, err;
	/* Comes back one larger: tells our answer from those to others who ask now. */
	uint32_t ack = 0x6d6f7465u ^ (uint32_t)getpid() << 8;

	/* FORCE goes beyond net.core.rmem_max, with CAP_NET_ADMIN. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)))
		return -errno;
	err = send_op(fd, PROC_CN_MCAST_LISTEN, ack);
	return err ? err : await_answer(fd, ack);
}

int mote_connector_open(void)
{
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
	int err;

	if (fd < 0)
		return -errno;
	err = set_up(fd);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

void mote_connector_close(int fd)
{
	send_op(fd, PROC_CN_MCAST_IGNORE, 0);
	close(fd);
}
