/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_channels.c -- event channels and ids, used as programs of libibverbs and librdmacm do:
 * destroyed too early, moved to another channel, made many times, and used by a waiting thread that
 * is cancelled.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "ends.h"
#include "lib/fds.h"

static struct sockaddr_in loopback(__be16 port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = port};
}

static struct rdma_event_channel *channel(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();

	assert_non_null(ch);
	return ch;
}

static struct rdma_cm_id *id_on(struct rdma_event_channel *ch)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	return id;
}

struct waiter {
	struct rdma_event_channel *ch;
	atomic_bool about_to, returned;
	pthread_t thread;
};

static void *wait_there(void *arg)
{
	struct waiter *w = arg;
	struct rdma_cm_event *ev;

	atomic_store(&w->about_to, true);
	rdma_get_cm_event(w->ch, &ev);
	atomic_store(&w->returned, true);
	return NULL;
}

/* AddressSanitizer reports the stack of a cancelled thread as still in use, so cancel no thread. */
#ifdef __SANITIZE_ADDRESS__
enum { CAN_CANCEL = 0 };
#else
enum { CAN_CANCEL = 1 };
#endif

static void waiter_cancel(struct waiter *w)
{
	void *ret;

	assert_int_equal(pthread_cancel(w->thread), 0);
	assert_int_equal(pthread_join(w->thread, &ret), 0);
	assert_ptr_equal(ret, PTHREAD_CANCELED);
}

static void waiter_start(struct waiter *w)
{
	assert_int_equal(pthread_create(&w->thread, NULL, wait_there, w), 0);
	while (!atomic_load(&w->about_to))
		usleep(1000);
	usleep(50000);
}

/* Check that the thread still waits after a short time. Then cancel the thread if CAN_CANCEL. */
static void waiter_stays(struct waiter *w)
{
	usleep(200000);
	assert_false(atomic_load(&w->returned));
	if (CAN_CANCEL)
		waiter_cancel(w);
}

/* rping ends like this: main destroys the channel while another thread waits for an event of the
 * channel, or is about to wait. */
static void a_thread_in_a_destroyed_channel_stays_there(void **state)
{
	static struct waiter w;

	w.ch = channel();
	waiter_start(&w);
	rdma_destroy_event_channel(w.ch);
	waiter_stays(&w);
}

static void a_thread_that_comes_too_late_stays_as_well(void **state)
{
	static struct waiter w;

	w.ch = channel();
	rdma_destroy_event_channel(w.ch);
	for (int i = 0; i < 8; i++) /* no later channel must use the destroyed channel's memory */
		rdma_destroy_event_channel(channel());
	waiter_start(&w);
	waiter_stays(&w);
}

/*
 * A thread does not wait for events of a non-blocking channel, even after the channel is destroyed.
 */
static void a_destroyed_channel_that_did_not_block_does_not(void **state)
{
	struct rdma_event_channel *ch = channel();
	struct rdma_cm_event *ev;

	assert_int_equal(fcntl(ch->fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(rdma_get_cm_event(ch, &ev), -1);
	assert_int_equal(errno, EAGAIN);
	rdma_destroy_event_channel(ch);
	assert_int_equal(rdma_get_cm_event(ch, &ev), -1);
	assert_int_equal(errno, EBADF);
}

static void what_is_made_and_destroyed_leaves_no_descriptor(void **state)
{
	int before = -1;

	for (int i = 0; i < 200; i++) {
		struct sockaddr_in addr = loopback(0);
		struct waiter w = {.ch = channel()};
		struct rdma_cm_id *id = id_on(w.ch), *sync = id_on(NULL);

		assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&addr), 0);
		assert_int_equal(rdma_destroy_id(id), 0);
		assert_int_equal(rdma_destroy_id(sync), 0);
		if (CAN_CANCEL && i % 20 == 0) { /* the cancelled thread has left the channel */
			assert_int_equal(pthread_create(&w.thread, NULL, wait_there, &w), 0);
			waiter_cancel(&w);
		}
		rdma_destroy_event_channel(w.ch);
		if (i == 100)
			before = open_fds();
	}
	assert_int_equal(open_fds(), before);
}

static void resolve(struct rdma_cm_id *id)
{
	struct sockaddr_in to = loopback(htons(9));

	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000), 0);
}

static bool is_readable(struct rdma_event_channel *ch)
{
	struct pollfd p = {.fd = ch->fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void an_id_takes_its_events_along(void **state)
{
	struct rdma_event_channel *from = channel(), *to = channel();
	struct rdma_cm_id *id = id_on(from);
	struct rdma_cm_event *ev;

	resolve(id);
	assert_true(is_readable(from));
	assert_int_equal(rdma_migrate_id(id, to), 0);
	assert_ptr_equal(id->channel, to);
	assert_false(is_readable(from));
	rdma_destroy_event_channel(from);
	assert_int_equal(rdma_get_cm_event(to, &ev), 0);
	assert_int_equal(ev->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_ptr_equal(ev->id, id);
	assert_int_equal(rdma_ack_cm_event(ev), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(to);
}

/* Connect an id, and take none of its events: the test needs only the request at the listener. */
static struct rdma_cm_id *connecting(struct rdma_event_channel *ch, __be16 port)
{
	struct ibv_qp_init_attr attr = end_qp_attr();
	struct sockaddr_in to = loopback(port);
	struct rdma_cm_id *id = id_on(ch);

	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000), 0);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	assert_int_equal(rdma_connect(id, NULL), 0);
	return id;
}

static struct rdma_cm_id *next(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;

	assert_int_equal(rdma_get_cm_event(ch, &ev), 0);
	assert_int_equal(ev->event, type);
	id = ev->id;
	assert_int_equal(rdma_ack_cm_event(ev), 0);
	return id;
}

/* The request arrived before the listener moved to another channel. The request's id then belongs
 * to the listener's new channel. */
static void a_request_follows_its_listener(void **state)
{
	struct rdma_event_channel *from = channel(), *to = channel(), *theirs = channel();
	struct ibv_qp_init_attr attr = end_qp_attr();
	struct rdma_cm_id *listener = id_on(from), *client, *server;
	struct sockaddr_in addr = loopback(0);
	struct pollfd p = {.fd = from->fd, .events = POLLIN};

	assert_int_equal(rdma_bind_addr(listener, (struct sockaddr *)&addr), 0);
	assert_int_equal(rdma_listen(listener, 1), 0);
	client = connecting(theirs, rdma_get_src_port(listener));
	assert_int_equal(poll(&p, 1, 20000), 1);
	assert_int_equal(rdma_migrate_id(listener, to), 0);
	rdma_destroy_event_channel(from);
	server = next(to, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_ptr_equal(server->channel, to);
	assert_int_equal(rdma_create_qp(server, NULL, &attr), 0);
	assert_int_equal(rdma_accept(server, NULL), 0);
	assert_ptr_equal(next(to, RDMA_CM_EVENT_ESTABLISHED), server);
	rdma_destroy_qp(server);
	assert_int_equal(rdma_destroy_id(server), 0);
	rdma_destroy_qp(client);
	assert_int_equal(rdma_destroy_id(client), 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(to);
	rdma_destroy_event_channel(theirs);
}

static void events_of_a_destroyed_id_are_gone(void **state)
{
	struct rdma_event_channel *ch = channel();
	struct rdma_cm_id *id = id_on(ch), *other = id_on(ch);
	struct rdma_cm_event *ev;

	resolve(id);
	resolve(other);
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_int_equal(rdma_get_cm_event(ch, &ev), 0);
	assert_ptr_equal(ev->id, other);
	assert_int_equal(rdma_ack_cm_event(ev), 0);
	assert_false(is_readable(ch));
	assert_int_equal(rdma_destroy_id(other), 0);
	rdma_destroy_event_channel(ch);
}

static void set_afonly(struct rdma_cm_id *id, int on)
{
	assert_int_equal(
		rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)), 0);
}

/* tgtd listens on all addresses of both families, on one port. */
static void one_port_may_serve_both_families_by_two_ids(void **state)
{
	struct rdma_event_channel *ch = channel();
	struct sockaddr_in any4 = {.sin_family = AF_INET};
	struct sockaddr_in6 any6 = {.sin6_family = AF_INET6};
	struct rdma_cm_id *four = id_on(ch), *six = id_on(ch);
	int on = 1;

	if (access("/proc/net/if_inet6", F_OK))
		skip();
	assert_int_equal(rdma_bind_addr(four, (struct sockaddr *)&any4), 0);
	assert_int_equal(rdma_listen(four, 0), 0);
	any6.sin6_port = rdma_get_src_port(four);
	set_afonly(six, 0);
	assert_int_equal(rdma_bind_addr(six, (struct sockaddr *)&any6), -1);
	assert_int_equal(errno, EADDRINUSE);
	set_afonly(six, 1);
	assert_int_equal(rdma_bind_addr(six, (struct sockaddr *)&any6), 0);
	assert_int_equal(rdma_listen(six, 0), 0);
	assert_int_equal(
		rdma_set_option(six, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_destroy_id(six), 0);
	assert_int_equal(rdma_destroy_id(four), 0);
	rdma_destroy_event_channel(ch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_in_a_destroyed_channel_stays_there),
		cmocka_unit_test(a_thread_that_comes_too_late_stays_as_well),
		cmocka_unit_test(a_destroyed_channel_that_did_not_block_does_not),
		cmocka_unit_test(what_is_made_and_destroyed_leaves_no_descriptor),
		cmocka_unit_test(an_id_takes_its_events_along),
		cmocka_unit_test(a_request_follows_its_listener),
		cmocka_unit_test(events_of_a_destroyed_id_are_gone),
		cmocka_unit_test(one_port_may_serve_both_families_by_two_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
