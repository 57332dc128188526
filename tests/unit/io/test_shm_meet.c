/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ends set up rings in shared memory ("meet"). Some callers only claim to be one of the
 * ends. */
#include "lib/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softrnic/io/config.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/link_shm.h"
#include "softrnic/io/link_shm_callers.h"
#include "softrnic/io/link_shm_meet.h"
#include "softrnic/io/link_shm_socket.h"

#define RING   (64u << 10)
#define PACKET 48

static struct eng_source source;
static int source_fd;

static void nothing(struct eng_source *src, unsigned ready)
{
}

static void gone(struct eng_source *src)
{
}

/*
 * Returns true for a socket or memory file. Other files do not count: the engine's thread may be
 * reading its configuration.
 */
static bool is_ours(const char *target)
{
	return !strncmp(target, "socket:", 7) || !strncmp(target, "/memfd:", 7);
}

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		char target[64] = "";

		if (readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1) > 0)
			n += is_ours(target);
	}
	closedir(d);
	return n;
}

/* Wait until this many descriptors are open: a separate thread closes descriptors that a peer
 * passed. */
static void expect_fds(int n)
{
	for (int ms = 0; ms < 10000 && count_fds() != n; ms++)
		usleep(1000);
	assert_int_equal(count_fds(), n);
}

struct meeting {
	struct meet *i, *r; /* i: initiator; r: responder */
	uint8_t token[EXT_LINK_TOKEN];
	int fds;
};

static void meeting_open(struct meeting *m)
{
	m->fds = count_fds();
	m->i = meet_new(true, &source, 1000);
	m->r = meet_new(false, &source, 1000);
	assert_int_equal(meet_begin(m->r), MEET_SAY);
	assert_int_equal(meet_said(m->r, m->token), EXT_LINK_MEET);
}

static void meeting_close(struct meeting *m)
{
	meet_delete(m->i);
	meet_delete(m->r);
	expect_fds(m->fds);
}

/* Pass the step of one end on to the other. */
static enum meet_next pass(struct meet *from, enum ext_link_step step, struct meet *to)
{
	uint8_t token[EXT_LINK_TOKEN];

	assert_int_equal(meet_said(from, token), step);
	return meet_on_step(to, step, token);
}

/*
 * Go up to the step before the last: the responder has the peer's proof, and the initiator has sent
 * its own proof.
 */
static void meet_until_proof(struct meeting *m)
{
	assert_int_equal(meet_on_step(m->i, EXT_LINK_MEET, m->token), MEET_WAIT);
	assert_int_equal(meet_look(m->r), MEET_SAY);
	assert_int_equal(pass(m->r, EXT_LINK_MET, m->i), MEET_WAIT);
	assert_int_equal(meet_look(m->i), MEET_SAY);
}

static void both_ends_have_the_same_memory(void **state)
{
	struct shm_memory mi, mr;
	struct meeting m;
	struct ring w, r;
	struct iovec iov = {.iov_base = (char *)"through", .iov_len = 7};
	char got[8] = {0};
	struct iovec to = {.iov_base = got, .iov_len = 8};
	int fi, fr;

	meeting_open(&m);
	meet_until_proof(&m);
	assert_int_equal(pass(m.i, EXT_LINK_PROOF, m.r), MEET_DONE);
	assert_int_equal(meet_look(m.i), MEET_DONE);
	link_shm_free(meet_take(m.i, &mi, &fi));
	link_shm_free(meet_take(m.r, &mr, &fr));
	assert_ptr_not_equal(mi.base, mr.base);
	shm_memory_ring(&mi, 0, &w);
	shm_memory_ring(&mr, 0, &r);
	assert_int_equal(ring_write(&w, &iov, 1), 7);
	assert_int_equal(ring_read(&r, &to, 1), 7);
	assert_string_equal(got, "through");
	shm_socket_wake(fi);
	assert_int_equal(shm_socket_drain(fr), 1);
	assert_int_equal(shm_socket_drain(fr), 0);
	engine_remove_more(&source, fi);
	engine_remove_more(&source, fr);
	close(fi);
	assert_int_equal(shm_socket_drain(fr), -ECONNRESET);
	close(fr);
	shm_memory_free(&mi);
	shm_memory_free(&mr);
	meeting_close(&m);
}

/* The initiator denies a call that it did not make: the proof in its answer is all zeros. */
static void expect_denial(struct meet *i)
{
	static const uint8_t nobody[EXT_LINK_TOKEN];
	uint8_t token[EXT_LINK_TOKEN] = {1};

	assert_int_equal(meet_on_step(i, EXT_LINK_MET, token), MEET_SAY);
	assert_int_equal(meet_said(i, token), EXT_LINK_PROOF);
	assert_memory_equal(token, nobody, sizeof(token));
}

static void an_initiator_denies_calls_that_are_not_its_own(void **state)
{
	struct meeting m;

	meeting_open(&m);
	assert_int_equal(meet_on_step(m.i, EXT_LINK_MEET, m.token), MEET_WAIT);
	expect_denial(m.i);
	assert_int_equal(meet_look(m.r), MEET_SAY);
	expect_denial(m.i);
	assert_int_equal(pass(m.r, EXT_LINK_MET, m.i), MEET_WAIT);
	assert_int_equal(meet_look(m.i), MEET_SAY);
	assert_int_equal(pass(m.i, EXT_LINK_PROOF, m.r), MEET_DONE);
	assert_int_equal(meet_look(m.i), MEET_DONE);
	meeting_close(&m);
}

static void an_initiator_leaves_a_peer_that_never_knows_its_nonce(void **state)
{
	uint8_t wrong[EXT_LINK_TOKEN] = {1};
	struct meeting m;

	meeting_open(&m);
	assert_int_equal(meet_on_step(m.i, EXT_LINK_MEET, m.token), MEET_WAIT);
	for (int i = 0; i < SHM_CALLS_MAX; i++)
		expect_denial(m.i);
	assert_int_equal(meet_on_step(m.i, EXT_LINK_MET, wrong), MEET_FAILED);
	assert_int_equal(meet_why(m.i), SHM_WHY_UNPROVEN);
	meeting_close(&m);
}

static void a_responder_passes_no_memory_to_a_peer_without_its_nonce(void **state)
{
	uint8_t wrong[EXT_LINK_TOKEN] = {1};
	struct meeting m;

	meeting_open(&m);
	meet_until_proof(&m);
	assert_int_equal(meet_on_step(m.r, EXT_LINK_PROOF, wrong), MEET_WAIT);
	assert_int_equal(meet_look(m.i), MEET_FAILED);
	assert_int_equal(meet_why(m.i), SHM_WHY_CLOSED);
	meeting_close(&m);
}

/* --- callers that are not the peer ---------------------------------------------------------- */

/* Connect to the abstract socket. The test has to close the returned socket. */
static int call(const struct meeting *m, const void *bytes, size_t len)
{
	int fd = shm_socket_connect(m->token);

	assert_true(fd >= 0);
	assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), len);
	return fd;
}

/* Connect, and receive a nonce, like a program that has learned or guessed the socket's name. */
static int call_with_a_nonce(const struct meeting *m)
{
	struct shm_packet packet = shm_packet_of(SHM_PACKET_NONCE, (uint8_t[16]){6});
	int fd = call(m, "", 0);

	assert_int_equal(shm_socket_send(fd, &packet, -1), 0);
	return fd;
}

/* The responder asks its peer about each call. The peer denies all calls but its own. */
static void meet_after_others(struct meeting *m, unsigned asked)
{
	assert_int_equal(meet_on_step(m->i, EXT_LINK_MEET, m->token), MEET_WAIT);
	assert_int_equal(meet_look(m->r), MEET_SAY);
	while (asked-- > 0) {
		assert_int_equal(pass(m->r, EXT_LINK_MET, m->i), MEET_SAY);
		assert_int_equal(pass(m->i, EXT_LINK_PROOF, m->r), MEET_SAY);
	}
	assert_int_equal(pass(m->r, EXT_LINK_MET, m->i), MEET_WAIT);
	assert_int_equal(meet_look(m->i), MEET_SAY);
	assert_int_equal(pass(m->i, EXT_LINK_PROOF, m->r), MEET_DONE);
	assert_int_equal(meet_look(m->i), MEET_DONE);
}

static void a_call_that_is_nonsense_does_not_keep_the_peer_away(void **state)
{
	static const char nonsense[PACKET] = "softrinG\0\0\0\1";
	struct meeting m;
	int fd;

	for (size_t len = 0; len <= sizeof(nonsense); len += sizeof(nonsense) / 2) {
		meeting_open(&m);
		fd = call(&m, nonsense, len);
		if (len % 2 == 0)
			assert_int_equal(meet_look(m.r), MEET_WAIT);
		meet_after_others(&m, 0);
		close(fd);
		meeting_close(&m);
	}
}

static void a_caller_that_is_not_the_peer_does_not_keep_it_away(void **state)
{
	struct meeting m;
	int fd[3];

	meeting_open(&m);
	for (int i = 0; i < 3; i++)
		fd[i] = call_with_a_nonce(&m);
	meet_after_others(&m, 3);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
	meeting_close(&m);
}

/* The nonce that one caller got proves nothing for another caller. */
static void each_caller_gets_a_nonce_of_its_own(void **state)
{
	struct shm_packet first, second;
	struct meeting m;
	int fd[2];

	meeting_open(&m);
	fd[0] = call_with_a_nonce(&m);
	fd[1] = call_with_a_nonce(&m);
	assert_int_equal(meet_look(m.r), MEET_SAY);
	assert_int_equal(shm_socket_recv(fd[0], SHM_PACKET_NONCE, &first, NULL), 0);
	assert_int_equal(meet_on_step(m.r, EXT_LINK_PROOF, m.token), MEET_SAY);
	assert_int_equal(shm_socket_recv(fd[1], SHM_PACKET_NONCE, &second, NULL), 0);
	assert_memory_not_equal(first.nonce, second.nonce, sizeof(first.nonce));
	assert_int_equal(meet_on_step(m.r, EXT_LINK_PROOF, first.nonce), MEET_WAIT);
	close(fd[0]);
	close(fd[1]);
	meeting_close(&m);
}

static void silent_callers_take_few_descriptors_and_keep_no_other_away(void **state)
{
	enum { SILENT = 20 };
	struct meeting m;
	int fd[SILENT];

	meeting_open(&m);
	for (int i = 0; i < SILENT; i++)
		fd[i] = call(&m, "", 0);
	assert_int_equal(meet_look(m.r), MEET_WAIT);
	/*
	 * the open descriptors are the listener, and both ends of each call that is kept or that
	 * one end has closed
	 */
	assert_int_equal(count_fds(), m.fds + 1 + SILENT + SHM_CALLERS_MAX);
	meet_after_others(&m, 0);
	assert_int_equal(count_fds(), m.fds + SILENT + 2);
	for (int i = 0; i < SILENT; i++)
		close(fd[i]);
	meeting_close(&m);
}

static void a_responder_that_many_call_stays_on_tcp(void **state)
{
	enum meet_next next = MEET_WAIT;
	struct meeting m;
	int calls = 0;

	meeting_open(&m);
	while (next != MEET_FAILED) {
		close(call_with_a_nonce(&m));
		assert_true(calls++ <= SHM_CALLS_MAX);
		next = meet_look(m.r);
		if (next == MEET_SAY)
			next = meet_on_step(m.r, EXT_LINK_PROOF, m.token);
		assert_true(count_fds() <= m.fds + 1 + SHM_CALLERS_MAX);
	}
	assert_int_equal(calls, SHM_CALLS_MAX + 1);
	assert_int_equal(meet_why(m.r), SHM_WHY_STRANGERS);
	meeting_close(&m);
}

/* --- the steps ------------------------------------------------------------------------------ */

static void steps_out_of_turn_end_it(void **state)
{
	for (unsigned step = 0; step < 8; step++) {
		struct meeting m;

		meeting_open(&m);
		if (step != EXT_LINK_MEET)
			assert_int_equal(meet_on_step(m.i, step, m.token), MEET_FAILED);
		assert_int_equal(meet_on_step(m.r, step, m.token), MEET_FAILED);
		/* the responder takes no further step */
		assert_int_equal(meet_look(m.r), MEET_WAIT);
		meeting_close(&m);
	}
}

static void an_unknown_name_leaves_the_connection_as_it_is(void **state)
{
	uint8_t name[EXT_LINK_TOKEN] = {9};
	struct meeting m;

	meeting_open(&m);
	assert_int_equal(meet_on_step(m.i, EXT_LINK_MEET, name), MEET_FAILED);
	meeting_close(&m);
}

static void a_silent_peer_has_its_time(void **state)
{
	struct meeting m;

	meeting_open(&m);
	assert_false(meet_is_over_at(m.r, 999));
	assert_true(meet_is_over_at(m.r, 1000));
	meeting_close(&m);
}

static void a_peer_that_closes_at_any_step_is_left(void **state)
{
	struct meeting m;

	meeting_open(&m);
	close(shm_socket_connect(m.token)); /* the caller closes before it gets its nonce */
	assert_int_equal(meet_look(m.r), MEET_WAIT);
	meet_after_others(&m, 0);
	meeting_close(&m);

	meeting_open(&m);
	assert_int_equal(meet_on_step(m.i, EXT_LINK_MEET, m.token), MEET_WAIT);
	meet_delete(m.r); /* the responder ends before it accepts */
	m.r = NULL;
	assert_int_equal(meet_look(m.i), MEET_FAILED);
	meeting_close(&m);

	meeting_open(&m);
	meet_until_proof(&m);
	meet_delete(m.r); /* the caller closes before it gets the memory */
	m.r = NULL;
	assert_int_equal(meet_look(m.i), MEET_FAILED);
	meeting_close(&m);
}

/* --- the memory ----------------------------------------------------------------------------- */

/*
 * A listener of the test that the initiator accepts as its responder. Returns the initiator's end
 * of the socket.
 */
static int hostile_responder(struct meet *i)
{
	struct shm_packet packet, nonce = shm_packet_of(SHM_PACKET_NONCE, (uint8_t[16]){7});
	uint8_t name[EXT_LINK_TOKEN] = {3, 1};
	int listener = shm_socket_listen(name, 1), fd;

	assert_true(listener >= 0);
	assert_int_equal(meet_on_step(i, EXT_LINK_MEET, name), MEET_WAIT);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	assert_int_equal(shm_socket_recv(fd, SHM_PACKET_NONCE, &packet, NULL), 0);
	assert_int_equal(shm_socket_send(fd, &nonce, -1), 0);
	assert_int_equal(meet_look(i), MEET_WAIT);
	assert_int_equal(meet_on_step(i, EXT_LINK_MET, packet.nonce), MEET_SAY);
	return fd;
}

static int memory_file(unsigned flags, int seals, uint64_t len)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd < 0)
		return -1;
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* Pass this file to the initiator. Returns the initiator's decision. */
static enum meet_next offer_file(int file, uint64_t ring_size)
{
	struct shm_packet packet = shm_packet_of(SHM_PACKET_MEMORY, NULL);
	int before = count_fds();
	struct meet *i = meet_new(true, &source, 1000);
	int fd = hostile_responder(i);
	enum meet_next next;

	packet.ring_size = ring_size;
	assert_int_equal(shm_socket_send(fd, &packet, file), 0);
	next = meet_look(i);
	meet_delete(i);
	close(fd);
	expect_fds(before);
	if (file >= 0)
		close(file);
	return next;
}

#define ALL_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define LEN       (4096 + 2 * RING)

static void only_a_sealed_file_of_the_agreed_size_is_mapped(void **state)
{
	static const int lacking[] = {0, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SHRINK | F_SEAL_GROW,
				      F_SEAL_SHRINK | F_SEAL_SEAL};
	static const uint64_t sizes[] = {0,        1,        4096,          RING - 1,
					 2 * RING, 3 * RING, 1ull << 40,    UINT64_MAX,
					 RING / 2, 1u << 25, UINT64_MAX / 2};

	assert_int_equal(offer_file(memory_file(0, ALL_SEALS, LEN), RING), MEET_DONE);
	for (size_t i = 0; i < ARRAY_LEN(lacking); i++)
		assert_int_equal(offer_file(memory_file(0, lacking[i], LEN), RING), MEET_FAILED);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		assert_int_equal(offer_file(memory_file(0, ALL_SEALS, LEN), sizes[i]), MEET_FAILED);
	assert_int_equal(offer_file(memory_file(0, ALL_SEALS, LEN - 1), RING), MEET_FAILED);
	assert_int_equal(offer_file(memory_file(0, ALL_SEALS | F_SEAL_WRITE, LEN), RING),
			 MEET_FAILED);
	assert_int_equal(offer_file(-1, RING), MEET_FAILED);
	assert_int_equal(offer_file(open("/dev/zero", O_RDWR | O_CLOEXEC), RING), MEET_FAILED);
}

static void huge_pages_are_refused(void **state)
{
	int fd = memory_file(MFD_HUGETLB, ALL_SEALS, 2u << 20);

	if (fd < 0)
		skip();
	assert_int_equal(offer_file(fd, 512u << 10), MEET_FAILED);
}

/* If a packet has several descriptors, the receiver keeps none of them. */
static void surplus_descriptors_are_closed(void **state)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(5 * sizeof(int))];
	} control = {.bytes = {0}};
	uint8_t bytes[PACKET] = "softring\0\0\0\2";
	struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	int before = count_fds(), file = memory_file(0, ALL_SEALS, LEN), fds[5];
	struct meet *i = meet_new(true, &source, 1000);
	int fd = hostile_responder(i);

	for (int k = 0; k < 5; k++)
		fds[k] = file;
	bytes[18] = RING >> 8 & 0xff;
	bytes[17] = RING >> 16;
	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(&control.head), fds, sizeof(fds));
	assert_int_equal(sendmsg(fd, &msg, 0), PACKET);
	assert_int_equal(meet_look(i), MEET_FAILED);
	meet_delete(i);
	close(fd);
	close(file);
	expect_fds(before);
}

/* The receiver does not keep descriptors that arrive with a wake-up, and stops trusting the
 * sender. */
static void descriptors_with_a_wake_up_are_not_kept(void **state)
{
	struct shm_packet packet = shm_packet_of(SHM_PACKET_MEMORY, NULL);
	int pair[2], before;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	before = count_fds();
	assert_int_equal(shm_socket_send(pair[0], &packet, pair[0]), 0);
	assert_int_equal(shm_socket_drain(pair[1]), -ECONNRESET);
	expect_fds(before);
	close(pair[0]);
	close(pair[1]);
}

/* --- the user of the other process ---------------------------------------------------------- */

/* Returns true if a process of this user may connect. */
static bool permitted_as(uid_t uid)
{
	uint8_t name[EXT_LINK_TOKEN] = {8, (uint8_t)uid};
	int listener = shm_socket_listen(name, 1), fd, status;
	bool permitted;
	pid_t pid = fork();

	if (pid == 0)
		_exit(setuid(uid) || shm_socket_connect(name) < 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	permitted = shm_socket_is_permitted(fd);
	close(fd);
	close(listener);
	return permitted;
}

/* SOFTRNIC_SHM_UIDS is 4242,65534 in this test. */
static void only_our_user_and_those_that_are_listed_are_permitted(void **state)
{
	if (geteuid() != 0)
		skip();
	assert_true(permitted_as(0));
	assert_true(permitted_as(4242));
	assert_false(permitted_as(4243));
	/* the overflow uid is in the list, but is refused nevertheless */
	assert_false(permitted_as(config_get()->overflow_uid));
}

static void a_stranger_does_not_keep_the_peer_away(void **state)
{
	struct meeting m;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	meeting_open(&m);
	pid = fork();
	if (pid == 0)
		_exit(setuid(4243) || shm_socket_connect(m.token) < 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(meet_look(m.r), MEET_WAIT);
	meet_until_proof(&m);
	assert_int_equal(pass(m.i, EXT_LINK_PROOF, m.r), MEET_DONE);
	meeting_close(&m);
}

static enum meet_next begin_with_limit(int resource, rlim_t limit, struct meeting *m)
{
	struct rlimit before, now;
	enum meet_next next;

	m->r = meet_new(false, &source, 1000);
	assert_int_equal(getrlimit(resource, &before), 0);
	now = before;
	now.rlim_cur = limit;
	assert_int_equal(setrlimit(resource, &now), 0);
	next = meet_begin(m->r);
	assert_int_equal(setrlimit(resource, &before), 0);
	return next;
}

/* Leave descriptors for the application, and for connections that have only a TCP socket. */
static void half_of_the_descriptors_are_left(void **state)
{
	struct meeting m = {.fds = count_fds()};
	int next_fd = dup(0);

	close(next_fd);
	assert_int_equal(begin_with_limit(RLIMIT_NOFILE, 2 * (rlim_t)next_fd, &m), MEET_FAILED);
	assert_int_equal(meet_why(m.r), SHM_WHY_DESCRIPTORS);
	meeting_close(&m);
	assert_int_equal(begin_with_limit(RLIMIT_NOFILE, 2 * (rlim_t)next_fd + 2, &m), MEET_SAY);
	meeting_close(&m);
}

/* A file that exceeds the limit must not be made: SIGXFSZ would end the process. */
static void a_limit_for_files_is_not_run_into(void **state)
{
	struct rlimit before, now;
	struct meeting m;

	meeting_open(&m);
	meet_until_proof(&m);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	now = before;
	now.rlim_cur = RING;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
	assert_int_equal(pass(m.i, EXT_LINK_PROOF, m.r), MEET_FAILED);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(meet_why(m.r), SHM_WHY_FILE);
	meeting_close(&m);
}

/* Many connections get rings. The more rings exist, the shorter are the rings of the next
 * connection. */
static void rings_become_shorter_the_more_there_are(void **state)
{
	const struct config *conf = config_get();
	struct shm_memory memory[1024];
	uint64_t size, before = conf->shm_ring, all = 0;
	int n = 0, fd;

	assert_int_equal(shm_memory_ring_size(0), before);
	while (size = shm_memory_ring_size(0), n < 1024 && !shm_memory_new(size, &memory[n], &fd)) {
		assert_true(size == before || size == before / 2);
		before = size;
		all += 2 * size;
		close(fd);
		n++;
	}
	assert_true(n >= 64 && n < 1024);
	assert_true(all > conf->shm_max / 4 * 3 && all <= conf->shm_max);
	while (n > 0)
		shm_memory_free(&memory[--n]);
	assert_int_equal(shm_memory_ring_size(0), conf->shm_ring);
}

static void neither_end_gets_longer_rings_than_it_wishes(void **state)
{
	const uint64_t most = config_get()->shm_ring;

	assert_int_equal(shm_memory_ring_size(2 * most), most);
	assert_int_equal(shm_memory_ring_size(most / 2), most / 2);
	assert_int_equal(shm_memory_ring_size(SHM_RING_MIN), SHM_RING_MIN);
	assert_int_equal(shm_memory_ring_size(SHM_RING_MIN / 2),
			 most); /* a peer cannot request a size below the minimum */
	assert_int_equal(shm_memory_ring_size(most / 2 + 1), most);
	assert_int_equal(shm_memory_ring_size(UINT64_MAX), most);
}

static int open_source(void **state)
{
	source.ready = nothing;
	source.free = gone;
	source_fd = eventfd(0, EFD_CLOEXEC);
	return engine_add(&source, source_fd, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_have_the_same_memory),
		cmocka_unit_test(an_initiator_denies_calls_that_are_not_its_own),
		cmocka_unit_test(an_initiator_leaves_a_peer_that_never_knows_its_nonce),
		cmocka_unit_test(a_responder_passes_no_memory_to_a_peer_without_its_nonce),
		cmocka_unit_test(a_call_that_is_nonsense_does_not_keep_the_peer_away),
		cmocka_unit_test(a_caller_that_is_not_the_peer_does_not_keep_it_away),
		cmocka_unit_test(each_caller_gets_a_nonce_of_its_own),
		cmocka_unit_test(silent_callers_take_few_descriptors_and_keep_no_other_away),
		cmocka_unit_test(a_responder_that_many_call_stays_on_tcp),
		cmocka_unit_test(steps_out_of_turn_end_it),
		cmocka_unit_test(an_unknown_name_leaves_the_connection_as_it_is),
		cmocka_unit_test(a_silent_peer_has_its_time),
		cmocka_unit_test(a_peer_that_closes_at_any_step_is_left),
		cmocka_unit_test(only_a_sealed_file_of_the_agreed_size_is_mapped),
		cmocka_unit_test(huge_pages_are_refused),
		cmocka_unit_test(rings_become_shorter_the_more_there_are),
		cmocka_unit_test(neither_end_gets_longer_rings_than_it_wishes),
		cmocka_unit_test(surplus_descriptors_are_closed),
		cmocka_unit_test(descriptors_with_a_wake_up_are_not_kept),
		cmocka_unit_test(only_our_user_and_those_that_are_listed_are_permitted),
		cmocka_unit_test(a_stranger_does_not_keep_the_peer_away),
		cmocka_unit_test(half_of_the_descriptors_are_left),
		cmocka_unit_test(a_limit_for_files_is_not_run_into),
	};

	setenv("SOFTRNIC_SHM_UIDS", "4242,65534", 1);
	return cmocka_run_group_tests(tests, open_source, NULL);
}
