/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/lib/check.h"

#include "outcome.h"

#include <errno.h>

#include "base/clock.h"

void post_read(struct client *c)
{
	OK(rpma_read(c->conn, c->mr, 0, c->at[0], 0, 64, RPMA_F_COMPLETION_ALWAYS, c));
}

void expect_lost(struct client *c, uint64_t begun)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct ibv_wc wc = {0};
	uint32_t code = 0;
	uint64_t ms;

	OK(client_wait_wc(c->cq, &wc, AT_MOST_MS + CLIENT_WAIT_MS));
	ms = (clock_now_ns() - begun) / NSEC_PER_MS;
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(rpma_wc_get_reason(c->conn, &wc, &code), RPMA_REASON_LINK);
	assert_int_equal(code, ETIMEDOUT);
	OK(client_wait_event(c->conn, &event, CLIENT_WAIT_MS));
	assert_int_equal(event, RPMA_CONN_LOST);
	/* The last byte of the peer can have arrived shortly before `begun`. */
	assert_in_range(ms, LIMIT_MS / 2, AT_MOST_MS);
}

int target_lost(struct remote *target)
{
	const char *line = proc_ask(&target->proc, "count");
	int conns, accepted, lost;

	assert_non_null(line);
	assert_int_equal(sscanf(line, "%d %d %d", &conns, &accepted, &lost), 3);
	return lost;
}

void expect_target_lost(struct remote *target, int n)
{
	assert_int_equal(remote_wait_conns(target, 0, AT_MOST_MS), 0);
	assert_int_equal(target_lost(target), n);
}
