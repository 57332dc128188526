/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session.h -- a client's connection to a region that `rpma serve` exports.
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
#include "secret.h"

struct session_wish {
	struct address server;
	const char *region; /* "" means: the one that is served */
	enum hello_access access;
	uint32_t depth;          /* how many operations may be outstanding */
	int timeout_ms;          /* without any answer */
	const char *secret_file; /* NULL: the server must not ask for one */
	bool verbose;            /* print the library's log */
};

struct session {
	struct rpma_peer *peer;
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	struct rpma_mr_remote *remote; /* NULL after HELLO_LIST */
	struct hello_reply region;
	char server[300];
	int cq_fd, event_fd;
	int timeout_ms;
	bool closed; /* the server is gone; completions may still be queued */
	bool has_secret;
	struct secret secret;
	/* Messages, where there are some. */
	struct rpma_mr_local *mail_mr;
	struct session_mail {
		uint8_t in[2][HELLO_FROM_MAX], out[HELLO_TO_MAX];
	} mail;
	unsigned mails;    /* received so far; at most as many as there is room for */
	bool expects_mail; /* else one that comes is a verdict */
};

/* The options that every client has: --region, --secret-file, --timeout, --verbose; from getopt's
 * optarg. */
int session_take_option(int opt, struct session_wish *wish);

int session_open(struct session *s, const struct session_wish *wish);
/* Closes what is open, in any state. */
void session_close(struct session *s);

/* handshake.c: the messages before the data. */
/* Room for all that may come, before the connection is made. 0 or the library's error. */
int session_mail_open(struct session *s, struct rpma_conn_req *req);
/* The server has asked for a proof: give it, check its own, take what it grants as s->region. */
int session_prove(struct session *s, const struct session_wish *wish);
/* With HELLO_LIST: which regions there are. */
int session_list(struct session *s, struct hello_list *list);
/* With HELLO_WRITE, at the end: will what was flushed be found under the name of its file? */
int session_confirm(struct session *s);
/* A verdict that came unasked. Returns its exit code. */
int session_take_verdict(struct session *s, size_t len);
/* The region's file is lost: say why. */
int session_say_lost(const struct session *s, enum hello_status status);

/* Register a buffer of our own for the session's writes and reads. */
int session_register(struct session *s, void *buf, size_t size, struct rpma_mr_local **mr);
/* An operation was refused at once: name it. */
int session_post_failed(struct session *s, const char *what, int rc);

/*
 * The next completion, waiting for it. spin_us: poll that long before sleeping, for those who
 * measure latency. *wc is optional. Any failure is final for the session.
 */
int session_reap(struct session *s, unsigned spin_us, struct ibv_wc *wc);

#endif
