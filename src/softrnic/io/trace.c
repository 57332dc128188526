/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/trace.h"

#include <errno.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/safecopy.h"
#include "softrnic/io/config.h"
#include "softrnic/io/trace_ends.h"
#include "softrnic/io/trace_file.h"
#include "softrnic/trace/mpa_scan.h"
#include "softrnic/trace/pcapng.h"

/*
 * Where a packet is put together: headers, and what was kept of earlier bytes, grow towards the
 * front, so that payload never moves.
 */
#define FRONT     (PCAPNG_HEAD + TCPIP_HEADERS_MAX + MPA_SCAN_HEAD_MAX)
#define PIECE_MAX (TCPIP_PAYLOAD_MAX - MPA_SCAN_HEAD_MAX)

/* One direction. Readers lose track where a packet ends within a frame's head, so those bytes are
 * kept for the next packet. */
struct half {
	struct mpa_scan scan;
	uint8_t kept[MPA_SCAN_HEAD_MAX];
	size_t n_kept;
};

struct trace {
	struct list link; /* in tracer.all */
	struct flow flow;
	struct half half[2]; /* by enum flow_side */
	uint8_t *bytes;      /* of the next packet, in packet_buf */
	uint64_t key;        /* the same at both ends */
	bool initiator;
};

static struct {
	pthread_mutex_t lock; /* a leaf */
	struct list all;
} tracer = {.lock = PTHREAD_MUTEX_INITIALIZER, .all = LIST_INIT(tracer.all)};

static uint8_t packet_buf[FRONT + PIECE_MAX + PCAPNG_TAIL_MAX]; /* with the lock */
static uint8_t *const payload = packet_buf + FRONT;

static uint64_t realtime_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static uint32_t captured(size_t original)
{
	uint64_t snaplen = config_get()->trace_snaplen;

	return (uint32_t)(snaplen && original > snaplen ? snaplen : original);
}

/* The bytes are in place. What is behind them may be overwritten by the block's end. */
static void emit(void *arg, const struct tcpip_segment *seg, enum flow_side from, size_t len)
{
	struct trace *t = arg;
	size_t headers = tcpip_headers_len(seg), tail;
	uint8_t *ip = t->bytes - headers, *block = ip - PCAPNG_HEAD;
	char comment[PCAPNG_COMMENT_MAX];
	struct pcapng_packet packet = {
		.time_ns = realtime_ns(),
		.captured = captured(headers + len),
		.original = (uint32_t)(headers + len),
		.outbound = from == FLOW_US,
	};

	if (seg->flags & TCP_SYN && from == FLOW_US) {
		snprintf(comment, sizeof(comment), "%s, traced by process %d (%s)",
			 t->initiator ? "initiator" : "responder", (int)getpid(),
			 program_invocation_short_name);
		packet.comment = comment;
	}
	tcpip_encode(ip, seg, t->bytes, len);
	pcapng_encode_head(block, &packet);
	tail = pcapng_encode_tail(ip + packet.captured, &packet);
	trace_file_append(block, PCAPNG_HEAD + packet.captured + tail, config_get()->trace_bytes);
}

static void say(struct trace *t, enum flow_side from, uint8_t *bytes, size_t len)
{
	t->bytes = bytes;
	if (len)
		flow_data(&t->flow, from, len, emit, t);
}

/* The next n bytes are at `payload`. */
static void say_payload(struct trace *t, enum flow_side from, size_t n)
{
	struct half *h = &t->half[from];
	uint8_t *bytes = payload - h->n_kept;
	size_t len = h->n_kept + n, now;

	memcpy(bytes, h->kept, h->n_kept);
	now = mpa_scan(&h->scan, bytes, len);
	h->n_kept = len - now;
	memcpy(h->kept, bytes + now, h->n_kept);
	t->half[!from].scan.markers = h->scan.wants_markers;
	say(t, from, bytes, now);
}

/* Nothing can follow that they would wait for. */
static void say_kept(struct trace *t, enum flow_side from)
{
	struct half *h = &t->half[from];

	memcpy(payload, h->kept, h->n_kept);
	say(t, from, payload, h->n_kept);
	h->n_kept = 0;
}

static void say_fin(struct trace *t, enum flow_side from)
{
	say_kept(t, from);
	flow_fin(&t->flow, from, emit, t);
}

static void say_all_kept(struct trace *t)
{
	say_kept(t, FLOW_US);
	say_kept(t, FLOW_PEER);
}

/* --- which connection it is --------------------------------------------------------------- */

/*
 * A reader would take a second view of a connection for retransmissions of the first. So whichever
 * end comes first writes it, also of two processes that share a file.
 */
static bool claim(const struct trace *t)
{
	struct list *it;

	list_for_each (it, &tracer.all)
		if (container_of(it, struct trace, link)->key == t->key)
			return false;
	return trace_file_claim(t->key);
}

static bool begin(struct trace *t)
{
	enum flow_side initiator = t->initiator ? FLOW_US : FLOW_PEER;

	if (!trace_file_open(config_get()->trace))
		return false;
	t->key = trace_key(&t->flow, initiator);
	if (!claim(t)) {
		LOG_INFO("traced by the other end of the connection");
		return false;
	}
	list_add_tail(&tracer.all, &t->link);
	flow_open(&t->flow, initiator, emit, t);
	return true;
}

struct trace *trace_new(int fd, bool initiator)
{
	struct trace *t;
	bool begun = false;

	if (!config_get()->trace)
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t) {
		LOG_ERROR_LIMITED("a connection is not traced: out of memory");
		return NULL;
	}
	list_init(&t->link);
	t->initiator = initiator;
	t->bytes = payload;
	flow_init(&t->flow, realtime_ns());
	if (!trace_ends(&t->flow, fd)) {
		pthread_mutex_lock(&tracer.lock);
		begun = begin(t);
		pthread_mutex_unlock(&tracer.lock);
	}
	if (begun)
		return t;
	free(t);
	return NULL;
}

void trace_forget(struct trace *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&tracer.lock);
	list_del(&t->link);
	pthread_mutex_unlock(&tracer.lock);
	free(t);
}

/* What close() makes the kernel say: a reset if bytes are unread (RFC 2525 s2.17), else a FIN. */
void trace_delete(struct trace *t, int fd)
{
	int unread = 0;

	if (!t)
		return;
	pthread_mutex_lock(&tracer.lock);
	say_all_kept(t);
	if (!ioctl(fd, SIOCINQ, &unread) && unread > 0)
		flow_reset(&t->flow, FLOW_US, emit, t);
	else
		flow_fin(&t->flow, FLOW_US, emit, t);
	trace_file_unclaim(t->key);
	pthread_mutex_unlock(&tracer.lock);
	trace_forget(t);
}

/* --- bytes -------------------------------------------------------------------------------- */

static void shorten(struct msghdr *msg, size_t len)
{
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		struct iovec *iov = &msg->msg_iov[i];

		if (iov->iov_len > len)
			iov->iov_len = len;
		len -= iov->iov_len;
	}
}

static size_t total(const struct msghdr *msg)
{
	size_t sum = 0;

	for (size_t i = 0; i < msg->msg_iovlen; i++)
		sum += msg->msg_iov[i].iov_len;
	return sum;
}

/* RFC 9293 s3.10.7.4: to those who have seen a FIN already, the kernel calls a reset EPIPE. */
static void note_error(struct trace *t, int err)
{
	if (err == EAGAIN || err == EINTR || err == EFAULT || err == ENOMEM)
		return;
	say_all_kept(t);
	if (err == ECONNRESET || err == EPIPE)
		flow_reset(&t->flow, FLOW_PEER, emit, t);
	t->flow.over = true;
}

static ssize_t recv_noting(struct trace *t, int fd, struct msghdr *msg)
{
	size_t room = total(msg);
	ssize_t n = recv(fd, payload, room < PIECE_MAX ? room : PIECE_MAX, MSG_DONTWAIT | MSG_PEEK);

	if (n > 0) {
		shorten(msg, (size_t)n);
		n = recvmsg(fd, msg, MSG_DONTWAIT);
	}
	if (n > 0)
		say_payload(t, FLOW_PEER, (size_t)n);
	else if (n == 0)
		say_fin(t, FLOW_PEER);
	return n;
}

/* The memory may vanish (safecopy.h): what comes before it goes first. */
static ssize_t gather(const struct msghdr *msg)
{
	size_t len = 0;

	for (size_t i = 0; i < msg->msg_iovlen && len < PIECE_MAX; i++) {
		const struct iovec *iov = &msg->msg_iov[i];
		size_t room = PIECE_MAX - len;
		size_t n = iov->iov_len < room ? iov->iov_len : room;

		if (safecopy(payload + len, iov->iov_base, n)) {
			errno = EFAULT;
			return len ? (ssize_t)len : -1;
		}
		len += n;
	}
	return (ssize_t)len;
}

static ssize_t send_noting(struct trace *t, int fd, struct msghdr *msg)
{
	ssize_t n = gather(msg);

	if (n > 0) {
		shorten(msg, (size_t)n);
		n = send(fd, payload, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	if (n > 0)
		say_payload(t, FLOW_US, (size_t)n);
	return n;
}

static ssize_t with_lock(struct trace *t, int fd, struct msghdr *msg,
			 ssize_t (*noting)(struct trace *t, int fd, struct msghdr *msg),
			 ssize_t (*plain)(int fd, struct msghdr *msg))
{
	ssize_t n;
	int err;

	pthread_mutex_lock(&tracer.lock);
	if (!trace_file_is_open()) {
		pthread_mutex_unlock(&tracer.lock);
		return plain(fd, msg);
	}
	n = noting(t, fd, msg);
	err = errno;
	if (n < 0)
		note_error(t, err);
	pthread_mutex_unlock(&tracer.lock);
	errno = err;
	return n;
}

static ssize_t recv_plain(int fd, struct msghdr *msg)
{
	return recvmsg(fd, msg, MSG_DONTWAIT);
}

static ssize_t send_plain(int fd, struct msghdr *msg)
{
	return sendmsg(fd, msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

ssize_t trace_recvmsg(struct trace *t, int fd, struct msghdr *msg)
{
	return with_lock(t, fd, msg, recv_noting, recv_plain);
}

ssize_t trace_sendmsg(struct trace *t, int fd, struct msghdr *msg)
{
	return with_lock(t, fd, msg, send_noting, send_plain);
}

void trace_shutdown(struct trace *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&tracer.lock);
	say_fin(t, FLOW_US);
	pthread_mutex_unlock(&tracer.lock);
}

void trace_error(struct trace *t, int err)
{
	if (!t)
		return;
	pthread_mutex_lock(&tracer.lock);
	note_error(t, err);
	pthread_mutex_unlock(&tracer.lock);
}

/* --- fork() ------------------------------------------------------------------------------- */

void trace_atfork_prepare(void)
{
	pthread_mutex_lock(&tracer.lock);
}

void trace_atfork_parent(void)
{
	pthread_mutex_unlock(&tracer.lock);
}

/* The connections are our parent's, and so is what it says about them. */
void trace_atfork_child(void)
{
	while (list_pop(&tracer.all))
		;
	trace_file_forked();
	pthread_mutex_unlock(&tracer.lock);
}
