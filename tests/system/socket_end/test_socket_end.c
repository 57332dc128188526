/* SPDX-License-Identifier: BSD-3-Clause */
/* test_socket_end.c -- after some events the socket reports no further events, but the end of the
 * connection must still be detected. */
#include "system/lib/check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include "system/lib/rawpeer.h"
#include "system/lib/remote.h"

#define FILE_SIZE (1 * MIB)

static struct raw peer;

/* --- memory is unmapped while the last bytes for it are in the socket ------------------------- */

#define CUT_AT 49152
#define PIECE  2000

static const char path[] = "wedge.file";

/*
 * The bytes are in several buffers of the socket, so the kernel can copy some of them to the memory
 * before a copy fails. It then returns the copied length, as if no more bytes had arrived.
 */
static void a_file_cut_under_the_last_bytes_ends_the_connection(void **state)
{
	static const char *const regions[] = {"file:1048576:0xff:wedge.file", NULL};
	static uint8_t fpdu[MPA_LENGTH_LEN + DDP_TAGGED_HDR + 30 * PIECE + 3 + MPA_CRC_LEN];
	struct ddp_hdr hdr = {.tagged = true, .last = true, .version = DDP_VERSION};
	size_t ulpdu = DDP_TAGGED_HDR + 30 * PIECE, at = 0, len = mpa_fpdu_len(ulpdu);
	struct remote target;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(posix_fallocate(fd, 0, FILE_SIZE), 0);
	assert_int_equal(remote_start(&target, SYSTEM_TARGET, regions, NULL), 0);
	assert_int_equal(raw_connect(&peer, target.port, RAW_EXTENSIONS), 0);
	hdr.ulp = rdmap_ctrl(RDMAP_WRITE);
	hdr.stag = peer.region[0].stag;
	hdr.to = peer.region[0].addr;
	fpdu[0] = (uint8_t)(ulpdu >> 8);
	fpdu[1] = (uint8_t)ulpdu;
	ddp_encode(fpdu + MPA_LENGTH_LEN, DDP_TAGGED_HDR, &hdr);
	/* Send the begin of the payload, so that the target receives the rest directly into the
	 * memory. */
	assert_int_equal(raw_send(&peer, fpdu, 100), 0);
	usleep(100000);
	proc_signal(&target.proc, SIGSTOP);
	assert_int_equal(ftruncate(fd, CUT_AT), 0);
	for (at = 100; at < len; at += PIECE)
		assert_int_equal(raw_send(&peer, fpdu + at, len - at < PIECE ? len - at : PIECE),
				 0);
	proc_signal(&target.proc, SIGCONT);
	assert_int_equal(raw_expect_terminate(&peer, NULL), TERM_RDMAP_BASE_BOUNDS);
	raw_close(&peer);
	close(fd);
	unlink(path);
	assert_int_equal(proc_finish(&target.proc), 0);
}

/* --- a peer is reset while there is no space for what it sent --------------------------------- */

#define MESSAGES 2000

struct quiet {
	struct rpma_peer *peer;
	struct rpma_ep *ep;
	struct rpma_conn *conn;
	char port[16];
	int dialed;
};

static void *dial(void *arg)
{
	struct quiet *q = arg;

	q->dialed = raw_connect(&peer, q->port, RAW_PLAIN);
	return NULL;
}

static void take_connection(struct quiet *q)
{
	struct rpma_conn_req *req;
	enum rpma_conn_event ev;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, dial, q), 0);
	OK(rpma_ep_next_conn_req(q->ep, NULL, &req));
	OK(rpma_conn_req_connect(&req, NULL, &q->conn));
	OK(rpma_conn_next_event(q->conn, &ev));
	assert_int_equal(ev, RPMA_CONN_ESTABLISHED);
	pthread_join(thread, NULL);
	assert_int_equal(q->dialed, 0);
}

static void quiet_open(struct quiet *q)
{
	struct ibv_context *ctx;

	OK(rpma_utils_get_ibv_context("127.0.0.1", RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx));
	OK(rpma_peer_new(ctx, &q->peer));
	for (int port = 20000 + getpid() % 20000;; port++) {
		snprintf(q->port, sizeof(q->port), "%d", port);
		if (!rpma_ep_listen(q->peer, "127.0.0.1", q->port, &q->ep))
			break;
	}
	take_connection(q);
}

/* Send until the other end receives no more bytes. */
static void send_until_stalled(void)
{
	static const uint8_t bytes[1000];
	int sent = 0;

	while (sent < MESSAGES) {
		struct pollfd p = {.fd = peer.fd, .events = POLLOUT};

		if (poll(&p, 1, 200) <= 0)
			break;
		assert_int_equal(raw_message(&peer, bytes, sizeof(bytes)), 0);
		sent++;
	}
	assert_true(sent > 256);
}

static void a_reset_is_noticed_while_receiving_stalls(void **state)
{
	struct linger at_once = {.l_onoff = 1};
	enum rpma_conn_event ev;
	struct pollfd p = {.events = POLLIN};
	struct quiet q;

	quiet_open(&q);
	send_until_stalled();
	usleep(100000);
	setsockopt(peer.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	raw_close(&peer);
	OK(rpma_conn_get_event_fd(q.conn, &p.fd));
	assert_int_equal(poll(&p, 1, 20000), 1);
	OK(rpma_conn_next_event(q.conn, &ev));
	assert_int_equal(ev, RPMA_CONN_CLOSED);
	OK(rpma_conn_disconnect(q.conn));
	OK(rpma_conn_delete(&q.conn));
	OK(rpma_ep_shutdown(&q.ep));
	OK(rpma_peer_delete(&q.peer));
}

/* --- bytes that came before the end, and were not read by then -------------------------------- */

enum how { RESET, END_AND_RESET };

/* A thread that polls for bytes can be stopped between its check for the end and its receive, and
 * then takes bytes that arrived meanwhile. After this time all threads sleep until bytes arrive. */
#define TARGET_SLEEPS_US 50000

/* While the target is stopped, a Write arrives, and then the end of the peer's stream. */
static void write_and_end(const struct raw_region *region, enum how how)
{
	struct linger at_once = {.l_onoff = 1};

	assert_int_equal(raw_write(&peer, region->stag, region->addr, "written!", 8), 0);
	if (how == END_AND_RESET)
		assert_int_equal(shutdown(peer.fd, SHUT_WR), 0);
	usleep(50000);
	setsockopt(peer.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	raw_close(&peer);
	usleep(50000);
}

static void expect_after(enum how how, const char *bytes)
{
	static const char *const regions[] = {"anon:65536:0xff", NULL};
	struct remote target;

	assert_int_equal(remote_start(&target, SYSTEM_TARGET, regions, NULL), 0);
	assert_int_equal(raw_connect(&peer, target.port, RAW_EXTENSIONS), 0);
	assert_int_equal(remote_wait_conns(&target, 1, RAW_WAIT_MS), 0);
	usleep(TARGET_SLEEPS_US);
	proc_signal(&target.proc, SIGSTOP);
	write_and_end(&peer.region[0], how);
	proc_signal(&target.proc, SIGCONT);
	assert_int_equal(remote_wait_conns(&target, 0, RAW_WAIT_MS), 0);
	assert_string_equal(proc_ask(&target.proc, "peek 0 0 8"), bytes);
	assert_int_equal(proc_finish(&target.proc), 0);
}

/* The sender has given up or died, and the same memory has possibly been written through another
 * connection since then. */
static void what_came_before_a_reset_is_dropped(void **state)
{
	expect_after(RESET, "0000000000000000");
}

/* The peer ends its stream with a FIN, but closes the socket with unread bytes, so that a reset
 * follows the FIN. */
static void what_came_before_an_end_counts_though_a_reset_follows(void **state)
{
	expect_after(END_AND_RESET, "7772697474656e21");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_cut_under_the_last_bytes_ends_the_connection),
		cmocka_unit_test(a_reset_is_noticed_while_receiving_stalls),
		cmocka_unit_test(what_came_before_a_reset_is_dropped),
		cmocka_unit_test(what_came_before_an_end_counts_though_a_reset_follows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
