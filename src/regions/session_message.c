/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of a session: sends a question, receives the answer. */
#include <stddef.h>

#include "base/text.h"
#include "regions/session_impl.h"

int session_messages_register(struct session *s)
{
	return rpma_mr_reg(s->peer, &s->messages, sizeof(s->messages),
			   RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &s->message_mr);
}

int session_messages_receive(struct session *s, struct rpma_conn_req *req)
{
	int rc = 0;

	for (unsigned i = 0; i < SESSION_ANSWERS && !rc; i++)
		rc = rpma_conn_req_recv(req, s->message_mr,
					offsetof(struct session_messages, in[i]),
					sizeof(s->messages.in[i]), NULL);
	return rc;
}

const uint8_t *session_take_message(struct session *s)
{
	return s->messages.in[s->received++ % SESSION_ANSWERS];
}

int session_ask(struct session *s, size_t out_len, const uint8_t **in, size_t *len,
		struct error *err)
{
	struct ibv_wc wc = {0};
	int rc = rpma_send(s->conn, s->message_mr, offsetof(struct session_messages, out), out_len,
			   RPMA_F_COMPLETION_ON_ERROR, NULL);

	if (rc)
		return session_post_failed(s, "send a message to", rc, err);
	rc = session_wait(s, 0, &wc, err);
	*in = session_take_message(s);
	*len = wc.byte_len;
	return rc;
}

int session_list(struct session *s, struct hello_list *list, struct error *err)
{
	const uint8_t *in = NULL;
	size_t len = 0;
	int rc = session_ask(s, hello_ask_encode(s->messages.out), &in, &len, err);

	if (rc)
		return rc;
	if (!hello_list_decode(in, len, list))
		return error_set(err, ERROR_REFUSED, HELLO_BAD_REQUEST,
				 "%s sends no list of regions", s->server);
	for (unsigned i = 0; i < list->count; i++)
		text_make_printable(list->entries[i].region);
	return 0;
}

int session_counts(struct session *s, struct hello_counts *counts, struct error *err)
{
	const uint8_t *in = NULL;
	size_t len = 0;
	int rc = session_ask(s, hello_ask_counts_encode(s->messages.out), &in, &len, err);

	if (rc)
		return rc;
	if (!hello_counts_decode(in, len, counts))
		return error_set(err, ERROR_REFUSED, HELLO_BAD_REQUEST, "%s sends no counters",
				 s->server);
	for (unsigned i = 0; i < counts->count; i++)
		text_make_printable(counts->regions[i].region);
	return 0;
}
