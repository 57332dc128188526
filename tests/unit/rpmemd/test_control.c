/* SPDX-License-Identifier: BSD-3-Clause */
/* Which requests the daemon permits in each state: all combinations. */
#include "lib/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rpmemd/control.h"

/* A service that counts its calls, and that fails if a test requests it. */
static struct {
	enum wire_status result;
	unsigned opened, created, set, lanes, deep, closed, removed_pool, removed;
	struct wire_pool_request request;
} fake;

static enum wire_status fake_result(struct error *err)
{
	if (fake.result)
		error_set(err, ERROR_LOCAL, ENOSPC, "the fake failed");
	return fake.result;
}

static enum wire_status fake_open(void *arg, const struct wire_pool_request *req, bool create,
				  struct wire_pool_answer *answer, struct error *err)
{
	fake.request = *req;
	fake.opened += !create;
	fake.created += create;
	answer->lanes = req->lanes < 4 ? req->lanes : 4;
	answer->method = WIRE_METHOD_NATIVE;
	answer->port = 1;
	return fake_result(err);
}

static enum wire_status fake_set_attr(void *arg, const struct wire_attr *attr, struct error *err)
{
	fake.set++;
	return fake_result(err);
}

static enum wire_status fake_lanes(void *arg, const struct wire_lanes *lanes, uint16_t *port,
				   struct error *err)
{
	fake.lanes++;
	*port = 2;
	return fake_result(err);
}

static enum wire_status fake_deep(void *arg, const struct wire_deep *range, struct error *err)
{
	fake.deep++;
	return fake_result(err);
}

static enum wire_status fake_close(void *arg, bool remove, struct error *err)
{
	fake.closed++;
	fake.removed_pool += remove;
	return fake_result(err);
}

static enum wire_status fake_remove(void *arg, const struct wire_remove *what, struct error *err)
{
	fake.removed++;
	return fake_result(err);
}

static const struct control_service fake_service = {fake_open, fake_set_attr, fake_lanes,
						    fake_deep, fake_close,    fake_remove};

static struct control control;
static struct wire_answer answer;
static uint8_t buf[WIRE_BODY_MAX];

static int setup(void **state)
{
	memset(&fake, 0, sizeof(fake));
	control_init(&control, &fake_service, NULL);
	return 0;
}

static bool give(enum wire_type type, size_t len)
{
	struct wire_frame frame = {.type = (uint8_t)type, .body = buf, .len = len};
	bool ok = control_on_frame(&control, &frame, &answer);

	if (ok)
		assert_int_equal(answer.request, type);
	return ok;
}

static bool give_pool(enum wire_type type, const char *name, uint64_t size, uint32_t lanes)
{
	struct wire_pool_request req = {
		.pool_size = size, .lanes = lanes, .method = WIRE_METHOD_NATIVE};

	snprintf(req.name, sizeof(req.name), "%s", name);
	return give(type, wire_pool_request_encode(&req, buf));
}

static bool give_set_attr(void)
{
	struct wire_set_attr m = {.has_attr = true};

	return give(WIRE_SET_ATTR, wire_set_attr_encode(&m, buf));
}

static bool give_lanes(uint32_t first, uint32_t count)
{
	struct wire_lanes m = {first, count};

	return give(WIRE_LANES, wire_lanes_encode(&m, buf));
}

static bool give_deep(uint64_t offset, uint64_t length)
{
	struct wire_deep m = {offset, length};

	return give(WIRE_DEEP, wire_deep_encode(&m, buf));
}

static bool give_close(uint32_t flags)
{
	struct wire_close m = {flags};

	return give(WIRE_CLOSE, wire_close_encode(&m, buf));
}

static bool give_remove(void)
{
	struct wire_remove m = {.name = "x"};

	return give(WIRE_REMOVE, wire_remove_encode(&m, buf));
}

static void a_pool_is_opened_used_and_closed(void **state)
{
	assert_true(give_pool(WIRE_OPEN, "a.set", 8192, 9));
	assert_int_equal(answer.status, WIRE_OK);
	assert_int_equal(answer.pool.lanes, 4);
	assert_string_equal(fake.request.name, "a.set");
	assert_true(give_lanes(1, 3));
	assert_int_equal(answer.lanes.port, 2);
	assert_true(give_set_attr());
	assert_true(give_deep(0, 8192));
	assert_int_equal(answer.status, WIRE_OK);
	assert_true(give_close(0));
	assert_true(control.is_over);
	assert_int_equal(fake.opened + fake.lanes + fake.set + fake.deep + fake.closed, 5);
	assert_int_equal(fake.removed_pool, 0);
}

static void before_a_pool_nothing_of_it_is_done(void **state)
{
	assert_true(give_set_attr());
	assert_int_equal(answer.status, WIRE_FATAL);
	assert_true(give_lanes(0, 1));
	assert_int_equal(answer.status, WIRE_FATAL);
	assert_true(give_deep(0, 1));
	assert_int_equal(answer.status, WIRE_FATAL);
	assert_true(answer.text[0]);
	assert_int_equal(fake.set + fake.lanes + fake.deep, 0);
	assert_true(give_close(0));
	assert_int_equal(answer.status, WIRE_OK);
	assert_int_equal(fake.closed, 0);
}

static void there_is_no_second_pool(void **state)
{
	static const enum wire_type types[] = {WIRE_CREATE, WIRE_OPEN};

	for (unsigned first = 0; first < 2; first++)
		for (unsigned fails = 0; fails < 2; fails++)
			for (unsigned second = 0; second < 2; second++) {
				setup(NULL);
				fake.result = fails ? WIRE_BUSY : WIRE_OK;
				assert_true(give_pool(types[first], "a", 8192, 1));
				assert_int_equal(answer.status, fake.result);
				fake.result = WIRE_OK;
				assert_true(give_pool(types[second], "a", 8192, 1));
				assert_int_equal(answer.status, WIRE_FATAL);
				assert_int_equal(fake.opened + fake.created, 1);
				assert_true(give_remove());
				assert_int_equal(answer.status, WIRE_FATAL);
				assert_int_equal(fake.removed, 0);
			}
}

static void requests_without_sense_are_refused(void **state)
{
	assert_true(give_pool(WIRE_CREATE, "", 8192, 1));
	assert_int_equal(answer.status, WIRE_BADNAME);
	assert_true(give_pool(WIRE_CREATE, "a", 0, 1));
	assert_int_equal(answer.status, WIRE_BADSIZE);
	assert_true(give_pool(WIRE_OPEN, "a", 8192, 0));
	assert_int_equal(answer.status, WIRE_BADNLANES);
	assert_int_equal(fake.opened + fake.created, 0);
	assert_true(give_pool(WIRE_OPEN, "a", 8192, 1));
	assert_int_equal(answer.status, WIRE_OK);
}

static void lanes_and_ranges_stay_within_what_was_granted(void **state)
{
	static const uint32_t lanes[][2] = {{0, 0},          {4, 1},          {0, 5}, {3, 2},
					    {UINT32_MAX, 2}, {1, UINT32_MAX}, {4, 0}};
	static const uint64_t ranges[][2] = {
		{0, 8193}, {8193, 0}, {8192, 1}, {UINT64_MAX, 2}, {1, UINT64_MAX}};

	assert_true(give_pool(WIRE_OPEN, "a", 8192, 4));
	for (unsigned i = 0; i < ARRAY_LEN(lanes); i++) {
		assert_true(give_lanes(lanes[i][0], lanes[i][1]));
		assert_int_equal(answer.status, WIRE_BADNLANES);
	}
	for (unsigned i = 0; i < ARRAY_LEN(ranges); i++) {
		assert_true(give_deep(ranges[i][0], ranges[i][1]));
		assert_int_equal(answer.status, WIRE_BADSIZE);
	}
	assert_int_equal(fake.lanes + fake.deep, 0);
}

static void only_its_creator_removes_a_pool_by_closing(void **state)
{
	assert_true(give_pool(WIRE_OPEN, "a", 8192, 1));
	assert_true(give_close(WIRE_CLOSE_REMOVE));
	assert_int_equal(answer.status, WIRE_FATAL);
	assert_false(control.is_over);
	assert_int_equal(fake.closed, 0);
	assert_true(give_close(0));
	assert_true(control.is_over);

	setup(NULL);
	assert_true(give_pool(WIRE_CREATE, "a", 8192, 1));
	assert_true(give_close(WIRE_CLOSE_REMOVE));
	assert_int_equal(answer.status, WIRE_OK);
	assert_int_equal(fake.removed_pool, 1);
}

static void a_failed_close_is_answered_and_over(void **state)
{
	assert_true(give_pool(WIRE_OPEN, "a", 8192, 1));
	fake.result = WIRE_FATAL;
	assert_true(give_close(0));
	assert_int_equal(answer.status, WIRE_FATAL);
	assert_int_equal(answer.error, ENOSPC);
	assert_string_equal(answer.text, "the fake failed");
	assert_true(control.is_over);
	assert_false(give_close(0));
}

static void removal_needs_no_pool(void **state)
{
	assert_true(give_remove());
	assert_int_equal(answer.status, WIRE_OK);
	assert_true(give_remove());
	assert_int_equal(fake.removed, 2);
}

static void what_is_no_request_ends_the_session(void **state)
{
	memset(buf, 0xff, sizeof(buf));
	for (unsigned type = 0; type < 256; type++) {
		assert_false(give((enum wire_type)type, 0));
		assert_false(give((enum wire_type)type, 3));
		assert_false(give((enum wire_type)type, sizeof(buf)));
	}
	assert_int_equal(fake.opened + fake.created + fake.closed + fake.removed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_pool_is_opened_used_and_closed, setup),
		cmocka_unit_test_setup(before_a_pool_nothing_of_it_is_done, setup),
		cmocka_unit_test_setup(there_is_no_second_pool, setup),
		cmocka_unit_test_setup(requests_without_sense_are_refused, setup),
		cmocka_unit_test_setup(lanes_and_ranges_stay_within_what_was_granted, setup),
		cmocka_unit_test_setup(only_its_creator_removes_a_pool_by_closing, setup),
		cmocka_unit_test_setup(a_failed_close_is_answered_and_over, setup),
		cmocka_unit_test_setup(removal_needs_no_pool, setup),
		cmocka_unit_test_setup(what_is_no_request_ends_the_session, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
