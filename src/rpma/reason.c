/* SPDX-License-Identifier: BSD-3-Clause */
/* reason.c -- explains why an operation failed, as a value and as a line of text. */
#include <stdio.h>

#include "rpma/conn.h"
#include "rpma/err.h"

enum rpma_reason rpma_wc_get_reason(const struct rpma_conn *conn, const struct ibv_wc *wc,
				    uint32_t *code)
{
	enum rpma_reason reason = RPMA_REASON_NONE;
	uint32_t value = 0;

	if (conn && wc && wc->status != IBV_WC_SUCCESS) {
		reason = RPMA_REASON_DEVICE;
		value = wc->vendor_err;
	}
	if (reason && conn->prov->gives_reasons(conn->id->verbs)) {
		reason = (enum rpma_reason)vext_vendor_err_reason(value);
		value = vext_vendor_err_code(value);
	}
	if (code)
		*code = value;
	return reason;
}

/* A row of a table: a value, its meaning, and advice. */
struct meaning {
	uint32_t value;
	const char *text, *advice;
};

static const struct meaning *reason_find(const struct meaning *table, uint32_t value)
{
	while (table->text && table->value != value)
		table++;
	return table->text ? table : NULL;
}

#define SEE_LOG "the logs of both ends have details"
#define LOST    "connect again, and repeat the operations that were not completed or not flushed"

/* Texts for devices that report only the status of a completion. */
static const struct meaning statuses[] = {
	{IBV_WC_LOC_LEN_ERR, "a message was longer than the memory to receive it",
	 "receive into larger memory"},
	{IBV_WC_LOC_QP_OP_ERR, "this end's queue pair could not carry it out", SEE_LOG},
	{IBV_WC_LOC_PROT_ERR, "the operation has no right to this end's memory",
	 "check the range, and the usage with which the region was registered"},
	{IBV_WC_WR_FLUSH_ERR, "the connection ended before it was completed", LOST},
	{IBV_WC_BAD_RESP_ERR, "the other end sent a response that fits no request", SEE_LOG},
	{IBV_WC_LOC_ACCESS_ERR, "the other end has no right to this end's memory",
	 "check the usage with which the region was registered"},
	{IBV_WC_REM_INV_REQ_ERR, "the other end does not accept such a request", SEE_LOG},
	{IBV_WC_REM_ACCESS_ERR, "the other end permits no such access",
	 "check the range, and that the region is still registered there for this use"},
	{IBV_WC_REM_OP_ERR, "the other end could not carry it out", SEE_LOG},
	{IBV_WC_RETRY_EXC_ERR, "the other end does not answer", LOST},
	{IBV_WC_RNR_RETRY_EXC_ERR, "the other end had no receive for a message",
	 "post a receive there before the message is sent"},
	{0, NULL, NULL}};

/* Texts for the codes of a Terminate: layer << 12 | type << 8 | code (RFC 5040 s4.8, RFC 5041 s8,
 * RFC 5044 s8). */
#define NO_REGION "the STag (rkey) names no region"
#define RANGE     "the range is not inside the region"
#define RIGHTS    "the region was not registered for this use"
#define DOMAIN    "the region does not belong to the peer object of this connection"
#define ANEW      "the region may have been deregistered: get a new descriptor"
static const struct meaning terminates[] = {
	{0x0000, "a local failure, such as memory that is no longer mapped", SEE_LOG},
	{0x0100, NO_REGION, ANEW},
	{0x0101, RANGE ", or the memory there is gone",
	 "check it against rpma_mr_remote_get_size(), and the size of the file behind the region"},
	{0x0102, RIGHTS, "register it with the RPMA_MR_USAGE_ that the operation needs"},
	{0x0103, DOMAIN, "register it with the peer object that made the connection"},
	{0x0104, RANGE ", it wraps around", "check offset and length"},
	{0x0206, "the other end does not support the operation",
	 "check rpma_conn_get_remote_caps()"},
	{0x0207, "a failure of the other end's connection", SEE_LOG},
	{0x1100, NO_REGION, ANEW},
	{0x1101, RANGE, "check offset and length against rpma_mr_remote_get_size()"},
	{0x1102, DOMAIN, "register it with the peer object that made the connection"},
	{0x1103, RANGE ", it wraps around", "check offset and length"},
	{0x1202, "a message arrived for which no receive was posted",
	 "post a receive before each message is sent"},
	{0x1205, "a message was longer than the memory to receive it",
	 "receive into larger memory"},
	{0x2002, "the checksum of received bytes was wrong",
	 "look for a faulty network card or switch, then connect again"},
	{0, NULL, NULL}};

static const struct meaning links[] = {
	{ENOTCONN, "the other end closed the connection, or its process ended",
	 "see whether it still runs; " LOST},
	{ECONNABORTED, "this end closed the connection", LOST},
	{ECONNRESET, "the other end reset the connection", "see whether it still runs; " LOST},
	{ETIMEDOUT, "no byte came from the other end for too long",
	 "see whether its machine and the network are up; " LOST},
	{0, NULL, NULL}};

static const struct meaning locals[] = {
	{EFAULT, "memory of this process is not accessible", "its file may have been truncated"},
	{EACCES, "the local region is not registered, or not for this use",
	 "register it with the RPMA_MR_USAGE_ that the operation needs, and keep it registered "
	 "until the operation completes"},
	{ERANGE, "the local range is not inside its region", "check offset and length"},
	{EOVERFLOW, "the completion queue overflowed",
	 "make it larger with rpma_conn_cfg_set_cq_size(), or collect completions sooner"},
	{EMSGSIZE, "a message was longer than the memory to receive it",
	 "receive into larger memory"},
	{0, NULL, NULL}};

static void reason_format_errno(char *text, size_t size, const char *what, uint32_t code,
				const char *advice)
{
	snprintf(text, size, "%s: %s (errno %u); %s", what, strerror((int)code), code, advice);
}

static void reason_format_known_errno(char *text, size_t size, const struct meaning *table,
				      const char *what, uint32_t code, const char *advice)
{
	const struct meaning *m = reason_find(table, code);

	if (m)
		reason_format_errno(text, size, m->text, code, m->advice);
	else
		reason_format_errno(text, size, what, code, advice);
}

static void reason_format_terminate(char *text, size_t size, const char *who, uint32_t code,
				    const char *where)
{
	const struct meaning *m = reason_find(terminates, code);

	snprintf(text, size, "%s: %s (Terminate 0x%04x); %s%s", who,
		 m ? m->text : "the protocol was violated", code, where, m ? m->advice : SEE_LOG);
}

static void reason_format_status(char *text, size_t size, const struct ibv_wc *wc)
{
	const struct meaning *m = reason_find(statuses, (uint32_t)wc->status);

	snprintf(text, size, "%s (status %d, vendor_err 0x%x); %s",
		 m ? m->text : "the device reports an error", (int)wc->status, wc->vendor_err,
		 m ? m->advice : SEE_LOG);
}

static void reason_format(char *text, size_t size, const struct ibv_wc *wc, enum rpma_reason reason,
			  uint32_t code)
{
	switch (reason) {
	case RPMA_REASON_WRITE_BACK:
		reason_format_errno(
			text, size, "the target could not write to its medium", code,
			"bytes written since the last successful flush may be lost; repair the "
			"medium, then open, map and register the file there again");
		return;
	case RPMA_REASON_VOLATILE:
		snprintf(
			text, size,
			"the range cannot be persisted: the target's memory there is volatile, not "
			"a file on a file system that has a medium; serve such a file, or set "
			"RPMA_STRICT_PERSIST=0 at both ends to take visible bytes for durable");
		return;
	case RPMA_REASON_GONE:
		snprintf(text, size,
			 "the range is not accessible: it lies past the end of its file, or its "
			 "region was deregistered before it was flushed; look at the size of the "
			 "target's file");
		return;
	case RPMA_REASON_TERMINATE_IN:
		reason_format_terminate(text, size, "the other end refused", code, "");
		return;
	case RPMA_REASON_TERMINATE_OUT:
		reason_format_terminate(text, size, "this end refused a message of the other", code,
					"at the other end: ");
		return;
	case RPMA_REASON_LINK:
		reason_format_known_errno(text, size, links, "the connection broke", code, LOST);
		return;
	case RPMA_REASON_LOCAL:
		reason_format_known_errno(text, size, locals, "this end failed", code, SEE_LOG);
		return;
	case RPMA_REASON_NONE:
	case RPMA_REASON_DEVICE:
		break;
	}
	reason_format_status(text, size, wc);
}

int rpma_wc_explain(const struct rpma_conn *conn, const struct ibv_wc *wc, char *text, size_t size)
{
	/* The text does not claim that a write failed, because all its bytes may have arrived. */
	static const char unanswered[] = "not completed, because ";
	enum rpma_reason reason;
	size_t skip = 0;
	uint32_t code;

	if (!conn || !wc || !text || !size)
		return INVALID();
	if (wc->status == IBV_WC_SUCCESS) {
		snprintf(text, size, "success");
		return 0;
	}
	reason = rpma_wc_get_reason(conn, wc, &code);
	if (wc->status == IBV_WC_WR_FLUSH_ERR && reason != RPMA_REASON_NONE &&
	    reason != RPMA_REASON_DEVICE) {
		snprintf(text, size, "%s", unanswered);
		skip = strlen(text);
	}
	reason_format(text + skip, size - skip, wc, reason, code);
	return 0;
}
