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
 * New connections a second, after the first one of each. More than the target's program accepts
 * would only show how long its backlog is.
 */
#define BIRTHS_PER_S (SYSTEM_SANITIZED ? 40 : 500)
#define LIFE_MS      400
#define SLOW_MS      4000
#define LAST_MS      20000 /* how long the target may take to end one of each */
#define BURST        64    /* sends of a flood in one turn */
#define DEED_MAX     70000 /* bytes */
#define HELLO_MAX    64

enum role_id {
#define X(name, wishes, nature) ROLE_##name,
	CROWD_ROLES(X)
#undef X
		ROLES
};

struct role {
	const char *name;
	unsigned wishes, nature;
	uint8_t hello[HELLO_MAX], deed[DEED_MAX];
	size_t hello_len, deed_len;
};

static struct role roles[ROLES] = {
#define X(name_, wishes_, nature_)                                                                 \
	[ROLE_##name_] = {.name = #name_, .wishes = (wishes_), .nature = (nature_)},
	CROWD_ROLES(X)
#undef X
};

static struct crowd_count counts[ROLES];
static struct member {
	int fd; /* -1: not born */
	bool answered;
	size_t hello_sent, deed_sent;
	uint64_t dies_at;
} members[CROWD_SIZE];
static struct sockaddr_in target;
static pthread_t thread;
static uint64_t last_at; /* when done */
static atomic_bool done;

static enum role_id role_of(const struct member *m)
{
	return (enum role_id)((m - members) % ROLES);
}

/* --- what they say ---------------------------------------------------------------------------- */

/* A raw peer whose words go into a role instead of out: capture_end() has them. */
static void capture_begin(struct raw *scribe, int *from)
{
	int fd[2], room = 4 * DEED_MAX;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	memset(scribe, 0, sizeof(*scribe));
	for (int i = 0; i < DDP_QN_COUNT; i++)
		scribe->msn[i] = DDP_FIRST_MSN;
	scribe->fd = fd[0];
	*from = fd[1];
}

static size_t capture_end(struct raw *scribe, int from, uint8_t *bytes, size_t size)
{
	size_t have = 0;
	ssize_t n;

	raw_close(scribe);
	while ((n = read(from, bytes + have, size - have)) > 0)
		have += (size_t)n;
	close(from);
	assert_true(have > 0 && have < size);
	return have;
}

static void say_segment(struct raw *r, enum rdmap_opcode op, uint32_t qn, uint32_t msn, uint32_t mo,
			size_t len)
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

static void say_deed(struct raw *r, enum role_id id, uint32_t stag, uint64_t to, uint64_t len)
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
		say_segment(r, RDMAP_SEND, 0, 1, 0, 60000);
		break;
	case ROLE_wrong_msn:
		say_segment(r, RDMAP_SEND, 0, 0x80000000u, 0, 8);
		break;
	case ROLE_wrong_mo:
		say_segment(r, RDMAP_SEND, 0, 1, 0x7fffff00u, 8);
		break;
	case ROLE_wrong_queue:
		say_segment(r, RDMAP_SEND, 0x1234567, 1, 0, 8);
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
	static struct raw scribe;
	struct role *role = &roles[id];
	int from;

	capture_begin(&scribe, &from);
	assert_int_equal(raw_send_request(&scribe, role->wishes), 0);
	role->hello_len = capture_end(&scribe, from, role->hello, sizeof(role->hello));
	if (id == ROLE_half_handshake)
		role->hello_len -= 3;
	if (id == ROLE_no_handshake)
		memset(role->hello, 'x', role->hello_len);
	capture_begin(&scribe, &from);
	say_deed(&scribe, id, region->stag, region->addr + region->len / 2, region->len / 2);
	role->deed_len = capture_end(&scribe, from, role->deed, sizeof(role->deed));
	if (id == ROLE_half_write)
		role->deed_len /= 2;
}

/* --- what they do ----------------------------------------------------------------------------- */

static void member_die(struct member *m, bool rudely)
{
	struct linger reset = {.l_onoff = 1};

	if (rudely)
		setsockopt(m->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(m->fd);
	m->fd = -1;
}

static void member_be_born(struct member *m, uint64_t now)
{
	unsigned nature = roles[role_of(m)].nature;

	m->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (m->fd < 0)
		return;
	if (connect(m->fd, (struct sockaddr *)&target, sizeof(target)) && errno != EINPROGRESS) {
		member_die(m, false);
		return;
	}
	m->answered = false;
	m->hello_sent = m->deed_sent = 0;
	m->dies_at = now + (nature & CROWD_SLOW ? SLOW_MS : LIFE_MS) * NSEC_PER_MS;
	if (!nature) /* the target is to end it */
		m->dies_at = CLOCK_NEVER;
	counts[role_of(m)].lives++;
}

/* As much as its nature has it; false: that is all for now. */
static bool member_say(struct member *m, const uint8_t *bytes, size_t len, size_t *sent)
{
	size_t n = roles[role_of(m)].nature & CROWD_SLOW ? 1 : len - *sent;
	ssize_t ret;

	if (*sent == len)
		return false;
	ret = send(m->fd, bytes + *sent, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	*sent += ret > 0 ? (size_t)ret : 0;
	return ret > 0 && *sent == len;
}

static void member_speak(struct member *m)
{
	struct role *role = &roles[role_of(m)];

	member_say(m, role->hello, role->hello_len, &m->hello_sent);
	if (!m->answered) /* shy ones are not spoken to, so that this is all they ever say */
		return;
	for (int i = 0; i < BURST; i++) {
		if (!member_say(m, role->deed, role->deed_len, &m->deed_sent))
			break;
		counts[role_of(m)].deeds++;
		if (role->nature & CROWD_RUDE) {
			member_die(m, true);
			return;
		}
		if (!(role->nature & CROWD_FLOOD))
			return;
		m->deed_sent = 0;
	}
}

/* The first answer is to the request. */
static void member_listen(struct member *m)
{
	unsigned nature = roles[role_of(m)].nature;
	uint8_t bytes[65536];
	ssize_t n;

	if (m->answered && (nature & CROWD_DEAF))
		return;
	n = recv(m->fd, bytes, m->answered ? sizeof(bytes) : 1, MSG_DONTWAIT);
	if (n > 0)
		m->answered = !(nature & CROWD_SHY);
	if (n == 0 || (n < 0 && errno != EAGAIN)) {
		counts[role_of(m)].ended++;
		member_die(m, false);
	}
}

static void member_step(struct member *m, short events, uint64_t now)
{
	if (events & (POLLIN | POLLHUP | POLLERR))
		member_listen(m);
	if (m->fd >= 0)
		member_speak(m);
	if (m->fd >= 0 && now >= m->dies_at)
		member_die(m, roles[role_of(m)].nature & CROWD_DEAF);
}

static bool birth_is_due(uint64_t begin, uint64_t now)
{
	uint64_t allowed = CROWD_SIZE + (now - begin) / NSEC_PER_MS * BIRTHS_PER_S / 1000, born = 0;

	for (int i = 0; i < ROLES; i++)
		born += counts[i].lives;
	return born < allowed;
}

static bool all_short_ones_were_ended(void)
{
	for (int i = 0; i < ROLES; i++)
		if (counts[i].is_short && !counts[i].ended)
			return false;
	return true;
}

static bool crowd_is_done(uint64_t now)
{
	return atomic_load(&done) && (now >= last_at || all_short_ones_were_ended());
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
			else if (birth_is_due(begin, now))
				member_be_born(&members[i], now);
		usleep(1000);
	}
	for (int i = 0; i < CROWD_SIZE; i++)
		if (members[i].fd >= 0)
			member_die(&members[i], false);
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
			(struct crowd_count){.name = roles[id].name, .is_short = !roles[id].nature};
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
