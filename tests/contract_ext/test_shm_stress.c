/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_shm_stress.c -- two processes write, read and send to each other over rings, with random
 * sizes, depths and pauses, and with each way to wait for completions. No byte and no wake-up must
 * be lost: an end without progress for seconds has hung. A second thread fills the rings with long
 * writes, so that the first thread has to wait for free space.
 *
 * $STRESS_MS: time for each pair of waiting methods. $STRESS_SEED: the seed.
 */
#include "ends_ext.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* size of each of three areas: the peer reads the first area and writes to the second; this end's
 * Reads fill the third */
#define REGION    (4u << 20)
#define SEND_MAX  65536u
#define RECVS     16u
#define DEPTH_MAX 16u
#define PUSHES    32u
#define PUSH_LEN  300000u
#define HANG_MS   5000u

/* values of the counter shm_state, as softrnic(7) lists them; a higher value is a reason against
 * rings */
#define SHM_STATE_USED 2

enum way { POLLS, WAITS, HAS_EPOLL, WAYS };

/* End the process if cond is false. A child process cannot report a failure through cmocka. */
#define MUST(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #cond,       \
				errno);                                                            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

struct memory {
	uint8_t constant[REGION], written[REGION], read[REGION];
	uint8_t sent[SEND_MAX], received[RECVS][SEND_MAX];
};

struct stress {
	enum way way;
	int sock; /* a socket between the two processes, apart from the connection */
	uint64_t seed;
	struct rpma_peer *peer;
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	struct memory *m;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *at;
	unsigned depth, reads;
	uint64_t sent, received;
	atomic_uint under_way, done;
	atomic_bool works;
	atomic_uint_fast64_t progress;
	atomic_uint_fast64_t longest_ms; /* longest time without progress */
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static unsigned by_chance(struct stress *s, unsigned below)
{
	s->seed = s->seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(s->seed >> 33) % below;
}

/* --- a hang ----------------------------------------------------------------------------------- */

static void *watch(void *arg)
{
	struct stress *s = arg;
	uint64_t seen = 0, at = now_ms();

	for (;;) {
		uint64_t progress = atomic_load(&s->progress);

		usleep(10000);
		if (now_ms() - at > atomic_load(&s->longest_ms))
			atomic_store(&s->longest_ms, now_ms() - at);
		if (progress != seen || atomic_load(&s->under_way) == 0) {
			seen = progress;
			at = now_ms();
		}
		if (now_ms() - at < HANG_MS)
			continue;
		fprintf(stderr, "hang: way %d, %u operations under way after %llu steps\n", s->way,
			atomic_load(&s->under_way), (unsigned long long)progress);
		if (getenv("STRESS_STAYS"))
			pause();
		_exit(2);
	}
	return NULL;
}

/* --- the connection --------------------------------------------------------------------------- */

static void swap(int sock, const void *ours, void *theirs, size_t len)
{
	MUST(send(sock, ours, len, 0) == (ssize_t)len);
	MUST(recv(sock, theirs, len, MSG_WAITALL) == (ssize_t)len);
}

static void begin(struct stress *s)
{
	const int all = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
			RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV |
			RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
	struct ibv_context *ctx;

	MUST(!rpma_utils_get_ibv_context(ends_addr(), RPMA_UTIL_IBV_CONTEXT_REMOTE, &ctx));
	MUST(!rpma_peer_new(ctx, &s->peer));
	s->m = (struct memory *)ends_map(sizeof(*s->m));
	ends_fill(s->m->constant, REGION, 7);
	ends_fill(s->m->sent, SEND_MAX, 9);
	MUST(!rpma_mr_reg(s->peer, s->m, sizeof(*s->m), all, &s->mr));
}

static void post_recv(struct stress *s, uintptr_t i)
{
	MUST(!rpma_recv(s->conn, s->mr, offsetof(struct memory, received) + i * SEND_MAX, SEND_MAX,
			(void *)(i + 1)));
}

static void connected(struct stress *s)
{
	enum rpma_conn_event event;
	uint8_t ours[64], theirs[64];
	size_t len;

	MUST(!rpma_conn_next_event(s->conn, &event) && event == RPMA_CONN_ESTABLISHED);
	MUST(!rpma_conn_get_cq(s->conn, &s->cq));
	MUST(!rpma_mr_get_descriptor_size(s->mr, &len) && len <= sizeof(ours));
	MUST(!rpma_mr_get_descriptor(s->mr, ours));
	for (uintptr_t i = 0; i < RECVS; i++)
		post_recv(s, i);
	swap(s->sock, ours, theirs, len);
	MUST(!rpma_mr_remote_from_descriptor(theirs, len, &s->at));
}

static void serve(struct stress *s, struct rpma_conn_cfg *cfg)
{
	struct rpma_conn_req *req;
	struct rpma_ep *ep;
	char port[8];

	ends_free_port(port);
	begin(s);
	MUST(!rpma_ep_listen(s->peer, ends_addr(), port, &ep));
	MUST(send(s->sock, port, sizeof(port), 0) == sizeof(port));
	MUST(!rpma_ep_next_conn_req(ep, cfg, &req));
	MUST(!rpma_conn_req_connect(&req, NULL, &s->conn));
	connected(s);
}

static void dial(struct stress *s, struct rpma_conn_cfg *cfg)
{
	struct rpma_conn_req *req;
	char port[8];

	begin(s);
	MUST(recv(s->sock, port, sizeof(port), MSG_WAITALL) == sizeof(port));
	MUST(!rpma_conn_req_new(s->peer, ends_addr(), port, cfg, &req));
	MUST(!rpma_conn_req_connect(&req, NULL, &s->conn));
	connected(s);
}

/* --- the operations ----------------------------------------------------------------------- */

enum what { WRITE, READ, SEND };

/* Most sizes are small, some are the maximum. */
static size_t size_by_chance(struct stress *s, size_t max)
{
	unsigned bits = by_chance(s, 23);
	size_t size = 1 + by_chance(s, 1u << bits);

	return size < max ? size : max;
}

static void *tag(enum what what, size_t size)
{
	return (void *)((uintptr_t)size << 8 | (uintptr_t)what << 6 | 63);
}

static void post_one(struct stress *s)
{
	enum what what = by_chance(s, 3);
	size_t size = size_by_chance(s, what == SEND ? SEND_MAX : REGION);

	if (what == READ && s->reads)
		what = WRITE;
	if (what == READ)
		MUST(!rpma_read(s->conn, s->mr, offsetof(struct memory, read), s->at,
				offsetof(struct memory, constant), size, RPMA_F_COMPLETION_ALWAYS,
				tag(what, size)));
	else if (what == WRITE)
		MUST(!rpma_write(s->conn, s->at, offsetof(struct memory, written), s->mr,
				 offsetof(struct memory, constant), size, RPMA_F_COMPLETION_ALWAYS,
				 tag(what, size)));
	else
		MUST(!rpma_send(s->conn, s->mr, offsetof(struct memory, sent), (uint32_t)size,
				RPMA_F_COMPLETION_ALWAYS, tag(what, size)));
	s->reads += what == READ;
	s->sent += what == SEND;
	atomic_fetch_add(&s->under_way, 1);
}

static void completed(struct stress *s, const struct ibv_wc *wc)
{
	uintptr_t id = wc->wr_id;

	MUST(wc->status == IBV_WC_SUCCESS);
	atomic_fetch_add(&s->progress, 1);
	if (wc->opcode == IBV_WC_RECV) {
		MUST(!memcmp(s->m->received[id - 1], s->m->sent, wc->byte_len));
		s->received++;
		post_recv(s, id - 1);
		return;
	}
	if ((id >> 6 & 3) == READ) {
		MUST(!memcmp(s->m->read, s->m->constant, id >> 8));
		memset(s->m->read, 0, id >> 8);
		s->reads--;
	}
	atomic_fetch_sub(&s->under_way, 1);
	atomic_fetch_add(&s->done, 1);
}

static bool take_all(struct stress *s)
{
	struct ibv_wc wc;
	bool any = false;
	int ret;

	while (!(ret = rpma_cq_get_wc(s->cq, 1, &wc, NULL))) {
		completed(s, &wc);
		any = true;
	}
	MUST(ret == RPMA_E_NO_COMPLETION);
	return any;
}

/* Wait for a completion, or for a message of the other process. */
static void wait_for_either(struct stress *s, int ms)
{
	struct pollfd fds[2] = {{.events = POLLIN}, {.fd = s->sock, .events = POLLIN}};

	MUST(!rpma_cq_get_fd(s->cq, &fds[0].fd));
	MUST(poll(fds, 2, ms) >= 0);
	if (fds[0].revents)
		MUST(!rpma_cq_wait(s->cq));
}

static void wait_for_work(struct stress *s)
{
	if (s->way == WAITS)
		MUST(!rpma_cq_wait(s->cq));
	else if (s->way == HAS_EPOLL)
		wait_for_either(s, -1);
	take_all(s);
}

static void pause_by_chance(struct stress *s)
{
	if (by_chance(s, 64) == 0)
		usleep(by_chance(s, 3000));
	if (by_chance(s, 64) == 0)
		s->depth = 1 + by_chance(s, DEPTH_MAX);
}

/*
 * These writes get a completion only if they fail. A new batch is posted after all earlier writes
 * have left the send queue. They have left it when the first thread has completed twice as many
 * operations as it keeps in flight at most.
 */
static void *push(void *arg)
{
	struct stress *s = arg;
	unsigned seen = 0, posted = 0;

	while (atomic_load(&s->works)) {
		unsigned done = atomic_load(&s->done);

		usleep(posted % 8 == 7 ? 30000 : 300);
		if (done - seen >= 2 * DEPTH_MAX) {
			seen = done;
			posted = 0;
		}
		if (posted++ < PUSHES)
			MUST(!rpma_write(s->conn, s->at, offsetof(struct memory, written), s->mr,
					 offsetof(struct memory, constant), PUSH_LEN,
					 RPMA_F_COMPLETION_ON_ERROR, NULL));
	}
	return NULL;
}

/* On a busy machine the ends can need more time to set up the rings than the test needs for its
 * operations. */
static bool rings_are_due(struct stress *s)
{
	return ends_counter(s->conn, "shm_tx_bytes") == 0 &&
	       ends_counter(s->conn, "shm_state") <= SHM_STATE_USED;
}

static void work(struct stress *s, unsigned ms)
{
	uint64_t end = now_ms() + ms;
	pthread_t pusher;

	s->depth = DEPTH_MAX;
	atomic_store(&s->works, true);
	MUST(!pthread_create(&pusher, NULL, push, s));
	while (now_ms() < end || rings_are_due(s)) {
		while (atomic_load(&s->under_way) < s->depth)
			post_one(s);
		pause_by_chance(s);
		wait_for_work(s);
	}
	atomic_store(&s->works, false);
	MUST(!pthread_join(pusher, NULL));
	while (atomic_load(&s->under_way))
		wait_for_work(s);
}

/* Receive the other process's messages until no more arrive. */
static void finish(struct stress *s)
{
	uint64_t theirs = UINT64_MAX, end = now_ms() + 6 * HANG_MS;

	MUST(send(s->sock, &s->sent, sizeof(s->sent), 0) == sizeof(s->sent));
	while (s->received < theirs && now_ms() < end) {
		if (s->way != POLLS)
			wait_for_either(s, 1000);
		take_all(s);
		if (theirs == UINT64_MAX)
			recv(s->sock, &theirs, sizeof(theirs), MSG_DONTWAIT);
	}
	MUST(s->received == theirs);
	swap(s->sock, &s->sent, &theirs, sizeof(theirs));
}

static void run(struct stress *s, bool serves, unsigned ms)
{
	const uint32_t sq = DEPTH_MAX + 2 * PUSHES;
	struct rpma_conn_cfg *cfg = ends_cfg(2 * sq + RECVS, 0, sq, RECVS);
	pthread_t watcher;

	(serves ? serve : dial)(s, cfg);
	MUST(!pthread_create(&watcher, NULL, watch, s));
	work(s, ms);
	finish(s);
	if (ends_counter(s->conn, "shm_tx_bytes") == 0) {
		printf("no rings: state %llu\n",
		       (unsigned long long)ends_counter(s->conn, "shm_state"));
		fflush(stdout);
		_exit(1);
	}
	printf("%s: %llu steps, the longest took about %llu ms\n", serves ? "server" : "client",
	       (unsigned long long)atomic_load(&s->progress),
	       (unsigned long long)atomic_load(&s->longest_ms));
	fflush(stdout);
	_exit(0);
}

/* --- the processes ---------------------------------------------------------------------------- */

static unsigned number(const char *name, unsigned otherwise)
{
	const char *value = getenv(name);

	return value ? (unsigned)strtoul(value, NULL, 0) : otherwise;
}

static pid_t start(enum way way, bool serves, const int sock[2], unsigned seed)
{
	static struct stress s;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	s.way = way;
	s.sock = sock[serves];
	close(sock[!serves]);
	s.seed = seed;
	run(&s, serves, number("STRESS_MS", 400));
	return 0;
}

static int status_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void work_goes_on_and_arrives_whole(void **state)
{
	unsigned seed = number("STRESS_SEED", (unsigned)now_ms());
	int sock[2], ret;
	pid_t pids[2];

	for (unsigned i = 0; i < WAYS * WAYS; i++) {
		printf("ways %u and %u, seed %u\n", i / WAYS, i % WAYS, seed + 2 * i);
		fflush(stdout);
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sock), 0);
		pids[0] = start(i / WAYS, false, sock, seed + 2 * i);
		pids[1] = start(i % WAYS, true, sock, seed + 2 * i + 1);
		close(sock[0]);
		close(sock[1]);
		ret = status_of(pids[0]);
		ret |= status_of(pids[1]);
		assert_int_equal(ret, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_goes_on_and_arrives_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
