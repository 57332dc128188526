/* SPDX-License-Identifier: BSD-3-Clause */
/* impl.h -- what the files of a session have of each other, in the order in which they call: a file
 * calls those that stand above it here and none below it. */
#ifndef REGIONS_SESSION_IMPL_H
#define REGIONS_SESSION_IMPL_H

#include "regions/session.h"

/* wait.c: the next completion, which may be a message; a failed one is an error. */
int session_wait(struct session *s, unsigned spin_us, struct ibv_wc *wc, struct error *err);
/* What a completion reports; 0: success. */
int session_check(const struct session *s, const struct ibv_wc *wc, struct error *err);

/* message.c: room for all that may come, registered once a peer, received into once a request.
 * Librpma's results. */
int session_messages_register(struct session *s);
int session_messages_receive(struct session *s, struct rpma_conn_req *req);
/* Send the out_len bytes in messages.out; *in and *len are the answer. */
int session_ask(struct session *s, size_t out_len, const uint8_t **in, size_t *len,
		struct error *err);
/* The next message that has arrived. */
const uint8_t *session_take_message(struct session *s);

/* verdict.c: a verdict that came unasked, in a message of that length. Never 0. */
int session_take_verdict(struct session *s, size_t len, struct error *err);
/* The region's file is lost: the reason. */
int session_file_is_lost(const struct session *s, enum hello_status status, struct error *err);

/* proof.c: the server has asked for a proof: give it, check the server's, take what it grants as
 * s->region. */
int session_prove(struct session *s, const struct session_opts *opts, struct error *err);

/* connect.c: s->peer and s->conn, with the server's private data; receives are posted if messages
 * are expected. */
int session_connect(struct session *s, const struct session_opts *opts, struct error *err);

#endif
