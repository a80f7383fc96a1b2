// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * libmote's connection: bytes to frames, frames to messages, requests. The client owns one buffer,
 * which grows to the largest frame met and holds the frame of the last message; msgpack-c's zone
 * for that frame's objects; and one for the hello's. An error in the framing is final, as there is
 * no way to find the next header; an error in a body is not.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "libmote_internal.h"
#include "protocol.h"

static_assert((int)MOTE_MESSAGE_HELLO == MOTE_FRAME_HELLO, "libmote.h and protocol.h agree");
static_assert((int)MOTE_MESSAGE_DATA == MOTE_FRAME_DATA, "libmote.h and protocol.h agree");
static_assert((int)MOTE_MESSAGE_DROPPED == MOTE_FRAME_DROPPED, "libmote.h and protocol.h agree");
static_assert((int)MOTE_MESSAGE_REPLY == MOTE_FRAME_REPLY, "libmote.h and protocol.h agree");

#define HEADER        ((size_t)sizeof(struct mote_frame_header))
#define FIRST_BUFFER  ((size_t)64 << 10)
#define MAX_SEQUENCES 1024 /* pairs of stream and interval whose gaps are seen */

struct sequence {
	uint32_t stream, interval_ms;
	uint64_t last;
};

struct mote_client {
	int fd;
	bool raw;
	int broken; /* the error that ended it */
	uint32_t max_body;

	uint8_t *buffer;
	size_t size, start, end; /* bytes start to end are read and not yet taken */
	size_t taken;            /* bytes of the last message's frame, which stands at start */
	uint64_t frames, offset; /* frame number and its place, for error texts */

	msgpack_unpacked body;
	msgpack_zone *hello_zone;
	struct mote_hello hello;

	struct sequence *sequences;
	size_t nsequences;

	char error[256];
};

__attribute__((format(printf, 3, 4))) static int fail(struct mote_client *client, int err,
						      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(client->error, sizeof(client->error), format, args);
	va_end(args);
	return err;
}

/* The error is final. */
#define fail_for_good(client, err, ...) ((client)->broken = fail(client, err, __VA_ARGS__))

int mote_open_fd(int fd, struct mote_client **client)
{
	struct mote_client *made;

	if (fcntl(fd, F_GETFD) < 0)
		return -errno;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	made->buffer = malloc(FIRST_BUFFER);
	if (!made->buffer) {
		free(made);
		return -ENOMEM;
	}
	made->size = FIRST_BUFFER;
	made->max_body = MOTE_MAX_BODY;
	made->fd = fd;
	*client = made;
	return 0;
}

int mote_open(const char *path, struct mote_client **client)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, err;

	if (!path)
		path = MOTE_SOCKET_PATH;
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	err = connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	if (!err)
		err = mote_open_fd(fd, client);
	if (err)
		close(fd);
	return err;
}

void mote_close(struct mote_client *client)
{
	if (!client)
		return;
	close(client->fd);
	msgpack_unpacked_destroy(&client->body);
	if (client->hello_zone)
		msgpack_zone_free(client->hello_zone);
	free(client->sequences);
	free(client->buffer);
	free(client);
}

int mote_fd(const struct mote_client *client)
{
	return client->fd;
}

void mote_set_max_body(struct mote_client *client, uint32_t bytes)
{
	client->max_body = bytes ? bytes : MOTE_MAX_BODY;
}

void mote_set_raw(struct mote_client *client, bool raw)
{
	client->raw = raw;
}

const struct mote_hello *mote_hello(const struct mote_client *client)
{
	return client->hello_zone ? &client->hello : NULL;
}

const char *mote_error(const struct mote_client *client)
{
	return client->error;
}

/* That of the message's stream and interval, made if it is the first; NULL: gaps are not seen. */
static struct sequence *find_sequence(struct mote_client *client,
				      const struct mote_message *message)
{
	struct sequence *s;

	for (size_t i = 0; i < client->nsequences; i++) {
		s = &client->sequences[i];
		if (s->stream == message->stream_id && s->interval_ms == message->interval_ms)
			return s;
	}
	if (client->nsequences == MAX_SEQUENCES)
		return NULL;
	s = realloc(client->sequences, (client->nsequences + 1) * sizeof(*s));
	if (!s)
		return NULL;
	client->sequences = s;
	s += client->nsequences++;
	*s = (struct sequence){ message->stream_id, message->interval_ms, message->sequence };
	return s;
}

/*
 * Updates lost between the frame before and this one. Frames of one update have the same number,
 * and those that continue a keyframe can have an earlier one than the update before them.
 */
static uint64_t count_missed(struct mote_client *client, const struct mote_message *message)
{
	struct sequence *s = find_sequence(client, message);
	uint64_t missed = 0;

	if (s && message->sequence > s->last) {
		missed = message->sequence - s->last - 1;
		s->last = message->sequence;
	}
	return missed;
}

static const struct mote_stream_info *find_stream(const struct mote_client *client, uint32_t id)
{
	const struct mote_hello *hello = mote_hello(client);

	for (size_t i = 0; hello && i < hello->nstreams; i++) {
		if (hello->streams[i].id == id)
			return &hello->streams[i];
	}
	return NULL;
}

static int bad_body(struct mote_client *client, const char *wrong, size_t at)
{
	return fail(client, -EBADMSG, "frame %llu at byte %llu, body byte %zu: %s",
		    (unsigned long long)client->frames, (unsigned long long)client->offset, at,
		    wrong);
}

/* A new supervisor, whose numbers start again: its hello replaces the one before. */
static int take_hello(struct mote_client *client)
{
	msgpack_zone *zone = msgpack_zone_new(MSGPACK_ZONE_CHUNK_SIZE);
	const char *wrong;

	if (!zone)
		return fail(client, -ENOMEM, "no memory for the hello");
	wrong = mote_client_hello(&client->body.data, zone, &client->hello);
	if (wrong) {
		msgpack_zone_free(zone);
		return bad_body(client, wrong, 0);
	}
	if (client->hello_zone)
		msgpack_zone_free(client->hello_zone);
	client->hello_zone = zone;
	client->nsequences = 0;
	return 0;
}

static int decode(struct mote_client *client, const uint8_t *body, size_t size)
{
	const char *wrong;
	size_t at = 0;
	int r;

	wrong = mote_client_check(body, size, &at);
	if (wrong)
		return bad_body(client, wrong, at);
	at = 0;
	r = msgpack_unpack_next(&client->body, (const char *)body, size, &at);
	if (r == MSGPACK_UNPACK_NOMEM_ERROR)
		return fail(client, -ENOMEM, "no memory for a body of %zu bytes", size);
	if (r != MSGPACK_UNPACK_SUCCESS)
		return bad_body(client, "not MessagePack", at);
	return 0;
}

static bool is_known(unsigned int type)
{
	return type >= MOTE_FRAME_HELLO && type < MOTE_FRAME_TYPES;
}

static int take_body(struct mote_client *client, const uint8_t *body, size_t size,
		     struct mote_message *message)
{
	const char *wrong = NULL;
	int err;

	if (client->raw && (message->type == MOTE_MESSAGE_DATA || !is_known(message->type)))
		return 0;
	err = decode(client, body, size);
	if (err)
		return err;
	switch (message->type) {
	case MOTE_MESSAGE_HELLO:
		return take_hello(client);
	case MOTE_MESSAGE_DATA:
		wrong = mote_client_data(&client->body.data, message);
		if (!wrong)
			message->missed = count_missed(client, message);
		break;
	case MOTE_MESSAGE_DROPPED:
		wrong = mote_client_dropped(&client->body.data, message);
		break;
	case MOTE_MESSAGE_REPLY:
		wrong = mote_client_reply(&client->body.data, message);
		break;
	}
	return wrong ? bad_body(client, wrong, 0) : 0;
}

static void from_header(const struct mote_client *client, const struct mote_frame_header *header,
			struct mote_message *message)
{
	uint16_t flags = le16toh(header->flags);

	*message = (struct mote_message){
		.type = header->type,
		.raw = client->buffer + client->start,
		.raw_size = HEADER + le32toh(header->length),
		.stream_id = le32toh(header->stream),
		.sequence = le64toh(header->sequence),
		.time = le64toh(header->time),
		.key = flags & MOTE_FRAME_KEY,
		.more = flags & MOTE_FRAME_MORE,
		.gap = flags & MOTE_FRAME_GAP,
	};
	if (header->type == MOTE_FRAME_DATA)
		message->stream = find_stream(client, message->stream_id);
}

static int check_header(struct mote_client *client, const struct mote_frame_header *header)
{
	unsigned long long frame = client->frames + 1, at = client->offset;

	if (header->version != MOTE_PROTOCOL_VERSION)
		return fail_for_good(client, -EPROTONOSUPPORT,
				     "frame %llu at byte %llu: protocol version %u, this is %u",
				     frame, at, header->version, MOTE_PROTOCOL_VERSION);
	if (le32toh(header->length) > client->max_body)
		return fail_for_good(
			client, -EMSGSIZE,
			"frame %llu at byte %llu: a body of %u bytes, at most %u taken", frame, at,
			le32toh(header->length), client->max_body);
	return 0;
}

/* Returns 1 a message, 0 more bytes are needed (*need of them from start), or an error. */
static int take_frame(struct mote_client *client, struct mote_message *message, size_t *need)
{
	size_t have = client->end - client->start;
	struct mote_frame_header header;
	struct mote_message made;
	int err;

	*need = HEADER;
	if (memcmp(client->buffer + client->start, "mote", have < 4 ? have : 4) != 0)
		return fail_for_good(client, -EPROTO,
				     "frame %llu at byte %llu: no frame begins here",
				     (unsigned long long)client->frames + 1,
				     (unsigned long long)client->offset);
	if (have < HEADER)
		return 0;
	memcpy(&header, client->buffer + client->start, HEADER);
	err = check_header(client, &header);
	if (err)
		return err;
	*need = HEADER + le32toh(header.length);
	if (have < *need)
		return 0;
	client->frames++;
	client->taken = *need;
	if (!client->raw && !is_known(header.type))
		return 0;
	from_header(client, &header, &made);
	err = take_body(client, client->buffer + client->start + HEADER, *need - HEADER, &made);
	if (err)
		return err;
	*message = made;
	return 1;
}

/* Lets go of the frame of the message before. */
static void release_frame(struct mote_client *client)
{
	client->start += client->taken;
	client->offset += client->taken;
	client->taken = 0;
	if (client->start == client->end)
		client->start = client->end = 0;
}

/* Makes room for `need` bytes from start. */
static int make_room(struct mote_client *client, size_t need)
{
	uint8_t *larger;

	if (client->size - client->start >= need)
		return 0;
	memmove(client->buffer, client->buffer + client->start, client->end - client->start);
	client->end -= client->start;
	client->start = 0;
	if (client->size >= need)
		return 0;
	larger = realloc(client->buffer, need);
	if (!larger)
		return fail(client, -ENOMEM, "no memory for a frame of %zu bytes", need);
	client->buffer = larger;
	client->size = need;
	return 0;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Returns 0 when there is something to read; deadline -1 for ever. */
static int wait_for(const struct mote_client *client, short events, int64_t deadline)
{
	struct pollfd pfd = { .fd = client->fd, .events = events };
	int64_t left = -1;
	int n;

	if (deadline >= 0) {
		left = deadline - now_ms();
		left = left < 0 ? 0 : left;
	}
	n = poll(&pfd, 1, (int)left);
	if (n < 0)
		return -errno;
	return n ? 0 : -EAGAIN;
}

static int fill(struct mote_client *client, size_t need, int64_t deadline)
{
	ssize_t n;
	int err;

	err = make_room(client, need);
	if (err)
		return err;
	err = wait_for(client, POLLIN, deadline);
	if (err == -EAGAIN || err == -EINTR)
		return err;
	if (err)
		return fail(client, err, "poll: %s", strerror(-err));
	n = read(client->fd, client->buffer + client->end, client->size - client->end);
	if (n < 0)
		return errno == EAGAIN ? 1 : fail(client, -errno, "read: %s", strerror(errno));
	if (n > 0) {
		client->end += n;
		return 1;
	}
	if (client->end > client->start)
		return fail_for_good(client, -ENODATA,
				     "frame %llu at byte %llu: it ends after %zu bytes of %zu",
				     (unsigned long long)client->frames + 1,
				     (unsigned long long)client->offset,
				     client->end - client->start, need);
	return 0;
}

int mote_next(struct mote_client *client, struct mote_message *message, int timeout_ms)
{
	int64_t deadline = timeout_ms < 0 ? -1 : now_ms() + timeout_ms;
	size_t need;
	int r;

	if (client->broken)
		return client->broken;
	client->error[0] = '\0';
	for (;;) {
		release_frame(client);
		r = take_frame(client, message, &need);
		if (r)
			return r;
		if (client->taken) /* passed over */
			continue;
		r = fill(client, need, deadline);
		if (r <= 0)
			return r;
	}
}

int mote_request(struct mote_client *client, const char *line)
{
	size_t len = strlen(line);
	char text[MOTE_REQUEST_MAX + 1];
	ssize_t n;

	client->error[0] = '\0';
	if (len >= MOTE_REQUEST_MAX)
		return fail(client, -EMSGSIZE, "a request of %zu bytes, at most %d", len,
			    MOTE_REQUEST_MAX - 1);
	if (strchr(line, '\n'))
		return fail(client, -EINVAL, "a request with a newline");
	len = (size_t)snprintf(text, sizeof(text), "%s\n", line);
	for (size_t sent = 0; sent < len; sent += n) {
		n = send(client->fd, text + sent, len - sent, MSG_NOSIGNAL);
		if (n >= 0)
			continue;
		n = 0;
		if (errno == EAGAIN)
			wait_for(client, POLLOUT, -1);
		else if (errno != EINTR)
			return fail(client, -errno, "request: %s", strerror(errno));
	}
	/* What is subscribed anew goes on at a later number: no loss. */
	if (strncmp(line, "poll", 4) != 0 && strncmp(line, "ping", 4) != 0)
		client->nsequences = 0;
	return 0;
}
