/* SPDX-License-Identifier: BSD-3-Clause */
#include "link_pair.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/list.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/link.h"

#define RING 65536u

struct pair_link {
	struct link link;
	struct link_addr us, peer_addr;
	int bell; /* becomes readable when ready() has an event */
	struct eng_source *src;
	bool listens, dialed, ended; /* ended: the peer sends no more bytes */
	bool looked_for_end;
	struct list node; /* in a listener's list, or in the listener's queue */
	struct list queue;
	struct pair_link *peer; /* NULL: the link has no peer */
	uint8_t ring[RING];     /* bytes that have arrived and are not taken yet */
	size_t head, len;
	bool silent;
	bool asked; /* the engine requested an event for the time when the peer has space */
	/* readable while a thread waits, if bytes have arrived or the stream has ended */
	int arrival;
	unsigned waiters;
};

static struct {
	pthread_mutex_t lock; /* guards all links */
	struct list listeners;
	size_t allowed, carried;
	unsigned links, silent, waits, full;
	bool hides_ends;
	pid_t looker;
	uint16_t last_port;
} pair = {.lock = PTHREAD_MUTEX_INITIALIZER,
	  .listeners = LIST_INIT(pair.listeners),
	  .allowed = SIZE_MAX,
	  .last_port = 1000};

static struct pair_link *pair_of(struct link *l)
{
	return (struct pair_link *)l;
}

static void pair_lock(void)
{
	pthread_mutex_lock(&pair.lock);
}

static void pair_unlock(void)
{
	pthread_mutex_unlock(&pair.lock);
}

static void pair_write(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		abort();
}

/* Returns true if the peer sends no more bytes, and the link reports this end of the stream to the
 * engine. */
static bool pair_shows_end(const struct pair_link *p)
{
	return p->ended && (!pair.hides_ends || p->looked_for_end);
}

static void pair_ring_bell(struct pair_link *p)
{
	pair_write(p->bell);
	if (p->waiters && (p->len || pair_shows_end(p)))
		pair_write(p->arrival);
}

/* Report to the engine that bytes have arrived. */
static void pair_report(struct pair_link *p)
{
	if (!p->silent)
		pair_write(p->bell);
	if (p->waiters)
		pair_write(p->arrival);
}

/* --- what tests can query and change ------------------------------------------------------ */

static void pair_ring_all(void);

void pair_allow(size_t bytes)
{
	pair_lock();
	pair.allowed = bytes;
	pair_ring_all();
	pair_unlock();
}

size_t pair_carried(void)
{
	size_t n;

	pair_lock();
	n = pair.carried;
	pair_unlock();
	return n;
}

unsigned pair_links(void)
{
	unsigned n;

	pair_lock();
	n = pair.links;
	pair_unlock();
	return n;
}

unsigned pair_silent(void)
{
	unsigned n;

	pair_lock();
	n = pair.silent;
	pair_unlock();
	return n;
}

unsigned pair_full(void)
{
	unsigned n;

	pair_lock();
	n = pair.full;
	pair_unlock();
	return n;
}

unsigned pair_waits(void)
{
	unsigned n;

	pair_lock();
	n = pair.waits;
	pair_unlock();
	return n;
}

void pair_hide_ends(bool hide)
{
	pair_lock();
	pair.hides_ends = hide;
	pair_unlock();
}

pid_t pair_looker(void)
{
	pid_t who;

	pair_lock();
	who = pair.looker;
	pair_unlock();
	return who;
}

/* --- life --------------------------------------------------------------------------------- */

#define PAIR_MAX 64
static struct pair_link *pair_all[PAIR_MAX];

static void pair_ring_all(void)
{
	for (int i = 0; i < PAIR_MAX; i++)
		if (pair_all[i])
			pair_ring_bell(pair_all[i]);
}

static struct pair_link *pair_new(const struct link_ops *ops, const struct link_addr *us)
{
	struct pair_link *p = calloc(1, sizeof(*p));
	int i = 0;

	if (!p)
		abort();
	p->link.ops = ops;
	p->us = *us;
	if (!p->us.port)
		p->us.port = ++pair.last_port;
	p->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p->arrival = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	list_init(&p->node);
	list_init(&p->queue);
	while (pair_all[i])
		i++;
	pair_all[i] = p;
	pair.links++;
	return p;
}

static void pair_leave(struct pair_link *p)
{
	struct pair_link *peer = p->peer;

	if (!peer)
		return;
	p->peer = peer->peer = NULL;
	peer->ended = true;
	pair_ring_bell(peer);
}

static void pair_close(struct link *l)
{
	struct pair_link *p = pair_of(l);

	if (p->src)
		engine_remove(p->src, p->bell);
	pair_lock();
	pair_leave(p);
	list_del(&p->node);
	for (int i = 0; i < PAIR_MAX; i++)
		if (pair_all[i] == p)
			pair_all[i] = NULL;
	pair.links--;
	pair.silent -= p->silent;
	pair_unlock();
	close(p->bell);
	close(p->arrival);
	free(p);
}

static void pair_forked(struct link *l)
{
	close(pair_of(l)->bell);
	close(pair_of(l)->arrival);
	free(l);
}

/* --- connecting --------------------------------------------------------------------------- */

static int pair_serves(const struct link_addr *addr, uint32_t host)
{
	uint8_t bytes[4] = {(uint8_t)(host >> 24), (uint8_t)(host >> 16), (uint8_t)(host >> 8),
			    (uint8_t)host};

	return addr->family == LINK_IPV4 && !memcmp(addr->bytes, bytes, 4) ? 2 : 0;
}

static int pair_route(const struct link_addr *to, struct link_addr *from)
{
	*from = *to;
	from->port = 0;
	return 0;
}

static int pair_listen(struct link *l)
{
	struct pair_link *p = pair_of(l);

	pair_lock();
	p->listens = true;
	list_add_tail(&pair.listeners, &p->node);
	pair_unlock();
	return 0;
}

static void pair_stop_listening(struct link *l)
{
	struct pair_link *p = pair_of(l);

	engine_remove(p->src, p->bell);
	p->src = NULL;
	pair_lock();
	p->listens = false;
	list_del(&p->node);
	pair_unlock();
}

static int pair_accept(struct link *l, struct link **out)
{
	struct list *first;

	pair_lock();
	first = list_pop(&pair_of(l)->queue);
	pair_unlock();
	if (!first)
		return -EAGAIN;
	*out = &container_of(first, struct pair_link, node)->link;
	return 0;
}

static struct pair_link *pair_find_listener(const struct link_addr *at)
{
	struct list *it;

	list_for_each (it, &pair.listeners) {
		struct pair_link *p = container_of(it, struct pair_link, node);

		if (!memcmp(&p->us, at, sizeof(*at)))
			return p;
	}
	return NULL;
}

static int pair_dial(struct link *l, const struct link_addr *to)
{
	struct pair_link *p = pair_of(l), *listener, *other;

	pair_lock();
	listener = pair_find_listener(to);
	if (listener) {
		other = pair_new(l->ops, to);
		other->peer = p;
		other->peer_addr = p->us;
		p->peer = other;
		p->peer_addr = *to;
		list_add_tail(&listener->queue, &other->node);
		pair_ring_bell(listener);
	}
	pair_unlock();
	return listener ? 0 : -ECONNREFUSED;
}

static int pair_dialed(struct link *l)
{
	return pair_of(l)->peer ? 0 : -ECONNREFUSED;
}

static int pair_local(struct link *l, struct link_addr *addr)
{
	*addr = pair_of(l)->us;
	return 0;
}

static int pair_remote(struct link *l, struct link_addr *addr)
{
	*addr = pair_of(l)->peer_addr;
	return 0;
}

/* --- events for the engine ---------------------------------------------------------------- */

static int pair_watch(struct link *l, struct eng_source *src, bool write)
{
	struct pair_link *p = pair_of(l);
	int ret = engine_add(src, p->bell, false);

	if (ret)
		return ret;
	p->src = src;
	p->asked = write;
	pair_ring_bell(p);
	return 0;
}

static void pair_watch_write(struct link *l, bool write)
{
	pair_lock();
	pair_of(l)->asked = write;
	if (write)
		pair_ring_bell(pair_of(l));
	pair_unlock();
}

static bool pair_has_room(const struct pair_link *p)
{
	return !p->peer || (p->peer->len < RING && pair.allowed);
}

/* Returns true if there is space for bytes. Space is reported even while arrived bytes are not
 * reported. */
static bool pair_finds_room(struct link *l)
{
	return false;
}

static unsigned pair_ready(struct link *l, unsigned polled)
{
	struct pair_link *p = pair_of(l);
	unsigned ready = 0;
	uint64_t rings;

	pair_lock();
	if (read(p->bell, &rings, sizeof(rings)) < 0 && errno != EAGAIN)
		abort();
	if (p->listens)
		ready = list_empty(&p->queue) ? 0 : READY_READ;
	else
		ready = ((p->len && !p->silent) || pair_shows_end(p) ? READY_READ : 0) |
			(pair_shows_end(p) ? READY_HANGUP : 0) |
			(p->asked && pair_has_room(p) ? READY_WRITE : 0);
	pair_unlock();
	return ready;
}

static bool pair_pending(const struct link *l, unsigned looks)
{
	const struct pair_link *p = (const struct pair_link *)l;
	bool here;

	pair_lock();
	here = p->len || pair_shows_end(p);
	pair_unlock();
	return here;
}

static bool pair_report_read(struct link *l, bool report)
{
	struct pair_link *p = pair_of(l);
	bool here;

	pair_lock();
	pair.silent += !report - p->silent;
	p->silent = !report;
	here = report && (p->len || pair_shows_end(p));
	pair_unlock();
	return here;
}

static int pair_wait_begin(struct link *l)
{
	struct pair_link *p = pair_of(l);
	int fd = p->arrival;

	pair_lock();
	pair.waits++;
	if (p->len || pair_shows_end(p))
		fd = -EAGAIN;
	else
		p->waiters++;
	pair_unlock();
	return fd;
}

static void pair_wait_end(struct link *l)
{
	struct pair_link *p = pair_of(l);
	uint64_t rings;

	pair_lock();
	p->waiters = 0;
	if (read(p->arrival, &rings, sizeof(rings)) < 0 && errno != EAGAIN)
		abort();
	pair_unlock();
}

/* --- bytes -------------------------------------------------------------------------------- */

static size_t pair_put(struct pair_link *to, const uint8_t *bytes, size_t len)
{
	size_t done = 0;

	while (done < len && to->len < RING && pair.allowed) {
		to->ring[(to->head + to->len++) % RING] = bytes[done++];
		pair.carried++;
		if (pair.allowed != SIZE_MAX)
			pair.allowed--;
	}
	return done;
}

static size_t pair_in_one_piece(const struct pair_link *p)
{
	return p->head + p->len > RING ? RING - p->head : p->len;
}

static void pair_take(struct pair_link *p, size_t len)
{
	p->head = (p->head + len) % RING;
	p->len -= len;
	if (p->peer)
		pair_ring_bell(p->peer);
}

static ssize_t pair_send(struct link *l, struct iovec *iov, int n)
{
	struct pair_link *p = pair_of(l);
	size_t sent = 0;

	pair_lock();
	if (!p->peer) {
		pair_unlock();
		return -EPIPE;
	}
	for (int i = 0; i < n; i++)
		sent += pair_put(p->peer, iov[i].iov_base, iov[i].iov_len);
	pair_report(p->peer);
	pair.full += !sent;
	pair_unlock();
	return sent ? (ssize_t)sent : -EAGAIN;
}

static ssize_t pair_look(struct link *l, const void **bytes)
{
	struct pair_link *p = pair_of(l);
	ssize_t n;

	pair_lock();
	*bytes = p->ring + p->head;
	n = (ssize_t)pair_in_one_piece(p);
	if (n > 0 && p->silent)
		pair.looker = gettid();
	if (n == 0 && !pair_shows_end(p))
		n = -EAGAIN;
	pair_unlock();
	return n;
}

static void pair_look_for_end(struct link *l)
{
	pair_lock();
	pair_of(l)->looked_for_end = true;
	pair_unlock();
}

static void pair_consume(struct link *l, size_t len)
{
	pair_lock();
	pair_take(pair_of(l), len);
	pair_unlock();
}

static ssize_t pair_recv(struct link *l, struct iovec *iov, int n)
{
	const void *bytes;
	ssize_t len = pair_look(l, &bytes);

	if (len <= 0)
		return len;
	link_iov_shorten(iov, n, (size_t)len);
	len = link_iov_put(iov, n, bytes, (size_t)len);
	if (len > 0)
		pair_consume(l, (size_t)len);
	return len;
}

/* Lend memory of the peer's ring. A closed peer, whose ring is freed, lends none. */
static size_t pair_lend(struct link *l, void **to)
{
	return 0;
}

static void pair_commit(struct link *l, size_t len)
{
	abort();
}

static bool pair_has_left(struct link *l)
{
	return true;
}

static void pair_end_sending(struct link *l)
{
	struct pair_link *p = pair_of(l), *peer;

	pair_lock();
	peer = p->peer;
	if (peer) {
		peer->ended = true;
		pair_ring_bell(peer);
	}
	pair_unlock();
}

static int pair_error(struct link *l)
{
	return 0;
}

static bool pair_has_ended(const struct link *l)
{
	bool ended;

	pair_lock();
	ended = ((const struct pair_link *)l)->ended;
	pair_unlock();
	return ended;
}

static uint64_t pair_unacknowledged_ns(struct link *l)
{
	return 0;
}

static uint32_t pair_segment(struct link *l)
{
	return 4096;
}

/* --- the tables of operations ------------------------------------------------------------- */

static int in_place_serves(const struct link_addr *addr)
{
	return pair_serves(addr, PAIR_IN_PLACE);
}

static int plain_serves(const struct link_addr *addr)
{
	return pair_serves(addr, PAIR_PLAIN);
}

static int in_place_bind(const struct link_addr *at, enum link_families families,
			 struct link **out);
static int plain_bind(const struct link_addr *at, enum link_families families, struct link **out);
static int in_place_create(const struct link_addr *from, const struct link_addr *to,
			   struct link **out);
static int plain_create(const struct link_addr *from, const struct link_addr *to,
			struct link **out);

#define PAIR_CONNECTING                                                                            \
	.route = pair_route, .same_host = link_addr_same_host, .listen = pair_listen,              \
	.accept = pair_accept, .stop_listening = pair_stop_listening, .dial = pair_dial,           \
	.dialed = pair_dialed, .watch = pair_watch

static const struct link_connecting in_place_connecting = {
	PAIR_CONNECTING,
	.serves = in_place_serves,
	.bind = in_place_bind,
	.create = in_place_create,
};

static const struct link_connecting plain_connecting = {
	PAIR_CONNECTING,
	.serves = plain_serves,
	.bind = plain_bind,
	.create = plain_create,
};

static const struct link_polling pair_polling = {
	.report_read = pair_report_read,
	.wait_begin = pair_wait_begin,
	.wait_end = pair_wait_end,
};

static const struct link_in_place pair_in_place = {
	.pending = pair_pending,
	.look = pair_look,
	.consume = pair_consume,
	.look_for_end = pair_look_for_end,
	.has_room = pair_finds_room,
	.lend = pair_lend,
	.commit = pair_commit,
};

#define PAIR_OPS                                                                                   \
	.watch_write = pair_watch_write, .ready = pair_ready, .recv = pair_recv,                   \
	.send = pair_send, .has_left = pair_has_left, .end_sending = pair_end_sending,             \
	.error = pair_error, .has_ended = pair_has_ended,                                          \
	.unacknowledged_ns = pair_unacknowledged_ns, .local = pair_local, .remote = pair_remote,   \
	.segment = pair_segment, .close = pair_close, .reset = pair_close, .forked = pair_forked

static const struct link_ops in_place = {
	PAIR_OPS,
	.name = "pair, in place",
	.connecting = &in_place_connecting,
	.polling = &pair_polling,
	.in_place = &pair_in_place,
};

static const struct link_ops plain = {
	PAIR_OPS,
	.name = "pair, plain",
	.connecting = &plain_connecting,
};

const struct link_ops *__real_link_of(const struct link_addr *addr);
const struct link_ops *__wrap_link_of(const struct link_addr *addr);

const struct link_ops *__wrap_link_of(const struct link_addr *addr)
{
	if (in_place_serves(addr))
		return &in_place;
	return plain_serves(addr) ? &plain : __real_link_of(addr);
}

static int pair_make(const struct link_ops *ops, const struct link_addr *us, struct link **out)
{
	pair_lock();
	*out = &pair_new(ops, us)->link;
	pair_unlock();
	return 0;
}

static int in_place_bind(const struct link_addr *at, enum link_families families, struct link **out)
{
	return pair_make(&in_place, at, out);
}

static int plain_bind(const struct link_addr *at, enum link_families families, struct link **out)
{
	return pair_make(&plain, at, out);
}

static int in_place_create(const struct link_addr *from, const struct link_addr *to,
			   struct link **out)
{
	struct link_addr us = *to;

	us.port = 0;
	return pair_make(&in_place, &us, out);
}

static int plain_create(const struct link_addr *from, const struct link_addr *to, struct link **out)
{
	struct link_addr us = *to;

	us.port = 0;
	return pair_make(&plain, &us, out);
}
