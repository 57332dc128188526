/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes a session's completions, and explains failed operations. */
#include <errno.h>

#include "regions/session_impl.h"

/* Error codes of a Terminate message: layer << 12 | type << 8 | code (RFC 5040 s4.8, RFC 5041
 * s8.1). */
#define SESSION_TERMINATE_RDMAP_RANGE 0x0101
#define SESSION_TERMINATE_DDP_RANGE   0x1101

int session_post_failed(struct session *s, const char *what, int rc, struct error *err)
{
	return error_set(err, ERROR_FAILED, rc, "cannot %s %s: %s", what, s->server,
			 rpma_err_last());
}

/*
 * Returns true if the failure means that memory of the region is gone. Readers and writers check
 * their ranges, so a range that the server refuses was inside the region and has lost its memory. A
 * failed flush is reported separately.
 */
static bool session_memory_is_gone(const struct session *s, const struct ibv_wc *wc)
{
	uint32_t code;

	switch (rpma_wc_get_reason(s->conn, wc, &code)) {
	case RPMA_REASON_TERMINATE_IN:
		return code == SESSION_TERMINATE_RDMAP_RANGE || code == SESSION_TERMINATE_DDP_RANGE;
	case RPMA_REASON_GONE:
		return true;
	default:
		return false;
	}
}

int session_check(const struct session *s, const struct ibv_wc *wc, struct error *err)
{
	char why[256];

	if (wc->status == IBV_WC_SUCCESS)
		return 0;
	if (session_memory_is_gone(s, wc))
		return error_set(
			err, ERROR_FAILED, EFAULT,
			"the memory behind region '%s' of %s is gone: its file was truncated while "
			"it was served, or a disk is full; read the region to save what is left, "
			"free disk space or restore the file's size, then restart the server",
			s->region.region, s->server);
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
