/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server records which bytes of a region its writers announced. Announcements must be in order
 * and in bounds, and no other client can change the record.
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/regions/running.h"

#define LENGTH 1000

static const struct hello_begin file = {.is_file = true, .length = LENGTH, .time_ns = 77};
static const struct hello_content whole = {HELLO_CONTENT_WHOLE, LENGTH, 77, {1, 2, 3}};

/* Returns the content of the first region that the server reports to a new client. */
static struct hello_content content_of(const struct running *r)
{
	struct session_opts opts = running_client(r, HELLO_LIST);
	struct hello_list list;
	struct session s;

	running_open(&s, &opts);
	assert_int_equal(session_list(&s, &list, NULL), 0);
	assert_string_equal(list.entries[0].region, "first");
	session_close(&s);
	return list.entries[0].content;
}

static void open_writer(const struct running *r, struct session *s)
{
	struct session_opts opts = running_client(r, HELLO_WRITE);

	running_open(s, &opts);
}

static void put(const struct running *r)
{
	struct session s;
	struct error err;

	open_writer(r, &s);
	if (session_put_begin(&s, &file, &err) || session_put_end(&s, &whole, &err))
		fail_msg("%s", err.text);
	session_close(&s);
}

static void follow_a_put(const struct secret *secret)
{
	struct hello_content content;
	struct running r;
	struct session s;

	running_init(&r, secret);
	running_start(&r);
	assert_int_equal(content_of(&r).state, HELLO_CONTENT_RAW);
	open_writer(&r, &s);
	assert_int_equal(s.region.content.state, HELLO_CONTENT_RAW);
	assert_int_equal(session_put_begin(&s, &file, NULL), 0);
	content = content_of(&r);
	assert_int_equal(content.state, HELLO_CONTENT_PARTIAL);
	assert_int_equal(content.length, LENGTH);
	assert_int_equal(content.time_ns, 77);
	assert_int_equal(access("one.rpma", F_OK), 0);
	assert_int_equal(session_put_end(&s, &whole, NULL), 0);
	session_close(&s);
	content = content_of(&r);
	assert_memory_equal(&content, &whole, sizeof(content));
	running_stop(&r);
	assert_int_equal(access("one.rpma", F_OK), -1);
}

static void a_file_is_partial_until_its_end_and_whole_behind_it(void **state)
{
	follow_a_put(NULL);
	follow_a_put(&running_secret);
}

static void a_writer_that_leaves_in_the_middle_leaves_no_whole_file(void **state)
{
	struct running r;
	struct session s;

	running_init(&r, NULL);
	running_start(&r);
	put(&r);
	open_writer(&r, &s);
	assert_int_equal(session_put_begin(&s, &file, NULL), 0);
	session_close(&s);
	running_assert_noted(&r, "Connection closed");
	assert_int_equal(content_of(&r).state, HELLO_CONTENT_PARTIAL);
	put(&r);
	assert_int_equal(content_of(&r).state, HELLO_CONTENT_WHOLE);
	running_stop(&r);
}

/* With a secret a reader can also send messages, all of which the server ignores. */
static void a_reader_changes_nothing(void **state)
{
	struct session_opts opts;
	struct hello_content content;
	struct running r;
	struct session s;

	for (int with_end = 0; with_end < 2; with_end++) {
		running_init(&r, &running_secret);
		running_start(&r);
		put(&r);
		opts = running_client(&r, HELLO_READ);
		running_open(&s, &opts);
		assert_memory_equal(&s.region.content, &whole, sizeof(whole));
		s.timeout_ms = 300;
		assert_int_not_equal(with_end ? session_put_end(&s, &whole, NULL)
					      : session_put_begin(&s, &file, NULL),
				     0);
		content = content_of(&r);
		assert_memory_equal(&content, &whole, sizeof(content));
		session_close(&s);
		running_stop(&r);
	}
}

/* The server must close the connection after one of these messages: the announcement `begin`, the
 * second announcement `again`, or the end `end`. NULL: not sent. */
static void expect_broken_off(const struct hello_begin *begin, const struct hello_begin *again,
			      const struct hello_content *end)
{
	struct running r;
	struct session s;
	struct error err;
	int rc = 0;

	running_init(&r, NULL);
	running_start(&r);
	open_writer(&r, &s);
	if (begin)
		rc = session_put_begin(&s, begin, &err);
	if (!rc && again)
		rc = session_put_begin(&s, again, &err);
	if (!rc && end)
		rc = session_put_end(&s, end, &err);
	assert_int_equal(rc, ERROR_FAILED);
	assert_int_not_equal(content_of(&r).state, HELLO_CONTENT_WHOLE);
	session_close(&s);
	put(&r); /* the server still serves other clients */
	running_stop(&r);
}

static void what_is_out_of_bounds_or_of_order_ends_the_connection(void **state)
{
	struct hello_begin bad[] = {file, file, file, file, file};
	struct hello_begin bytes = {.offset = 5, .length = LENGTH};
	struct hello_content longer = whole;

	bad[0].offset = 1; /* the announcement of a whole file must begin at offset 0 */
	bad[1].length = SIZE + 1;
	bad[2].length = HELLO_LENGTH_UNKNOWN - 1;
	bad[3] = (struct hello_begin){.offset = SIZE + 1, .length = 0};
	bad[4] = (struct hello_begin){.offset = SIZE, .length = 1};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		expect_broken_off(&bad[i], NULL, NULL);
	expect_broken_off(NULL, NULL, &whole);
	expect_broken_off(&file, &file, NULL);
	expect_broken_off(&bytes, NULL, &whole);
	longer.length++;
	expect_broken_off(&file, NULL, &longer);
	bad[0] = file;
	bad[0].length = HELLO_LENGTH_UNKNOWN;
	longer.length = SIZE + 1;
	expect_broken_off(&bad[0], NULL, &longer);
}

static void expect_begin(const struct running *r, const struct hello_begin *begin, int cause)
{
	struct session s;
	struct error err = {.cause = 0};

	open_writer(r, &s);
	assert_int_equal(session_put_begin(&s, begin, &err), cause ? ERROR_REFUSED : 0);
	assert_int_equal(err.cause, cause);
	session_close(&s);
}

static void a_file_has_its_range_for_itself(void **state)
{
	struct hello_begin behind = {.offset = LENGTH, .length = 10};
	struct hello_begin inside = {.offset = LENGTH - 1, .length = 1};
	struct running r;
	struct session s;

	running_init(&r, NULL);
	running_start(&r);
	open_writer(&r, &s);
	assert_int_equal(session_put_begin(&s, &file, NULL), 0);
	expect_begin(&r, &file, HELLO_BEING_WRITTEN);
	expect_begin(&r, &inside, HELLO_BEING_WRITTEN);
	expect_begin(&r, &behind, 0);
	assert_int_equal(session_put_end(&s, &whole, NULL), 0);
	session_close(&s);
	assert_int_equal(content_of(&r).state, HELLO_CONTENT_WHOLE);
	expect_begin(&r, &behind, 0);
	assert_int_equal(content_of(&r).state, HELLO_CONTENT_WHOLE);
	expect_begin(&r, &inside, 0);
	assert_int_equal(content_of(&r).state, HELLO_CONTENT_RAW);
	running_stop(&r);
}

static void a_range_of_bytes_belongs_to_one_writer(void **state)
{
	struct hello_begin bytes = {.offset = 100, .length = 100};
	struct hello_begin inside = {.offset = 199, .length = 1},
			   behind = {.offset = 200, .length = 1};
	struct hello_begin unknown = {.offset = 0, .length = HELLO_LENGTH_UNKNOWN};
	struct running r;
	struct session s;

	running_init(&r, NULL);
	running_start(&r);
	open_writer(&r, &s);
	assert_int_equal(session_put_begin(&s, &bytes, NULL), 0);
	expect_begin(&r, &inside, HELLO_BEING_WRITTEN);
	expect_begin(&r, &unknown, HELLO_BEING_WRITTEN);
	expect_begin(&r, &behind, 0);
	session_close(&s);
	expect_begin(&r, &inside, 0);
	running_stop(&r);
}

static void *close_later(void *session)
{
	usleep(100000);
	session_close(session);
	return NULL;
}

/* The connection of an interrupted writer may still exist for a moment when the next writer
 * begins. */
static void a_writer_waits_a_little_for_the_end_of_the_former(void **state)
{
	struct running r;
	struct session s;
	pthread_t thread;

	running_init(&r, NULL);
	running_start(&r);
	for (int i = 0; i < 3; i++) {
		open_writer(&r, &s);
		assert_int_equal(session_put_begin(&s, &file, NULL), 0);
		assert_int_equal(pthread_create(&thread, NULL, close_later, &s), 0);
		expect_begin(&r, &file, 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	running_stop(&r);
}

/* Claim the bytes from 100 to 200, as a client that had the claim `former`. Returns the claim. */
static struct claim_id claim_bytes(const struct running *r, struct claim_id former, int cause)
{
	struct hello_begin bytes = {.offset = 100, .length = 100, .former = former};
	struct error err = {.cause = 0};
	struct session s;

	open_writer(r, &s);
	assert_int_equal(session_put_begin(&s, &bytes, &err), cause ? ERROR_REFUSED : 0);
	assert_int_equal(err.cause, cause);
	session_close(&s);
	return s.claim;
}

static void a_claim_holds_until_another_writer_comes(void **state)
{
	struct hello_begin behind = {.offset = 200, .length = 100};
	struct claim_id none = {0}, first, again, wrong;
	struct running r;

	running_init(&r, &running_secret);
	running_start(&r);
	first = claim_bytes(&r, none, 0);
	assert_int_equal(first.generation, 1);
	assert_int_equal(access("one.rpma", F_OK), 0);
	wrong = first;
	wrong.key++;
	claim_bytes(&r, wrong, HELLO_TAKEN);
	wrong = first;
	wrong.generation++;
	claim_bytes(&r, wrong, HELLO_TAKEN);
	expect_begin(&r, &behind, 0); /* a second claim, of other bytes */
	again = claim_bytes(&r, first, 0);
	assert_memory_equal(&again, &first, sizeof(first));
	assert_int_equal(claim_bytes(&r, none, 0).generation, 3);
	claim_bytes(&r, first, HELLO_TAKEN);
	/* the refused claim used no number */
	assert_int_equal(claim_bytes(&r, none, 0).generation, 4);
	running_stop(&r);
}

/*
 * After a record is lost, numbers begin again at 1, so a claim with a smaller number may be newer.
 */
static void a_claim_of_a_lost_record_is_not_compared_by_its_number(void **state)
{
	struct hello_begin bytes = {.offset = 100, .length = 100, .former = {5, 77}};
	struct error err;
	struct running r;
	struct session s;

	running_init(&r, NULL);
	running_start(&r);
	claim_bytes(&r, (struct claim_id){0}, 0);
	open_writer(&r, &s);
	assert_int_equal(session_put_begin(&s, &bytes, &err), ERROR_REFUSED);
	assert_int_equal(err.cause, HELLO_TAKEN);
	assert_non_null(strstr(err.text, "does not know claim 5"));
	session_close(&s);
	running_stop(&r);
}

/* The client did not announce its writes, so it may have written anywhere, and every claim is
 * void. */
static void who_writes_unannounced_takes_all_claims(void **state)
{
	struct claim_id first;
	struct running r;
	struct session s;

	running_init(&r, NULL);
	running_start(&r);
	first = claim_bytes(&r, (struct claim_id){0}, 0);
	open_writer(&r, &s);
	assert_int_equal(session_confirm(&s, NULL), 0);
	session_close(&s);
	claim_bytes(&r, first, HELLO_TAKEN);
	running_stop(&r);
}

/* If the server cannot store the record of a claim, it refuses the claim, and never uses its number
 * again. */
static void a_claim_that_cannot_be_kept_is_refused(void **state)
{
	struct claim_id none = {0}, first;
	struct running r;

	running_init(&r, NULL);
	running_start(&r);
	first = claim_bytes(&r, none, 0);
	assert_int_equal(unlink("one.rpma") || mkdir("one.rpma", 0700), 0);
	assert_int_equal(claim_bytes(&r, none, HELLO_FILE_UNRECORDED).generation, 0);
	assert_int_equal(rmdir("one.rpma"), 0);
	assert_int_equal(claim_bytes(&r, none, 0).generation, 3);
	claim_bytes(&r, first, HELLO_TAKEN);
	running_stop(&r);
}

/* Even without a secret, a client can no longer write after its connection is closed. */
static void the_right_to_write_ends_with_its_connection(void **state)
{
	struct rpma_mr_remote *kept;
	struct running r;
	struct session s;

	running_init(&r, NULL);
	running_start(&r);
	open_writer(&r, &s);
	assert_int_equal(rpma_mr_remote_from_descriptor(s.region.mr, s.region.mr_len, &kept), 0);
	assert_int_equal(running_write(&s, kept, (char[8]){"first"}), 0);
	session_close(&s);
	running_assert_noted(&r, "Connection closed");
	open_writer(&r, &s);
	assert_int_not_equal(running_write(&s, kept, (char[8]){"second"}), 0);
	rpma_mr_remote_delete(&kept);
	session_close(&s);
	running_stop(&r);
}

/* A program that uses the region without the file interface writes like this. */
static void who_writes_unannounced_and_confirms_leaves_bytes(void **state)
{
	struct running r;
	struct session s;

	running_init(&r, NULL);
	running_start(&r);
	put(&r);
	open_writer(&r, &s);
	assert_int_equal(running_write(&s, s.remote, (char[8]){"bytes"}), 0);
	assert_int_equal(session_confirm(&s, NULL), 0);
	session_close(&s);
	assert_int_equal(content_of(&r).state, HELLO_CONTENT_RAW);
	running_stop(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_partial_until_its_end_and_whole_behind_it),
		cmocka_unit_test(a_writer_that_leaves_in_the_middle_leaves_no_whole_file),
		cmocka_unit_test(a_reader_changes_nothing),
		cmocka_unit_test(what_is_out_of_bounds_or_of_order_ends_the_connection),
		cmocka_unit_test(a_file_has_its_range_for_itself),
		cmocka_unit_test(a_range_of_bytes_belongs_to_one_writer),
		cmocka_unit_test(a_writer_waits_a_little_for_the_end_of_the_former),
		cmocka_unit_test(a_claim_holds_until_another_writer_comes),
		cmocka_unit_test(a_claim_of_a_lost_record_is_not_compared_by_its_number),
		cmocka_unit_test(who_writes_unannounced_takes_all_claims),
		cmocka_unit_test(a_claim_that_cannot_be_kept_is_refused),
		cmocka_unit_test(the_right_to_write_ends_with_its_connection),
		cmocka_unit_test(who_writes_unannounced_and_confirms_leaves_bytes),
	};
	char folder[] = "regions-content-XXXXXX";
	int rc;

	/* This test does not concern RDMA devices, so do not use one. */
	setenv("RPMA_PROVIDER", "softrnic", 1);
	if (!mkdtemp(folder) || chdir(folder))
		return 2;
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	if (chdir("..") || rmdir(folder))
		return 2;
	return rc;
}
