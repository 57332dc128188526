/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session.h -- a client's connection to the region that `rpma serve` exports.
 *
 * Everything here prints its own error line and returns a cli_exit code.
 */
#ifndef TOOL_SESSION_H
#define TOOL_SESSION_H

#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>

#include "address.h"
#include "hello.h"

struct session_wish {
	struct address server;
	const char *region; /* "" means: whatever is served */
	enum hello_access access;
	uint32_t depth; /* how many operations may be outstanding */
	int timeout_ms; /* without any answer */
};

struct session {
	struct rpma_peer *peer;
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	struct rpma_mr_remote *remote;
	struct hello_reply region;
	char server[300];
	int cq_fd, event_fd;
	int timeout_ms;
	bool closed; /* the server is gone; completions may still be queued */
};

/* The options that every client has: --region, --timeout, --verbose; from getopt's optarg. */
int session_take_option(int opt, struct session_wish *wish, bool *verbose);

int session_open(struct session *s, const struct session_wish *wish);
/* Closes what is open, in any state. */
void session_close(struct session *s);

/* Register a buffer of our own for the session's writes and reads. */
int session_register(struct session *s, void *buf, size_t size, struct rpma_mr_local **mr);
/* An operation was refused at once: name it. */
int session_post_failed(struct session *s, const char *what, int rc);

/*
 * The next completion, waiting for it. spin_us: poll that long before sleeping, for those who
 * measure latency. *done gets the op_context. Any failure is final for the session.
 */
int session_reap(struct session *s, unsigned spin_us, uint64_t *done);

#endif
