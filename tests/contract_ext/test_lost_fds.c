/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_lost_fds.c -- the application closes descriptors of the library, and the next files that it
 * opens get these numbers. A wait with a limit ends at the limit, and a wait without a limit ends,
 * too. The library does not touch the new files.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ends.h"
#include "timing.h"

enum { SHORT_MS = 60, BEGUN_MS = 50 };

/*
 * The kind of file that takes the closed number. A file opened with O_PATH behaves like a closed
 * descriptor in poll(2), read(2) and write(2), but occupies the number. So the library's threads,
 * which log and set up rings, cannot get the number.
 */
enum other { NOTHING, ALWAYS_READABLE, NEVER_READABLE, EVENTFD, OTHERS };

/* kept: a duplicate of the library's descriptor, which is restored at the end. */
struct lost {
	int fd, kept, peer;
};

static int open_other(enum other what, int *peer)
{
	int pair[2];

	*peer = -1;
	if (what == NOTHING)
		return open("/", O_PATH | O_CLOEXEC);
	if (what == ALWAYS_READABLE)
		return memfd_create("other", MFD_CLOEXEC);
	if (what == EVENTFD)
		return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	*peer = pair[1];
	return pair[0];
}

static struct lost lose(int fd, enum other what)
{
	struct lost l = {.fd = fd, .kept = fcntl(fd, F_DUPFD_CLOEXEC, 0), .peer = -1};
	int other;

	assert_true(l.kept >= 0);
	other = open_other(what, &l.peer);
	assert_int_equal(dup2(other, fd), fd);
	close(other);
	return l;
}

static void find(struct lost *l)
{
	assert_int_equal(dup2(l->kept, l->fd), l->fd);
	close(l->kept);
	if (l->peer >= 0)
		close(l->peer);
}

static void a_wait_for_completions_keeps_its_limit(void **state)
{
	struct rpma_cq *cq;
	struct ends d;
	int fd;

	ends_open(&d, NULL);
	OK(rpma_conn_get_cq(d.cli, &cq));
	OK(rpma_cq_get_fd(cq, &fd));
	for (enum other what = NOTHING; what < OTHERS; what++) {
		struct lost l = lose(fd, what);

		TAKES(0, RPMA_E_NO_COMPLETION, rpma_cq_wait_timeout(cq, 0));
		TAKES(0, RPMA_E_PROVIDER, rpma_cq_wait_timeout(cq, SHORT_MS));
		if (what == NOTHING || what == ALWAYS_READABLE)
			TAKES(0, RPMA_E_NO_COMPLETION, rpma_cq_wait(cq));
		find(&l);
	}
	ends_close(&d);
}

static void a_wait_for_events_keeps_its_limit(void **state)
{
	enum rpma_conn_event event;
	struct ends d;
	int fd;

	ends_open(&d, NULL);
	OK(rpma_conn_get_event_fd(d.cli, &fd));
	for (enum other what = NOTHING; what < OTHERS; what++) {
		struct lost l = lose(fd, what);

		TAKES(0, RPMA_E_NO_EVENT, rpma_conn_next_event_timeout(d.cli, 0, &event));
		TAKES(0, RPMA_E_PROVIDER, rpma_conn_next_event_timeout(d.cli, SHORT_MS, &event));
		if (what == NOTHING || what == ALWAYS_READABLE)
			TAKES(0, RPMA_E_PROVIDER, rpma_conn_next_event(d.cli, &event));
		find(&l);
	}
	ends_close(&d);
}

static void *wait_for_completion(void *cq)
{
	return (void *)(intptr_t)rpma_cq_wait(cq);
}

static void *wait_for_event(void *conn)
{
	enum rpma_conn_event event;

	return (void *)(intptr_t)rpma_conn_next_event(conn, &event);
}

/* The threads are already waiting when the application closes their descriptors. */
static void waits_without_a_limit_end(void **state)
{
	struct lost of_cq, of_events;
	pthread_t completion, event;
	struct rpma_cq *cq;
	struct ends d;
	int fd, event_fd;
	void *ret;

	ends_open(&d, NULL);
	OK(rpma_conn_get_cq(d.cli, &cq));
	OK(rpma_cq_get_fd(cq, &fd));
	OK(rpma_conn_get_event_fd(d.cli, &event_fd));
	assert_int_equal(pthread_create(&completion, NULL, wait_for_completion, cq), 0);
	assert_int_equal(pthread_create(&event, NULL, wait_for_event, d.cli), 0);
	ends_sleep_ms(BEGUN_MS);
	of_cq = lose(fd, NEVER_READABLE);
	of_events = lose(event_fd, NEVER_READABLE);
	assert_int_equal(pthread_join(completion, &ret), 0);
	assert_int_equal((intptr_t)ret, RPMA_E_NO_COMPLETION);
	assert_int_equal(pthread_join(event, &ret), 0);
	assert_int_equal((intptr_t)ret, RPMA_E_PROVIDER);
	find(&of_cq);
	find(&of_events);
	ends_close(&d);
}

/* The application's eventfd has the number of the closed descriptor. Neither a completion nor the
 * connection's end writes to this eventfd. */
static void an_eventfd_of_the_application_is_left_alone(void **state)
{
	struct lost of_cq, of_events;
	struct rpma_cq *cq;
	uint64_t count;
	struct ends d;
	int fd, event_fd;

	ends_open(&d, NULL);
	OK(rpma_conn_get_cq(d.cli, &cq));
	OK(rpma_cq_get_fd(cq, &fd));
	OK(rpma_conn_get_event_fd(d.cli, &event_fd));
	of_cq = lose(fd, EVENTFD);
	of_events = lose(event_fd, EVENTFD);
	OK(rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, NULL));
	OK(rpma_cq_wait_timeout(cq, SLACK_MS));
	ends_close(&d);
	assert_int_equal(eventfd_read(fd, &count), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(eventfd_read(event_fd, &count), -1);
	assert_int_equal(errno, EAGAIN);
	find(&of_cq);
	find(&of_events);
	close(fd);
	close(event_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_for_completions_keeps_its_limit),
		cmocka_unit_test(a_wait_for_events_keeps_its_limit),
		cmocka_unit_test(waits_without_a_limit_end),
		cmocka_unit_test(an_eventfd_of_the_application_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
