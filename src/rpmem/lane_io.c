/* SPDX-License-Identifier: BSD-3-Clause */
/* Posts operations on a lane, and waits for their completions. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/poll.h"
#include "base/word.h"
#include "rpmem/device.h"
#include "rpmem/errmsg.h"
#include "rpmem/lane_impl.h"

#define LANE_LOOK_MS 500 /* some devices do not wake a waiting thread when the connection ends */

static const void *lane_context(enum lane_op op)
{
	return (const void *)(uintptr_t)op;
}

/* Returns true if the connection is closed. */
static bool lane_has_ended(struct lane *lane)
{
	enum rpma_conn_event event;
	int rc = rpma_conn_next_event_timeout(lane->conn, 0, &event);

	return !rc && event != RPMA_CONN_ESTABLISHED;
}

int lane_broken(struct lane *lane, const char *what, int rc)
{
	char why[512];

	snprintf(why, sizeof(why), "%s", rpma_err_last());
	if (lane_has_ended(lane))
		return errmsg_fail(ECONNRESET, "lane %u: the connection to %s is lost: %s",
				   lane->number, lane->place->addr, rpma_err_last());
	return errmsg_fail(ECONNRESET, "lane %u: cannot %s at %s: %s (%s)", lane->number, what,
			   lane->place->addr, why, rpma_err_2str(rc));
}

/* Report why a completion failed. */
static int lane_explain(struct lane *lane, const struct ibv_wc *wc)
{
	enum rpma_reason reason = rpma_wc_get_reason(lane->conn, wc, NULL);
	bool disk = reason == RPMA_REASON_WRITE_BACK || reason == RPMA_REASON_VOLATILE ||
		    reason == RPMA_REASON_GONE;
	char text[512] = "";

	rpma_wc_explain(lane->conn, wc, text, sizeof(text));
	return errmsg_fail(disk ? EREMOTEIO : ECONNRESET, "lane %u to %s: %s", lane->number,
			   lane->place->addr, text);
}

/* Poll for a completion, for a limited time. RPMA_E_NO_COMPLETION: no completion came in that
 * time. */
static int lane_look(struct lane *lane, struct ibv_wc *wc)
{
	int rc = rpma_cq_get_wc(lane->cq, 1, wc, NULL);
	uint64_t until;

	if (rc != RPMA_E_NO_COMPLETION || !lane->place->spin_us)
		return rc;
	until = clock_now_ns() + lane->place->spin_us * NSEC_PER_US;
	do {
		rc = rpma_cq_get_wc(lane->cq, 1, wc, NULL);
	} while (rc == RPMA_E_NO_COMPLETION && clock_now_ns() < until);
	return rc;
}

/* Get the next completion, successful or not. Returns 0 or an errno. */
static int lane_next(struct lane *lane, struct ibv_wc *wc)
{
	uint64_t deadline = 0;
	bool ended = false;

	for (;;) {
		int rc = lane_look(lane, wc), ms;

		if (!rc)
			return 0;
		if (rc != RPMA_E_NO_COMPLETION)
			return lane_broken(lane, "wait", rc);
		/* `ended` was read before the queue was polled, so no completion that came before
		 * the disconnect is missed */
		if (ended)
			return errmsg_fail(ECONNRESET, "lane %u: %s closed the connection",
					   lane->number, lane->place->addr);
		if (!deadline)
			deadline = poll_deadline(lane->place->timeout_ms);
		ms = poll_ms_left(deadline);
		if (!ms)
			return errmsg_fail(ETIMEDOUT,
					   "lane %u: no answer from %s within %d ms "
					   "(RPMEM_TIMEOUT_MS)",
					   lane->number, lane->place->addr,
					   lane->place->timeout_ms);
		rc = rpma_cq_wait_timeout(lane->cq, ms < LANE_LOOK_MS ? ms : LANE_LOOK_MS);
		if (rc == RPMA_E_NO_COMPLETION)
			ended = lane_has_ended(lane);
		else if (rc)
			return lane_broken(lane, "wait", rc);
	}
}

/* Take one completion, and count it. */
static int lane_take(struct lane *lane)
{
	struct ibv_wc wc;
	int rc = lane_next(lane, &wc);

	if (rc)
		return rc;
	if (wc.status != IBV_WC_SUCCESS)
		return lane_explain(lane, &wc);
	switch (wc.wr_id) {
	case LANE_OP_BARRIER:
		lane->barriers--;
		return 0;
	case LANE_OP_TRANSFER:
		lane->transfers--;
		return 0;
	case LANE_OP_SENT:
		return 0;
	default:
		return lane_general_on_receive(lane, &wc);
	}
}

static int lane_take_transfers(struct lane *lane, unsigned left)
{
	int rc = 0;

	while (!rc && lane->transfers > left)
		rc = lane_take(lane);
	return rc;
}

/* Add the barrier for a range to the batch. */
static int lane_add_barrier(struct lane *lane, uint64_t offset, uint64_t length)
{
	lane->barriers++;
	if (lane->messages)
		return lane_general_add(lane, offset, length);
	return rpma_batch_flush(lane->batch, lane->remote, offset, length, lane->place->flush_type,
				RPMA_F_COMPLETION_ALWAYS, lane_context(LANE_OP_BARRIER));
}

/* Write all slices of a range except the last slice. The time limit applies to each completion. */
static int lane_write_slices(struct lane *lane, uint64_t *offset, uint64_t *length)
{
	while (*length > LANE_SLICE) {
		uint64_t slice = word_piece(*offset, *length, LANE_SLICE);
		int rc = lane_take_transfers(lane, LANE_TRANSFERS - 1);

		if (rc)
			return rc;
		rc = rpma_write(lane->conn, lane->remote, *offset, lane->place->local, *offset,
				slice, RPMA_F_COMPLETION_ALWAYS, lane_context(LANE_OP_TRANSFER));
		if (rc)
			return lane_broken(lane, "write", rc);
		lane->transfers++;
		*offset += slice;
		*length -= slice;
	}
	return 0;
}

/* Post the transfer and the barrier of a range of at most LANE_BARRIER bytes. */
static int lane_post(struct lane *lane, uint64_t offset, uint64_t length, bool signalled)
{
	uint64_t begin = offset, total = length;
	int rc = 0;

	while (!rc && lane->barriers >= lane->queue)
		rc = lane_take(lane);
	if (!rc && length > LANE_SLICE) {
		signalled = true;
		rc = lane_write_slices(lane, &offset, &length);
	}
	if (rc)
		return rc;
	rc = rpma_batch_write(lane->batch, lane->remote, offset, lane->place->local, offset, length,
			      signalled ? RPMA_F_COMPLETION_ALWAYS : RPMA_F_COMPLETION_ON_ERROR,
			      lane_context(LANE_OP_TRANSFER));
	if (!rc)
		rc = lane_add_barrier(lane, begin, total);
	if (!rc)
		rc = rpma_batch_post(lane->batch);
	if (rc)
		return lane_broken(lane, "write", rc);
	lane->transfers += signalled;
	return 0;
}

int lane_flush(struct lane *lane, uint64_t offset, uint64_t length, bool reuse)
{
	while (length) {
		uint64_t part = word_piece(offset, length, LANE_BARRIER);
		int rc = lane_post(lane, offset, part, reuse);

		if (rc)
			return rc;
		offset += part;
		length -= part;
	}
	return reuse ? lane_take_transfers(lane, 0) : 0;
}

int lane_drain(struct lane *lane)
{
	int rc = 0;

	while (!rc && (lane->barriers || lane->transfers))
		rc = lane_take(lane);
	return rc;
}

static int lane_post_read(struct lane *lane, struct rpma_mr_local *dst, uint64_t dst_offset,
			  uint64_t offset, uint64_t length)
{
	int rc = rpma_read(lane->conn, dst, dst_offset, lane->remote, offset, length,
			   RPMA_F_COMPLETION_ALWAYS, lane_context(LANE_OP_TRANSFER));

	if (rc)
		return lane_broken(lane, "read", rc);
	lane->transfers++;
	return 0;
}

static int lane_make_bounce(struct lane *lane)
{
	void *p;

	if (lane->bounce_mr)
		return 0;
	p = mmap(NULL, LANE_BOUNCE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return errmsg_fail(ENOMEM, "lane %u: no memory for reads", lane->number);
	lane->bounce = p;
	if (device_register(lane->place->peer, p, LANE_BOUNCE, RPMA_MR_USAGE_READ_DST,
			    &lane->bounce_mr))
		return errmsg_fail(ENOMEM, "lane %u: cannot register memory: %s", lane->number,
				   rpma_err_last());
	return 0;
}

static int lane_read_bounced(struct lane *lane, uint8_t *buff, uint64_t offset, uint64_t length)
{
	int rc = lane_make_bounce(lane);

	while (!rc && length) {
		uint64_t part = length < LANE_BOUNCE ? length : LANE_BOUNCE;

		rc = lane_post_read(lane, lane->bounce_mr, 0, offset, part);
		if (!rc)
			rc = lane_take_transfers(lane, 0);
		if (!rc)
			memcpy(buff, lane->bounce, part);
		buff += part;
		offset += part;
		length -= part;
	}
	return rc;
}

static int lane_read_slices(struct lane *lane, struct rpma_mr_local *dst, uint64_t offset,
			    uint64_t length)
{
	uint64_t done = 0;
	int rc = 0;

	while (!rc && done < length) {
		uint64_t part = length - done < LANE_SLICE ? length - done : LANE_SLICE;

		rc = lane_take_transfers(lane, LANE_TRANSFERS - 1);
		if (!rc)
			rc = lane_post_read(lane, dst, done, offset + done, part);
		done += part;
	}
	return rc ? rc : lane_take_transfers(lane, 0);
}

int lane_read(struct lane *lane, void *buff, uint64_t offset, uint64_t length)
{
	struct rpma_mr_local *dst = NULL;
	int rc;

	if (length <= LANE_BOUNCE ||
	    device_register(lane->place->peer, buff, length, RPMA_MR_USAGE_READ_DST, &dst))
		return lane_read_bounced(lane, buff, offset, length);
	rc = lane_read_slices(lane, dst, offset, length);
	/* after this call the device writes no more bytes to the buffer, even after a failure */
	device_deregister(&dst);
	return rc;
}
