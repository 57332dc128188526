/* SPDX-License-Identifier: BSD-3-Clause */
/* session_impl.h -- the functions that the files of a session share. A file calls functions of the
 * files listed above it, but no function of the files below it. */
#ifndef REGIONS_SESSION_IMPL_H
#define REGIONS_SESSION_IMPL_H

#include "regions/session.h"

/* wait.c: get the next completion, which may be a received message. A failed completion is an
 * error. */
int session_wait(struct session *s, unsigned spin_us, struct ibv_wc *wc, struct error *err);
/* Returns 0 for a successful completion, else the error that explains the failure. */
int session_check(const struct session *s, const struct ibv_wc *wc, struct error *err);

/* message.c: registers the memory of all messages once for each peer, and posts receives once for
 * each request. The functions return librpma's results. */
int session_messages_register(struct session *s);
int session_messages_receive(struct session *s, struct rpma_conn_req *req);
/* Send the first out_len bytes of messages.out, and wait for the answer in *in and *len. */
int session_ask(struct session *s, size_t out_len, const uint8_t **in, size_t *len,
		struct error *err);
/* Returns the next received message. */
const uint8_t *session_take_message(struct session *s);

/* verdict.c: handle an unrequested verdict of len bytes. Never returns 0. */
int session_take_verdict(struct session *s, size_t len, struct error *err);
/* Report that the region's file is lost, with the reason. */
int session_file_is_lost(const struct session *s, enum hello_status status, struct error *err);

/* proof.c: answer the server's request for a proof, check the server's proof, and store its grant
 * in s->region. */
int session_prove(struct session *s, const struct session_opts *opts, struct error *err);

/* connect.c: connects, and sets s->peer and s->conn with the server's private data. Receives are
 * posted if messages are expected. */
int session_connect(struct session *s, const struct session_opts *opts, struct error *err);

#endif
