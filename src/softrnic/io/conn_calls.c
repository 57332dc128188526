/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_calls.c -- the calls by which an id configures, connects, answers, disconnects and ends its
 * connection. */

#include "base/clock.h"
#include "softrnic/io/config.h"
#include "softrnic/io/conn_parts.h"

/* --- before the connection is established --------------------------------------------------- */

int conn_configure(struct conn *c, const struct conn_settings *settings)
{
	int ret;

	conn_enter(c);
	ret = stream_set_limits(c->stream, settings->connect_ns, settings->liveness_ns);
	if (!ret)
		ret = stream_set_user_flushes(c->stream, settings->announces_flushes);
	if (!ret)
		conn_set_owner(c, settings->owner);
	conn_leave(c);
	return ret;
}

int conn_connect(struct conn *c, const struct link_addr *from, const struct link_addr *to,
		 struct link **bound, const struct stream_params *params)
{
	struct stream_update u;
	int ret;

	conn_enter(c);
	c->src = *from;
	c->dst = *to;
	ret = stream_connect(c->stream, params, clock_now_ns(), &u);
	if (!ret) {
		conn_dial(c, *bound);
		*bound = NULL;
		conn_settle(c);
	}
	conn_leave(c);
	return ret;
}

int conn_cancel(struct conn *c)
{
	struct stream_update u;
	int ret;

	conn_enter(c);
	ret = stream_cancel(c->stream, &u);
	conn_perform(c, &u);
	conn_leave(c);
	return ret;
}

int conn_accept(struct conn *c, const struct stream_params *params)
{
	struct stream_params as_asked = {0};
	struct stream_update u;
	int ret;

	conn_enter(c);
	if (!params) {
		as_asked.ird = stream_remote(c->stream)->ird;
		as_asked.ord = stream_remote(c->stream)->ord;
		params = &as_asked;
	}
	conn_origin_arrives(c);
	ret = stream_accept(c->stream, params, conn_segment(c), clock_now_ns(), &u);
	conn_perform(c, &u);
	conn_leave(c);
	return ret;
}

int conn_reject(struct conn *c, const void *pdata, uint8_t len)
{
	struct stream_update u;
	int ret;

	conn_enter(c);
	ret = stream_reject(c->stream, pdata, len, clock_now_ns(), &u);
	conn_perform(c, &u);
	conn_leave(c);
	return ret;
}

/* --- the end -------------------------------------------------------------------------------- */

int conn_disconnect(struct conn *c, bool *reports)
{
	struct stream_update u;
	int ret;

	*reports = false;
	if (conn_enter_caller(c, CONN_CALLER_MS)) {
		conn_want(c, CONN_DISCONNECT);
		return 0;
	}
	conn_end_quiet(c);
	*reports = stream_state(c->stream) < STREAM_LINGERING;
	ret = stream_disconnect(c->stream, clock_now_ns(), &u);
	conn_perform(c, &u);
	conn_leave(c);
	return ret;
}

void conn_abort(struct conn *c)
{
	struct stream_update u;
	uint64_t end;

	conn_enter(c);
	if (stream_state(c->stream) == STREAM_LIVE) {
		stream_abort(c->stream, &u);
		conn_perform(c, &u);
	} else if (stream_state(c->stream) > STREAM_LIVE) {
		/* Wait for the peer's FIN, after which no byte is on its way. If the FIN does not
		 * arrive within the time limit of a disconnect, the connection ends by a reset. */
		end = clock_now_ns() + config_get()->drain_ns;
		while (c->link && stream_leaves_writes(c->stream) && clock_now_ns() < end)
			conn_wait_change(c, end);
	}
	conn_leave(c);
}

void conn_release(struct conn *c)
{
	if (!conn_is_removed(c)) {
		conn_enter(c);
		conn_end_quiet(c);
		conn_abandon(c);
		conn_settle(c);
		conn_leave(c);
	}
	conn_put(c);
}

/* --- calls during an event ------------------------------------------------------------------ */

const struct stream_params *conn_remote(const struct conn *c)
{
	return stream_remote(c->stream);
}

int conn_local(const struct conn *c, struct link_addr *local)
{
	return c->link->ops->local(c->link, local);
}

void conn_ends(const struct conn *c, struct link_addr *local, struct link_addr *peer)
{
	*local = c->src;
	*peer = c->dst;
}

void conn_report_to(struct conn *c, conn_event_fn *event, void *owner)
{
	c->event = event;
	c->owner = owner;
}
