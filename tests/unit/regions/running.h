/* SPDX-License-Identifier: BSD-3-Clause */
/* running.h -- a server that runs in a thread of the test and serves two files, and its clients. */
#ifndef UNIT_REGIONS_RUNNING_H
#define UNIT_REGIONS_RUNNING_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "regions/server.h"
#include "regions/session.h"

#define SIZE       (1u << 20)
#define TIMEOUT_MS 20000

struct running {
	struct server_file files[2];
	struct server_opts opts;
	struct server *server;
	pthread_t thread;
	int stop_fd;
	pthread_mutex_t lock;
	char notes[8192];
};

extern const struct secret running_secret;

/*
 * Make the files "one" and "two", which are the regions "first" and "second". The test may change
 * the options before running_start().
 */
void running_init(struct running *r, const struct secret *secret);
void running_start(struct running *r);
/* Stop the server, and remove the files. */
void running_stop(struct running *r);
/* Assert that the server's log has a line with this text, or gets one soon. */
void running_assert_noted(struct running *r, const char *text);

/* Returns options of a client for the region "first". */
struct session_opts running_client(const struct running *r, enum hello_access access);
void running_open(struct session *s, const struct session_opts *opts);
/* Write the word to the beginning of dst. Returns 0 when the word has arrived. */
int running_write(struct session *s, struct rpma_mr_remote *dst, char word[8]);

#endif
