/* SPDX-License-Identifier: BSD-3-Clause */
/* Begins and ends connections, and manages their slots and the memory of their messages. */
#include <stdlib.h>

#include "mirror/core/killpoint.h"
#include "mirrord/connections.h"
#include "mirrord/copies.h"
#include "service/counters.h"

void inbound_free(struct inbound *link)
{
	rpma_conn_delete(&link->conn);
	/*
	 * Deregister before the disconnect: after these calls return, the device cannot place bytes
	 * that the peer sent earlier.
	 */
	rpma_mr_dereg(&link->data_mr);
	rpma_mr_dereg(&link->ring_mr);
	rpma_mr_dereg(&link->message_mr);
	free(link);
}

static enum member_kind inbound_kind(const struct inbound *link)
{
	switch (link->greeting.kind) {
	case GREETING_LANE:
		return MEMBER_LANE;
	case GREETING_BULK:
		return MEMBER_BULK;
	case GREETING_RESTORE:
		return MEMBER_RESTORE;
	default:
		return MEMBER_CONTROL;
	}
}

static void inbound_log_counters(const struct inbound *link)
{
	static const char *const kinds[] = {
		[MEMBER_CONTROL] = "control",
		[MEMBER_LANE] = "lane",
		[MEMBER_BULK] = "bulk",
		[MEMBER_RESTORE] = "restore",
	};
	char text[COUNTERS_TEXT];

	if (log_threshold < LOG_LVL_INFO || link->arrival.state != ARRIVAL_ADMITTED || !link->set)
		return;
	counters_text(link->conn, text, sizeof(text));
	LOG_INFO("set %s: the %s connection from %s ends:%s", link->set->conf->name,
		 kinds[inbound_kind(link)], link->addr, text);
}

void inbound_end(struct inbound *link)
{
	struct daemon *d = link->daemon;
	struct set *s = link->counts ? link->set : NULL;
	enum member_kind kind = inbound_kind(link);
	struct inbound **at = &d->links;

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	arrivals_remove(&d->arrivals, &link->arrival);
	loop_unwatch(d, &link->on_event);
	loop_unwatch(d, &link->on_message);
	inbound_log_counters(link);
	rpma_conn_disconnect(link->conn);
	inbound_free(link);
	if (!s)
		return;
	member_on_closed(&s->member, kind);
	medium_look(s); /* a failed write-back may be the reason why the connection ended */
	/* read the register now, because the connection's epoch may have ended */
	s->look_ms = 0;
}

void inbounds_end_all(struct daemon *d, struct set *s)
{
	struct inbound *link, *next;

	for (link = d->links; link; link = next) {
		next = link->next;
		if (!s || link->set == s)
			inbound_end(link);
	}
}

/*
 * End the connections of earlier epochs. asker (may be NULL) asks for a promise of the epoch. The
 * epoch's primary has given up its other connections of that epoch to this host, but messages on
 * them may still be in transfer.
 */
void inbounds_cut(struct set *s, struct mirror_epoch epoch, const struct inbound *asker)
{
	struct inbound *link, *next;

	for (link = s->daemon->links; link; link = next) {
		next = link->next;
		if (link->set != s || link == asker || link->greeting.kind == GREETING_OBSERVE ||
		    link->greeting.epoch.number > epoch.number)
			continue;
		LOG_NOTICE("set %s: the connection from %s of epoch %llu is cut by epoch %llu",
			   s->conf->name, link->addr,
			   (unsigned long long)link->greeting.epoch.number,
			   (unsigned long long)epoch.number);
		inbound_end(link);
	}
}

static void inbound_on_event(struct watch *w)
{
	struct inbound *link = w->owner;
	enum rpma_conn_event event;

	if (rpma_conn_next_event(link->conn, &event))
		return;
	if (event != RPMA_CONN_ESTABLISHED) {
		LOG_INFO("%s: %s", link->addr, rpma_utils_conn_event_2str(event));
		inbound_end(link);
	} else if (link->arrival.state == ARRIVAL_REFUSED) {
		rpma_conn_disconnect(link->conn);
	}
}

void inbound_adopt(struct daemon *d, struct inbound *link)
{
	int event_fd = -1, cq_fd = -1;

	link->next = d->links;
	d->links = link;
	link->arrival.addr = link->addr;
	link->arrival.deadline = clock_boot_ms() + DAEMON_PENDING_MS;
	arrivals_add(&d->arrivals, &link->arrival);
	rpma_conn_get_event_fd(link->conn, &event_fd);
	rpma_conn_get_cq(link->conn, &link->cq);
	rpma_cq_get_fd(link->cq, &cq_fd);
	if (loop_watch(d, &link->on_event, event_fd, inbound_on_event, link) ||
	    loop_watch(d, &link->on_message, cq_fd, control_on_message, link))
		inbound_end(link);
}

void inbounds_make_room(struct daemon *d, const char *addr)
{
	struct arrival *one;

	while ((one = arrivals_surplus(&d->arrivals, addr, d->conf->max_pending))) {
		LOG_WARNING_LIMITED("too many connections were not accepted yet: the oldest, "
				    "from %s, is closed",
				    one->addr);
		inbound_end(container_of(one, struct inbound, arrival));
	}
}

uint64_t inbounds_deadline(struct daemon *d, uint64_t now_ms)
{
	struct arrival *one;
	uint64_t nearest;

	while ((one = arrivals_overdue(&d->arrivals, now_ms, &nearest)))
		inbound_end(container_of(one, struct inbound, arrival));
	return nearest;
}

int inbound_post_receives(struct inbound *link, struct rpma_conn_req *req)
{
	int rc = rpma_mr_reg(link->daemon->peer, &link->messages, sizeof(link->messages),
			     RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &link->message_mr);

	for (unsigned i = 0; i < MESSAGE_OUTSTANDING && !rc; i++)
		rc = rpma_conn_req_recv(req, link->message_mr, (size_t)i * MESSAGE_SIZE,
					MESSAGE_SIZE, (void *)(uintptr_t)i);
	return rc;
}

int inbound_send(struct inbound *link, const struct message *m)
{
	size_t offset = offsetof(struct inbound_messages, out);
	unsigned slots = sizeof(link->messages.out) / MESSAGE_SIZE;
	unsigned i = 0;
	int rc;

	while (i < slots && link->out_busy & 1u << i)
		i++;
	if (i == slots)
		return RPMA_E_AGAIN;
	message_encode(m, link->version, link->messages.out[i]);
	killpoint(KILLPOINT_answer_before);
	rc = rpma_send(link->conn, link->message_mr, offset + (size_t)i * MESSAGE_SIZE,
		       MESSAGE_SIZE, RPMA_F_COMPLETION_ALWAYS, (void *)(uintptr_t)i);
	if (!rc)
		link->out_busy |= 1u << i;
	return rc;
}
