/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_verbs_cm.c -- deadlines, cancelling and waiting on event channels of rdma-core. The test
 * replaces rdma-core's calls (--wrap), so it decides which events the kernel reports.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/unit.h"
#include "provider/provider.h"

enum { SOON_MS = 40, LONG_MS = 3600000 };

static struct {
	struct rdma_event_channel real;
	struct rdma_cm_event event; /* the next event, if fd is readable */
	struct rdma_cm_id id;
	struct ibv_qp qp;
	int acks, connects, qp_errors, get_errno, connect_errno, migrate_errno;
} kernel;

struct rdma_event_channel *__wrap_rdma_create_event_channel(void);
void __wrap_rdma_destroy_event_channel(struct rdma_event_channel *ch);
int __wrap_rdma_get_cm_event(struct rdma_event_channel *ch, struct rdma_cm_event **ev);
int __wrap_rdma_ack_cm_event(struct rdma_cm_event *ev);
int __wrap_rdma_create_id(struct rdma_event_channel *ch, struct rdma_cm_id **id, void *context,
			  enum rdma_port_space ps);
int __wrap_rdma_destroy_id(struct rdma_cm_id *id);
int __wrap_rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *ch);
int __wrap_rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param);
int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

static int failed(int err)
{
	errno = err;
	return -1;
}

struct rdma_event_channel *__wrap_rdma_create_event_channel(void)
{
	kernel.real.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	return kernel.real.fd < 0 ? NULL : &kernel.real;
}

void __wrap_rdma_destroy_event_channel(struct rdma_event_channel *ch)
{
	assert_ptr_equal(ch, &kernel.real);
	close(ch->fd);
}

int __wrap_rdma_get_cm_event(struct rdma_event_channel *ch, struct rdma_cm_event **ev)
{
	uint64_t one;

	assert_ptr_equal(ch, &kernel.real);
	if (kernel.get_errno)
		return failed(kernel.get_errno);
	if (read(ch->fd, &one, sizeof(one)) < 0)
		return -1; /* the descriptor is non-blocking, so report EAGAIN */
	*ev = &kernel.event;
	return 0;
}

int __wrap_rdma_ack_cm_event(struct rdma_cm_event *ev)
{
	assert_ptr_equal(ev, &kernel.event);
	kernel.acks++;
	return 0;
}

int __wrap_rdma_create_id(struct rdma_event_channel *ch, struct rdma_cm_id **id, void *context,
			  enum rdma_port_space ps)
{
	assert_true(!ch || ch == &kernel.real);
	assert_null(context);
	*id = &kernel.id;
	return 0;
}

int __wrap_rdma_destroy_id(struct rdma_cm_id *id)
{
	return 0;
}

int __wrap_rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *ch)
{
	assert_ptr_equal(ch, &kernel.real);
	return kernel.migrate_errno ? failed(kernel.migrate_errno) : 0;
}

int __wrap_rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	kernel.connects++;
	return kernel.connect_errno ? failed(kernel.connect_errno) : 0;
}

int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	assert_ptr_equal(qp, &kernel.qp);
	assert_int_equal(mask, IBV_QP_STATE);
	kernel.qp_errors += attr->qp_state == IBV_QPS_ERR;
	return 0;
}

static void kernel_says(enum rdma_cm_event_type type)
{
	const uint64_t one = 1;

	kernel.event = (struct rdma_cm_event){.event = type, .id = &kernel.id};
	assert_int_equal(write(kernel.real.fd, &one, sizeof(one)), sizeof(one));
}

static const struct provider *const prov = &provider_verbs;
static struct rdma_event_channel *ch;
static struct rdma_cm_id *id;

static int setup(void **state)
{
	memset(&kernel, 0, sizeof(kernel));
	kernel.id.qp = &kernel.qp;
	ch = prov->create_event_channel();
	return !ch || prov->create_id(NULL, &id, NULL, RDMA_PS_TCP);
}

static int teardown(void **state)
{
	prov->destroy_id(id);
	prov->destroy_event_channel(ch);
	return 0;
}

static void connect_within(int ms)
{
	struct rdma_conn_param param = {0};

	if (ms)
		assert_int_equal(prov->set_limits(id, ms, 0), 0);
	assert_int_equal(prov->migrate_id(id, ch), 0);
	assert_int_equal(prov->connect(id, &param), 0);
	assert_int_equal(kernel.connects, 1);
}

static void expect_event(int ms, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *ev = NULL;
	int acks = kernel.acks;

	assert_int_equal(prov->wait_cm_event(ch, ms, &ev), 0);
	assert_int_equal(ev->event, type);
	assert_ptr_equal(ev->id, id);
	assert_int_equal(prov->ack_cm_event(ev), 0);
	/* The library must acknowledge to the kernel only events that came from the kernel. */
	assert_int_equal(kernel.acks - acks, ev == &kernel.event);
}

static void expect_timeout(int ms)
{
	uint64_t begin = clock_now_ns();
	struct rdma_cm_event *ev;

	errno = 0;
	assert_int_equal(prov->wait_cm_event(ch, ms, &ev), -1);
	assert_int_equal(errno, ETIMEDOUT);
	assert_true(clock_now_ns() - begin >= (uint64_t)ms * NSEC_PER_MS);
}

static void ignore(int sig)
{
}

static void a_wait_in_vain_takes_its_time_despite_signals(void **state)
{
	const struct sigaction act = {.sa_handler = ignore};
	const struct itimerval every = {{0, 4000}, {0, 4000}}, never = {0};

	expect_timeout(0);
	expect_timeout(SOON_MS);
	assert_int_equal(sigaction(SIGALRM, &act, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
	expect_timeout(SOON_MS);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
}

static void the_kernels_events_pass_through(void **state)
{
	connect_within(0);
	kernel_says(RDMA_CM_EVENT_ESTABLISHED);
	expect_event(-1, RDMA_CM_EVENT_ESTABLISHED);
	kernel_says(RDMA_CM_EVENT_DISCONNECTED);
	expect_event(0, RDMA_CM_EVENT_DISCONNECTED);
	expect_timeout(0);
}

/*
 * The descriptor blocks until O_NONBLOCK is set. A program may set the flag at any time, as with
 * rdma-core's own channels.
 */
static void the_descriptor_obeys_nonblock(void **state)
{
	struct pollfd pfd = {.fd = ch->fd, .events = POLLIN};
	struct rdma_cm_event *ev;

	connect_within(0);
	assert_int_equal(fcntl(ch->fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(prov->get_cm_event(ch, &ev), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(poll(&pfd, 1, 0), 0);
	kernel_says(RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(poll(&pfd, 1, 0), 1);
	assert_int_equal(prov->get_cm_event(ch, &ev), 0);
	assert_int_equal(poll(&pfd, 1, 0), 0);
	assert_int_equal(fcntl(ch->fd, F_SETFL, 0), 0);
	kernel_says(RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(prov->get_cm_event(ch, &ev), 0);
}

static void at_the_deadline_it_is_unreachable(void **state)
{
	uint64_t begin = clock_now_ns();
	struct pollfd pfd = {.fd = ch->fd, .events = POLLIN};

	connect_within(SOON_MS);
	assert_int_equal(poll(&pfd, 1, -1), 1);
	assert_true(clock_now_ns() - begin >= (uint64_t)SOON_MS * NSEC_PER_MS);
	expect_event(-1, RDMA_CM_EVENT_UNREACHABLE);
	assert_int_equal(kernel.qp_errors, 1);
	/* An event after the deadline is too late, and is not reported. */
	kernel_says(RDMA_CM_EVENT_ESTABLISHED);
	expect_timeout(SOON_MS);
	assert_int_equal(kernel.acks, 1);
}

static void an_outcome_in_time_ends_the_deadline(void **state)
{
	connect_within(SOON_MS);
	kernel_says(RDMA_CM_EVENT_ESTABLISHED);
	expect_event(-1, RDMA_CM_EVENT_ESTABLISHED);
	expect_timeout(2 * SOON_MS);
	assert_int_equal(kernel.qp_errors, 0);
}

/* The outcome came before the deadline, even though the program fetches it after the deadline. */
static void an_outcome_that_waits_goes_before_the_deadline(void **state)
{
	connect_within(1);
	kernel_says(RDMA_CM_EVENT_REJECTED);
	usleep(20000);
	expect_event(-1, RDMA_CM_EVENT_REJECTED);
	expect_timeout(0);
}

static void a_device_that_refuses_to_connect_says_so(void **state)
{
	struct rdma_conn_param param = {0};

	kernel.connect_errno = ETIMEDOUT;
	assert_int_equal(prov->set_limits(id, LONG_MS, 0), 0);
	assert_int_equal(prov->migrate_id(id, ch), 0);
	assert_int_equal(prov->connect(id, &param), -1);
	assert_int_equal(errno, ETIMEDOUT);
}

static void *cancel_soon(void *arg)
{
	usleep(SOON_MS * 1000);
	assert_int_equal(prov->cancel_connect(id), 0);
	return NULL;
}

static void cancelling_wakes_who_waits(void **state)
{
	pthread_t thread;

	connect_within(LONG_MS);
	assert_int_equal(pthread_create(&thread, NULL, cancel_soon, NULL), 0);
	expect_event(-1, RDMA_CM_EVENT_UNREACHABLE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(prov->cancel_connect(id), 0);
	expect_timeout(0);
	assert_int_equal(kernel.qp_errors, 1);
}

static void what_is_decided_cannot_be_cancelled(void **state)
{
	connect_within(0);
	kernel_says(RDMA_CM_EVENT_ESTABLISHED);
	expect_event(-1, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(prov->cancel_connect(id), 0);
	expect_timeout(0);
}

static void only_what_connects_can_be_cancelled(void **state)
{
	assert_int_equal(prov->cancel_connect(id), EINVAL);
}

static void a_sign_of_life_cannot_be_asked_for(void **state)
{
	assert_int_equal(prov->set_limits(id, 0, 1000), EOPNOTSUPP);
	assert_int_equal(prov->set_limits(id, 0, -1), 0);
	assert_int_equal(prov->set_limits(id, 0, 0), 0);
}

static void failures_of_the_kernel_are_told(void **state)
{
	struct rdma_cm_event *ev;

	kernel.migrate_errno = ENODEV;
	assert_int_equal(prov->migrate_id(id, ch), -1);
	assert_int_equal(errno, ENODEV);
	kernel.get_errno = EIO;
	assert_int_equal(prov->get_cm_event(ch, &ev), -1);
	assert_int_equal(errno, EIO);
	assert_int_equal(prov->wait_cm_event(ch, -1, &ev), -1);
	assert_int_equal(errno, EIO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_wait_in_vain_takes_its_time_despite_signals),
		TEST(the_kernels_events_pass_through),
		TEST(the_descriptor_obeys_nonblock),
		TEST(at_the_deadline_it_is_unreachable),
		TEST(an_outcome_in_time_ends_the_deadline),
		TEST(an_outcome_that_waits_goes_before_the_deadline),
		TEST(a_device_that_refuses_to_connect_says_so),
		TEST(cancelling_wakes_who_waits),
		TEST(what_is_decided_cannot_be_cancelled),
		TEST(only_what_connects_can_be_cancelled),
		TEST(a_sign_of_life_cannot_be_asked_for),
		TEST(failures_of_the_kernel_are_told),
	};

	return cmocka_run_group_tests_name("connecting over rdma-core", tests, NULL, NULL);
}
