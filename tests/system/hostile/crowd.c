/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/lib/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "crowd.h"

/*
 * New connections per second, after the first one of each role. A higher rate than the target
 * accepts would only test the length of its backlog.
 */
#define CONNECTS_PER_S (SYSTEM_SANITIZED ? 40 : 500)
#define CONNECTION_MS  400
#define SLOW_MS        4000
#define LAST_MS        20000 /* time for the target to close the last connection of each role */
#define BURST          64    /* violations that a FLOOD role sends each time that it is called */
#define VIOLATION_MAX  70000 /* length in bytes */
#define REQUEST_MAX    64

enum role_id {
#define X(name, options, traits) ROLE_##name,
	CROWD_ROLES(X)
#undef X
		ROLES
};

struct role {
	const char *name;
	unsigned options, traits;
	uint8_t request[REQUEST_MAX], violation[VIOLATION_MAX];
	size_t request_len, violation_len;
};

static struct role roles[ROLES] = {
#define X(name_, options_, traits_)                                                                \
	[ROLE_##name_] = {.name = #name_, .options = (options_), .traits = (traits_)},
	CROWD_ROLES(X)
#undef X
};

static struct crowd_count counts[ROLES];
static struct member {
	int fd; /* -1: not connected yet */
	bool answered;
	size_t request_sent, violation_sent;
	uint64_t closes_at;
} members[CROWD_SIZE];
static struct sockaddr_in target;
static pthread_t thread;
/* time limit by which the target must have closed a connection of each short role */
static uint64_t last_at;
static atomic_bool done;

static enum role_id role_of(const struct member *m)
{
	return (enum role_id)((m - members) % ROLES);
}

/* --- the bytes that each role sends ----------------------------------------------------------- */

/* Record the bytes that a raw peer would send, instead of sending them. capture_end() returns the
 * recorded bytes. */
static void capture_begin(struct raw *recorder, int *from)
{
	int fd[2], room = 4 * VIOLATION_MAX;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	memset(recorder, 0, sizeof(*recorder));
	for (int i = 0; i < DDP_QN_COUNT; i++)
		recorder->msn[i] = DDP_FIRST_MSN;
	recorder->fd = fd[0];
	*from = fd[1];
}

static size_t capture_end(struct raw *recorder, int from, uint8_t *bytes, size_t size)
{
	size_t have = 0;
	ssize_t n;

	raw_close(recorder);
	while ((n = read(from, bytes + have, size - have)) > 0)
		have += (size_t)n;
	close(from);
	assert_true(have > 0 && have < size);
	return have;
}

static void record_segment(struct raw *r, enum rdmap_opcode op, uint32_t qn, uint32_t msn,
			   uint32_t mo, size_t len)
{
	static const uint8_t bytes[60000];
	struct ddp_hdr hdr = {.last = true,
			      .version = DDP_VERSION,
			      .ulp = rdmap_ctrl(op),
			      .qn = qn,
			      .msn = msn,
			      .mo = mo};

	assert_int_equal(raw_segment(r, &hdr, bytes, len), 0);
}

static void record_violation(struct raw *r, enum role_id id, uint32_t stag, uint64_t to,
			     uint64_t len)
{
	static uint8_t bytes[60000];

	memset(bytes, 0xdd, sizeof(bytes));
	switch (id) {
	case ROLE_garbage:
	case ROLE_slow_handshake:
	case ROLE_half_handshake:
	case ROLE_no_handshake:
		assert_int_equal(raw_send(r, bytes, 4096), 0);
		break;
	case ROLE_wrong_crc:
		assert_int_equal(raw_write(r, stag, to, bytes, 64), 0);
		assert_int_equal(raw_fpdu(r, bytes, 64, true), 0);
		break;
	case ROLE_oversized_message:
		record_segment(r, RDMAP_SEND, 0, 1, 0, 60000);
		break;
	case ROLE_wrong_msn:
		record_segment(r, RDMAP_SEND, 0, 0x80000000u, 0, 8);
		break;
	case ROLE_wrong_mo:
		record_segment(r, RDMAP_SEND, 0, 1, 0x7fffff00u, 8);
		break;
	case ROLE_wrong_queue:
		record_segment(r, RDMAP_SEND, 0x1234567, 1, 0, 8);
		break;
	case ROLE_wrong_stag:
		assert_int_equal(raw_write(r, stag ^ 0x55aa55aa, to, bytes, 64), 0);
		break;
	case ROLE_wrong_to:
		assert_int_equal(raw_write(r, stag, to + len - 63, bytes, 64), 0);
		break;
	case ROLE_too_many_reads:
		for (int i = 0; i < 64; i++)
			assert_int_equal(raw_read(r, stag, to, 65536), 0);
		break;
	case ROLE_message_flood:
		assert_int_equal(raw_message(r, bytes, 64), 0);
		break;
	case ROLE_flush_flood:
		assert_int_equal(raw_flush(r, stag, to, len, EXT_FLUSH_VISIBLE), 0);
		break;
	case ROLE_slow_write:
	case ROLE_half_write:
	case ROLE_write_flood:
	case ROLE_reset:
	case ROLES:
		assert_int_equal(raw_write(r, stag, to, bytes, 4096), 0);
		break;
	}
}

static void learn_role(enum role_id id, const struct raw_region *region)
{
	static struct raw recorder;
	struct role *role = &roles[id];
	int from;

	capture_begin(&recorder, &from);
	assert_int_equal(raw_send_request(&recorder, role->options), 0);
	role->request_len = capture_end(&recorder, from, role->request, sizeof(role->request));
	if (id == ROLE_half_handshake)
		role->request_len -= 3;
	if (id == ROLE_no_handshake)
		memset(role->request, 'x', role->request_len);
	capture_begin(&recorder, &from);
	record_violation(&recorder, id, region->stag, region->addr + region->len / 2,
			 region->len / 2);
	role->violation_len =
		capture_end(&recorder, from, role->violation, sizeof(role->violation));
	if (id == ROLE_half_write)
		role->violation_len /= 2;
}

/* --- the connections -------------------------------------------------------------------------- */

static void member_close(struct member *m, bool reset)
{
	struct linger linger = {.l_onoff = 1};

	if (reset)
		setsockopt(m->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(m->fd);
	m->fd = -1;
}

static void member_connect(struct member *m, uint64_t now)
{
	unsigned traits = roles[role_of(m)].traits;

	m->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (m->fd < 0)
		return;
	if (connect(m->fd, (struct sockaddr *)&target, sizeof(target)) && errno != EINPROGRESS) {
		member_close(m, false);
		return;
	}
	m->answered = false;
	m->request_sent = m->violation_sent = 0;
	m->closes_at = now + (traits & CROWD_SLOW ? SLOW_MS : CONNECTION_MS) * NSEC_PER_MS;
	if (!traits) /* a role without traits expects that the target closes the connection */
		m->closes_at = CLOCK_NEVER;
	counts[role_of(m)].connections++;
}

/* Send as many bytes as the role's traits permit. Returns true when all bytes have been sent. */
static bool member_send(struct member *m, const uint8_t *bytes, size_t len, size_t *sent)
{
	size_t n = roles[role_of(m)].traits & CROWD_SLOW ? 1 : len - *sent;
	ssize_t ret;

	if (*sent == len)
		return false;
	ret = send(m->fd, bytes + *sent, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	*sent += ret > 0 ? (size_t)ret : 0;
	return ret > 0 && *sent == len;
}

static void member_write(struct member *m)
{
	struct role *role = &roles[role_of(m)];

	member_send(m, role->request, role->request_len, &m->request_sent);
	if (!m->answered) /* a NO_REPLY role gets no answer, so it sends only these bytes */
		return;
	for (int i = 0; i < BURST; i++) {
		if (!member_send(m, role->violation, role->violation_len, &m->violation_sent))
			break;
		counts[role_of(m)].violations++;
		if (role->traits & CROWD_RESET) {
			member_close(m, true);
			return;
		}
		if (!(role->traits & CROWD_FLOOD))
			return;
		m->violation_sent = 0;
	}
}

/* The first answer is the MPA reply. */
static void member_read(struct member *m)
{
	unsigned traits = roles[role_of(m)].traits;
	uint8_t bytes[65536];
	ssize_t n;

	if (m->answered && (traits & CROWD_NO_READ))
		return;
	n = recv(m->fd, bytes, m->answered ? sizeof(bytes) : 1, MSG_DONTWAIT);
	if (n > 0)
		m->answered = !(traits & CROWD_NO_REPLY);
	if (n == 0 || (n < 0 && errno != EAGAIN)) {
		counts[role_of(m)].ended++;
		member_close(m, false);
	}
}

static void member_step(struct member *m, short events, uint64_t now)
{
	if (events & (POLLIN | POLLHUP | POLLERR))
		member_read(m);
	if (m->fd >= 0)
		member_write(m);
	if (m->fd >= 0 && now >= m->closes_at)
		member_close(m, roles[role_of(m)].traits & CROWD_NO_READ);
}

static bool connect_is_due(uint64_t begin, uint64_t now)
{
	uint64_t allowed = CROWD_SIZE + (now - begin) / NSEC_PER_MS * CONNECTS_PER_S / 1000,
		 connected = 0;

	for (int i = 0; i < ROLES; i++)
		connected += counts[i].connections;
	return connected < allowed;
}

static bool all_short_roles_were_ended(void)
{
	for (int i = 0; i < ROLES; i++)
		if (counts[i].is_short && !counts[i].ended)
			return false;
	return true;
}

static bool crowd_is_done(uint64_t now)
{
	return atomic_load(&done) && (now >= last_at || all_short_roles_were_ended());
}

static void *crowd_run(void *arg)
{
	uint64_t begin = clock_now_ns();
	struct pollfd p[CROWD_SIZE];

	for (uint64_t now = begin; !crowd_is_done(now); now = clock_now_ns()) {
		for (int i = 0; i < CROWD_SIZE; i++)
			p[i] = (struct pollfd){.fd = members[i].fd, .events = POLLIN};
		poll(p, CROWD_SIZE, 0);
		for (int i = 0; i < CROWD_SIZE; i++)
			if (members[i].fd >= 0)
				member_step(&members[i], p[i].revents, now);
			else if (connect_is_due(begin, now))
				member_connect(&members[i], now);
		usleep(1000);
	}
	for (int i = 0; i < CROWD_SIZE; i++)
		if (members[i].fd >= 0)
			member_close(&members[i], false);
	return NULL;
}

void crowd_start(const char *port, const struct raw *known)
{
	target = (struct sockaddr_in){.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				      .sin_port = htons((uint16_t)atoi(port))};
	for (int id = 0; id < ROLES; id++) {
		learn_role((enum role_id)id, &known->region[0]);
		counts[id] =
			(struct crowd_count){.name = roles[id].name, .is_short = !roles[id].traits};
	}
	for (int i = 0; i < CROWD_SIZE; i++)
		members[i].fd = -1;
	atomic_store(&done, false);
	assert_int_equal(pthread_create(&thread, NULL, crowd_run, NULL), 0);
}

const struct crowd_count *crowd_stop(int *n)
{
	last_at = clock_now_ns() + LAST_MS * NSEC_PER_MS;
	atomic_store(&done, true);
	pthread_join(thread, NULL);
	*n = ROLES;
	return counts;
}
