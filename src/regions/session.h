/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session.h -- a client's connection to a named region of a server (server.h).
 *
 * A session prints nothing and never ends the process: see base/error.h. Only one thread at a time
 * may use a session; several threads may use several sessions. A failure of any call but
 * session_open() is final for the session, which the caller must still close. After that
 * session_open() connects again; with retry_ms it waits for a server that restarts.
 */
#ifndef REGIONS_SESSION_H
#define REGIONS_SESSION_H

#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "service/address.h"
#include "service/completions.h"
#include "regions/hello.h"
#include "service/secret.h"

struct session_opts {
	struct address server;
	const char *region; /* "": the server's only region */
	enum hello_access access;
	uint32_t depth; /* largest number of outstanding operations */
	/* longest time without any answer, both while connecting and later; -1: no limit */
	int timeout_ms;
	int retry_ms; /* time for which to try again while no server listens; 0: try once */
	const struct secret *secret; /* NULL: the session fails if the server asks for a secret */
	const char *owner;           /* name for rpma_conn_cfg_set_owner(3), or NULL */
};

#define SESSION_ANSWERS 3 /* largest number of answers: a grant, a BEGUN and a verdict */

struct session {
	struct rpma_peer *peer;
	struct rpma_conn *conn;
	struct rpma_mr_remote *remote; /* NULL after HELLO_LIST */
	struct hello_reply region;     /* the server's grant; the name in it is printable */
	char server[ADDRESS_TEXT];
	const char *device;    /* the device of this end that reaches the server */
	struct claim_id claim; /* valid after session_put_begin() has returned 0 */
	/* Only the files of a session use the members below. */
	struct completions completions;
	int timeout_ms;
	/* the device of this end has accepted the connect request */
	bool is_requested;
	struct rpma_mr_local *message_mr; /* NULL: no message is expected */
	struct session_messages {
		uint8_t in[SESSION_ANSWERS][HELLO_FROM_MAX], out[HELLO_TO_MAX];
	} messages;
	unsigned received; /* number of received messages; at most the number of receives */
};

/* Connect, exchange the proofs that opts require, and get the region. *s need not be initialised.
 * On failure nothing stays open. */
int session_open(struct session *s, const struct session_opts *opts, struct error *err);
/* Like session_open(), with the secret in a file; NULL: no secret. */
int session_open_with_file(struct session *s, const struct session_opts *opts,
			   const char *secret_file, struct error *err);
/* Disconnect, and close everything that is open, in any state. The caller must deregister the
 * session's buffers first. */
void session_close(struct session *s);

/* Register a buffer of the caller for the session's writes and reads; rpma_mr_dereg() releases
 * it. */
int session_register(struct session *s, void *buf, size_t size, struct rpma_mr_local **mr,
		     struct error *err);
/* Report that an operation ("write to", "flush at") could not be posted. rc: librpma's result. */
int session_post_failed(struct session *s, const char *what, int rc, struct error *err);
/*
 * Get the next completion, which belongs to the oldest operation. The ranges of operations were
 * inside the region, so a range that the server refuses has lost its memory; the error's text then
 * reports this. spin_us: as in completions_next(). wc may be NULL. ERROR_FAILED: the completion is
 * a failure. ERROR_REFUSED: an unrequested verdict of the server came.
 */
int session_reap(struct session *s, unsigned spin_us, struct ibv_wc *wc, struct error *err);

/* The transport of the session's bytes. */
struct session_transport {
	const char *device; /* name of this end's device, such as "softrnic0" */
	/* "tcp"; "shm" after a message went through shared memory; "rdma" if the device does not
	 * report the link */
	const char *link;
	bool crc; /* softrnic: send frames with checksums */
	/* softrnic: whether bytes go through shared memory, or the reason why not */
	const char *shm;
};
void session_get_transport(const struct session *s, struct session_transport *transport);

/* List the regions; their names are printable. Call this only with HELLO_LIST, and only once. */
int session_list(struct session *s, struct hello_list *list, struct error *err);
/* Get the server's counters. Call this only with HELLO_LIST, instead of session_list(). A server
 * before version 1.4 closes the connection. */
int session_counts(struct session *s, struct hello_counts *counts, struct error *err);
/*
 * Announce the write. Call this only with HELLO_WRITE, once, before the first byte. Without the
 * announcement, a crash may leave bytes that the server still counts as an earlier file. The cause
 * of ERROR_REFUSED is HELLO_BEING_WRITTEN, HELLO_TAKEN or a HELLO_FILE_*.
 */
int session_put_begin(struct session *s, const struct hello_begin *begin, struct error *err);
/* Report the file's length, time and digest to the server. Call this after the file is flushed,
 * instead of session_confirm(). */
int session_put_end(struct session *s, const struct hello_content *content, struct error *err);
/* Ask whether the flushed bytes will be found under the name of the region's file. Call this only
 * with HELLO_WRITE, at the end, when no operation is outstanding. ERROR_REFUSED: they will not be
 * found; the cause is a HELLO_FILE_*. */
int session_confirm(struct session *s, struct error *err);

#endif
