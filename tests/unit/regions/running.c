/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit/regions/running.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

const struct secret running_secret = {.key = {1, 2, 3}};

static void running_keep_note(void *arg, enum log_level level, const char *text)
{
	struct running *r = arg;
	size_t len;

	pthread_mutex_lock(&r->lock);
	len = strlen(r->notes);
	snprintf(r->notes + len, sizeof(r->notes) - len, "%s\n", text);
	pthread_mutex_unlock(&r->lock);
}

void running_assert_noted(struct running *r, const char *text)
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

void running_init(struct running *r, const struct secret *secret)
{
	*r = (struct running){
		.files = {{.path = "one", .name = "first"}, {.path = "two", .name = "second"}}};
	r->opts = (struct server_opts){.listen = {"127.0.0.1", "0"},
				       .files = r->files,
				       .file_count = 2,
				       .size = SIZE,
				       .create = true,
				       .allow_volatile = true,
				       .max_clients = 8,
				       .max_per_address = 8,
				       .secret = secret,
				       .note = running_keep_note,
				       .note_arg = r,
				       .verbose = true};
	pthread_mutex_init(&r->lock, NULL);
}

static void *running_serve(void *arg)
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

void running_start(struct running *r)
{
	struct error err;

	if (server_new(&r->opts, &r->server, &err))
		fail_msg("%s", err.text);
	r->stop_fd = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(pthread_create(&r->thread, NULL, running_serve, r), 0);
}

void running_stop(struct running *r)
{
	assert_int_equal(eventfd_write(r->stop_fd, 1), 0);
	assert_int_equal(pthread_join(r->thread, NULL), 0);
	server_delete(&r->server, false);
	close(r->stop_fd);
	pthread_mutex_destroy(&r->lock);
}

struct session_opts running_client(const struct running *r, enum hello_access access)
{
	return (struct session_opts){.server = *server_get_address(r->server),
				     .region = "first",
				     .access = access,
				     .depth = 8,
				     .timeout_ms = TIMEOUT_MS,
				     .secret = r->opts.secret};
}

void running_open(struct session *s, const struct session_opts *opts)
{
	struct error err;

	if (session_open(s, opts, &err))
		fail_msg("%s", err.text);
}

int running_write(struct session *s, struct rpma_mr_remote *dst, char word[8])
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
