// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Whose bytes they are: of a shared socket, an accepted one, a ring's worker, splice(). */
#include "exchange.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <unistd.h>

#include <liburing.h>

static void in_child(void (*run)(const struct pair *p), const struct pair *p, pid_t *pid)
{
	int status;

	fflush(stdout);
	*pid = fork();
	if (!*pid) {
		run(p);
		_exit(0);
	}
	if (waitpid(*pid, &status, 0) != *pid || status)
		die("child");
}

static void child_sends(const struct pair *p)
{
	put(p->client, 33);
}

static void tcp_shared(void)
{
	struct pair p;
	pid_t child;

	open_pair(&p, AF_INET, false);
	put(p.client, 11);
	in_child(child_sends, &p, &child);
	put(p.client, 1);
	check_moved("a shared socket, by the parent", p.client, getpid(), 12, 0);
	check_moved("a shared socket, by the child", p.client, child, 33, 0);
	close_pair(&p);
}

static u64 child_inode;

static void child_accepts(const struct pair *p)
{
	int fd = accept(p->listener, NULL, NULL), pipe_fd = p->server;
	u64 inode = inode_of(fd);

	get(fd, 5);
	if (write(pipe_fd, &inode, sizeof(inode)) != sizeof(inode))
		_exit(1);
	pause();
}

static void tcp_accepted_by_child(void)
{
	struct mote_socket *s;
	int fds[2];
	struct pair p;
	pid_t child;

	p.listener = listen_on(SOCK_STREAM, AF_INET, false, &p.to, &p.len);
	p.client = socket(AF_INET, SOCK_STREAM, 0);
	if (pipe(fds))
		die("pipe");
	p.server = fds[1];
	if (connect(p.client, (struct sockaddr *)&p.to, p.len))
		die("connect");
	put(p.client, 5);
	walk("net_tcp"); /* holds the lock of sockets that nobody has accepted yet */
	fflush(stdout);
	child = fork();
	if (!child) {
		child_accepts(&p);
		_exit(0);
	}
	if (read(fds[0], &child_inode, sizeof(child_inode)) != sizeof(child_inode))
		die("child");
	s = by_inode(child_inode);
	check(s && s->tgid == (u32)child && moved_by(s, child).received == 5,
	      "the owner of an accepted socket is who accepted it");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close_pair(&p);
	close(fds[0]);
}

/* By a worker of the ring: up to 5.11 a kernel thread that uses the process's memory. */
static void tcp_by_ring(void)
{
	struct io_uring ring;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	struct pair p;
	int err = io_uring_queue_init(4, &ring, 0);

	if (err) {
		printf("# no io_uring here: %s\n", strerror(-err));
		return;
	}
	open_pair(&p, AF_INET, false);
	for (int i = 0; i < 2; i++) {
		sqe = io_uring_get_sqe(&ring);
		if (i)
			io_uring_prep_recv(sqe, p.server, data, 4000, MSG_WAITALL);
		else
			io_uring_prep_send(sqe, p.client, data, 4000, 0);
		io_uring_sqe_set_flags(sqe, IOSQE_ASYNC);
		io_uring_submit(&ring);
		if (io_uring_wait_cqe(&ring, &cqe) || cqe->res != 4000)
			die("io_uring");
		io_uring_cqe_seen(&ring, cqe);
	}
	check_moved("sent by a worker of the ring", p.client, getpid(), 4000, 0);
	check_moved("received by a worker of the ring", p.server, getpid(), 0, 4000);
	io_uring_queue_exit(&ring);
	close_pair(&p);
}

/* splice() out of a socket returns no sock_recv_length: with tp it has no process. */
static void tcp_spliced(void)
{
	char name[] = "/tmp/net_programs.XXXXXX";
	int fds[2], file = mkstemp(name);
	off_t from = 0;
	struct pair p;

	unlink(name);
	if (file < 0 || pipe(fds) || write(file, data, 5000) != 5000)
		die("file");
	open_pair(&p, AF_INET, false);
	if (sendfile(p.client, file, &from, 5000) != 5000)
		die("sendfile");
	check_moved("sendfile", p.client, getpid(), 5000, 0);
	usleep(1000);
	if (splice(p.server, NULL, fds[1], NULL, 5000, 0) != 5000)
		die("splice");
	walk("net_tcp"); /* tells whose descriptor it is, where no call did */
	check_moved("splice", p.server, getpid(), 0, set == TP ? 0 : 5000);
	check_truth("splice", p.server, 0, 5000);
	close_pair(&p);
	close(fds[0]);
	close(fds[1]);
	close(file);
}

void cases_of_sharing(void)
{
	tcp_shared();
	tcp_accepted_by_child();
	tcp_by_ring();
	tcp_spliced();
}
