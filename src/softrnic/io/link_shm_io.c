/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_shm_io.c -- moves bytes through the rings, and handles wake-ups.
 *
 * While bytes are reported, a receive that leaves the ring empty sets the reader's flag, and the
 * peer sends a wake-up on the Unix socket after its next bytes. While a thread checks the ring by
 * itself the flag is clear, and neither end makes a system call. In the same way a send that finds
 * the ring full sets the writer's flag.
 */
#include <errno.h>

#include "base/log.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/link_shm_impl.h"
#include "softrnic/io/link_shm_socket.h"
#include "softrnic/io/trace.h"

/* after this number of checks, fetch the cache lines of the next bytes again */
#define SHM_LOOKS_EACH 8
#define SHM_LOOK_MAX   (64u << 10)
/* Limit of wake-ups that stay unread on the socket. The socket has memory for far more. */
#define SHM_UNDRAINED_MAX 64

static int shm_break(struct link_shm *s)
{
	if (!s->broken)
		LOG_WARNING_LIMITED("connection ended: the peer's position in a ring of shared "
				    "memory is impossible");
	s->broken = true;
	return -EPROTO;
}

/* --- flags: the peer sends at most one wake-up for each set flag ---------------------------- */

static void shm_wake(const struct link_shm *s)
{
	if (!s->is_left)
		shm_socket_wake(s->fd);
}

static void shm_wake_reader(struct link_shm *s)
{
	if (ring_wakes_reader(&s->tx))
		shm_wake(s);
}

static void shm_wake_writer(struct link_shm *s)
{
	if (ring_wakes_writer(&s->rx))
		shm_wake(s);
}

static int shm_reader_sleeps(struct link_shm *s)
{
	s->flags_set++;
	return ring_reader_sleeps(&s->rx);
}

/* --- reports -------------------------------------------------------------------------------- */

void link_shm_watch_socket(struct link_shm *s)
{
	bool watched = !s->rx_on || !s->silent || s->room_reported;

	if (watched == s->watched || s->fd < 0)
		return;
	s->watched = watched;
	engine_watch(s->src, s->fd, watched, false);
}

bool link_shm_pending(const struct link *l, unsigned looks)
{
	const struct link_shm *s = (const struct link_shm *)l;

	if (!s->rx_on || s->looks_below || s->broken)
		return true;
	while (looks > 0) {
		unsigned few = looks < SHM_LOOKS_EACH ? looks : SHM_LOOKS_EACH;

		looks -= few;
		ring_expect(&s->rx);
		while (few-- > 0)
			if (ring_is_pending(&s->rx))
				return true;
	}
	return false;
}

/* Must the peer send wake-ups to this end? They are needed if bytes are reported to the source, or
 * if a thread waits on the socket. Otherwise a thread of this end checks the ring by itself. */
static bool shm_is_to_be_woken(const struct link_shm *s)
{
	return !s->silent || s->awaited;
}

/* Request a report to the source when the ring has room. Returns 0, 1 if there is room now, or
 * -EPROTO. */
static int shm_report_room(struct link_shm *s)
{
	int there = ring_writer_sleeps(&s->tx);

	s->flags_set++;
	s->room_reported = !there;
	link_shm_watch_socket(s);
	return there;
}

bool link_shm_report_read(struct link *l, bool report)
{
	struct link_shm *s = link_shm_of(l);
	const struct link_polling *below = s->below->ops->polling;
	bool room;

	if (!s->rx_on)
		return below ? below->report_read(s->below, report) : report;
	s->silent = !report;
	link_shm_watch_socket(s);
	if (!report) {
		ring_reader_wakes(&s->rx);
		return false;
	}
	room = s->waits_room && shm_report_room(s) != 0;
	return shm_reader_sleeps(s) != 0 || s->looks_below || room;
}

/* No further wake-up arrives, so no new thread may wait on the socket. A thread that is still
 * waiting has been woken. The socket is closed after this wait. */
static void shm_leave_socket(struct link_shm *s)
{
	if (s->is_left && !s->awaited)
		link_shm_close_socket(s);
}

static int shm_drain(struct link_shm *s)
{
	int woken = s->is_left ? 0 : shm_socket_drain(s->fd);

	s->undrained = false;
	s->flags_set = 0;
	if (woken < 0)
		s->is_left = s->looks_below = true;
	shm_leave_socket(s);
	return woken;
}

int link_shm_wait_begin(struct link *l)
{
	struct link_shm *s = link_shm_of(l);
	const struct link_polling *below = s->below->ops->polling;

	if (!s->rx_on)
		return below ? below->wait_begin(s->below) : -EAGAIN;
	if (s->waits_room) { /* a wake-up because of room is meant for the source */
		shm_report_room(s);
		return -EAGAIN;
	}
	if (s->undrained)
		shm_drain(s);
	if (s->is_left || s->looks_below || shm_reader_sleeps(s))
		return -EAGAIN;
	s->awaited = true;
	return s->fd;
}

void link_shm_wait_end(struct link *l)
{
	struct link_shm *s = link_shm_of(l);
	const struct link_polling *below = s->below->ops->polling;

	if (!s->rx_on) {
		if (below)
			below->wait_end(s->below);
		return;
	}
	s->awaited = false;
	shm_leave_socket(s);
	if (s->silent)
		ring_reader_wakes(&s->rx);
	/* If reports go to the source, the source reads the wake-ups, because they may report
	 * room. */
	if (s->silent && !s->room_reported)
		shm_drain(s);
}

static void shm_found_room(struct link_shm *s)
{
	s->waits_room = false;
	if (!s->room_reported)
		return;
	s->room_reported = false;
	ring_writer_wakes(&s->tx);
	link_shm_watch_socket(s);
}

/* Does the ring have room? If it has none and room must be reported, request the report again. A
 * thread that checks for room by itself finds the room at a later check. */
static bool shm_has_room(struct link_shm *s)
{
	if (s->waits_room && (s->room_reported || shm_is_to_be_woken(s))) {
		if (shm_report_room(s) == 0)
			return false;
	} else if (!ring_has_room(&s->tx)) {
		return false;
	}
	shm_found_room(s);
	return true;
}

bool link_shm_has_room(struct link *l)
{
	struct link_shm *s = link_shm_of(l);

	if (!s->waits_room || !ring_has_room_again(&s->tx))
		return false;
	shm_found_room(s);
	return true;
}

/*
 * Called when a wake-up has arrived. Reading it is postponed, so that the ring's bytes are placed
 * sooner; each further wake-up is still reported. But the socket must not become full, because a
 * wake-up that does not fit would be lost.
 */
static int shm_woken(struct link_shm *s, unsigned polled)
{
	/* the hang-up belongs to the Unix socket (after its last bytes) or to the link below */
	if (polled & READY_HANGUP) {
		int woken = shm_drain(s);

		return woken > 0 ? shm_drain(s) : woken;
	}
	if (!s->rx_on || s->flags_set >= SHM_UNDRAINED_MAX || !ring_is_pending(&s->rx))
		return shm_drain(s);
	s->undrained = true;
	return 1;
}

/* The Unix socket and the link below report to the same event source of the engine, so check which
 * of them is ready. */
unsigned link_shm_ready(struct link *l, unsigned polled)
{
	struct link_shm *s = link_shm_of(l);
	int woken = shm_woken(s, polled);
	unsigned ready = 0;

	if (!s->rx_on)
		ready |= polled & (READY_READ | READY_HANGUP);
	if (!s->tx_on)
		ready |= polled & READY_WRITE;
	if (s->rx_on && (woken != 1 || polled & READY_HANGUP))
		s->looks_below = true;
	/* Without bytes the wake-up belonged to an earlier wait and has cleared the reader's flag of
	 * the present wait. So set the flag again, unless the present wait is over. */
	if (s->rx_on &&
	    (link_shm_pending(&s->link, 1) || (shm_is_to_be_woken(s) && shm_reader_sleeps(s))))
		ready |= READY_READ | (polled & READY_HANGUP);
	if (s->tx_on && shm_has_room(s))
		ready |= READY_WRITE;
	return ready;
}

/* --- receiving ------------------------------------------------------------------------------ */

/* Receive on a traced connection: copy one piece of the ring into the trace first. */
static ssize_t shm_recv_traced(struct link_shm *s, const struct iovec *iov, int n)
{
	ssize_t got = ring_readable(&s->rx);
	size_t len, size, room = link_iov_len(iov, n);
	const void *bytes;
	uint8_t *buf;

	if (got <= 0)
		return got;
	buf = trace_enter(s->trace, &size);
	if (!buf)
		return ring_read(&s->rx, iov, n);
	bytes = ring_look(&s->rx, &len);
	len = len < size ? len : size;
	len = len < room ? len : room;
	for (size_t i = 0; i < len; i++)
		buf[i] = ((const volatile uint8_t *)bytes)[i];
	got = link_iov_put(iov, n, buf, len);
	if (got > 0)
		ring_consume(&s->rx, (size_t)got);
	trace_leave_received(s->trace, got > 0 ? got : -EAGAIN);
	return got;
}

static ssize_t shm_read(struct link_shm *s, const struct iovec *iov, int n)
{
	return __builtin_expect(s->trace != NULL, 0) ? shm_recv_traced(s, iov, n)
						     : ring_read(&s->rx, iov, n);
}

/*
 * Called when the ring is empty: request a report of the next bytes, unless a thread of this end
 * checks by itself. Bytes may have arrived meanwhile. If a thread waits on the socket, another
 * thread may have taken the bytes and the wake-up.
 */
static int shm_rest(struct link_shm *s)
{
	int there = 0;

	if (shm_is_to_be_woken(s))
		there = shm_reader_sleeps(s);
	else
		ring_reader_rests(&s->rx);
	shm_wake_writer(s);
	return there;
}

/* Has the end arrived on the link below? A close of the Unix socket alone is not the end; the end
 * of the link below follows. */
static bool shm_has_end(struct link_shm *s)
{
	uint8_t byte;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};

	if (s->has_end)
		return true;
	s->end = s->below->ops->recv(s->below, &iov, 1);
	s->has_end = s->end != -EAGAIN && s->end != -EINTR;
	if (s->end > 0) {
		LOG_WARNING_LIMITED(
			"connection ended: bytes after the peer's switch to shared memory");
		s->end = -EBADMSG;
	}
	s->looks_below = s->has_end || s->end == -EINTR;
	return s->has_end;
}

/*
 * Called when a receive found the ring empty. Returns 1 if bytes have arrived now; other results
 * are those of recv(). The peer may have written its last bytes after the first check of the ring,
 * and then closed the link. So the close is reported only if a second check of the ring finds no
 * bytes.
 */
static ssize_t shm_recv_none(struct link_shm *s)
{
	ssize_t there = shm_rest(s);

	if (there)
		return there;
	if (!s->looks_below || !shm_has_end(s))
		return -EAGAIN;
	there = ring_readable(&s->rx);
	return there > 0 ? 1 : there < 0 ? there : s->end;
}

/* Called after bytes were taken from the ring. */
static ssize_t shm_rest_or_wake(struct link_shm *s, ssize_t got)
{
	if (!ring_is_pending(&s->rx))
		return shm_rest(s) < 0 ? -EPROTO : got;
	shm_wake_writer(s);
	return got;
}

/* Return one piece of the ring in place. The piece is short, so that the peer continues to write
 * while the piece is placed. Without bytes the results are those of recv(). */
ssize_t link_shm_look(struct link *l, const void **bytes)
{
	struct link_shm *s = link_shm_of(l);
	ssize_t there = s->rx_on && !s->trace ? ring_readable(&s->rx) : 0;
	size_t len;

	if (there <= 0)
		return there;
	*bytes = ring_look(&s->rx, &len);
	return (ssize_t)(len < SHM_LOOK_MAX ? len : SHM_LOOK_MAX);
}

void link_shm_consume(struct link *l, size_t len)
{
	struct link_shm *s = link_shm_of(l);

	ring_consume(&s->rx, len);
	if (shm_rest_or_wake(s, 0) < 0)
		shm_break(s);
}

ssize_t link_shm_recv(struct link *l, struct iovec *iov, int n)
{
	struct link_shm *s = link_shm_of(l);
	ssize_t got;

	if (!s->rx_on)
		return s->below->ops->recv(s->below, iov, n);
	got = shm_read(s, iov, n);
	if (got == 0) {
		got = shm_recv_none(s);
		if (got > 0)
			got = shm_read(s, iov, n);
	}
	if (got > 0)
		got = shm_rest_or_wake(s, got);
	return got == -EPROTO ? shm_break(s) : got;
}

/* --- sending -------------------------------------------------------------------------------- */

static ssize_t shm_send_traced(struct link_shm *s, const struct iovec *iov, int n)
{
	size_t size;
	void *buf;
	ssize_t len;
	struct iovec copy;

	if (!ring_has_room(&s->tx))
		return 0;
	buf = trace_enter(s->trace, &size);
	if (!buf)
		return ring_write(&s->tx, iov, n);
	len = link_iov_get(iov, n, buf, size);
	copy = (struct iovec){.iov_base = buf, .iov_len = len > 0 ? (size_t)len : 0};
	if (len > 0)
		len = ring_write(&s->tx, &copy, 1);
	trace_leave_sent(s->trace, len ? len : -EAGAIN);
	return len;
}

static ssize_t shm_write(struct link_shm *s, const struct iovec *iov, int n)
{
	return __builtin_expect(s->trace != NULL, 0) ? shm_send_traced(s, iov, n)
						     : ring_write(&s->tx, iov, n);
}

/* Called when the ring is full. A thread that checks for bytes by itself also checks for room;
 * without such a thread request a report. */
static ssize_t shm_wait_for_room(struct link_shm *s)
{
	int there = shm_is_to_be_woken(s) ? shm_report_room(s) : 0;

	s->waits_room = !there;
	return there ? there : -EAGAIN;
}

ssize_t link_shm_send(struct link *l, struct iovec *iov, int n)
{
	struct link_shm *s = link_shm_of(l);
	ssize_t sent;

	if (!s->tx_on)
		return s->below->ops->send(s->below, iov, n);
	sent = shm_write(s, iov, n);
	if (sent == 0) {
		sent = shm_wait_for_room(s);
		if (sent > 0)
			sent = shm_write(s, iov, n);
	}
	if (sent > 0)
		shm_wake_reader(s);
	return sent == -EPROTO ? shm_break(s) : sent;
}

size_t link_shm_lend(struct link *l, void **to)
{
	struct link_shm *s = link_shm_of(l);

	return s->tx_on && !s->trace && !s->waits_room ? ring_lend(&s->tx, to) : 0;
}

void link_shm_commit(struct link *l, size_t len)
{
	struct link_shm *s = link_shm_of(l);

	ring_commit(&s->tx, len);
	shm_wake_reader(s);
}
