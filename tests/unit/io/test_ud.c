/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagram queue pairs of one process, and messages that other programs ("strangers") send to their
 * port. */
#include "lib/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "softrnic/proto/ud.h"
#include "softrnic/rnic/ud_flow.h"
#include "softrnic/softrnic.h"
#include "ud_end.h"

#define DEPTH 64

static struct ud_end a, b;
static uint8_t bytes_of_a[DEPTH * UD_END_SLOT], bytes_of_b[DEPTH * UD_END_SLOT];

/* Number of following calls of sendmmsg() that send nothing, as if the socket were full. */
static atomic_int busy_calls;

int __real_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	if (atomic_load(&busy_calls) > 0) {
		atomic_fetch_sub(&busy_calls, 1);
		errno = EAGAIN;
		return -1;
	}
	return __real_sendmmsg(fd, m, n, flags);
}

/* udp_fd: the datagram socket, recognized by the request for its buffer size. */
static int udp_fd = -1;

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	if (level == SOL_SOCKET && name == SO_RCVBUFFORCE)
		udp_fd = fd;
	return __real_setsockopt(fd, level, name, value, len);
}

/* Report the kernel's default size of the buffer, so that the window stays at 23 messages. */
int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	int ret = __real_getsockopt(fd, level, name, value, len);

	if (level == SOL_SOCKET && name == SO_RCVBUF)
		*(int *)value = 2 * 212992;
	return ret;
}

static void set_buffer(int size)
{
	assert_int_equal(__real_setsockopt(udp_fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
}

static int setup(void **state)
{
	ud_end_open(&a, bytes_of_a, DEPTH);
	ud_end_open(&b, bytes_of_b, DEPTH);
	return 0;
}

static int teardown(void **state)
{
	ud_end_close(&a);
	ud_end_close(&b);
	return 0;
}

static int send_to(struct ud_end *e, uint32_t qpn, const char *text)
{
	struct ibv_sge sge = {.addr = (uintptr_t)text, .length = (uint32_t)strlen(text)};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_INLINE | IBV_SEND_SOLICITED,
		.imm_data = htonl(7),
		.wr.ud = {.ah = e->ah, .remote_qpn = qpn, .remote_qkey = UD_END_QKEY},
	};
	struct ibv_send_wr *bad;

	return ibv_post_send(e->qp, &wr, &bad);
}

static void expect_none(struct ud_end *e, int ms)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct ibv_wc wc;

	for (int i = 0; i < ms; i++) {
		assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
		nanosleep(&pause, NULL);
	}
}

static void expect_message(struct ud_end *e, uint32_t from, const char *text)
{
	struct ibv_wc wc = ud_end_wait(e);
	const uint8_t *at = e->buf + wc.wr_id * UD_END_SLOT;

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.src_qp, from);
	assert_int_equal(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, htonl(7));
	assert_int_equal(wc.byte_len, UD_GRH_LEN + strlen(text));
	/* addresses in the IPv4 header: source, destination */
	assert_memory_equal(at + 32, "\x7f\0\0\1\x7f\0\0\1", 8);
	assert_memory_equal(at + UD_GRH_LEN, text, strlen(text));
}

static void talk(struct ud_end *from, struct ud_end *to)
{
	ud_end_recv(to, 0);
	assert_int_equal(send_to(from, to->qp->qp_num, "hello"), 0);
	assert_int_equal(ud_end_wait(from).opcode, IBV_WC_SEND);
	expect_message(to, from->qp->qp_num, "hello");
}

/* --- messages ------------------------------------------------------------------------------- */

static void two_exchange_messages(void **state)
{
	talk(&a, &b);
	talk(&b, &a);
}

static void the_device_reports_that_it_has_address_handles(void **state)
{
	struct ibv_device_attr attr;

	assert_int_equal(softrnic_query_device(softrnic_context(), &attr), 0);
	assert_true(attr.max_ah > 0);
}

static void one_sends_to_itself(void **state)
{
	ud_end_recv(&a, 0);
	assert_int_equal(send_to(&a, a.qp->qp_num, "hello"), 0);
	assert_int_equal(ud_end_wait(&a).opcode, IBV_WC_SEND);
	expect_message(&a, a.qp->qp_num, "hello");
}

/* The 40 bytes before the payload have the values of the address handle. */
static void a_message_has_the_handles_traffic_class_and_hop_limit(void **state)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .grh = {.traffic_class = 0x68, .hop_limit = 7}};
	struct ibv_ah *plain = a.ah;

	assert_int_equal(softrnic_query_gid(softrnic_context(), 1, 0, &attr.grh.dgid), 0);
	a.ah = softrnic_create_ah(a.pd, &attr);
	assert_non_null(a.ah);
	talk(&a, &b);
	/* traffic class, at byte 1 of the IPv4 header, which begins at byte 20 */
	assert_int_equal(b.buf[21], 0x68);
	assert_int_equal(b.buf[28], 7);
	assert_int_equal(softrnic_destroy_ah(a.ah), 0);
	a.ah = plain;
	talk(&a, &b);
	assert_int_equal(b.buf[21], 0);
	assert_int_equal(b.buf[28], 64);
}

static void expect_event(struct ud_end *e)
{
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(softrnic_wait_cq_event(e->channel, 10000, &cq, &context), 0);
	softrnic_ack_cq_events(cq, 1);
}

static void a_message_wakes_a_thread_that_waits(void **state)
{
	ud_end_recv(&b, 0);
	assert_int_equal(ibv_req_notify_cq(b.cq, 1), 0);
	assert_int_equal(send_to(&a, b.qp->qp_num, "hello"), 0);
	expect_event(&b);
	assert_int_equal(ud_end_wait(&a).opcode, IBV_WC_SEND);
	expect_message(&b, a.qp->qp_num, "hello");
}

/* Poll so often that the polls receive all messages, and the engine receives none. */
static void poll_in_a_loop(struct ud_end *e)
{
	struct ibv_wc wc;

	for (int i = 0; i < 1000; i++)
		assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
}

static void a_message_wakes_a_thread_that_polled_before_it_waited(void **state)
{
	ud_end_recv(&b, 0);
	poll_in_a_loop(&b);
	assert_int_equal(ibv_req_notify_cq(b.cq, 0), 0);
	assert_int_equal(send_to(&a, b.qp->qp_num, "hello"), 0);
	expect_event(&b);
	assert_int_equal(ud_end_wait(&a).opcode, IBV_WC_SEND);
	expect_message(&b, a.qp->qp_num, "hello");
}

/* Both queue pairs use one port. The polling thread received a message for the other queue pair. */
static void a_message_wakes_a_thread_after_another_has_stopped_to_poll(void **state)
{
	assert_int_equal(ud_port_of(a.qp->qp_num), ud_port_of(b.qp->qp_num));
	ud_end_recv(&b, 0);
	assert_int_equal(ibv_req_notify_cq(b.cq, 0), 0);
	poll_in_a_loop(&a);
	assert_int_equal(send_to(&a, b.qp->qp_num, "hello"), 0);
	expect_event(&b);
	assert_int_equal(ud_end_wait(&a).opcode, IBV_WC_SEND);
	expect_message(&b, a.qp->qp_num, "hello");
}

static void *wait_in_a_thread(void *end)
{
	expect_event(end);
	return NULL;
}

/* Both queue pairs use one port, so each thread may read a message for the other. */
static void two_threads_wait_at_one_port(void **state)
{
	pthread_t thread;

	for (int i = 0; i < 100; i++) {
		ud_end_recv(&a, 0);
		ud_end_recv(&b, 0);
		assert_int_equal(ibv_req_notify_cq(a.cq, 1), 0);
		assert_int_equal(ibv_req_notify_cq(b.cq, 1), 0);
		assert_int_equal(pthread_create(&thread, NULL, wait_in_a_thread, &a), 0);
		assert_int_equal(send_to(&a, b.qp->qp_num, "hello"), 0);
		expect_event(&b);
		assert_int_equal(send_to(&b, a.qp->qp_num, "hello"), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		for (int n = 0; n < 2; n++) {
			assert_int_equal(ud_end_wait(&a).status, IBV_WC_SUCCESS);
			assert_int_equal(ud_end_wait(&b).status, IBV_WC_SUCCESS);
		}
	}
}

/* When a wait ends, a thread of the engine reads the port again. */
static void a_message_wakes_a_thread_after_another_has_stopped_to_wait(void **state)
{
	struct ibv_cq *cq;
	void *context;

	ud_end_recv(&b, 0);
	assert_int_equal(ibv_req_notify_cq(b.cq, 1), 0);
	assert_int_equal(softrnic_wait_cq_event(a.channel, 10, &cq, &context), -1);
	assert_int_equal(send_to(&a, b.qp->qp_num, "hello"), 0);
	assert_int_equal(poll(&(struct pollfd){.fd = b.channel->fd, .events = POLLIN}, 1, 10000),
			 1);
	expect_event(&b);
	assert_int_equal(ud_end_wait(&a).opcode, IBV_WC_SEND);
	expect_message(&b, a.qp->qp_num, "hello");
}

static void what_the_socket_does_not_take_leaves_later_in_order(void **state)
{
	static const char *const texts[] = {"1", "22", "333", "4444"};

	for (unsigned i = 0; i < ARRAY_LEN(texts); i++)
		ud_end_recv(&b, i);
	atomic_store(&busy_calls, 7);
	for (unsigned i = 0; i < ARRAY_LEN(texts); i++)
		assert_int_equal(send_to(&a, b.qp->qp_num, texts[i]), 0);
	for (unsigned i = 0; i < ARRAY_LEN(texts); i++)
		expect_message(&b, a.qp->qp_num, texts[i]);
	for (unsigned i = 0; i < ARRAY_LEN(texts); i++)
		assert_int_equal(ud_end_wait(&a).opcode, IBV_WC_SEND);
	assert_int_equal(atomic_load(&busy_calls), 0);
}

/* Only the program's polls read the socket, so nothing is read while the test posts. The kernel
 * doubles the requested buffer size; each of these messages takes 768 bytes of the buffer. */
static void a_burst_waits_for_room_in_the_receivers_socket(void **state)
{
	static const char *const texts[] = {"1", "22", "333", "4444"};

	for (unsigned i = 0; i < DEPTH; i++)
		ud_end_recv(&b, i);
	set_buffer(16000);
	poll_in_a_loop(&b);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(send_to(&a, b.qp->qp_num, texts[i % ARRAY_LEN(texts)]), 0);
	for (unsigned i = 0; i < DEPTH; i++)
		expect_message(&b, a.qp->qp_num, texts[i % ARRAY_LEN(texts)]);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(ud_end_wait(&a).status, IBV_WC_SUCCESS);
	set_buffer(1 << 20);
}

/* No host has such a queue pair, so the message is lost; but its request completes. */
static void a_message_to_no_queue_pair_completes(void **state)
{
	static const uint32_t nowhere[] = {0, 0x00ffff, 0xffffff, 0x0400ff};

	for (unsigned i = 0; i < ARRAY_LEN(nowhere); i++) {
		assert_int_equal(send_to(&a, nowhere[i], "hello"), 0);
		assert_int_equal(ud_end_wait(&a).status, IBV_WC_SUCCESS);
	}
	assert_int_equal(send_to(&a, 0x1000000, "hello"), EINVAL);
	talk(&a, &b);
}

/* --- strangers ------------------------------------------------------------------------------ */

static int stranger(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(ud_port_of(b.qp->qp_num))};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static uint32_t number_of(int fd)
{
	struct sockaddr_in own;
	socklen_t len = sizeof(own);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &len), 0);
	return (uint32_t)ntohs(own.sin_port) << 8;
}

static void tell(int fd, const struct ud_header *h, size_t payload)
{
	static uint8_t bytes[UD_DATAGRAM_MAX + 1000];

	assert_int_equal(ud_header_encode(bytes, sizeof(bytes), h), UD_HEADER_LEN);
	assert_int_equal(send(fd, bytes, UD_HEADER_LEN + payload, 0), UD_HEADER_LEN + payload);
}

static uint64_t counter(struct ud_end *e, const char *name)
{
	const char *const *names;
	uint64_t values[16];
	int n = softrnic_qp_counters(e->qp, &names, values, 16);

	for (int i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return values[i];
	fail_msg("there is no counter %s", name);
	return 0;
}

static void what_strangers_send_has_no_effect(void **state)
{
	int fd = stranger();
	struct ud_header good = {
		.to_qpn = b.qp->qp_num, .from_qpn = number_of(fd), .qkey = UD_END_QKEY};
	struct ud_header bad;

	ud_end_recv(&b, 0);
	memset(b.buf, 0xaa, UD_END_SLOT);
	assert_int_equal(send(fd, "", 0, 0), 0);
	assert_int_equal(send(fd, "sRUD", 4, 0), 4);
	assert_int_equal(send(fd, "what is this? 24 bytes..", 24, 0), 24);
	tell(fd, &good, UD_PAYLOAD_MAX + 1);
	tell(fd, &good, UD_PAYLOAD_MAX); /* more bytes than the receive takes */
	bad = good;
	bad.to_qpn ^= 0xff; /* no queue pair has this number */
	tell(fd, &bad, 1);
	bad = good;
	bad.to_qpn ^= 0x100; /* this number belongs to another port */
	tell(fd, &bad, 1);
	bad = good;
	/* the sending queue pair's number does not belong to the sender's port */
	bad.from_qpn ^= 0x100;
	tell(fd, &bad, 1);
	bad = good;
	bad.qkey++;
	tell(fd, &bad, 1);
	expect_none(&b, 50);
	assert_int_equal(counter(&b, "too_long"), 1);
	assert_int_equal(counter(&b, "bad_qkey"), 1);
	for (unsigned i = 0; i < UD_END_SLOT; i++)
		assert_int_equal(b.buf[i], 0xaa);
	tell(fd, &good, 3);
	assert_int_equal(ud_end_wait(&b).byte_len, UD_GRH_LEN + 3);
	close(fd);
	talk(&a, &b);
}

/* Receive the next message of `a`, which arrives at the stranger's socket. */
static struct ud_header hear(int fd)
{
	uint8_t bytes[UD_DATAGRAM_MAX];
	ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
	struct ud_header h;

	assert_true(n > 0);
	assert_int_equal(ud_header_decode(bytes, (size_t)n, &h), 0);
	return h;
}

static void grant(int fd, uint8_t serial)
{
	struct ud_header credit = {.opcode = UD_CREDIT,
				   .serial = serial,
				   .from_qpn = number_of(fd),
				   .to_qpn = a.qp->qp_num,
				   .qkey = UD_WINDOW};

	tell(fd, &credit, 0);
}

/* Returns how many sends complete within 50 ms. */
static unsigned completed(void)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct ibv_wc wc;
	unsigned n = 0;

	for (int i = 0; i < 50; i++) {
		while (ibv_poll_cq(a.cq, 1, &wc) == 1)
			n++;
		nanosleep(&pause, NULL);
	}
	return n;
}

static void messages_to_a_peer_that_grants_no_credit_leave_after_a_while(void **state)
{
	int fd = stranger();
	uint8_t serial = 0;

	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(send_to(&a, number_of(fd), "hello"), 0);
	assert_int_equal(completed(), UD_WINDOW);
	grant(fd, 200); /* a grant for more bytes than were sent */
	assert_int_equal(completed(), 0);
	for (int i = 0; i < UD_WINDOW; i++)
		serial = hear(fd).serial;
	grant(fd, serial);
	assert_int_equal(completed(), UD_WINDOW);
	for (unsigned i = 2 * UD_WINDOW; i < DEPTH; i++)
		assert_int_equal(ud_end_wait(&a).status, IBV_WC_SUCCESS);
	close(fd);
	talk(&a, &b);
}

static void a_queue_pair_that_waits_for_a_credit_is_destroyed(void **state)
{
	int fd = stranger();

	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(send_to(&a, number_of(fd), "hello"), 0);
	assert_int_equal(softrnic_destroy_plain_qp(a.qp), 0);
	ud_end_make_qp(&a);
	grant(fd, UD_ASK_EACH);
	close(fd);
	talk(&a, &b);
}

/* --- queue pairs are destroyed, and processes fork ------------------------------------------ */

static atomic_bool over;
static atomic_uint target;
static unsigned fired; /* messages that were posted and have not completed */

static void *fire(void *unused)
{
	struct ibv_wc wc[16];

	while (!atomic_load(&over)) {
		fired += send_to(&a, atomic_load(&target), "hello") == 0;
		fired -= (unsigned)ibv_poll_cq(a.cq, 16, wc);
	}
	return NULL;
}

static void one_is_destroyed_while_messages_come(void **state)
{
	pthread_t thread;
	struct ibv_wc wc;

	atomic_store(&over, false);
	atomic_store(&target, b.qp->qp_num);
	assert_int_equal(pthread_create(&thread, NULL, fire, NULL), 0);
	for (int i = 0; i < 200; i++) {
		ud_end_recv(&b, 0);
		ud_end_recv(&b, 1);
		assert_int_equal(ud_end_wait(&b).status, IBV_WC_SUCCESS);
		assert_int_equal(softrnic_destroy_plain_qp(b.qp), 0);
		ud_end_make_qp(&b);
		atomic_store(&target, b.qp->qp_num);
		assert_int_equal(ibv_poll_cq(b.cq, 1, &wc), 0);
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	for (; fired; fired--)
		assert_int_equal(ud_end_wait(&a).opcode, IBV_WC_SEND);
	talk(&b, &a);
}

/* Inherited queue pairs still belong to the parent; new queue pairs of the child use another
 * port. */
static int in_child(void)
{
	uint32_t parents = b.qp->qp_num;
	int err = send_to(&a, parents, "child");

	if (err != ENODEV || softrnic_destroy_plain_qp(b.qp) || softrnic_destroy_plain_qp(a.qp))
		return 1;
	ud_end_open(&a, bytes_of_a, DEPTH);
	ud_end_open(&b, bytes_of_b, DEPTH);
	if (ud_port_of(b.qp->qp_num) == ud_port_of(parents))
		return 2;
	talk(&a, &b);
	return 0;
}

static void after_a_fork_both_processes_have_their_own(void **state)
{
	int status;
	pid_t pid;

	talk(&a, &b);
	pid = fork();
	if (pid == 0)
		_exit(in_child());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	talk(&a, &b);
}

static void more_than_a_port_has_numbers_for(void **state)
{
	static struct ibv_qp *qps[600];
	struct ibv_qp_init_attr attr = {
		.send_cq = a.cq, .recv_cq = a.cq, .qp_type = IBV_QPT_UD, .cap.max_recv_wr = 1};

	for (unsigned i = 0; i < ARRAY_LEN(qps); i++) {
		qps[i] = softrnic_create_plain_qp(a.pd, &attr);
		assert_non_null(qps[i]);
	}
	assert_int_not_equal(ud_port_of(qps[0]->qp_num), ud_port_of(qps[599]->qp_num));
	talk(&b, &a);
	for (unsigned i = 0; i < ARRAY_LEN(qps); i++)
		assert_int_equal(softrnic_destroy_plain_qp(qps[i]), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_device_reports_that_it_has_address_handles),
		CASE(two_exchange_messages),
		CASE(one_sends_to_itself),
		CASE(a_message_has_the_handles_traffic_class_and_hop_limit),
		CASE(a_message_wakes_a_thread_that_waits),
		CASE(a_message_wakes_a_thread_that_polled_before_it_waited),
		CASE(a_message_wakes_a_thread_after_another_has_stopped_to_poll),
		CASE(two_threads_wait_at_one_port),
		CASE(a_message_wakes_a_thread_after_another_has_stopped_to_wait),
		CASE(what_the_socket_does_not_take_leaves_later_in_order),
		CASE(a_burst_waits_for_room_in_the_receivers_socket),
		CASE(a_message_to_no_queue_pair_completes),
		CASE(what_strangers_send_has_no_effect),
		CASE(messages_to_a_peer_that_grants_no_credit_leave_after_a_while),
		CASE(a_queue_pair_that_waits_for_a_credit_is_destroyed),
		CASE(one_is_destroyed_while_messages_come),
		CASE(after_a_fork_both_processes_have_their_own),
		CASE(more_than_a_port_has_numbers_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
