/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmemd --listen: initiators that have the secret, and other programs. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/poll.h"
#include "system/lib/check.h"
#include "system/lib/proc.h"
#include "system/rpmemd/peer.h"

#define WAIT_MS 20000

static struct proc daemon_proc;
static struct peer peer, others[12];
static char port[8];
static struct secret secret;
static char secret_path[4200];

static void write_secret(const char *text, mode_t mode)
{
	int fd;

	snprintf(secret_path, sizeof(secret_path), "%s", peer_path("secret"));
	unlink(secret_path);
	fd = open(secret_path, O_WRONLY | O_CREAT | O_EXCL, mode);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* Start rpmemd that listens on a free port and has a secret. The options end with NULL. */
static void listen_with(const char *const options[])
{
	const char *argv[32] = {SYSTEM_RPMEMD,   "--listen=127.0.0.1:0", "-c",
				"/dev/null",     "--log-file",           "-",
				"--poolset-dir", peer_folder(),          "--log-level",
				"notice",        "--secret-file",        NULL};
	const char *line;
	unsigned n = 11;

	write_secret("a secret of more than enough bytes\n", 0600);
	OK(secret_load(&secret, secret_path, NULL));
	argv[n++] = secret_path;
	for (unsigned i = 0; options && options[i] && n < 31; i++)
		argv[n++] = options[i];
	assert_int_equal(proc_start(&daemon_proc, argv, NULL), 0);
	line = proc_line(&daemon_proc, WAIT_MS);
	assert_non_null(line);
	assert_int_equal(sscanf(line, "listening at 127.0.0.1:%7s", port), 1);
}

static int teardown(void **state)
{
	peer_end(&peer);
	for (unsigned i = 0; i < ARRAY_LEN(others); i++)
		peer_end(&others[i]);
	if (daemon_proc.pid)
		proc_kill(&daemon_proc);
	memset(&daemon_proc, 0, sizeof(daemon_proc));
	peer_folder_remove();
	return 0;
}

/* Returns true if the other end closes within this time. */
static bool is_closed(const struct peer *p, int timeout_ms)
{
	uint64_t deadline = poll_deadline(timeout_ms);
	char bytes[256];

	for (;;) {
		ssize_t n = recv(p->in, bytes, sizeof(bytes), MSG_DONTWAIT);

		if (!n || (n < 0 && errno != EAGAIN))
			return true;
		if (n < 0 && poll_readable(p->in, deadline))
			return false;
	}
}

static void use_a_pool(struct peer *p, const char *name)
{
	peer_make_set(name, PEER_SIZE);
	if (peer_create(p, name, PEER_SIZE, 4))
		fail_msg("%s: %s", name, p->answer.text);
	assert_int_equal(peer_lane_up(p, 0), 0);
	assert_int_equal(peer_persist(p, 0, 4096, 64), 0);
	assert_int_equal(peer_lane_up(p, 3), 0);
	assert_int_equal(peer_persist(p, 3, 8192, 64), 0);
}

static void a_client_with_the_secret_uses_a_pool(void **state)
{
	struct wire_remove remove = {.flags = 0, .name = "a.set"};
	uint8_t buf[WIRE_BODY_MAX], zeros[WIRE_KEY] = {0};

	listen_with(NULL);
	assert_int_equal(peer_connect(&peer, port, &secret), 0);
	use_a_pool(&peer, "a.set");
	assert_memory_equal(peer.pool.lane_key, zeros, sizeof(zeros));
	assert_int_equal(peer_close(&peer, 0), WIRE_OK);
	peer_end(&peer);
	assert_int_equal(access(peer_path("a.set.part"), F_OK), 0);
	assert_int_equal(peer_connect(&peer, port, &secret), 0);
	assert_int_equal(peer_ask(&peer, WIRE_REMOVE, buf, wire_remove_encode(&remove, buf)),
			 WIRE_OK);
	assert_int_not_equal(access(peer_path("a.set.part"), F_OK), 0);
}

static void another_secret_reaches_no_pool(void **state)
{
	struct secret wrong;

	listen_with(NULL);
	wrong = secret;
	wrong.key[0] ^= 1;
	assert_int_equal(peer_connect(&peer, port, &wrong), EACCES);
	assert_true(is_closed(&peer, WAIT_MS));
	peer_end(&peer);
	assert_int_equal(peer_connect(&peer, port, &secret), 0);
}

static void without_a_proof_no_request_is_answered(void **state)
{
	struct wire_pool_request req = {.pool_size = 8192, .lanes = 1, .name = "a.set"};
	uint8_t buf[WIRE_BODY_MAX];

	listen_with(NULL);
	peer_make_set("a.set", PEER_SIZE);
	assert_int_equal(peer_connect(&peer, port, NULL), 0);
	assert_int_equal(peer.greeting.flags, WIRE_GREETING_PROVE);
	assert_int_equal(wire_stream_send(&peer.stream, WIRE_CREATE, buf,
					  wire_pool_request_encode(&req, buf),
					  poll_deadline(WAIT_MS)),
			 0);
	assert_true(is_closed(&peer, WAIT_MS));
	assert_int_not_equal(access(peer_path("a.set.part"), F_OK), 0);
}

static void a_silent_connection_is_closed(void **state)
{
	listen_with(NULL);
	assert_int_equal(peer_connect(&peer, port, NULL), 0);
	assert_true(is_closed(&peer, WAIT_MS));
}

static void frames_without_end_are_closed(void **state)
{
	static char junk[100000];

	listen_with(NULL);
	assert_int_equal(peer_connect(&peer, port, NULL), 0);
	memset(junk, 'x', sizeof(junk));
	send(peer.out, junk, sizeof(junk), MSG_NOSIGNAL);
	assert_true(is_closed(&peer, WAIT_MS));
	peer_end(&peer);
	assert_int_equal(peer_connect(&peer, port, &secret), 0);
}

static void slow_connections_keep_no_other_out(void **state)
{
	static const char *const options[] = {"--max-pending", "4", NULL};

	listen_with(options);
	/* One address is allowed to use a quarter of the places. A further connection replaces the
	 * oldest connection of the same address. */
	for (unsigned i = 0; i < ARRAY_LEN(others); i++)
		assert_int_equal(peer_connect(&others[i], port, NULL), 0);
	for (unsigned i = 0; i + 1 < ARRAY_LEN(others); i++)
		assert_true(is_closed(&others[i], WAIT_MS));
	assert_int_equal(peer_connect(&peer, port, &secret), 0);
	use_a_pool(&peer, "a.set");
}

static unsigned count_lines(const char *path)
{
	unsigned lines = 0;
	FILE *f = fopen(path, "r");
	int c;

	assert_non_null(f);
	while ((c = getc(f)) != EOF)
		lines += c == '\n';
	fclose(f);
	return lines;
}

static bool has_children(pid_t pid)
{
	char path[64];
	bool any;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	f = fopen(path, "r");
	if (!f)
		return false; /* the kernel does not provide this file */
	any = getc(f) != EOF;
	fclose(f);
	return any;
}

/* The daemon starts no process for a host without a proof, because honest hosts would have to wait
 * for this process. The log gets only a few lines, even for many such hosts. */
static void strangers_start_no_process_and_fill_no_log(void **state)
{
	static char log[4200];
	const char *const options[] = {"--log-file", log, NULL};
	struct secret wrong;

	snprintf(log, sizeof(log), "%s", peer_path("log"));
	listen_with(options);
	wrong = secret;
	wrong.key[0] ^= 1;
	for (unsigned i = 0; i < 150; i++) {
		int rc = peer_connect(&peer, port, i % 2 ? &wrong : NULL);

		assert_int_equal(rc, i % 2 ? EACCES : 0);
		if (i % 3 == 0)
			OK(send(peer.in, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL) < 0);
		assert_false(has_children(daemon_proc.pid));
		peer_end(&peer);
	}
	assert_int_equal(peer_connect(&peer, port, &secret), 0);
	use_a_pool(&peer, "a.set");
	assert_in_range(count_lines(log), 1, 60);
}

static void limits_hold(void **state)
{
	static const char *const options[] = {"--max-per-address", "2", NULL};

	listen_with(options);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(peer_connect(&others[i], port, &secret), 0);
	assert_int_equal(peer_connect(&peer, port, &secret), EBUSY);
	peer_end(&peer);
	/* When one connection has ended, there is a place for another. */
	peer_end(&others[0]);
	for (unsigned i = 0; i < 1000 && peer_connect(&peer, port, &secret) == EBUSY; i++) {
		peer_end(&peer);
		usleep(10000);
	}
	use_a_pool(&peer, "a.set");
}

static void the_number_of_pools_is_limited(void **state)
{
	static const char *const options[] = {"--max-pools", "1", NULL};

	listen_with(options);
	assert_int_equal(peer_connect(&others[0], port, &secret), 0);
	assert_int_equal(peer_connect(&peer, port, &secret), EBUSY);
}

/* A changed or repeated frame ends the session, but the pool is preserved. */
static void try_changed_frame(bool again)
{
	struct wire_deep m = {0, 4096};
	uint8_t body[WIRE_BODY_MAX], frame[WIRE_FRAME_MAX];
	size_t len;

	assert_int_equal(peer_connect(&peer, port, &secret), 0);
	assert_int_equal(peer_create(&peer, "a.set", PEER_SIZE, 1), WIRE_OK);
	assert_int_equal(peer_lane_up(&peer, 0), 0);
	len = wire_frame_encode(&peer.stream.tx, WIRE_DEEP, body, wire_deep_encode(&m, body),
				frame);
	if (again)
		assert_int_equal(send(peer.out, frame, len, MSG_NOSIGNAL), len);
	else
		frame[WIRE_HEADER] ^= 1;
	assert_int_equal(send(peer.out, frame, len, MSG_NOSIGNAL), len);
	assert_true(is_closed(&peer, WAIT_MS));
	peer_end(&peer);
	assert_int_equal(access(peer_path("a.set.part"), F_OK), 0);
	assert_int_equal(unlink(peer_path("a.set.part")), 0);
}

static void frames_cannot_be_changed_or_repeated(void **state)
{
	listen_with(NULL);
	peer_make_set("a.set", PEER_SIZE);
	try_changed_frame(false);
	try_changed_frame(true);
}

static void lanes_prove_themselves_here_too(void **state)
{
	struct wire_key zeros;
	uint16_t at;

	listen_with(NULL);
	peer_make_set("a.set", PEER_SIZE);
	assert_int_equal(peer_connect(&peer, port, &secret), 0);
	assert_int_equal(peer_create(&peer, "a.set", PEER_SIZE, 2), WIRE_OK);
	memset(&zeros, 0, sizeof(zeros));
	assert_int_equal(peer_dial(&peer, 0, &zeros, peer.pool.port), RPMA_CONN_REJECTED);
	assert_int_equal(peer_lanes(&peer, 1, 1), WIRE_OK);
	at = peer.answer.lanes.port;
	assert_int_equal(peer_lane_up(&peer, 0), 0);
	/*
	 * The port is still open for the other lane, but a repetition of the same proof is refused.
	 */
	assert_int_equal(peer_dial(&peer, 0, &peer.lane_key, at), RPMA_CONN_REJECTED);
}

static void volatile_memory_needs_permission(void **state)
{
	static const char *const allow[] = {"--allow-volatile", NULL};
	char dir[] = "/dev/shm/rpmemd-test-XXXXXX", path[128];

	if (!mkdtemp(dir))
		skip();
	snprintf(path, sizeof(path), "%s/p", dir);
	for (unsigned allowed = 0; allowed < 2; allowed++) {
		FILE *f;

		listen_with(allowed ? allow : NULL);
		f = fopen(peer_path("v.set"), "w");
		assert_non_null(f);
		fprintf(f, "PMEMPOOLSET\n%lu %s\nOPTION NOHDRS\n", PEER_SIZE, path);
		fclose(f);
		assert_int_equal(peer_connect(&peer, port, &secret), 0);
		assert_int_equal(peer_create(&peer, "v.set", PEER_SIZE, 1),
				 allowed ? WIRE_OK : WIRE_PROVNOSUP);
		assert_non_null(strstr(peer.answer.text, "volatile"));
		if (!allowed) /* no file of the pool exists */
			assert_int_not_equal(access(path, F_OK), 0);
		teardown(NULL);
	}
	unlink(path);
	rmdir(dir);
}

static void one_process_ends_without_the_others(void **state)
{
	char path[64], line[64] = "";
	pid_t child;
	FILE *f;

	listen_with(NULL);
	assert_int_equal(peer_connect(&others[0], port, &secret), 0);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", daemon_proc.pid, daemon_proc.pid);
	f = fopen(path, "r");
	if (!f)
		skip();
	assert_non_null(fgets(line, sizeof(line), f));
	fclose(f);
	child = (pid_t)atoi(line);
	assert_int_equal(peer_connect(&peer, port, &secret), 0);
	use_a_pool(&peer, "a.set");
	kill(child, SIGKILL);
	assert_true(is_closed(&others[0], WAIT_MS));
	assert_int_equal(peer_persist(&peer, 0, 4096, 64), 0);
	assert_int_equal(peer_connect(&others[1], port, &secret), 0);
}

static void sigterm_closes_the_pools_and_ends_it(void **state)
{
	enum rpma_conn_event event;
	int status;

	listen_with(NULL);
	assert_int_equal(peer_connect(&peer, port, &secret), 0);
	use_a_pool(&peer, "a.set");
	proc_signal(&daemon_proc, SIGTERM);
	status = proc_wait(&daemon_proc, WAIT_MS);
	daemon_proc.pid = 0;
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	assert_true(is_closed(&peer, WAIT_MS));
	OK(rpma_conn_next_event_timeout(peer.lanes[0].conn, WAIT_MS, &event));
	assert_int_not_equal(event, RPMA_CONN_ESTABLISHED);
	assert_int_equal(access(peer_path("a.set.part"), F_OK), 0);
}

static void a_new_secret_counts_at_once(void **state)
{
	struct secret old;

	listen_with(NULL);
	old = secret;
	write_secret("another one with enough bytes, too\n", 0600);
	proc_signal(&daemon_proc, SIGHUP);
	OK(secret_load(&secret, secret_path, NULL));
	assert_int_equal(peer_connect(&peer, port, &old), EACCES);
	peer_end(&peer);
	assert_int_equal(peer_connect(&peer, port, &secret), 0);
	use_a_pool(&peer, "a.set");
}

static int start_and_wait(const char *const argv[])
{
	int status;

	assert_int_equal(proc_start(&daemon_proc, argv, NULL), 0);
	status = proc_wait(&daemon_proc, WAIT_MS);
	daemon_proc.pid = 0;
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void it_does_not_start_without_a_good_secret(void **state)
{
	const char *argv[] = {
		SYSTEM_RPMEMD, "--listen=127.0.0.1:0", "-c",        "/dev/null", "--log-file",
		"-",           "--secret-file",        secret_path, NULL};

	write_secret("a secret of more than enough bytes\n", 0644);
	assert_int_equal(start_and_wait(argv), 1);
	write_secret("short\n", 0600);
	assert_int_equal(start_and_wait(argv), 1);
	unlink(secret_path);
	assert_int_equal(start_and_wait(argv), 1);
	argv[6] = NULL;
	assert_int_equal(start_and_wait(argv), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_teardown(name, teardown)
		TEST(a_client_with_the_secret_uses_a_pool),
		TEST(another_secret_reaches_no_pool),
		TEST(without_a_proof_no_request_is_answered),
		TEST(a_silent_connection_is_closed),
		TEST(frames_without_end_are_closed),
		TEST(slow_connections_keep_no_other_out),
		TEST(strangers_start_no_process_and_fill_no_log),
		TEST(limits_hold),
		TEST(the_number_of_pools_is_limited),
		TEST(frames_cannot_be_changed_or_repeated),
		TEST(lanes_prove_themselves_here_too),
		TEST(volatile_memory_needs_permission),
		TEST(one_process_ends_without_the_others),
		TEST(sigterm_closes_the_pools_and_ends_it),
		TEST(a_new_secret_counts_at_once),
		TEST(it_does_not_start_without_a_good_secret),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
