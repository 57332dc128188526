/* SPDX-License-Identifier: BSD-3-Clause */
/* A server in a thread of this process and its clients: what is promised, and failures that come
 * back as errors. */
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

#include "export/server.h"
#include "session/session.h"

#define SIZE       (1u << 20)
#define TIMEOUT_MS 20000

static const struct secret ours = {.key = {1, 2, 3}}, theirs = {.key = {3, 2, 1}};

struct running {
	struct server_file files[2];
	struct server_opts opts;
	struct server *server;
	pthread_t thread;
	int stop_fd;
	pthread_mutex_t lock;
	char notes[8192];
};

static void keep_note(void *arg, const char *text)
{
	struct running *r = arg;
	size_t len;

	pthread_mutex_lock(&r->lock);
	len = strlen(r->notes);
	snprintf(r->notes + len, sizeof(r->notes) - len, "%s\n", text);
	pthread_mutex_unlock(&r->lock);
}

static void assert_noted(struct running *r, const char *text)
{
	bool found = false;

	for (int i = 0; i < 1000 && !found; i++) {
		usleep(i ? 10000 : 0);
		pthread_mutex_lock(&r->lock);
		found = strstr(r->notes, text);
		pthread_mutex_unlock(&r->lock);
	}
	if (!found)
		fail_msg("nobody noted '%s': %s", text, r->notes);
}

static void running_init(struct running *r, const struct secret *secret)
{
	*r = (struct running){.files = {{"one", "first"}, {"two", "second"}}};
	r->opts = (struct server_opts){.listen = {"127.0.0.1", "0"},
				       .files = r->files,
				       .file_count = 2,
				       .size = SIZE,
				       .create = true,
				       .allow_volatile = true,
				       .max_clients = 8,
				       .max_per_address = 8,
				       .secret = secret,
				       .note = keep_note,
				       .note_arg = r,
				       .verbose = true};
	pthread_mutex_init(&r->lock, NULL);
}

static void *run_server(void *arg)
{
	struct running *r = arg;
	struct pollfd fds[] = {{.fd = r->stop_fd, .events = POLLIN},
			       {.fd = server_get_fd(r->server), .events = POLLIN}};
	int next_ms;

	while (!fds[0].revents) {
		assert_int_equal(server_step(r->server, &next_ms, NULL), 0);
		poll(fds, 2, next_ms);
	}
	return NULL;
}

static void start(struct running *r)
{
	struct error err;

	if (server_new(&r->opts, &r->server, &err))
		fail_msg("%s", err.text);
	r->stop_fd = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(pthread_create(&r->thread, NULL, run_server, r), 0);
}

static void stop(struct running *r)
{
	assert_int_equal(eventfd_write(r->stop_fd, 1), 0);
	assert_int_equal(pthread_join(r->thread, NULL), 0);
	server_delete(&r->server, false);
	close(r->stop_fd);
	pthread_mutex_destroy(&r->lock);
}

static struct session_opts client_of(const struct running *r, enum hello_access access)
{
	return (struct session_opts){.server = *server_get_address(r->server),
				     .region = "first",
				     .access = access,
				     .depth = 8,
				     .timeout_ms = TIMEOUT_MS,
				     .secret = r->opts.secret};
}

static void open_session(struct session *s, const struct session_opts *opts)
{
	struct error err;

	if (session_open(s, opts, &err))
		fail_msg("%s", err.text);
}

/* 0 when the word has arrived. */
static int write_word(struct session *s, struct rpma_mr_remote *dst, char word[8])
{
	struct rpma_mr_local *mr;
	int rc;

	assert_int_equal(session_register(s, word, 8, &mr, NULL), 0);
	rc = rpma_write(s->conn, dst, 0, mr, 0, 8, RPMA_F_COMPLETION_ON_ERROR, NULL);
	if (!rc)
		rc = rpma_flush(s->conn, dst, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY,
				RPMA_F_COMPLETION_ALWAYS, NULL);
	if (!rc)
		rc = session_reap(s, 0, NULL, NULL);
	rpma_mr_dereg(&mr);
	return rc;
}

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
	start(&r);
	opts = client_of(&r, HELLO_WRITE);
	open_session(&s, &opts);
	assert_int_equal(s.region.size, SIZE);
	assert_string_equal(s.region.region, "first");
	assert_int_equal(write_word(&s, s.remote, (char[8]){"written"}), 0);
	read_file("one", text, sizeof(text));
	assert_string_equal(text, "written");
	if (session_confirm(&s, &err))
		fail_msg("%s", err.text);
	assert_noted(&r, "from 127.0.0.1 connected to 'first'");
	session_close(&s);
	stop(&r);
}

static void what_is_written_is_in_the_file_and_confirmed(void **state)
{
	write_and_confirm(NULL);
	write_and_confirm(&ours);
}

static void regions_are_listed(void **state)
{
	struct session_opts opts;
	struct hello_list list;
	struct running r;
	struct session s;

	running_init(&r, &ours);
	start(&r);
	opts = client_of(&r, HELLO_LIST);
	open_session(&s, &opts);
	assert_int_equal(session_list(&s, &list, NULL), 0);
	assert_int_equal(list.count, 2);
	assert_string_equal(list.entries[1].region, "second");
	assert_int_equal(list.entries[1].size, SIZE);
	session_close(&s);
	stop(&r);
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

	running_init(&r, &ours);
	start(&r);
	opts = client_of(&r, HELLO_WRITE);
	opts.secret = &theirs;
	expect_refusal(&opts, HELLO_SECRET_WRONG);
	assert_noted(&r, "does not know the secret");
	opts.secret = NULL;
	expect_refusal(&opts, HELLO_SECRET_NEEDED);
	assert_noted(&r, "offers no secret");
	stop(&r);
	running_init(&r, NULL);
	start(&r);
	opts = client_of(&r, HELLO_WRITE);
	opts.secret = &ours;
	expect_refusal(&opts, HELLO_SECRET_UNUSED);
	stop(&r);
}

static void clients_are_limited_in_all_and_from_one_address(void **state)
{
	struct session_opts opts;
	struct running r;
	struct session s;

	for (int per_address = 0; per_address < 2; per_address++) {
		running_init(&r, NULL);
		*(per_address ? &r.opts.max_per_address : &r.opts.max_clients) = 1;
		start(&r);
		opts = client_of(&r, HELLO_READ);
		open_session(&s, &opts);
		expect_refusal(&opts, per_address ? HELLO_BUSY_ADDRESS : HELLO_BUSY);
		session_close(&s);
		stop(&r);
	}
}

/* With a secret the registration is the connection's: what it got is worth nothing afterwards. */
static void a_registration_ends_with_its_connection(void **state)
{
	struct rpma_mr_remote *old;
	struct session_opts opts;
	struct running r;
	struct session s;
	struct hello_reply first;
	char text[8];

	running_init(&r, &ours);
	start(&r);
	opts = client_of(&r, HELLO_WRITE);
	open_session(&s, &opts);
	assert_int_equal(write_word(&s, s.remote, (char[8]){"while"}), 0);
	first = s.region;
	session_close(&s);
	assert_noted(&r, "Connection closed");
	open_session(&s, &opts);
	assert_int_equal(rpma_mr_remote_from_descriptor(first.mr, first.mr_len, &old), 0);
	assert_int_not_equal(write_word(&s, old, (char[8]){"after"}), 0);
	rpma_mr_remote_delete(&old);
	session_close(&s);
	read_file("one", text, sizeof(text));
	assert_string_equal(text, "while");
	stop(&r);
}

static void a_file_that_lost_its_name_refuses_writers(void **state)
{
	struct session_opts opts;
	struct running r;
	struct session s;
	struct error err;

	running_init(&r, NULL);
	start(&r);
	opts = client_of(&r, HELLO_WRITE);
	open_session(&s, &opts);
	assert_int_equal(rename("one", "elsewhere"), 0);
	assert_int_equal(session_confirm(&s, &err), ERROR_REFUSED);
	assert_int_equal(err.cause, HELLO_FILE_REMOVED);
	session_close(&s);
	expect_refusal(&opts, HELLO_FILE_REMOVED);
	opts.region = "second";
	open_session(&s, &opts);
	session_close(&s);
	stop(&r);
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

static void a_server_that_cannot_be_leaves_nothing_behind(void **state)
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
	running_init(&b, &ours);
	b.files[0] = (struct server_file){"three", "first"};
	b.opts.file_count = 1;
	start(&a);
	start(&b);
	opts = client_of(&a, HELLO_WRITE);
	open_session(&s, &opts);
	opts = client_of(&b, HELLO_WRITE);
	open_session(&t, &opts);
	assert_int_equal(write_word(&s, s.remote, (char[8]){"to a"}), 0);
	assert_int_equal(write_word(&t, t.remote, (char[8]){"to b"}), 0);
	session_close(&s);
	session_close(&t);
	stop(&b);
	assert_int_equal(access("three", F_OK), -1);
	stop(&a);
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
		cmocka_unit_test(a_server_that_cannot_be_leaves_nothing_behind),
		cmocka_unit_test(two_servers_serve_in_one_process),
	};
	char folder[] = "export-server-XXXXXX";
	int rc;

	/* The kernel's devices are not what this is about. */
	setenv("RPMA_PROVIDER", "softrnic", 1);
	if (!mkdtemp(folder) || chdir(folder))
		return 2;
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	if (chdir("..") || rmdir(folder))
		return 2;
	return rc;
}
