/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of programs that are not the peer ("strangers"), sent to the port of a queue pair
 * without rdma_cm, have no effect except an answer. */
#include "plain.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softrnic/io/admission.h"
#include "softrnic/proto/meet.h"
#include "softrnic/proto/mpa.h"
#include "softrnic/stream/consent.h"

static struct plain dials, awaits;
static char notices[8192];

static void keep_notice(enum log_level level, const char *file, int line, const char *func,
			const char *text)
{
	if (level <= LOG_LVL_NOTICE)
		strncat(notices, text, sizeof(notices) - strlen(notices) - 1);
}

/* --- violations that this host has counted against senders ------------------------------------ */

static atomic_uint violations;

void __real_admission_count_violation(const struct link_addr *peer, uint64_t now);
void __wrap_admission_count_violation(const struct link_addr *peer, uint64_t now);
void __wrap_admission_count_violation(const struct link_addr *peer, uint64_t now)
{
	atomic_fetch_add(&violations, 1);
	__real_admission_count_violation(peer, now);
}

static int open_pair(void **state)
{
	notices[0] = '\0';
	softrnic_log_set(keep_notice, LOG_LVL_NOTICE);
	plain_pair_open(&dials, &awaits);
	return 0;
}

static int close_pair(void **state)
{
	plain_close(&dials);
	plain_close(&awaits);
	softrnic_log_set(NULL, LOG_LVL_NOTICE);
	return 0;
}

/* --- a stranger ----------------------------------------------------------------------------- */

/* Returns the message of a queue pair numbered `from` at this host's address to a queue pair
 * numbered `to`. */
static struct meet_data words(uint32_t from, uint32_t to)
{
	struct meet_data data = {.from.qpn = from,
				 .to.qpn = to,
				 .sq_psn = MEET_NO_PSN,
				 .path_mtu = 3,
				 .max_dest_rd_atomic = 1,
				 .max_rd_atomic = MEET_NO_RD};
	static const uint8_t gid[MEET_GID_LEN] = {[10] = 0xff, 0xff, 127, 0, 0, 1};

	memcpy(data.from.gid, gid, sizeof(gid));
	memcpy(data.to.gid, gid, sizeof(gid));
	return data;
}

static int dial(uint32_t qpn)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)(qpn >> 8)),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static void request_raw(int fd, const void *pdata, uint8_t len, bool consents)
{
	struct mpa_start req = {
		.revision = MPA_REVISION_2, .enhanced = true, .pd_len = len, .ird = 8, .ord = 8};
	uint8_t frame[MPA_START_MAX];
	int n;

	if (consents)
		stream_consent_put(&req, stream_consent_of_user(false));
	n = mpa_start_encode(frame, sizeof(frame), &req, pdata);
	assert_true(n > 0);
	assert_int_equal(send(fd, frame, (size_t)n, MSG_NOSIGNAL), n);
}

static void request(int fd, const struct meet_data *data)
{
	uint8_t bytes[MEET_LEN];

	assert_int_equal(meet_data_encode(bytes, sizeof(bytes), data), MEET_LEN);
	request_raw(fd, bytes, MEET_LEN, true);
}

static bool answers_within(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) > 0;
}

/* Take the reject, which must arrive and must name the queue pairs of the request. Returns its
 * reason. */
static enum meet_reason refusal(int fd)
{
	uint8_t frame[MPA_START_MAX];
	struct mpa_start rep;
	struct meet_data data;
	const uint8_t *pdata;
	const char *why;
	ssize_t n;

	assert_true(answers_within(fd, 5000));
	n = recv(fd, frame, sizeof(frame), 0);
	assert_true(n > 0);
	assert_true(mpa_start_decode(frame, (size_t)n, &rep, &pdata) > 0);
	assert_true(rep.reply && rep.reject);
	/* In revision 2 the first 4 bytes of private data are IRD and ORD. */
	assert_int_equal(meet_data_decode(frame + n - MEET_LEN, MEET_LEN, &data, &why), 0);
	assert_int_equal(close(fd), 0);
	return (enum meet_reason)data.reason;
}

/* Check that the two queue pairs still connect. */
static void both_meet(void)
{
	plain_ready(&awaits, dials.qp->qp_num);
	plain_ready(&dials, awaits.qp->qp_num);
	plain_talk(&dials, &awaits);
}

/* --- cases ---------------------------------------------------------------------------------- */

static void bytes_that_are_no_request_end_their_connection(void **state)
{
	int fd = dial(awaits.qp->qp_num);
	char byte;

	assert_int_equal(send(fd, "GET / HTTP/1.0\r\n\r\n     ", 23, MSG_NOSIGNAL), 23);
	assert_true(answers_within(fd, 5000));
	assert_true(recv(fd, &byte, 1, 0) <= 0);
	close(fd);
	both_meet();
}

static void other_words_than_64_bytes_are_malformed(void **state)
{
	struct meet_data data = words(dials.qp->qp_num, awaits.qp->qp_num);
	uint8_t bytes[MEET_LEN];
	int fd;

	(void)meet_data_encode(bytes, sizeof(bytes), &data);
	bytes[4] = 2; /* an unknown version */
	fd = dial(awaits.qp->qp_num);
	request_raw(fd, bytes, MEET_LEN, true);
	assert_int_equal(refusal(fd), MEET_MALFORMED);
	bytes[4] = 1;
	fd = dial(awaits.qp->qp_num);
	request_raw(fd, bytes, MEET_LEN - 1, true);
	assert_int_equal(refusal(fd), MEET_MALFORMED);
	fd = dial(awaits.qp->qp_num);
	request_raw(fd, bytes, MEET_LEN, false); /* a request without consent */
	assert_int_equal(refusal(fd), MEET_MALFORMED);
	both_meet();
}

static void a_number_without_a_queue_pair_is_refused(void **state)
{
	uint32_t free_number = awaits.qp->qp_num ^ 0x80;
	struct meet_data data = words(dials.qp->qp_num, free_number);
	int fd = dial(awaits.qp->qp_num);

	atomic_store(&violations, 0);
	request(fd, &data);
	assert_int_equal(refusal(fd), MEET_NO_QP);
	assert_int_equal(atomic_load(&violations), 1);
	/* a number that belongs to another port */
	data.to.qpn = (awaits.qp->qp_num + 0x100) & MEET_QPN_MAX;
	fd = dial(awaits.qp->qp_num);
	request(fd, &data);
	assert_int_equal(refusal(fd), MEET_NO_QP);
}

static void a_number_is_free_of_dials_once_it_is_destroyed(void **state)
{
	uint32_t num = awaits.qp->qp_num;
	struct meet_data data = words(dials.qp->qp_num, num);
	int early = dial(num), late;

	request(early, &data);
	assert_false(answers_within(early, 50));
	plain_destroy_qp(&awaits);
	assert_int_equal(refusal(early), MEET_NO_QP);
	late = dial(num);
	request(late, &data);
	assert_int_equal(refusal(late), MEET_NO_QP);
}

static void a_forged_address_is_refused(void **state)
{
	struct meet_data data = words(dials.qp->qp_num, awaits.qp->qp_num);
	int fd = dial(awaits.qp->qp_num);

	data.from.gid[15] = 9; /* not the sender's address: the message comes from 127.0.0.1 */
	request(fd, &data);
	assert_int_equal(refusal(fd), MEET_NOT_PEER);
	assert_non_null(strstr(notices, "another address"));
}

/* SOFTRNIC_QP_ANY_SOURCE is set in this test. */
static void a_peer_may_come_from_another_address(void **state)
{
	struct meet_data data = words(dials.qp->qp_num, awaits.qp->qp_num);
	int fd = dial(awaits.qp->qp_num);

	data.from.gid[15] = 9;
	request(fd, &data);
	/* the host keeps the request until its queue pair's peer is set */
	assert_false(answers_within(fd, 50));
	plain_ready(&awaits, dials.qp->qp_num);
	/* the peer of the queue pair has another GID */
	assert_int_equal(refusal(fd), MEET_NOT_PEER);
	plain_ready(&dials, awaits.qp->qp_num);
	plain_talk(&dials, &awaits);
}

/* Users often swap the two numbers by mistake. */
static void swapped_numbers_are_explained(void **state)
{
	struct meet_data data = words(0x123456, awaits.qp->qp_num);
	int fd;

	plain_ready(&awaits, dials.qp->qp_num);
	fd = dial(awaits.qp->qp_num);
	request(fd, &data);
	assert_int_equal(refusal(fd), MEET_NOT_PEER);
	assert_non_null(strstr(notices, "exchanged correctly"));
	assert_non_null(strstr(notices, "0x123456"));
	/* the peer dials again and again, but one warning is enough */
	notices[0] = '\0';
	fd = dial(awaits.qp->qp_num);
	request(fd, &data);
	assert_int_equal(refusal(fd), MEET_NOT_PEER);
	assert_string_equal(notices, "");
	plain_ready(&dials, awaits.qp->qp_num);
	plain_talk(&dials, &awaits);
}

static void sequence_numbers_that_differ_are_explained(void **state)
{
	plain_ready(&dials, awaits.qp->qp_num);
	plain_ready(&awaits, dials.qp->qp_num);
	plain_talk(&dials, &awaits);
	assert_null(strstr(notices, "sequence numbers"));
	plain_reset(&dials);
	plain_reset(&awaits);
	dials.sq_psn = 2;
	plain_ready(&dials, awaits.qp->qp_num);
	plain_ready(&awaits, dials.qp->qp_num);
	plain_talk(&dials, &awaits);
	assert_non_null(strstr(notices, "sequence numbers"));
}

/* SOFTRNIC_STRICT_PSN is set: the queue pair then behaves like a card, which drops packets that
 * begin with another sequence number. */
static void sequence_numbers_that_differ_keep_strict_ends_apart(void **state)
{
	plain_ready(&dials, awaits.qp->qp_num);
	plain_ready(&awaits, dials.qp->qp_num);
	plain_talk(&dials, &awaits);
	plain_reset(&dials);
	plain_reset(&awaits);
	dials.sq_psn = 2;
	dials.timeout = awaits.timeout = dials.retry_cnt = awaits.retry_cnt = 1;
	plain_ready(&dials, awaits.qp->qp_num);
	plain_ready(&awaits, dials.qp->qp_num);
	plain_send(&dials, 1, "dropped");
	plain_send(&awaits, 2, "dropped as well");
	assert_int_equal(plain_wait(&dials).status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(plain_wait(&awaits).status, IBV_WC_RETRY_EXC_ERR);
	assert_non_null(strstr(notices, "SOFTRNIC_STRICT_PSN"));
}

/* The queue pairs connect while `awaits` is in RTR, so it has no send PSN yet. The mismatch takes
 * effect when `awaits` moves to RTS. */
static void a_sequence_number_that_comes_late_keeps_strict_ends_apart(void **state)
{
	plain_init(&awaits);
	plain_recv(&awaits, 1);
	plain_rtr(&awaits, dials.qp->qp_num);
	plain_ready(&dials, awaits.qp->qp_num);
	plain_recv(&dials, 2);
	plain_send(&dials, 3, "before it is known");
	assert_int_equal(plain_wait(&awaits).status, IBV_WC_SUCCESS);
	assert_int_equal(plain_wait(&dials).status, IBV_WC_SUCCESS);
	awaits.sq_psn = 2;
	awaits.timeout = awaits.retry_cnt = 1;
	plain_rts(&awaits);
	plain_send(&awaits, 4, "dropped");
	assert_int_equal(plain_wait(&awaits).status, IBV_WC_RETRY_EXC_ERR);
	plain_expect_none(&dials, 1);
}

static void dials_that_wait_do_not_keep_the_peer_out(void **state)
{
	int fds[6];

	plain_init(&awaits);
	for (unsigned i = 0; i < 6; i++) {
		struct meet_data data = words(0x500000 + i, awaits.qp->qp_num);

		fds[i] = dial(awaits.qp->qp_num);
		request(fds[i], &data);
		usleep(2000); /* the two requests must arrive in this order */
	}
	assert_int_equal(refusal(fds[0]), MEET_BUSY); /* the host keeps only four requests */
	assert_int_equal(refusal(fds[1]), MEET_BUSY);
	assert_false(answers_within(fds[2], 20));
	plain_rtr(&awaits, dials.qp->qp_num);
	for (unsigned i = 2; i < 6; i++)
		assert_int_equal(refusal(fds[i]), MEET_NOT_PEER);
	plain_rts(&awaits);
	plain_ready(&dials, awaits.qp->qp_num);
	plain_talk(&dials, &awaits);
}

static void bytes_after_a_request_end_its_connection(void **state)
{
	struct meet_data data = words(dials.qp->qp_num, awaits.qp->qp_num);
	int fd = dial(awaits.qp->qp_num);
	char byte;

	plain_init(&awaits);
	request(fd, &data);
	assert_int_equal(send(fd, "x", 1, MSG_NOSIGNAL), 1);
	assert_true(answers_within(fd, 5000));
	assert_true(recv(fd, &byte, 1, 0) <= 0);
	close(fd);
	plain_reset(&awaits);
	both_meet();
}

/* A program on the same host sends the peer's name, and then nothing more: the true peer must still
 * be able to connect. */
static void a_forger_that_is_accepted_and_leaves_changes_nothing(void **state)
{
	struct meet_data data = words(dials.qp->qp_num, awaits.qp->qp_num);
	int fd;

	plain_ready(&awaits, dials.qp->qp_num);
	plain_recv(&awaits, 1);
	fd = dial(awaits.qp->qp_num);
	request(fd, &data);
	assert_true(answers_within(fd, 5000)); /* a reply that accepts */
	close(fd);
	plain_ready(&dials, awaits.qp->qp_num);
	plain_send(&dials, 2, "the true peer");
	assert_int_equal(plain_wait(&awaits).status, IBV_WC_SUCCESS);
	assert_string_equal(awaits.buf, "the true peer");
	assert_int_equal(plain_wait(&dials).status, IBV_WC_SUCCESS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bytes_that_are_no_request_end_their_connection),
		TEST(other_words_than_64_bytes_are_malformed),
		TEST(a_number_without_a_queue_pair_is_refused),
		TEST(a_number_is_free_of_dials_once_it_is_destroyed),
		TEST(a_forged_address_is_refused),
		TEST(swapped_numbers_are_explained),
		TEST(sequence_numbers_that_differ_are_explained),
		TEST(dials_that_wait_do_not_keep_the_peer_out),
		TEST(bytes_after_a_request_end_its_connection),
		TEST(a_forger_that_is_accepted_and_leaves_changes_nothing),
	};

	const struct CMUnitTest any_source[] = {
		TEST(a_peer_may_come_from_another_address),
		TEST(swapped_numbers_are_explained),
	};

	const struct CMUnitTest strict[] = {
		TEST(sequence_numbers_that_differ_keep_strict_ends_apart),
		TEST(a_sequence_number_that_comes_late_keeps_strict_ends_apart),
	};

	if (getenv("SOFTRNIC_STRICT_PSN"))
		return cmocka_run_group_tests(strict, NULL, NULL);
	if (getenv("SOFTRNIC_QP_ANY_SOURCE"))
		return cmocka_run_group_tests(any_source, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
