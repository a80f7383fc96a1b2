/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The exchanges of net_programs.c, each with what must be seen of it. */

static void tcp_exchange(const char *what, int family, bool mapped)
{
	pid_t me = getpid();
	struct mote_socket *s;
	struct pair p;

	open_pair(&p, family, mapped);
	put(p.client, 1000);
	put(p.client, 1);
	get(p.server, 1001);
	put(p.server, 60000);
	get(p.client, 60000);
	check_moved(what, p.client, me, 1001, 60000);
	check_moved(what, p.server, me, 60000, 1001);
	check_truth(what, p.client, 1001, 60000);
	check_truth(what, p.server, 60000, 1001);
	s = of(p.server);
	check(s && s->family == family && s->state == 1 && s->tgid == (u32)me && s->start &&
		      s->netns && s->cgroup_id && s->remote_port && s->local_port != s->remote_port,
	      "%s: the accepted socket's owner and addresses", what);
	s = of(p.client);
	check(s && s->tgid == (u32)me && s->flags & MOTE_SOCKET_ACTIVE && s->srtt_us &&
		      s->remote_port == ntohs(((struct sockaddr_in *)&p.to)->sin_port) &&
		      (family != AF_INET || !memcmp(s->remote, "\x7f\0\0\1", 4)),
	      "%s: the connected socket's owner and addresses", what);
	close_pair(&p);
}

static void tcp_peek_and_drop(void)
{
	struct pair p;

	open_pair(&p, AF_INET, false);
	put(p.client, 100);
	for (int i = 0; i < 3; i++)
		if (recv(p.server, data, 100, MSG_PEEK) != 100)
			die("peek");
	get(p.server, 100);
	check_moved("peeked three times, read once", p.server, getpid(), 0, 100);
	put(p.client, 300);
	if (recv(p.server, NULL, 300, MSG_TRUNC | MSG_WAITALL) != 300)
		die("MSG_TRUNC");
	check_moved("and 300 dropped by MSG_TRUNC", p.server, getpid(), 0, 400);
	if (recv(p.server, data, 1, MSG_DONTWAIT) != -1)
		die("recv of nothing");
	check_moved("and nothing by a call that failed", p.server, getpid(), 0, 400);
	close_pair(&p);
}

/* FIN is a sequence number and no byte, each way and in each order. */
static void tcp_ends(void)
{
	struct pair p;

	open_pair(&p, AF_INET, false);
	put(p.client, 10);
	shutdown(p.client, SHUT_WR);
	get(p.server, 10);
	end_of(p.server);
	put(p.server, 20);
	get(p.client, 20);
	put(p.server, 5);
	check_moved("half closed, the one that did", p.client, getpid(), 10, 20);
	check_moved("half closed, the other", p.server, getpid(), 25, 10);
	check_truth("half closed, the other", p.server, 25, 10);
	shutdown(p.server, SHUT_WR);
	get(p.client, 5);
	end_of(p.client);
	check_moved("both closed, the first", p.client, getpid(), 10, 25);
	check_moved("both closed, the last", p.server, getpid(), 25, 10);
	close_pair(&p);
}

/* The peer's bytes and FIN are all there before the first call after connect(). */
static void tcp_late_look(void)
{
	struct sockaddr_storage to;
	socklen_t len;
	int listener = listen_on(SOCK_STREAM, AF_INET, false, &to, &len), server;
	int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (connect(client, (struct sockaddr *)&to, len) && errno != EINPROGRESS)
		die("connect");
	server = accept(listener, NULL, NULL);
	put(server, 700);
	close(server);
	usleep(20000);
	fcntl(client, F_SETFL, 0);
	get(client, 700);
	end_of(client);
	check_moved("all came before the first look", client, getpid(), 0, 700);
	check_truth("all came before the first look", client, 0, 700);
	close(client);
	close(listener);
}

static void tcp_closes(void)
{
	static const char *const names[] = { "client", "server", "listener" };
	struct mote_socket *s[3];
	u64 key[3];
	struct pair p;

	open_pair(&p, AF_INET, false);
	put(p.client, 3);
	get(p.server, 3);
	s[0] = of(p.client);
	s[1] = of(p.server);
	s[2] = of(p.listener);
	check(s[0] && s[1] && s[2] && s[2]->state == 10 && s[2]->tgid == (u32)getpid(),
	      "client, server and listener are known");
	if (!s[0] || !s[1] || !s[2])
		return;
	for (int i = 0; i < 3; i++)
		key[i] = s[i]->slot.key;
	close_pair(&p);
	for (int i = 0; i < 3; i++)
		check_closed(s[i], key[i], names[i]);
	check(s[0]->accepted == 3 && s[1]->taken == 3, "the kernel's counts are kept at the end");
}

static void tcp_not_accepted(void)
{
	struct sockaddr_storage to;
	struct mote_socket *s = NULL;
	socklen_t len;
	int listener = listen_on(SOCK_STREAM, AF_INET, false, &to, &len);
	int client = socket(AF_INET, SOCK_STREAM, 0);
	u16 port = ntohs(((struct sockaddr_in *)&to)->sin_port);

	if (connect(client, (struct sockaddr *)&to, len))
		die("connect");
	for (unsigned int i = 0; i < SLOTS; i++)
		if (sockets[i].slot.key && !sockets[i].closed && sockets[i].local_port == port &&
		    sockets[i].remote_port)
			s = &sockets[i];
	check(s && !s->tgid, "a connection that nobody accepted has no owner");
	close(listener);
	check_closed(s, s ? s->slot.key : 0, "it ends with its listener");
	close(client);
}

static void tcp_refused(void)
{
	struct sockaddr_storage to;
	socklen_t len;
	int fd = listen_on(SOCK_STREAM, AF_INET, false, &to, &len);
	struct mote_socket *s, *again;

	close(fd);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (!connect(fd, (struct sockaddr *)&to, len))
		die("connect to nobody");
	s = of(fd);
	check(s && s->state == 7 && s->remote_port == ntohs(((struct sockaddr_in *)&to)->sin_port),
	      "a refused connection");
	check_moved("refused", fd, getpid(), 0, 0);
	connect(fd, (struct sockaddr *)&to, len);
	again = of(fd);
	check(s && s->closed && again && again != s, "another try is another connection");
	close(fd);
	check_closed(again, again ? again->slot.key : 0, "refused");
}

static void tcp_again(void)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct mote_socket *first;
	struct pair p;

	open_pair(&p, AF_INET, false);
	put(p.client, 50);
	get(p.server, 50);
	first = of(p.client);
	close(p.server);
	if (connect(p.client, &none, sizeof(none)) ||
	    connect(p.client, (struct sockaddr *)&p.to, p.len))
		die("connect again");
	p.server = accept(p.listener, NULL, NULL);
	put(p.client, 7);
	put(p.server, 9);
	get(p.client, 9);
	check_moved("connected again", p.client, getpid(), 7, 9);
	check_truth("connected again", p.client, 7, 9);
	check(first && first->closed && first->accepted == 50 &&
		      moved_by(first, getpid()).sent == 50,
	      "the first connection has ended, with its bytes");
	close_pair(&p);
}

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

static void udp_exchange(const char *what, int family, bool mapped)
{
	struct sockaddr_storage to;
	struct mote_socket *s;
	socklen_t len;
	int server = listen_on(SOCK_DGRAM, mapped ? AF_INET : family, false, &to, &len);
	int client = socket(family, SOCK_DGRAM, 0);
	u16 port = ((struct sockaddr_in *)&to)->sin_port;
	u64 key;

	if (mapped) {
		address(&to, &len, AF_INET6, true);
		((struct sockaddr_in6 *)&to)->sin6_port = port;
	}
	if (sendto(client, data, 500, 0, (struct sockaddr *)&to, len) != 500 ||
	    connect(client, (struct sockaddr *)&to, len) || send(client, data, 0, 0) != 0 ||
	    send(client, data, 40, 0) != 40 || send(client, data, sizeof(data), 0) != -1)
		die("sendto");
	for (int i = 0; i < 2; i++)
		if (recv(server, data, 1000, MSG_PEEK) != 500)
			die("peek");
	if (recv(server, data, 1000, 0) != 500 || recv(server, data, 1000, 0) != 0 ||
	    recv(server, data, 10, MSG_TRUNC) != 40)
		die("recv");
	check_moved(what, client, getpid(), 540, 0);
	check_moved(what, server, getpid(), 0, 540);
	s = of(client);
	check(s && s->protocol == MOTE_UDP && s->tgid == (u32)getpid() && s->state == 1 &&
		      s->remote_port == ntohs(port) && moved_by(s, getpid()).sent_calls == 3,
	      "%s: owner, address, and three calls", what);
	s = of(server);
	check(s && s->state == 7 && s->local_port == ntohs(port) &&
		      moved_by(s, getpid()).received_calls == 3,
	      "%s: the receiver's address, and three calls", what);
	key = s ? s->slot.key : 0;
	close(client);
	close(server);
	check_closed(s, key, what);
}

static struct pair old;
static int old_udp;

static void before_load(void)
{
	struct sockaddr_storage to;
	socklen_t len;

	open_pair(&old, AF_INET, false);
	put(old.client, 1234);
	get(old.server, 234);
	old_udp = listen_on(SOCK_DGRAM, AF_INET, false, &to, &len);
}

static void seeded(void)
{
	struct mote_socket *s = of(old.client), *udp = of(old_udp);

	check(s && s->flags & MOTE_SOCKET_SEEDED && s->tgid == (u32)getpid() &&
		      s->accepted_base == s->accepted,
	      "a connection that was there has its owner");
	check(udp && udp->flags & MOTE_SOCKET_SEEDED && udp->tgid == (u32)getpid() &&
		      udp->local_port,
	      "and a UDP socket");
	check(ctl->seeded >= 4 && !ctl->seed_lost, "and each is counted");
	put(old.client, 100);
	get(old.server, 1100);
	check_moved("from then on", old.client, getpid(), 100, 0);
	check_moved("from then on", old.server, getpid(), 0, 1100);
	walk("net_tcp");
	s = of(old.server);
	check(s && s->taken - s->taken_base == 1100, "the kernel's count, too");
	close_pair(&old);
	close(old_udp);
}

/* Of this process's flows, and of what is nobody's. */
static struct mote_traffic total(void)
{
	struct mote_traffic t = { 0 };

	for (unsigned int i = 0; i < SLOTS; i++) {
		if (!flows[i].slot.key || MOTE_FLOW_TGID(flows[i].slot.key) != (u32)getpid())
			continue;
		t.sent += flows[i].traffic.sent;
		t.received += flows[i].traffic.received;
	}
	for (unsigned int i = 0; i < ncpus; i++) {
		t.sent += cpus[i].other[MOTE_TCP].sent;
		t.received += cpus[i].other[MOTE_TCP].received;
	}
	return t;
}

static void check_total(const char *what, const struct mote_traffic *before, u64 sent, u64 received)
{
	struct mote_traffic now = total();

	check(now.sent - before->sent == sent && now.received - before->received == received,
	      "%s: %llu sent, %llu received in all (%llu, %llu)", what, (unsigned long long)sent,
	      (unsigned long long)received, (unsigned long long)(now.sent - before->sent),
	      (unsigned long long)(now.received - before->received));
}

/*
 * Sockets that find no slot: what they move is counted all the same; by calls for the process, by
 * the lock at their end, or when they get a slot late.
 */
static void no_room(void)
{
	struct mote_traffic before = total();
	static u32 slots[SLOTS];
	u32 n = 0;
	struct pair ends, stays;
	struct mote_socket *s;

	while (n < SLOTS &&
	       !bpf_map_lookup_and_delete_elem(map_fd("net_socket_free"), NULL, &slots[n]))
		n++;
	open_pair(&ends, AF_INET, false);
	open_pair(&stays, AF_INET6, false);
	put(ends.client, 100);
	get(ends.server, 100);
	put(ends.server, 10);
	get(ends.client, 10);
	put(stays.client, 2000);
	get(stays.server, 2000);
	put(stays.server, 500);
	get(stays.client, 500);
	check(!of(stays.client) && !of(ends.server) && ctl->turned_away, "no room for sockets");
	close_pair(&ends);
	usleep(20000);
	for (u32 i = 0; i < n; i++)
		bpf_map_update_elem(map_fd("net_socket_free"), NULL, &slots[i], 0);
	put(stays.client, 7);
	get(stays.server, 7);
	s = of(stays.server);
	check(s && s->flags & MOTE_SOCKET_LATE && s->tgid == (u32)getpid() && s->taken == 2007,
	      "room again: a socket comes late");
	put(stays.client, 30);
	get(stays.server, 30);
	check(moved_by(s, getpid()).received == (set == TP ? 37 : 30),
	      "and counts from then on (%llu)", (unsigned long long)moved_by(s, getpid()).received);
	check_total("with and without slots", &before, 2647, 2647);
	close_pair(&stays);
}

static void self_check(void)
{
	struct pair p;

	ctl->check_tgid = (u32)getpid();
	open_pair(&p, AF_INET, false);
	put(p.client, 321);
	get(p.server, 321);
	ctl->check_tgid = 0;
	put(p.client, 1);
	check(ctl->check_sent[MOTE_TCP] == 321 && ctl->check_received[MOTE_TCP] == 321 &&
		      !ctl->check_sent[MOTE_UDP],
	      "the self-check's own count");
	close_pair(&p);
}

static void run_cases(void)
{
	before_load();
	load();
	seeded();
	tcp_exchange("IPv4", AF_INET, false);
	tcp_exchange("IPv6", AF_INET6, false);
	tcp_exchange("IPv4 by an IPv6 socket", AF_INET6, true);
	tcp_peek_and_drop();
	tcp_ends();
	tcp_late_look();
	tcp_closes();
	tcp_not_accepted();
	tcp_refused();
	tcp_again();
	tcp_shared();
	tcp_accepted_by_child();
	tcp_by_ring();
	tcp_spliced();
	udp_exchange("UDP, IPv4", AF_INET, false);
	udp_exchange("UDP, IPv6", AF_INET6, false);
	udp_exchange("UDP, IPv4 by an IPv6 socket", AF_INET6, true);
	self_check();
	no_room();
	check(!inside(), "every program that entered has left");
}
