/* SPDX-License-Identifier: BSD-3-Clause */
/* The data path of a session: which initiators are allowed to connect, how long the port is open,
 * and the operations of lanes. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "system/lib/check.h"
#include "system/rpmemd/peer.h"

static struct peer peer, other;

static int teardown(void **state)
{
	peer_end(&peer);
	peer_end(&other);
	peer_folder_remove();
	return 0;
}

static void create(struct peer *p, const char *name, const char *const options[])
{
	peer_make_set(name, PEER_SIZE);
	peer_start(p, options);
	if (peer_create(p, name, PEER_SIZE, 8))
		fail_msg("%s is not created: %s", name, p->answer.text);
}

/* Connect to the port over TCP. Returns 0 or errno. */
static int knock(uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int rc = connect(fd, (struct sockaddr *)&at, sizeof(at)) ? errno : 0;

	close(fd);
	return rc;
}

/* The daemon closes the port after it accepts, so the initiator can be connected before the port is
 * closed. */
static void is_closed_soon(uint16_t port)
{
	for (unsigned i = 0; i < 2000 && !knock(port); i++)
		usleep(5000);
	assert_int_equal(knock(port), ECONNREFUSED);
}

static void only_the_lane_key_opens_a_lane(void **state)
{
	struct wire_key wrong;

	create(&peer, "a.set", NULL);
	memset(&wrong, 0, sizeof(wrong));
	assert_int_equal(peer_dial(&peer, 0, &wrong, peer.pool.port), RPMA_CONN_REJECTED);
	wrong = peer.lane_key;
	wrong.bytes[31] ^= 1;
	assert_int_equal(peer_dial(&peer, 0, &wrong, peer.pool.port), RPMA_CONN_REJECTED);
	/* After a wrong secret, the right one must still be accepted. */
	assert_int_equal(peer_lane_up(&peer, 0), 0);
	assert_int_equal(peer_persist(&peer, 0, 4096, 64), 0);
}

static void a_lane_comes_once_and_only_announced(void **state)
{
	uint16_t port;

	create(&peer, "a.set", NULL);
	port = peer.pool.port;
	assert_int_equal(peer_dial(&peer, 1, &peer.lane_key, port), RPMA_CONN_REJECTED);
	assert_int_equal(peer_lanes(&peer, 2, 1), WIRE_OK);
	assert_int_equal(peer.answer.lanes.port, port); /* the port is still open for lane 0 */
	assert_int_equal(peer_lane_up(&peer, 0), 0);
	assert_int_equal(peer_dial(&peer, 0, &peer.lane_key, port), RPMA_CONN_REJECTED);
	assert_int_equal(peer_dial(&peer, 8, &peer.lane_key, port), RPMA_CONN_REJECTED);
	assert_int_equal(peer_lanes(&peer, 0, 1), WIRE_BADNLANES);
	assert_int_equal(peer_dial(&peer, 2, &peer.lane_key, port), RPMA_CONN_ESTABLISHED);
	assert_int_equal(peer_persist(&peer, 2, 4096, 64), 0);
}

static void a_proof_for_one_port_is_none_for_another(void **state)
{
	struct peer_lane *lane = &peer.lanes[1];
	uint8_t request[WIRE_LANE_REQUEST];
	struct rpma_conn_private_data ours = {.ptr = request};
	char text[8];
	struct rpma_conn_open_attr attr = {
		.size = sizeof(attr), .addr = "127.0.0.1", .port = text, .pdata = &ours};
	enum rpma_conn_event event;

	create(&peer, "a.set", NULL);
	assert_int_equal(peer_lane_up(&peer, 0), 0);
	assert_int_equal(peer_lanes(&peer, 1, 1), WIRE_OK);
	snprintf(text, sizeof(text), "%u", peer.answer.lanes.port);
	ours.len = (uint8_t)wire_lane_request_encode(
		&peer.lane_key, 1, (uint16_t)(peer.answer.lanes.port + 1), request);
	OK(rpma_conn_open(peer.rpma, &attr, &event, &lane->conn));
	assert_int_equal(event, RPMA_CONN_REJECTED);
}

static void the_port_is_closed_when_the_lanes_are_there(void **state)
{
	uint16_t port;

	create(&peer, "a.set", NULL);
	port = peer.pool.port;
	assert_int_equal(knock(port), 0);
	assert_int_equal(peer_lane_up(&peer, 0), 0);
	is_closed_soon(port);
	assert_int_equal(peer_lanes(&peer, 1, 2), WIRE_OK);
	port = peer.answer.lanes.port;
	assert_int_equal(peer_dial(&peer, 2, &peer.lane_key, port), RPMA_CONN_ESTABLISHED);
	assert_int_equal(knock(port), 0);
	assert_int_equal(peer_dial(&peer, 1, &peer.lane_key, port), RPMA_CONN_ESTABLISHED);
	is_closed_soon(port);
	assert_int_equal(peer_persist(&peer, 1, 4096, 64), 0);
}

/* Find ports that were unused a moment ago. */
static void free_ports(char text[16], unsigned *first)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int fds[2];

	for (;;) {
		fds[0] = socket(AF_INET, SOCK_STREAM, 0);
		fds[1] = socket(AF_INET, SOCK_STREAM, 0);
		at.sin_port = 0;
		assert_int_equal(bind(fds[0], (struct sockaddr *)&at, sizeof(at)), 0);
		assert_int_equal(getsockname(fds[0], (struct sockaddr *)&at, &len), 0);
		*first = ntohs(at.sin_port);
		at.sin_port = htons((uint16_t)(*first + 1));
		if (*first < 65535 && !bind(fds[1], (struct sockaddr *)&at, sizeof(at)))
			break;
		close(fds[0]);
		close(fds[1]);
	}
	close(fds[0]);
	close(fds[1]);
	snprintf(text, 16, "%u-%u", *first, *first + 1);
}

static void ports_are_those_of_the_range(void **state)
{
	char range[16];
	const char *const options[] = {"--port-range", range, NULL};
	unsigned first;

	free_ports(range, &first);
	create(&peer, "a.set", options);
	assert_in_range(peer.pool.port, first, first + 1);
	create(&other, "b.set", options);
	assert_in_range(other.pool.port, first, first + 1);
	assert_int_not_equal(peer.pool.port, other.pool.port);
	peer_end(&other);

	/* Lanes use both ports now. */
	create(&other, "c.set", options);
	assert_int_equal(peer_lane_up(&peer, 0), 0);
	/* the daemon uses its former port again */
	assert_int_equal(peer_lanes(&peer, 1, 1), WIRE_OK);
	peer_end(&peer);
}

static void a_range_that_is_taken_is_an_error_with_words(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char range[16];
	const char *const options[] = {"--port-range", range, NULL};

	assert_false(bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 1));
	getsockname(fd, (struct sockaddr *)&at, &len);
	snprintf(range, sizeof(range), "%u", ntohs(at.sin_port));
	peer_make_set("a.set", PEER_SIZE);
	peer_start(&peer, options);
	assert_int_equal(peer_create(&peer, "a.set", PEER_SIZE, 1), WIRE_FATAL_CONN);
	assert_non_null(strstr(peer.answer.text, range));
	/* The failed creation has left no file. */
	assert_int_not_equal(access(peer_path("a.set.part"), F_OK), 0);
	close(fd);
}

static void persist_and_compare(struct peer *p, unsigned lanes)
{
	uint8_t *got = malloc(PEER_SIZE);
	uint64_t seed = 1;
	int fd;

	for (unsigned round = 0; round < 50; round++)
		for (unsigned i = 0; i < lanes; i++) {
			uint64_t at = 4096 + i * 100000 + round * 800;

			seed = seed * 6364136223846793005ull + 1;
			memset(p->memory + at, (int)(seed >> 56), 1 + (seed >> 33) % 799);
			if (peer_persist(p, i, at, 800))
				fail_msg("lane %u fails: %s", i, peer_stderr(p));
		}
	fd = open(peer_path("a.set.part"), O_RDONLY);
	assert_int_equal(pread(fd, got, PEER_SIZE, 0), PEER_SIZE);
	assert_memory_equal(got, p->memory, PEER_SIZE);
	close(fd);
	free(got);
}

static void the_general_method_works_with_any_number_of_threads(void **state)
{
	static const char *const counts[] = {"0", "1", "3"};

	for (unsigned i = 0; i < ARRAY_LEN(counts); i++) {
		const char *const options[] = {"--persist-native=no", "--nthreads", counts[i],
					       NULL};

		create(&peer, "a.set", options);
		assert_int_equal(peer.pool.method, WIRE_METHOD_GENERAL);
		for (unsigned lane = 0; lane < 5; lane++)
			assert_int_equal(peer_lane_up(&peer, lane), 0);
		persist_and_compare(&peer, 5);
		assert_int_equal(peer_close(&peer, WIRE_CLOSE_REMOVE), WIRE_OK);
		assert_int_equal(peer_wait(&peer), 0);
		peer_end(&peer);
	}
}

static void the_native_method_on_many_lanes(void **state)
{
	create(&peer, "a.set", NULL);
	for (unsigned lane = 8; lane-- > 0;)
		assert_int_equal(peer_lane_up(&peer, lane), 0);
	persist_and_compare(&peer, 8);
}

static void a_request_outside_the_pool_is_refused_and_harms_no_other(void **state)
{
	const char *const options[] = {"--persist-native=no", NULL};
	struct peer_lane *lane = &peer.lanes[0];
	struct wire_persist m = {.id = 7, .offset = PEER_SIZE, .length = 1};
	struct wire_persisted answer;
	struct ibv_wc wc;
	bool got = false;

	create(&peer, "a.set", options);
	assert_int_equal(peer_lane_up(&peer, 0), 0);
	wire_persist_encode(&m, lane->bytes);
	OK(rpma_send(lane->conn, lane->messages, 0, WIRE_PERSIST_REQUEST,
		     RPMA_F_COMPLETION_ON_ERROR, NULL));
	for (int i = 0; i < 200 && !got; i++)
		got = !rpma_cq_get_wc(lane->cq, 1, &wc, NULL) ||
		      (rpma_cq_wait_timeout(lane->cq, 100), false);
	assert_true(got && wc.status == IBV_WC_SUCCESS);
	assert_true(wire_persisted_decode(lane->bytes + 64, WIRE_PERSIST_ANSWER, &answer));
	assert_int_equal(answer.error, EINVAL);
	OK(rpma_recv(lane->conn, lane->messages, 64, WIRE_PERSIST_ANSWER, NULL));
	lane->id = 7;
	assert_int_equal(peer_persist(&peer, 0, 4096, 64), 0);
}

static void a_message_that_is_no_request_ends_its_lane_only(void **state)
{
	const char *const options[] = {"--persist-native=no", NULL};
	enum rpma_conn_event event;

	create(&peer, "a.set", options);
	assert_int_equal(peer_lane_up(&peer, 0), 0);
	assert_int_equal(peer_lane_up(&peer, 1), 0);
	memset(peer.lanes[1].bytes, 0xff, WIRE_PERSIST_REQUEST);
	OK(rpma_send(peer.lanes[1].conn, peer.lanes[1].messages, 0, WIRE_PERSIST_REQUEST,
		     RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_conn_next_event_timeout(peer.lanes[1].conn, 20000, &event));
	assert_true(event == RPMA_CONN_CLOSED || event == RPMA_CONN_LOST);
	assert_int_equal(peer_persist(&peer, 0, 4096, 64), 0);
}

static void closing_ends_the_lanes(void **state)
{
	static const char *const general[] = {"--persist-native=no", NULL};
	enum rpma_conn_event event;

	for (unsigned i = 0; i < 2; i++) {
		create(&peer, "a.set", i ? general : NULL);
		assert_int_equal(peer_lane_up(&peer, 0), 0);
		assert_int_equal(peer_persist(&peer, 0, 4096, 64), 0);
		assert_int_equal(peer_close(&peer, WIRE_CLOSE_REMOVE), WIRE_OK);
		OK(rpma_conn_next_event_timeout(peer.lanes[0].conn, 20000, &event));
		assert_true(event == RPMA_CONN_CLOSED || event == RPMA_CONN_LOST);
		assert_int_not_equal(peer_persist(&peer, 0, 4096, 64), 0);
		assert_int_equal(peer_wait(&peer), 0);
		peer_end(&peer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_teardown(name, teardown)
		TEST(only_the_lane_key_opens_a_lane),
		TEST(a_lane_comes_once_and_only_announced),
		TEST(a_proof_for_one_port_is_none_for_another),
		TEST(the_port_is_closed_when_the_lanes_are_there),
		TEST(ports_are_those_of_the_range),
		TEST(a_range_that_is_taken_is_an_error_with_words),
		TEST(the_native_method_on_many_lanes),
		TEST(the_general_method_works_with_any_number_of_threads),
		TEST(a_request_outside_the_pool_is_refused_and_harms_no_other),
		TEST(a_message_that_is_no_request_ends_its_lane_only),
		TEST(closing_ends_the_lanes),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
