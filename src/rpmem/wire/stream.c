/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmem/wire/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/poll.h"
#include "base/text.h"

static void stream_unblock(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void wire_stream_init(struct wire_stream *s, int in, int out)
{
	s->in = in;
	s->out = out;
	s->failed = 0;
	s->any = false;
	s->used = s->have = 0;
	memset(&s->tx, 0, sizeof(s->tx));
	memset(&s->rx, 0, sizeof(s->rx));
	stream_unblock(in);
	if (out != in)
		stream_unblock(out);
}

void wire_stream_seal(struct wire_stream *s, const struct wire_key *tx, const struct wire_key *rx)
{
	wire_seal_begin(&s->tx, tx);
	wire_seal_begin(&s->rx, rx);
}

static int stream_fail(struct wire_stream *s, int rc)
{
	if (rc == -EPIPE)
		rc = -ECONNRESET;
	s->failed = rc;
	return rc;
}

static ssize_t stream_write(int fd, const uint8_t *bytes, size_t len)
{
	ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);

	return n < 0 && errno == ENOTSOCK ? write(fd, bytes, len) : n;
}

/* Wait until the descriptor can take bytes. Returns 0, -ETIMEDOUT or -errno. */
static int stream_wait_writable(int fd, uint64_t deadline)
{
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};

	for (;;) {
		int ms = poll_ms_left(deadline);
		int n = poll(&pfd, 1, ms);

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0 && ms >= 0 && poll_ms_left(deadline) == 0)
			return -ETIMEDOUT;
	}
}

int wire_stream_send(struct wire_stream *s, enum wire_type type, const uint8_t *body, size_t len,
		     uint64_t deadline)
{
	size_t sent = 0, total;

	if (s->failed)
		return s->failed;
	total = wire_frame_encode(&s->tx, type, body, len, s->tx_buf);
	while (sent < total) {
		ssize_t n = stream_write(s->out, s->tx_buf + sent, total - sent);
		int rc = 0;

		if (n >= 0)
			sent += (size_t)n;
		else if (errno == EAGAIN)
			rc = stream_wait_writable(s->out, deadline);
		else if (errno != EINTR)
			rc = -errno;
		if (rc) /* part of a frame may have been sent */
			return stream_fail(s, rc);
	}
	return 0;
}

/* Read the bytes that have arrived. Returns 0, -EAGAIN if no bytes have arrived, or -ECONNRESET at
 * the end of the stream. */
static int stream_fill(struct wire_stream *s)
{
	ssize_t n;

	do {
		n = read(s->in, s->rx_buf + s->have, sizeof(s->rx_buf) - s->have);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n == 0)
		return -ECONNRESET;
	s->have += (size_t)n;
	return 0;
}

int wire_stream_try_receive(struct wire_stream *s, struct wire_frame *frame)
{
	int n, rc;

	if (s->failed)
		return s->failed;
	if (s->used) {
		s->have -= s->used;
		memmove(s->rx_buf, s->rx_buf + s->used, s->have);
		s->used = 0;
	}
	for (;;) {
		n = wire_frame_decode(&s->rx, s->rx_buf, s->have, frame);
		if (n < 0)
			return stream_fail(s, n);
		if (n > 0) {
			s->used = (size_t)n;
			s->any = true;
			return 0;
		}
		rc = stream_fill(s);
		if (rc)
			return rc == -EAGAIN ? rc : stream_fail(s, rc);
	}
}

int wire_stream_receive(struct wire_stream *s, struct wire_frame *frame, uint64_t deadline)
{
	for (;;) {
		int rc = wire_stream_try_receive(s, frame);

		if (rc != -EAGAIN)
			return rc;
		rc = poll_readable(s->in, deadline);
		if (rc == -ETIMEDOUT)
			return rc;
		if (rc)
			return stream_fail(s, rc);
	}
}

/* Returns true if the stream begins like that of PMDK's rpmemd: with a status of four bytes that
 * is 0 or an errno. */
static bool stream_is_pmdk(const struct wire_stream *s)
{
	return !s->any && s->have >= 4 && s->rx_buf[1] == 0 && s->rx_buf[2] == 0 &&
	       s->rx_buf[3] == 0;
}

static int stream_explain_foreign(const struct wire_stream *s, const char *who, struct error *err)
{
	char line[65];
	size_t len = s->have < sizeof(line) - 1 ? s->have : sizeof(line) - 1;

	memcpy(line, s->rx_buf, len);
	line[len] = '\0';
	line[strcspn(line, "\n")] = '\0';
	text_make_printable(line);
	return error_set(err, ERROR_FAILED, EPROTO,
			 "%s sent \"%s\" instead of rpmemd's protocol; "
			 "does a start-up file of the shell there print something?",
			 who, line);
}

int wire_stream_explain(const struct wire_stream *s, int failure, const char *who,
			struct error *err)
{
	switch (failure) {
	case -ETIMEDOUT:
		return error_set(err, ERROR_UNREACHED, ETIMEDOUT, "%s did not answer in time", who);
	case -ECONNRESET:
		return error_set(err, ERROR_UNREACHED, ECONNRESET, "%s closed the connection", who);
	case -EPROTONOSUPPORT:
		return error_set(err, ERROR_FAILED, EPROTONOSUPPORT,
				 "%s has another version of the protocol than %d", who,
				 WIRE_VERSION);
	case -EBADMSG:
		return error_set(err, ERROR_FAILED, EPROTO,
				 "bytes from %s were changed on their way", who);
	case -EPROTO:
		if (stream_is_pmdk(s))
			return error_set(err, ERROR_FAILED, EPROTO,
					 "%s is the rpmemd of PMDK, which has another protocol",
					 who);
		if (!s->any)
			return stream_explain_foreign(s, who, err);
		/* fall through */
	case -EMSGSIZE:
		return error_set(err, ERROR_FAILED, EPROTO, "%s broke the protocol", who);
	default:
		return error_set(err, ERROR_FAILED, -failure, "connection to %s: %s", who,
				 strerror(-failure));
	}
}
