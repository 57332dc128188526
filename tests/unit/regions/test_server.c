/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server in a thread of this process, and its clients: what the server promises, and the errors
 * for its failures.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/regions/running.h"

static const struct secret theirs = {.key = {3, 2, 1}};

static void read_file(const char *name, char *text, size_t len)
{
	int fd = open(name, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, len), len);
	close(fd);
}

static void write_and_confirm(const struct secret *secret)
{
	struct session_opts opts;
	struct running r;
	struct session s;
	struct error err;
	char text[8];

	running_init(&r, secret);
	running_start(&r);
	opts = running_client(&r, HELLO_WRITE);
	running_open(&s, &opts);
	assert_int_equal(s.region.size, SIZE);
	assert_string_equal(s.region.region, "first");
	assert_int_equal(running_write(&s, s.remote, (char[8]){"written"}), 0);
	read_file("one", text, sizeof(text));
	assert_string_equal(text, "written");
	if (session_confirm(&s, &err))
		fail_msg("%s", err.text);
	running_assert_noted(&r, "from 127.0.0.1 connected to 'first'");
	session_close(&s);
	running_stop(&r);
}

static void what_is_written_is_in_the_file_and_confirmed(void **state)
{
	write_and_confirm(NULL);
	write_and_confirm(&running_secret);
}

static void regions_are_listed(void **state)
{
	struct session_opts opts;
	struct hello_list list;
	struct running r;
	struct session s;

	running_init(&r, &running_secret);
	running_start(&r);
	opts = running_client(&r, HELLO_LIST);
	running_open(&s, &opts);
	assert_int_equal(session_list(&s, &list, NULL), 0);
	assert_int_equal(list.count, 2);
	assert_string_equal(list.entries[1].region, "second");
	assert_int_equal(list.entries[1].size, SIZE);
	session_close(&s);
	running_stop(&r);
}

static void expect_refusal(const struct session_opts *opts, enum hello_status status)
{
	struct session s;
	struct error err;

	assert_int_equal(session_open(&s, opts, &err), ERROR_REFUSED);
	if (err.cause != (int)status)
		fail_msg("%d: %s", err.cause, err.text);
}

static void a_wrong_secret_is_refused_and_so_is_none(void **state)
{
	struct session_opts opts;
	struct running r;

	running_init(&r, &running_secret);
	running_start(&r);
	opts = running_client(&r, HELLO_WRITE);
	opts.secret = &theirs;
	expect_refusal(&opts, HELLO_SECRET_WRONG);
	running_assert_noted(&r, "does not know the secret");
	opts.secret = NULL;
	expect_refusal(&opts, HELLO_SECRET_NEEDED);
	running_assert_noted(&r, "offers no secret");
	running_stop(&r);
	running_init(&r, NULL);
	running_start(&r);
	opts = running_client(&r, HELLO_WRITE);
	opts.secret = &running_secret;
	expect_refusal(&opts, HELLO_SECRET_UNUSED);
	running_stop(&r);
}

static void clients_are_limited_in_all_and_from_one_address(void **state)
{
	struct session_opts opts;
	struct running r;
	struct session s;

	for (int per_address = 0; per_address < 2; per_address++) {
		running_init(&r, NULL);
		*(per_address ? &r.opts.max_per_address : &r.opts.max_clients) = 1;
		running_start(&r);
		opts = running_client(&r, HELLO_READ);
		running_open(&s, &opts);
		expect_refusal(&opts, per_address ? HELLO_BUSY_ADDRESS : HELLO_BUSY);
		session_close(&s);
		running_stop(&r);
	}
}

/* With a secret a registration belongs to the connection, so its descriptor cannot be used after
 * the connection's end. */
static void a_registration_ends_with_its_connection(void **state)
{
	struct rpma_mr_remote *old;
	struct session_opts opts;
	struct running r;
	struct session s;
	struct hello_reply first;
	char text[8];

	running_init(&r, &running_secret);
	running_start(&r);
	opts = running_client(&r, HELLO_WRITE);
	running_open(&s, &opts);
	assert_int_equal(running_write(&s, s.remote, (char[8]){"while"}), 0);
	first = s.region;
	session_close(&s);
	running_assert_noted(&r, "Connection closed");
	running_open(&s, &opts);
	assert_int_equal(rpma_mr_remote_from_descriptor(first.mr, first.mr_len, &old), 0);
	assert_int_not_equal(running_write(&s, old, (char[8]){"after"}), 0);
	rpma_mr_remote_delete(&old);
	session_close(&s);
	read_file("one", text, sizeof(text));
	assert_string_equal(text, "while");
	running_stop(&r);
}

static void a_file_that_lost_its_name_refuses_writers(void **state)
{
	struct session_opts opts;
	struct running r;
	struct session s;
	struct error err;

	running_init(&r, NULL);
	running_start(&r);
	opts = running_client(&r, HELLO_WRITE);
	running_open(&s, &opts);
	assert_int_equal(rename("one", "elsewhere"), 0);
	assert_int_equal(session_confirm(&s, &err), ERROR_REFUSED);
	assert_int_equal(err.cause, HELLO_FILE_REMOVED);
	session_close(&s);
	expect_refusal(&opts, HELLO_FILE_REMOVED);
	opts.region = "second";
	running_open(&s, &opts);
	session_close(&s);
	running_stop(&r);
	assert_int_equal(unlink("elsewhere"), 0);
}

static void expect_no_server(const struct running *r, enum error_kind kind, int cause)
{
	struct server *server;
	struct error err;

	assert_int_equal(server_new(&r->opts, &server, &err), kind);
	if (err.cause != cause)
		fail_msg("%d: %s", err.cause, err.text);
	assert_null(server);
	assert_int_equal(access("one", F_OK), -1);
	assert_int_equal(access("two", F_OK), -1);
}

static void a_server_that_fails_to_start_leaves_nothing(void **state)
{
	struct running r;

	running_init(&r, NULL);
	r.files[1].path = "nowhere/two";
	expect_no_server(&r, ERROR_LOCAL, ENOENT);
	running_init(&r, NULL);
	r.opts.size = UINT64_C(1) << 60;
	expect_no_server(&r, ERROR_LOCAL, ENOSPC);
	running_init(&r, NULL);
	strcpy(r.opts.listen.host, "192.0.2.1");
	expect_no_server(&r, ERROR_LOCAL, EADDRNOTAVAIL);
	running_init(&r, NULL);
	r.files[1].name = "first";
	expect_no_server(&r, ERROR_ARGUMENT, EEXIST);
	running_init(&r, NULL);
	r.files[1].name = "a name that is longer than any region may have it";
	expect_no_server(&r, ERROR_ARGUMENT, EINVAL);
	running_init(&r, NULL);
	r.opts.file_count = 0;
	expect_no_server(&r, ERROR_ARGUMENT, EINVAL);
}

static void two_servers_serve_in_one_process(void **state)
{
	struct session_opts opts;
	struct session s, t;
	struct running a, b;

	running_init(&a, NULL);
	running_init(&b, &running_secret);
	b.files[0] = (struct server_file){.path = "three", .name = "first"};
	b.opts.file_count = 1;
	running_start(&a);
	running_start(&b);
	opts = running_client(&a, HELLO_WRITE);
	running_open(&s, &opts);
	opts = running_client(&b, HELLO_WRITE);
	running_open(&t, &opts);
	assert_int_equal(running_write(&s, s.remote, (char[8]){"to a"}), 0);
	assert_int_equal(running_write(&t, t.remote, (char[8]){"to b"}), 0);
	session_close(&s);
	session_close(&t);
	running_stop(&b);
	assert_int_equal(access("three", F_OK), -1);
	running_stop(&a);
	assert_int_equal(access("one", F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_in_the_file_and_confirmed),
		cmocka_unit_test(regions_are_listed),
		cmocka_unit_test(a_wrong_secret_is_refused_and_so_is_none),
		cmocka_unit_test(clients_are_limited_in_all_and_from_one_address),
		cmocka_unit_test(a_registration_ends_with_its_connection),
		cmocka_unit_test(a_file_that_lost_its_name_refuses_writers),
		cmocka_unit_test(a_server_that_fails_to_start_leaves_nothing),
		cmocka_unit_test(two_servers_serve_in_one_process),
	};
	char folder[] = "regions-server-XXXXXX";
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
