/* SPDX-License-Identifier: BSD-3-Clause */
/* The begin and the end of a session of rpmemd over a pair of pipes, as ssh provides them. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
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

static bool exists(const char *name)
{
	return !access(peer_path(name), F_OK);
}

static void ends_with(struct peer *p, int code)
{
	int status = peer_wait(p);

	if (!WIFEXITED(status) || WEXITSTATUS(status) != code)
		fail_msg("the daemon ends with status 0x%x instead of %d: %s", status, code,
			 peer_stderr(p));
}

/* Check that a part of the pool has these bytes, by reading the file of the part. */
static void part_has(const char *part, const uint8_t *bytes, off_t offset, size_t len)
{
	uint8_t *got = malloc(len);
	int fd = open(peer_path(part), O_RDONLY);

	assert_true(fd >= 0 && got);
	assert_int_equal(pread(fd, got, len, offset), len);
	assert_memory_equal(got, bytes, len);
	close(fd);
	free(got);
}

static void create(struct peer *p, const char *name, const char *const options[])
{
	peer_make_set(name, PEER_SIZE);
	peer_start(p, options);
	assert_int_equal(p->greeting.error, 0);
	if (peer_create(p, name, PEER_SIZE, 8))
		fail_msg("%s is not created: %s", name, p->answer.text);
}

static void what_is_persisted_is_in_the_pools_file(void **state)
{
	create(&peer, "a.set", NULL);
	assert_int_equal(peer.pool.method, WIRE_METHOD_NATIVE);
	assert_int_equal(peer.pool.lanes, 8);
	assert_string_equal(peer.pool.addr, "127.0.0.1");
	assert_int_equal(peer_lane_up(&peer, 0), 0);
	memset(peer.memory + 5000, 0x5a, 3000);
	assert_int_equal(peer_persist(&peer, 0, 5000, 3000), 0);
	part_has("a.set.part", peer.memory, 0, PEER_SIZE);
	assert_int_equal(peer_deep(&peer, 4096, 8192), WIRE_OK);
	assert_int_equal(peer_close(&peer, 0), WIRE_OK);
	ends_with(&peer, 0);
	part_has("a.set.part", peer.memory, 0, PEER_SIZE);
}

static void a_pool_is_opened_again_and_its_size_is_known(void **state)
{
	create(&peer, "a.set", NULL);
	assert_int_equal(peer_close(&peer, 0), WIRE_OK);
	ends_with(&peer, 0);
	peer_end(&peer);
	peer_start(&peer, NULL);
	assert_int_equal(peer_open(&peer, "a.set", PEER_SIZE + 4096, 1), WIRE_BADSIZE);
	peer_end(&peer);
	peer_start(&peer, NULL);
	assert_int_equal(peer_open(&peer, "a.set", 8192, 1), WIRE_OK);
	assert_int_equal(peer_lane_up(&peer, 0), 0);
	/* Only the requested part of the pool can be accessed. */
	assert_int_equal(peer_persist(&peer, 0, 0, 8192), 0);
	assert_int_not_equal(peer_persist(&peer, 0, 8192, 8), 0);
}

static void a_session_without_an_initiator_leaves_the_pool_that_was_used(void **state)
{
	create(&peer, "a.set", NULL);
	assert_int_equal(peer_lane_up(&peer, 0), 0);
	assert_int_equal(peer_persist(&peer, 0, 4096, 64), 0);
	close(peer.out);
	peer.out = -1;
	ends_with(&peer, 1);
	assert_true(exists("a.set.part"));
}

static void a_new_pool_that_was_never_used_goes_with_its_initiator(void **state)
{
	create(&peer, "a.set", NULL);
	assert_true(exists("a.set.part"));
	close(peer.out);
	peer.out = -1;
	ends_with(&peer, 1);
	assert_false(exists("a.set.part"));
	assert_true(exists("a.set"));
}

static void closing_removes_what_the_session_created(void **state)
{
	create(&peer, "a.set", NULL);
	assert_int_equal(peer_lane_up(&peer, 0), 0);
	assert_int_equal(peer_close(&peer, WIRE_CLOSE_REMOVE), WIRE_OK);
	ends_with(&peer, 0);
	assert_false(exists("a.set.part"));
}

static void a_signal_ends_it_in_good_order(void **state)
{
	create(&peer, "a.set", NULL);
	assert_int_equal(peer_lane_up(&peer, 0), 0);
	kill(peer.pid, SIGTERM);
	ends_with(&peer, 1);
	assert_true(exists("a.set.part"));
}

static void a_pool_in_use_is_busy(void **state)
{
	create(&peer, "a.set", NULL);
	peer_start(&other, NULL);
	assert_int_equal(peer_open(&other, "a.set", 8192, 1), WIRE_BUSY);
	assert_int_equal(other.answer.error, EWOULDBLOCK);
	assert_true(other.answer.text[0]);
	peer_end(&other);
	assert_int_equal(peer_close(&peer, 0), WIRE_OK);
	ends_with(&peer, 0);
	peer_start(&other, NULL);
	assert_int_equal(peer_open(&other, "a.set", 8192, 1), WIRE_OK);
}

static void what_is_missing_or_misnamed_is_named(void **state)
{
	static const struct {
		const char *name;
		unsigned status;
	} cases[] = {
		{"none.set", WIRE_NOEXIST}, {"/etc/passwd", WIRE_BADNAME},
		{"../a.set", WIRE_BADNAME}, {"sub/../../a.set", WIRE_BADNAME},
		{"..", WIRE_BADNAME},       {"none/none.set", WIRE_NOEXIST},
	};

	peer_make_set("a.set", PEER_SIZE);
	assert_int_equal(mkdir(peer_path("sub"), 0700), 0);
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		peer_start(&peer, NULL);
		if (peer_open(&peer, cases[i].name, 8192, 1) != cases[i].status)
			fail_msg("%s: status %u: %s", cases[i].name, peer.answer.status,
				 peer.answer.text);
		assert_true(peer.answer.text[0]);
		peer_end(&peer);
	}
}

static void a_second_pool_is_refused_and_the_first_one_stays(void **state)
{
	create(&peer, "a.set", NULL);
	peer_make_set("b.set", PEER_SIZE);
	assert_int_equal(peer_create(&peer, "b.set", PEER_SIZE, 1), WIRE_FATAL);
	assert_false(exists("b.set.part"));
	peer.pool.port = 0;
	assert_int_equal(peer_lanes(&peer, 0, 1), WIRE_OK);
	assert_int_equal(peer_dial(&peer, 0, &peer.lane_key, peer.answer.lanes.port),
			 RPMA_CONN_ESTABLISHED);
	assert_int_equal(peer_persist(&peer, 0, 4096, 64), 0);
}

static void bytes_that_are_no_protocol_end_it(void **state)
{
	static const char text[] = "GET / HTTP/1.1\r\n\r\n";
	uint8_t junk[WIRE_HEADER] = {0};

	peer_start(&peer, NULL);
	assert_int_equal(write(peer.out, text, sizeof(text)), sizeof(text));
	ends_with(&peer, 255);
	peer_end(&peer);

	/* A frame announces a length above the limit. */
	peer_start(&peer, NULL);
	wire_frame_encode(&(struct wire_seal){0}, WIRE_CLOSE, NULL, 0, junk);
	memset(junk + 8, 0xff, 4);
	assert_int_equal(write(peer.out, junk, sizeof(junk)), sizeof(junk));
	ends_with(&peer, 255);
	peer_end(&peer);

	/* The length of the body does not match the type of the request. */
	peer_start(&peer, NULL);
	assert_int_equal(wire_stream_send(&peer.stream, WIRE_OPEN, junk, 5, UINT64_MAX), 0);
	ends_with(&peer, 255);
	assert_non_null(strstr(peer_stderr(&peer), "malformed"));
}

static void a_startup_that_fails_says_why(void **state)
{
	static const struct {
		const char *options[4];
		unsigned error;
		const char *word;
	} cases[] = {
		{{"-c", "/nonexistent.conf"}, ENOENT, "/nonexistent.conf"},
		{{"--poolset-dir", "relative"}, EINVAL, "relative"},
		{{"--log-file", "/nonexistent/log"}, ENOENT, "/nonexistent/log"},
		{{"-c", "bad.conf"}, EINVAL, "bad.conf:2"},
	};
	FILE *f = fopen("bad.conf", "w");

	assert_non_null(f);
	fputs("# a line\nno-such-key = 1\n", f);
	fclose(f);
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		peer_start(&peer, cases[i].options);
		assert_int_equal(peer.greeting.error, cases[i].error);
		if (!strstr(peer.greeting.text, cases[i].word))
			fail_msg("'%s' does not say %s", peer.greeting.text, cases[i].word);
		ends_with(&peer, 1);
		peer_end(&peer);
	}
	unlink("bad.conf");
}

static void lanes_are_limited_by_open_files(void **state)
{
	struct rlimit few = {256, 256};

	peer_make_set("a.set", PEER_SIZE);
	peer_start(&peer, NULL);
	assert_int_equal(prlimit(peer.pid, RLIMIT_NOFILE, &few, NULL), 0);
	assert_int_equal(peer_create(&peer, "a.set", PEER_SIZE, 1024), WIRE_OK);
	assert_true(peer.pool.lanes >= 32 && peer.pool.lanes <= PEER_LANES);
	assert_non_null(strstr(peer.answer.text, "open files"));
	/* All granted lanes can be used. */
	for (unsigned i = 0; i < peer.pool.lanes; i++) {
		if (peer_lane_up(&peer, i))
			fail_msg("lane %u of %u: %s", i, peer.pool.lanes, peer_stderr(&peer));
		assert_int_equal(peer_persist(&peer, i, 4096, 64), 0);
	}
}

static void lanes_are_limited_by_the_configuration(void **state)
{
	const char *const options[] = {"--max-lanes", "3", NULL};

	peer_make_set("a.set", PEER_SIZE);
	peer_start(&peer, options);
	assert_int_equal(peer_create(&peer, "a.set", PEER_SIZE, 1024), WIRE_OK);
	assert_int_equal(peer.pool.lanes, 3);
	assert_int_equal(peer_lanes(&peer, 3, 1), WIRE_BADNLANES);
}

static void volatile_memory_is_served_with_a_warning(void **state)
{
	const char *const options[] = {"--log-level", "warn", NULL};
	char dir[] = "/dev/shm/rpmemd-test-XXXXXX", path[128];
	FILE *f;

	if (!mkdtemp(dir))
		skip();
	snprintf(path, sizeof(path), "%s/p", dir);
	f = fopen(peer_path("v.set"), "w");
	assert_non_null(f);
	fprintf(f, "PMEMPOOLSET\n%lu %s\nOPTION NOHDRS\n", PEER_SIZE, path);
	fclose(f);
	peer_start(&peer, options);
	assert_int_equal(peer_create(&peer, "v.set", PEER_SIZE, 1), WIRE_OK);
	assert_int_equal(peer.pool.durability, RPMA_DURABILITY_VOLATILE);
	assert_non_null(strstr(peer.answer.text, "volatile"));
	assert_int_equal(peer_lane_up(&peer, 0), 0);
	assert_int_equal(peer_persist(&peer, 0, 4096, 64), 0);
	assert_int_equal(peer_close(&peer, 0), WIRE_OK);
	ends_with(&peer, 0);
	assert_non_null(strstr(peer_stderr(&peer), "volatile"));
	unlink(path);
	rmdir(dir);
}

/* For a write beyond the limit the kernel also sends SIGXFSZ, which would end a process that does
 * not ignore this signal. */
static void a_limit_on_file_sizes_is_an_error_like_others(void **state)
{
	struct rlimit small = {1 << 20, 1 << 20};

	peer_make_set("a.set", PEER_SIZE);
	peer_start(&peer, NULL);
	assert_int_equal(prlimit(peer.pid, RLIMIT_FSIZE, &small, NULL), 0);
	assert_int_equal(peer_create(&peer, "a.set", PEER_SIZE, 1), WIRE_FATAL);
	assert_non_null(strstr(peer.answer.text, strerror(EFBIG)));
	assert_false(exists("a.set.part"));
}

static void parts_are_their_users_alone(void **state)
{
	mode_t old = umask(0);
	struct stat st;

	create(&peer, "a.set", NULL);
	umask(old);
	assert_int_equal(stat(peer_path("a.set.part"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_teardown(name, teardown)
		TEST(what_is_persisted_is_in_the_pools_file),
		TEST(a_pool_is_opened_again_and_its_size_is_known),
		TEST(a_session_without_an_initiator_leaves_the_pool_that_was_used),
		TEST(a_new_pool_that_was_never_used_goes_with_its_initiator),
		TEST(closing_removes_what_the_session_created),
		TEST(a_signal_ends_it_in_good_order),
		TEST(a_pool_in_use_is_busy),
		TEST(what_is_missing_or_misnamed_is_named),
		TEST(a_second_pool_is_refused_and_the_first_one_stays),
		TEST(bytes_that_are_no_protocol_end_it),
		TEST(a_startup_that_fails_says_why),
		TEST(lanes_are_limited_by_open_files),
		TEST(lanes_are_limited_by_the_configuration),
		TEST(volatile_memory_is_served_with_a_warning),
		TEST(a_limit_on_file_sizes_is_an_error_like_others),
		TEST(parts_are_their_users_alone),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
