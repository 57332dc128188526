/* SPDX-License-Identifier: BSD-3-Clause */
/* A server of regions inside a program: a server (server.h) with copies of its options. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/poll.h"
#include "regions/file_impl.h"
#include "regions/server.h"
#include "service/secret.h"

#define SERVER_CLIENTS 256

struct rpma_file_server {
	struct server *server;
	struct server_opts opts;
	struct server_file files[SERVER_REGIONS_MAX];
	char *texts[2 * SERVER_REGIONS_MAX]; /* copies of the program's texts */
	unsigned text_count;
	struct secret secret;
	void (*note)(void *arg, const char *text); /* note function of the program */
	void *note_arg;
};

static void file_server_free(struct rpma_file_server *s)
{
	server_delete(&s->server, true);
	for (unsigned i = 0; i < s->text_count; i++)
		free(s->texts[i]);
	secret_forget(&s->secret);
	free(s);
}

static const char *file_server_copy(struct rpma_file_server *s, const char *text)
{
	char *copy = strdup(text);

	if (copy)
		s->texts[s->text_count++] = copy;
	return copy;
}

static int file_server_take_exports(struct rpma_file_server *s,
				    const struct rpma_file_export *exports, size_t count,
				    struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		const struct rpma_file_export *e = &exports[i];
		struct server_file *file = &s->files[i];

		if (!e->name || (e->path ? e->addr || e->length : !e->addr || !e->length))
			return error_set(err, ERROR_ARGUMENT, EINVAL,
					 "rpma_file_serve: export %zu needs a name, and either a "
					 "path or an address and a length",
					 i);
		file->name = file_server_copy(s, e->name);
		file->path = e->path ? file_server_copy(s, e->path) : NULL;
		file->addr = e->addr;
		file->length = e->length;
		if (!file->name || (e->path && !file->path))
			return error_set(err, ERROR_LOCAL, ENOMEM,
					 "rpma_file_serve: out of memory");
	}
	s->opts.files = s->files;
	s->opts.file_count = (unsigned)count;
	return 0;
}

static void file_server_note(void *arg, enum log_level level, const char *text)
{
	const struct rpma_file_server *s = arg;

	s->note(s->note_arg, text);
}

static int file_server_take_options(struct rpma_file_server *s,
				    const struct rpma_file_server_options *o, struct error *err)
{
	uint32_t known = RPMA_FILE_SERVE_VOLATILE_OK | RPMA_FILE_SERVE_CREATE;

	if (o->size < sizeof(*o) || o->flags & ~known ||
	    !(o->flags & RPMA_FILE_SERVE_CREATE) != !o->create_size)
		return error_set(err, ERROR_ARGUMENT, EINVAL,
				 "rpma_file_serve: a member of options is wrong");
	s->opts.allow_volatile = o->flags & RPMA_FILE_SERVE_VOLATILE_OK;
	s->opts.create = o->flags & RPMA_FILE_SERVE_CREATE;
	s->opts.size = o->create_size;
	s->opts.max_clients = o->max_clients ? o->max_clients : SERVER_CLIENTS;
	s->opts.max_per_address = s->opts.max_clients;
	s->note = o->note;
	s->note_arg = o->note_arg;
	s->opts.note = o->note ? file_server_note : NULL;
	s->opts.note_arg = s;
	if (!o->secret_file)
		return 0;
	s->opts.secret = &s->secret;
	return secret_load(&s->secret, o->secret_file, err);
}

static int file_server_open(struct rpma_file_server *s, const char *address,
			    const struct rpma_file_export *exports, size_t count,
			    const struct rpma_file_server_options *options, struct error *err)
{
	int rc = address_parse_listen(address, TARGET_PORT, &s->opts.listen, err);

	if (!rc)
		rc = file_server_take_exports(s, exports, count, err);
	if (!rc)
		rc = file_server_take_options(s, options, err);
	return rc ? rc : server_new(&s->opts, &s->server, err);
}

int rpma_file_serve(const char *address, const struct rpma_file_export *exports, size_t count,
		    const struct rpma_file_server_options *options,
		    struct rpma_file_server **server_ptr)
{
	static const struct rpma_file_server_options defaults = {.size = sizeof(defaults)};
	struct rpma_file_server *s;
	struct error err;

	if (!address || !exports || !server_ptr)
		return file_error_invalid(__func__, "address, exports or server_ptr is NULL");
	if (count < 1 || count > SERVER_REGIONS_MAX)
		return file_error_invalid(__func__, "count is not 1 to 32");
	s = calloc(1, sizeof(*s));
	if (!s)
		return file_error(RPMA_E_NOMEM, "%s: out of memory", __func__);
	if (file_server_open(s, address, exports, count, options ? options : &defaults, &err)) {
		file_server_free(s);
		return file_error_of(&err);
	}
	*server_ptr = s;
	return 0;
}

int rpma_file_server_get_fd(struct rpma_file_server *server, int *fd)
{
	if (!server || !fd)
		return file_error_invalid(__func__, "server or fd is NULL");
	*fd = server_get_fd(server->server);
	return 0;
}

/* Wait for an event, or for the time at which the server has to check its files. */
int rpma_file_server_step(struct rpma_file_server *server, int timeout_ms, int *next_ms)
{
	uint64_t deadline = poll_deadline(timeout_ms);
	struct pollfd fd = {.events = POLLIN};
	struct error err;
	int left_ms, next;

	if (!server || timeout_ms < -1)
		return file_error_invalid(__func__, "server is NULL, or timeout_ms is wrong");
	fd.fd = server_get_fd(server->server);
	if (server_step(server->server, &next, &err))
		return file_error_of(&err);
	left_ms = poll_ms_left(deadline);
	if (left_ms && (next < 0 || (left_ms >= 0 && left_ms < next)))
		poll(&fd, 1, left_ms);
	else if (left_ms)
		poll(&fd, 1, next);
	if (left_ms && server_step(server->server, &next, &err))
		return file_error_of(&err);
	if (next_ms)
		*next_ms = next;
	return 0;
}

int rpma_file_server_get_port(struct rpma_file_server *server, uint16_t *port)
{
	if (!server || !port)
		return file_error_invalid(__func__, "server or port is NULL");
	*port = (uint16_t)atoi(server_get_address(server->server)->port);
	return 0;
}

int rpma_file_server_delete(struct rpma_file_server **server_ptr)
{
	if (!server_ptr)
		return file_error_invalid(__func__, "server_ptr is NULL");
	if (*server_ptr)
		file_server_free(*server_ptr);
	*server_ptr = NULL;
	return 0;
}
