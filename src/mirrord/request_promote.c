/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles an operator's promotion of a process that waits, or that on-promote starts. */
#include <jansson.h>
#include <stdio.h>

#include "base/clock.h"
#include "mirrord/clients.h"
#include "mirrord/programs.h"
#include "mirrord/requests.h"

static struct client *request_find_waiting(const struct set *s)
{
	for (struct client *c = s->daemon->clients; c; c = c->next)
		if (c->set == s && c->is_waiting)
			return c;
	return NULL;
}

/* ---- the order ---- */

static bool request_promotes(const struct client *c, const struct set *s)
{
	return c->wait == CLIENT_WAITS_PRIMARY && c->wait_set == s;
}

/* Returns true if the register was read after the client's request. */
static bool request_has_answer(const struct set *s, const struct client *client)
{
	return (int32_t)(s->answered - client->wants_answer) >= 0;
}

enum promotion_kind request_order_for(const struct set *s, const struct mirror_view *view)
{
	enum promotion_kind order = PROMOTION_NO_ORDER;

	for (const struct client *c = s->daemon->clients; c; c = c->next) {
		enum promotion_kind permitted;

		if (!request_promotes(c, s) || !request_has_answer(s, c))
			continue;
		permitted = promotion_order_permits(&c->promotion.order, view);
		order = permitted > order ? permitted : order;
	}
	return order;
}

static bool request_is_forced(const struct client *client)
{
	return client->promotion.order.kind == PROMOTION_FORCE;
}

void request_end_promotion(struct client *client)
{
	struct set *s = client->wait_set;

	if (client->wait != CLIENT_WAITS_PRIMARY || client->promotion.order.is_over)
		return;
	client->promotion.order.is_over = true;
	LOG_NOTICE("set %s: the order to promote this host%s has ended, and has no effect any more",
		   s->conf->name, request_is_forced(client) ? " by force" : "");
	if (!request_order_for(s, &s->entry.record.view))
		agent_withdraw(s->asks);
}

void request_on_promotion_swapped(struct set *s, bool is_unknown)
{
	s->promotion.swaps--;
	for (struct client *c = s->daemon->clients; c; c = c->next)
		if (request_promotes(c, s))
			c->promotion.is_doubtful = is_unknown;
}

void request_promote(struct client *client, struct set *s, const char *member, bool force)
{
	uint8_t slot = request_slot(client, s, member);

	if (slot == MIRROR_NO_SLOT)
		return;
	if (slot != s->meta.super.slot) {
		request_elsewhere(client, s, slot, "that copy");
		return;
	}
	if (s->holder.epoch.number) {
		request_done(client, NULL); /* the process has become primary */
		return;
	}
	if (!request_find_waiting(s) && !s->conf->on_promote[0]) {
		request_refuse(client, CODE_CONFIG,
			       "start the application, whose rpmirror_map() with "
			       "RPMIRROR_MAP_WAIT waits, or configure on-promote",
			       "no process on this host waits to be primary");
		return;
	}
	client->promotion.order = (struct promotion_order){
		.kind = force ? PROMOTION_FORCE : PROMOTION_ORDER, .view = s->entry.record.view};
	client->promotion.has_run = client->promotion.is_doubtful = false;
	client->wants_answer = s->asked + 1;
	request_wait(client, s, CLIENT_WAITS_PRIMARY);
	LOG_NOTICE("set %s: an operator orders that this host is promoted%s, in epoch %llu.%llu",
		   s->conf->name, force ? " by force" : "",
		   (unsigned long long)s->entry.record.view.epoch.number,
		   (unsigned long long)s->entry.record.view.seq);
	reg_ask(s);
}

/* Check whether the process that would become primary could map the set now. */
static struct map_reason request_judge(const struct set *s, const struct client *client)
{
	const struct client process = {.map_flags = PACKET_MAP_WAIT};

	return map_why_waits(s, &process, client->promotion.order.kind);
}

/* Returns true if the order is outdated. A promotion on this host, by the order or without it,
 * does not make the order outdated. */
static bool request_is_outdated(const struct set *s, const struct client *client)
{
	const struct mirror_view *view = &s->entry.record.view;

	return s->has_entry && !promotion_order_fits(&client->promotion.order, view) &&
	       !(s->holder.pid && view->primary == s->meta.super.slot);
}

static void request_look_after(struct set *s, struct client *client)
{
	struct map_reason why;

	if (!request_has_answer(s, client) || client->promotion.order.is_over)
		return;
	if (request_is_outdated(s, client)) {
		request_end_promotion(client);
		request_refuse(client, CODE_EPOCH,
			       "look at the status, and repeat the order if it is still right",
			       "the set has changed since the order was given: it is in epoch "
			       "%llu.%llu now",
			       (unsigned long long)s->entry.record.view.epoch.number,
			       (unsigned long long)s->entry.record.view.seq);
		return;
	}
	why = request_judge(s, client);
	switch (why.status) {
	case PACKET_NOT_INSYNC:
	case PACKET_SPLIT:
	case PACKET_COPY_FAILED: /* a failed copy is not helped by the end of another primary */
		request_end_promotion(client);
		request_refuse(client, request_code_of(why.status), NULL, "%s", why.text);
		return;
	default:
		break;
	}
	if (!client->promotion.has_run && !s->holder.pid && !set_has_waiting(s)) {
		client->promotion.has_run = true;
		promote_run(s);
	}
}

void request_look_promotions(struct set *s)
{
	for (struct client *c = s->daemon->clients; c; c = c->next)
		if (request_promotes(c, s))
			request_look_after(s, c);
}

void request_on_promoted(struct set *s)
{
	for (struct client *c = s->daemon->clients; c; c = c->next)
		if (request_promotes(c, s))
			request_done(c, NULL);
}

void request_give_promotion_up(struct client *client)
{
	struct set *s = client->wait_set;
	struct map_reason why;

	request_end_promotion(client);
	if (s->promotion.swaps)
		return; /* the swap has been sent, and the register's answer will decide */
	if (client->promotion.is_doubtful) {
		request_refuse(client, CODE_QUORUM,
			       "look at the status to see whether the promotion was made",
			       "the register has not answered to the promotion");
		return;
	}
	why = request_judge(s, client);
	request_refuse(
		client, CODE_TIMEOUT,
		request_find_waiting(s)
			? "the order has ended, but the process still waits; 'rpmirror explain' "
			  "shows the reason"
			: NULL,
		"no process on this host has become primary: %s", why.text);
}

void request_on_promote_failed(struct set *s, const char *text)
{
	for (struct client *c = s->daemon->clients; c; c = c->next)
		if (request_promotes(c, s) && !set_has_waiting(s) && !s->holder.pid)
			request_refuse(c, CODE_CONFIG, "see its output in the daemon's log", "%s",
				       text);
}

void request_put_promotions(const struct set *s, json_t *waiting)
{
	uint64_t now = clock_boot_ms();

	for (const struct client *c = s->daemon->clients; c; c = c->next) {
		char what[MIRROR_NAME_MAX + 64];
		json_t *out;

		if (!request_promotes(c, s))
			continue;
		snprintf(what, sizeof(what), "an operator's order to promote member %s%s",
			 s->conf->member, request_is_forced(c) ? " by force" : "");
		out = json_pack("{s:s, s:s}", "what", what, "why", request_judge(s, c).text);
		if (c->wait_until_ms > now)
			json_object_set_new(out, "deadline_ms",
					    json_integer((json_int_t)(c->wait_until_ms - now)));
		json_array_append_new(waiting, out);
	}
}
