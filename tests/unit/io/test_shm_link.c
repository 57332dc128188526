/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ends of rings as a link: which thread is woken, and when the end of the stream is reported.
 */
#include "lib/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/ownfd.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/link_shm.h"

#define RING   (64u << 10)
#define UNREAD 100 /* number of wake-ups, far fewer than fill a socket */

static void nothing(struct eng_source *src, unsigned ready)
{
}

static void gone(struct eng_source *src)
{
}

static struct eng_source source = {.ready = nothing, .free = gone};

/* --- the TCP link below the rings ----------------------------------------------------------- */

static bool below_ended;
static void (*below_before_end)(void);

static ssize_t below_recv(struct link *l, struct iovec *iov, int n)
{
	if (!below_ended)
		return -EAGAIN;
	if (below_before_end)
		below_before_end();
	below_before_end = NULL;
	return 0;
}

static void below_close(struct link *l)
{
}

static const struct link_ops below_ops = {.recv = below_recv, .close = below_close};

/* --- both ends ------------------------------------------------------------------------------ */

static struct link below[2] = {{&below_ops}, {&below_ops}};
static struct link *writer, *reader;
static int writer_fd, reader_fd;
static struct ring writers; /* the writer's view of the ring, which a test may change */

static struct link *end_new(unsigned i, const struct shm_memory *memory, int fd)
{
	struct link *l = link_shm_alloc();

	assert_non_null(l);
	assert_int_equal(engine_add_more(&source, fd), 0);
	link_shm_init(l, &below[i], &source, i == 0, memory, fd);
	link_shm_switch_tx(l);
	link_shm_switch_rx(l);
	return l;
}

static ssize_t take_at(struct link *end)
{
	static char bytes[64];
	struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};

	return end->ops->recv(end, &iov, 1);
}

static ssize_t take(void)
{
	return take_at(reader);
}

static void put(const char *text)
{
	struct iovec iov = {.iov_base = (char *)text, .iov_len = strlen(text)};

	assert_int_equal(writer->ops->send(writer, &iov, 1), strlen(text));
}

static int start(void **state)
{
	struct shm_memory memory[2];
	int fd, sock[2];

	below_ended = false;
	assert_int_equal(shm_memory_new(RING, &memory[0], &fd), 0);
	assert_int_equal(shm_memory_take(fd, RING, &memory[1]), 0);
	close(fd);
	shm_memory_ring(&memory[0], 0, &writers);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sock),
			 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ownfd_mark(sock[i]), sock[i]);
	writer = end_new(0, &memory[0], sock[0]);
	reader = end_new(1, &memory[1], sock[1]);
	writer_fd = sock[0];
	reader_fd = sock[1];
	assert_int_equal(take(), -EAGAIN);
	assert_int_equal(take_at(writer), -EAGAIN);
	return 0;
}

static int stop(void **state)
{
	writer->ops->close(writer);
	reader->ops->close(reader);
	return 0;
}

static bool is_woken_on(int sock)
{
	struct pollfd fd = {.fd = sock, .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

static bool is_woken(void)
{
	return is_woken_on(reader_fd);
}

static ssize_t send_some(size_t len)
{
	static char bytes[RING];
	struct iovec iov = {.iov_base = bytes, .iov_len = len};

	return writer->ops->send(writer, &iov, 1);
}

static void fill_ring(void)
{
	assert_int_equal(send_some(RING), RING);
	assert_int_equal(send_some(1), -EAGAIN);
}

static void take_some(size_t len)
{
	static char bytes[RING];
	struct iovec iov = {.iov_base = bytes, .iov_len = len};

	assert_int_equal(reader->ops->recv(reader, &iov, 1), len);
}

/* --- tests ---------------------------------------------------------------------------------- */

static void a_wait_goes_on_after_others_took_bytes_and_wake_up(void **state)
{
	assert_false(reader->ops->polling->report_read(reader, false));
	assert_int_equal(reader->ops->polling->wait_begin(reader), reader_fd);
	put("first");
	assert_true(is_woken());
	assert_int_equal(take(), 5);
	reader->ops->ready(reader, READY_READ);
	assert_false(is_woken());
	put("second");
	assert_true(is_woken());
	reader->ops->polling->wait_end(reader);
}

static void a_polling_end_is_not_woken(void **state)
{
	assert_false(reader->ops->polling->report_read(reader, false));
	assert_int_equal(reader->ops->polling->wait_begin(reader), reader_fd);
	put("first");
	reader->ops->polling->wait_end(reader);
	assert_int_equal(take(), 5);
	put("second");
	assert_false(is_woken());
	assert_int_equal(take(), 6);
}

static void write_the_last_bytes(void)
{
	put("last");
}

static void bytes_between_the_last_look_and_the_end_are_received(void **state)
{
	below_ended = true;
	below_before_end = write_the_last_bytes;
	reader->ops->ready(reader, READY_READ | READY_HANGUP);
	assert_int_equal(take(), 4);
	assert_int_equal(take(), 0);
	assert_int_equal(take(), 0);
}

static void a_closed_unix_socket_is_no_end(void **state)
{
	shutdown(reader_fd, SHUT_RDWR);
	reader->ops->ready(reader, READY_READ | READY_HANGUP);
	assert_int_equal(take(), -EAGAIN);
	put("still");
	assert_int_equal(take(), 5);
	below_ended = true;
	reader->ops->ready(reader, READY_READ | READY_HANGUP);
	assert_int_equal(take(), 0);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/*
 * The socket is closed even if wake-ups are unread: otherwise a thread that waits on it would wake
 * again and again.
 */
static void a_unix_socket_that_is_shut_down_is_closed(void **state)
{
	put("woken");
	assert_true(is_woken());
	shutdown(writer_fd, SHUT_RDWR);
	reader->ops->ready(reader, READY_READ | READY_HANGUP);
	assert_false(is_open(reader_fd));
	assert_int_equal(take(), 5);
	assert_int_equal(take(), -EAGAIN);
	assert_int_equal(reader->ops->polling->wait_begin(reader), -EAGAIN);
	reader->ops->polling->report_read(reader, false);
	reader->ops->polling->report_read(reader, true);
	put("still");
	assert_int_equal(take(), 5);
	writer->ops->ready(writer, READY_READ | READY_HANGUP);
	assert_false(is_open(writer_fd));
	put("without any");
	assert_int_equal(take(), 11);
}

/* The descriptor's number must not be used for another file before the wait is over. */
static void a_unix_socket_that_is_shut_down_stays_open_while_it_is_awaited(void **state)
{
	reader->ops->polling->report_read(reader, false);
	assert_int_equal(reader->ops->polling->wait_begin(reader), reader_fd);
	shutdown(writer_fd, SHUT_RDWR);
	reader->ops->ready(reader, READY_READ | READY_HANGUP);
	assert_true(is_woken());
	reader->ops->polling->wait_end(reader);
	assert_false(is_open(reader_fd));
	assert_int_equal(take(), -EAGAIN);
	assert_int_equal(reader->ops->polling->wait_begin(reader), -EAGAIN);
}

static void an_end_that_was_not_reported_is_found_when_it_is_looked_for(void **state)
{
	below_ended = true;
	assert_int_equal(take(), -EAGAIN);
	put("last");
	reader->ops->in_place->look_for_end(reader);
	assert_int_equal(take(), 4);
	assert_int_equal(take(), 0);
}

static void a_polling_end_finds_room_and_is_not_woken(void **state)
{
	assert_false(writer->ops->polling->report_read(writer, false));
	/* the link accepted all bytes so far */
	assert_false(writer->ops->in_place->has_room(writer));
	fill_ring();
	assert_false(writer->ops->in_place->has_room(writer));
	take_some(RING / 2);
	assert_true(writer->ops->in_place->has_room(writer));
	assert_false(is_woken_on(writer_fd));
	assert_int_equal(send_some(RING), RING / 2);
}

/*
 * The ring is full when the last thread stops polling. From then on the link reports free space to
 * its source.
 */
static void room_is_reported_once_no_thread_polls(void **state)
{
	assert_false(writer->ops->polling->report_read(writer, false));
	fill_ring();
	assert_false(writer->ops->polling->report_read(writer, true));
	assert_int_equal(writer->ops->ready(writer, 0) & READY_WRITE, 0);
	take_some(RING / 2);
	assert_true(is_woken_on(writer_fd));
	assert_int_equal(writer->ops->ready(writer, READY_READ) & READY_WRITE, READY_WRITE);
	assert_int_equal(send_some(1), 1);
}

/* When the last thread stops polling, any free space must be reported, however little it is. */
static void room_is_checked_when_the_last_thread_stops_polling(void **state)
{
	assert_false(writer->ops->polling->report_read(writer, false));
	fill_ring();
	take_some(1);
	assert_true(writer->ops->polling->report_read(writer, true));
	assert_int_equal(writer->ops->ready(writer, READY_READ) & READY_WRITE, READY_WRITE);
}

static void a_waiting_end_leaves_room_to_the_source(void **state)
{
	assert_false(writer->ops->polling->report_read(writer, false));
	fill_ring();
	assert_int_equal(writer->ops->polling->wait_begin(writer), -EAGAIN);
	take_some(RING / 2);
	assert_true(is_woken_on(writer_fd));
	assert_int_equal(writer->ops->ready(writer, READY_READ) & READY_WRITE, READY_WRITE);
}

/* A thread requested a wake-up, and then found space itself. The wake-up still comes, and does no
 * harm. */
static void a_wake_up_for_room_that_was_found_does_no_harm(void **state)
{
	fill_ring();
	assert_false(writer->ops->polling->report_read(writer, false));
	take_some(RING / 2);
	assert_true(is_woken_on(writer_fd));
	assert_true(writer->ops->in_place->has_room(writer));
	assert_false(writer->ops->in_place->has_room(writer));
	assert_int_equal(send_some(RING / 2), RING / 2);
	writer->ops->ready(writer, READY_READ);
	assert_false(is_woken_on(writer_fd));
	assert_int_equal(send_some(1), -EAGAIN);
	take_some(RING);
	assert_true(writer->ops->in_place->has_room(writer));
}

/* One event stands for many wake-ups, and the ring still has bytes. */
static void wake_ups_do_not_fill_the_socket(void **state)
{
	int unread;

	for (int i = 0; i < 100; i++) {
		for (int j = 0; j < 20; j++) {
			put("x");
			assert_int_equal(take(), 1);
		}
		put("x");
		reader->ops->ready(reader, READY_READ);
		assert_int_equal(ioctl(reader_fd, FIONREAD, &unread), 0);
		assert_true(unread < UNREAD);
		assert_int_equal(take(), 1);
	}
}

/* --- another end that writes wrong values --------------------------------------------------- */

static void expect_broken_reader(void)
{
	assert_true(reader->ops->in_place->pending(reader, 1));
	assert_int_equal(take(), -EPROTO);
	atomic_store(&writers.shared->tail, 0); /* once broken, the ring stays broken */
	assert_true(reader->ops->in_place->pending(reader, 1));
}

static void an_impossible_position_is_an_error_and_no_bytes(void **state)
{
	const void *bytes;

	atomic_store(&writers.shared->tail, RING + 1);
	assert_int_equal(reader->ops->in_place->look(reader, &bytes), -EPROTO);
	assert_int_equal(reader->ops->polling->wait_begin(reader), -EAGAIN);
	expect_broken_reader();
}

static void a_position_that_becomes_impossible_after_bytes_is_an_error(void **state)
{
	const void *bytes;

	put("bytes");
	assert_int_equal(reader->ops->in_place->look(reader, &bytes), 5);
	atomic_store(&writers.shared->tail, UINT64_MAX / 2);
	reader->ops->in_place->consume(reader, 5);
	expect_broken_reader();
}

static void a_position_that_goes_back_is_an_error(void **state)
{
	put("bytes");
	assert_int_equal(take(), 5);
	atomic_store(&writers.shared->tail, 4);
	reader->ops->ready(reader, READY_READ);
	expect_broken_reader();
}

static void an_impossible_position_of_the_reader_is_an_error_for_the_writer(void **state)
{
	struct iovec iov = {.iov_base = (char *)"x", .iov_len = 1};

	fill_ring();
	atomic_store(&writers.shared->head, RING + 1);
	assert_int_equal(writer->ops->send(writer, &iov, 1), -EPROTO);
	assert_true(writer->ops->in_place->pending(writer, 1));
}

static int open_source(void **state)
{
	return engine_add(&source, eventfd(0, EFD_CLOEXEC), false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_wait_goes_on_after_others_took_bytes_and_wake_up,
						start, stop),
		cmocka_unit_test_setup_teardown(a_polling_end_is_not_woken, start, stop),
		cmocka_unit_test_setup_teardown(
			bytes_between_the_last_look_and_the_end_are_received, start, stop),
		cmocka_unit_test_setup_teardown(a_closed_unix_socket_is_no_end, start, stop),
		cmocka_unit_test_setup_teardown(a_unix_socket_that_is_shut_down_is_closed, start,
						stop),
		cmocka_unit_test_setup_teardown(
			a_unix_socket_that_is_shut_down_stays_open_while_it_is_awaited, start,
			stop),
		cmocka_unit_test_setup_teardown(
			an_end_that_was_not_reported_is_found_when_it_is_looked_for, start, stop),
		cmocka_unit_test_setup_teardown(a_polling_end_finds_room_and_is_not_woken, start,
						stop),
		cmocka_unit_test_setup_teardown(room_is_reported_once_no_thread_polls, start, stop),
		cmocka_unit_test_setup_teardown(room_is_checked_when_the_last_thread_stops_polling,
						start, stop),
		cmocka_unit_test_setup_teardown(a_waiting_end_leaves_room_to_the_source, start,
						stop),
		cmocka_unit_test_setup_teardown(a_wake_up_for_room_that_was_found_does_no_harm,
						start, stop),
		cmocka_unit_test_setup_teardown(wake_ups_do_not_fill_the_socket, start, stop),
		cmocka_unit_test_setup_teardown(an_impossible_position_is_an_error_and_no_bytes,
						start, stop),
		cmocka_unit_test_setup_teardown(
			a_position_that_becomes_impossible_after_bytes_is_an_error, start, stop),
		cmocka_unit_test_setup_teardown(a_position_that_goes_back_is_an_error, start, stop),
		cmocka_unit_test_setup_teardown(
			an_impossible_position_of_the_reader_is_an_error_for_the_writer, start,
			stop),
	};

	return cmocka_run_group_tests(tests, open_source, NULL);
}
