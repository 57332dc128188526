/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.h -- serves files as named regions of remote memory, for clients that use session.h. Files
 * are created and mapped durably, and the number of clients is limited. With a secret each
 * connection has its own registration, which is dropped with the connection.
 *
 * librpma moves the data; the loop only admits clients and notices that they leave. The server
 * prints nothing and never terminates the process: see base/error.h, and note() below. Only one
 * thread at a time may use a server; several threads may use several servers.
 */
#ifndef REGIONS_SERVER_H
#define REGIONS_SERVER_H

#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "service/counters.h"
#include "base/newfile.h"
#include "service/address.h"
#include "regions/hello.h"
#include "service/secret.h"

#define SERVER_REGIONS_MAX HELLO_ENTRY_MAX

/* A file, or memory of the caller. Memory has no name that could lead to another file, and no
 * record of its content. */
struct server_file {
	const char *path; /* NULL: the region is memory */
	const char
		*name; /* name of the region, at most HELLO_NAME_MAX characters; all names differ */
	void *addr;
	uint64_t length;
};

/* The objects to which these options point must outlive the server. */
struct server_opts {
	struct address listen; /* port "0": a free port */
	const struct server_file *files;
	unsigned file_count;
	uint64_t
		/* serve the first `size` bytes of each file (0: all), or create it with this
		 * size */
		size;
	/* create each file; an existing file is an error. If a secret is set, only the owner may
	 * open the new files */
	bool create;
	bool allow_volatile; /* also serve memory that cannot be made persistent */
	uint64_t max_clients, max_per_address;
	/* NULL: clients need no proof. The owner may change the secret between two steps. */
	const struct secret *secret;
	/*
	 * Receives one line about an event: a refusal, a lost file, and with verbose each client
	 * that connects or leaves. Events that a client can cause without limit are reported only a
	 * few times in a period. server_new() and server_step() call this function. NULL: events
	 * are not reported.
	 */
	void (*note)(void *arg, enum log_level level, const char *text);
	void *note_arg;
	/* server_new() asks this watch while it creates files; may be NULL */
	const struct newfile_watch *watch;
	bool verbose;
};

struct server;

/*
 * Open and register the files, and listen. The causes of ERROR_LOCAL are those of mapfile_open(),
 * and EMEDIUMTYPE: written bytes would not be durable. After a failure, and after the watch stops
 * the work (ECANCELED), no created file remains.
 */
int server_new(const struct server_opts *opts, struct server **server, struct error *err);
/* Disconnect all clients and stop. keep: the files that the server created stay. */
void server_delete(struct server **server, bool keep);

/*
 * Handle all events. The call waits at most as long as the check of a new client's file takes.
 * *next_ms: the longest time until the next call (-1: no limit). The descriptor of server_get_fd()
 * is readable when there is an event.
 */
int server_step(struct server *server, int *next_ms, struct error *err);
int server_get_fd(const struct server *server);

/* Returns the address at which the server listens, with the actual port. */
const struct address *server_get_address(const struct server *server);

struct server_region_info {
	const char *name, *path;
	uint64_t size;
	enum rpma_durability durability;
};
/* Regions count from 0. Returns false if index is too large. */
bool server_get_region(const struct server *server, unsigned index,
		       struct server_region_info *info);

struct server_client_info {
	uint64_t id;
	const char *addr, *region;
	enum hello_access access;
	const struct counters *counters;
};
/* Call fn for each client that is served now, the latest client first. */
void server_for_each_client(const struct server *server,
			    void (*fn)(void *arg, const struct server_client_info *info),
			    void *arg);
/* Returns the number of clients that were served and have gone. *sum is the sum of their
 * counters. */
uint64_t server_get_gone(const struct server *server, struct counters *sum);

#endif
