/* SPDX-License-Identifier: BSD-3-Clause */
/* session_impl.h -- the functions that the files of a session share. The order is the order of
 * calls: a file calls functions of the files listed above it, none of those below it. */
#ifndef REGIONS_SESSION_IMPL_H
#define REGIONS_SESSION_IMPL_H

#include "regions/session.h"

/* wait.c: get the next completion, which may be a received message. A failed completion is an
 * error. */
int session_wait(struct session *s, unsigned spin_us, struct ibv_wc *wc, struct error *err);
/* Check a completion; 0: success. */
int session_check(const struct session *s, const struct ibv_wc *wc, struct error *err);

/* message.c: the memory of all messages, registered once for each peer, with receives posted once
 * for each request. librpma's results. */
int session_messages_register(struct session *s);
int session_messages_receive(struct session *s, struct rpma_conn_req *req);
/* Send the out_len bytes in messages.out; *in and *len are the answer. */
int session_ask(struct session *s, size_t out_len, const uint8_t **in, size_t *len,
		struct error *err);
/* The next received message. */
const uint8_t *session_take_message(struct session *s);

/* verdict.c: handle an unrequested verdict of len bytes. Never returns 0. */
int session_take_verdict(struct session *s, size_t len, struct error *err);
/* The region's file is lost: the reason. */
int session_file_is_lost(const struct session *s, enum hello_status status, struct error *err);

/* proof.c: answer the server's request for a proof, check the server's proof, and store its grant
 * in s->region. */
int session_prove(struct session *s, const struct session_opts *opts, struct error *err);

/* connect.c: s->peer and s->conn, with the server's private data; receives are posted if messages
 * are expected. */
int session_connect(struct session *s, const struct session_opts *opts, struct error *err);

#endif
