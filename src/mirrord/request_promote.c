/* SPDX-License-Identifier: BSD-3-Clause */
/* An operator's promotion: of a process that waits, or of one that on-promote starts. */
#include <stdio.h>
#include <string.h>

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

static void request_order_waiting(struct client *waiting, bool force)
{
	waiting->is_ordered = true;
	if (force)
		waiting->map_flags |= PACKET_MAP_FORCE;
}

void request_promote(struct client *client, struct set *s, const char *member, bool force)
{
	uint8_t slot = request_slot(client, s, member);
	struct client *waiting = request_find_waiting(s);

	if (slot == MIRROR_NOBODY)
		return;
	if (slot != s->meta.super.slot) {
		request_elsewhere(client, s, slot, "that copy");
		return;
	}
	if (s->holder.epoch.number) {
		request_done(client); /* it is primary */
		return;
	}
	if (!waiting && !s->conf->on_promote[0]) {
		request_refuse(client, REQUEST_CONFIG,
			       "start the application, whose rpmirror_map() with "
			       "RPMIRROR_MAP_WAIT waits, or configure on-promote",
			       "no process on this host waits to be primary");
		return;
	}
	client->is_forced = force;
	client->has_run = false;
	/* What was read before the request says nothing. */
	client->wants_answer = s->asked + 1;
	request_wait(client, s, CLIENT_WAITS_PRIMARY);
	if (waiting)
		request_order_waiting(waiting, force);
	reg_ask(s);
	map_retry(s);
}

void request_on_waiting(struct set *s, struct client *waiting)
{
	for (struct client *c = s->daemon->clients; c; c = c->next)
		if (c->wait == CLIENT_WAITS_PRIMARY && c->wait_set == s)
			request_order_waiting(waiting, c->is_forced);
}

/* As if the process that is to be primary asked now. */
static struct map_reason request_judge(const struct set *s, const struct client *client)
{
	const struct client process = {.map_flags = PACKET_MAP_WAIT |
						    (client->is_forced ? PACKET_MAP_FORCE : 0),
				       .is_ordered = true};

	return map_why_waits(s, &process);
}

static void request_look_after(struct set *s, struct client *client)
{
	struct map_reason why;

	if ((int32_t)(s->answered - client->wants_answer) < 0)
		return;
	why = request_judge(s, client);
	switch (why.status) {
	case PACKET_NOT_INSYNC:
	case PACKET_SPLIT:
	case PACKET_COPY_FAILED: /* no other member's end helps */
		request_refuse(client, request_code_of(why.status), NULL, "%s", why.text);
		return;
	default:
		break;
	}
	if (!client->has_run && !s->holder.pid && !set_has_waiting(s)) {
		client->has_run = true;
		promote_run(s);
	}
}

void request_look_promotions(struct set *s)
{
	for (struct client *c = s->daemon->clients; c; c = c->next)
		if (c->wait == CLIENT_WAITS_PRIMARY && c->wait_set == s)
			request_look_after(s, c);
}

void request_on_promoted(struct set *s)
{
	for (struct client *c = s->daemon->clients; c; c = c->next)
		if (c->wait == CLIENT_WAITS_PRIMARY && c->wait_set == s)
			request_done(c);
}

void request_give_promotion_up(struct client *client)
{
	struct map_reason why = request_judge(client->wait_set, client);

	request_refuse(client, REQUEST_TIMEOUT,
		       request_find_waiting(client->wait_set)
			       ? "the process goes on waiting; 'rpmirror explain' says for what"
			       : NULL,
		       "no process on this host has become primary: %s", why.text);
}

void request_on_promote_failed(struct set *s, const char *text)
{
	for (struct client *c = s->daemon->clients; c; c = c->next)
		if (c->wait == CLIENT_WAITS_PRIMARY && c->wait_set == s && !set_has_waiting(s) &&
		    !s->holder.pid)
			request_refuse(c, REQUEST_CONFIG, "see its output in the daemon's log",
				       "%s", text);
}
