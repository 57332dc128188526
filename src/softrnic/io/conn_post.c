/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_post.c -- the data path for the application's threads: posts work requests, and processes
 * arrived bytes when a poll finds an empty CQ. */
#include <errno.h>

#include "softrnic/io/conn_parts.h"
#include "softrnic/io/conn_plain_impl.h"

/* Take the lock for a post. Returns 0 or an errno value. */
static int conn_enter_to_post(struct conn *c)
{
	return conn_is_removed(c) ? ENODEV : conn_enter_caller(c, CONN_CALLER_MS);
}

int conn_post_send(struct conn *c, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int ret = conn_enter_to_post(c);

	if (ret) {
		*bad = wr;
		return ret;
	}
	ret = stream_post_send(c->stream, wr, bad, NULL);
	conn_perform_posted(c);
	if (__builtin_expect(c->plain != NULL, 0))
		conn_plain_on_post(c);
	conn_leave(c);
	return ret;
}

int conn_post_recv(struct conn *c, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct stream_update u;
	int ret = conn_enter_to_post(c);

	if (ret) {
		*bad = wr;
		return ret;
	}
	ret = stream_post_recv(c->stream, wr, bad, NULL);
	if (c->readable || (conn_doorbell_since(c) && !conn_ack_waits(c)) ||
	    !stream_needs_nothing(c->stream)) {
		stream_look(c->stream, &u);
		conn_perform_and_read(c, &u);
	}
	conn_leave(c);
	return ret;
}

int conn_post_list(struct conn *c, const struct vext_wr *wrs, int n, int *posted)
{
	int ret = conn_enter_to_post(c);

	*posted = 0;
	if (ret)
		return ret;
	ret = stream_post_list(c->stream, wrs, n, posted, NULL);
	conn_perform_posted(c);
	if (__builtin_expect(c->plain != NULL, 0))
		conn_plain_on_post(c);
	conn_leave(c);
	return ret;
}

/* Check the send queue again. If another thread holds the lock for long, that thread checks the
 * queue when it releases the lock. */
void conn_look_at_sends(struct conn *c)
{
	if (conn_enter_to_post(c)) {
		conn_want(c, CONN_RESUME);
		return;
	}
	conn_settle(c);
	if (c->plain)
		conn_plain_on_post(c);
	conn_leave(c);
}

/* If another thread holds the lock, return false: that thread processes the bytes. */
bool conn_drive(struct conn *c, uint64_t now, struct cq_taker *taker)
{
	bool learns;

	conn_count_poll(c);
	if (!conn_may_touch(c)) {
		conn_untouchable(c);
		return false;
	}
	if (!conn_try_enter(c))
		return false;
	policy_looked(&c->policy.send);
	learns = !atomic_load_explicit(&c->policy.leased, memory_order_relaxed);
	if (learns)
		conn_look_begins(c);
	if (now)
		conn_own(c, now);
	stream_set_taker(c->stream, taker);
	if (c->link && c->link->ops->gathers_sends)
		conn_poll_for_user(c, conn_looks(c));
	else
		conn_poll(c, conn_looks(c));
	stream_set_taker(c->stream, NULL);
	if (learns)
		conn_look_ends(c);
	conn_leave(c);
	return true;
}
