/* SPDX-License-Identifier: BSD-3-Clause */
/* A session's completions, and what is reported about operations that fail. */
#include "session/impl.h"

int session_post_failed(struct session *s, const char *what, int rc, struct error *err)
{
	return error_set(err, ERROR_FAILED, rc, "cannot %s %s: %s", what, s->server,
			 rpma_err_last());
}

static int session_check(const struct session *s, const struct ibv_wc *wc, struct error *err)
{
	char why[256];

	if (wc->status == IBV_WC_SUCCESS)
		return 0;
	rpma_wc_explain(s->conn, wc, why, sizeof(why));
	return error_set(err, ERROR_FAILED, 0, "%s: %s", s->server, why);
}

int session_wait(struct session *s, unsigned spin_us, struct ibv_wc *wc, struct error *err)
{
	int rc = completions_next(&s->completions, s->timeout_ms, spin_us, wc);

	switch (rc) {
	case COMPLETIONS_ONE:
		return session_check(s, wc, err);
	case COMPLETIONS_TIMEOUT:
		return error_set(err, ERROR_FAILED, RPMA_E_NO_COMPLETION,
				 "%s has not answered for %d s", s->server, s->timeout_ms / 1000);
	case COMPLETIONS_CLOSED:
		return error_set(err, ERROR_FAILED, 0, "%s closed the connection", s->server);
	default:
		return session_post_failed(s, "take completions from", rc, err);
	}
}
