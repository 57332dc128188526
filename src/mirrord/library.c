/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles a library's requests for its set: forwards requests to the register, and answers requests
 * for the copy's records.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mirror/core/intent.h"
#include "mirrord/clients.h"
#include "mirrord/connections.h"
#include "mirrord/copies.h"
#include "mirrord/requests.h"

static struct packet library_packet; /* static, because it is large; one answer at a time */

/* Returns the client that posted the job, or NULL if the client is gone. */
static struct client *library_asker(const struct agent_job *job)
{
	const struct set *s = job->owner;

	return local_find(s->daemon, job->client);
}

static void library_on_got(struct agent_job *job)
{
	struct set *s = job->owner;
	struct client *client = library_asker(job);
	struct packet *p = packet_begin(&library_packet, PACKET_RECORD, job->id);

	if (!job->rc) {
		reg_on_entry(s, &job->now, job->sent_ns);
		p->record.revision = job->now.revision;
		p->record.record = job->now.record;
	} else {
		p->record.status = PACKET_REGISTER;
		snprintf(p->record.text, sizeof(p->record.text), "%s", job->err.text);
	}
	if (client)
		local_send(client, p, NULL, 0);
	free(job);
}

static int library_get(struct client *client, const struct packet *p)
{
	struct agent_job *job = agent_job_new(AGENT_GET, library_on_got, client->set);

	if (!job)
		return -ENOMEM;
	job->client = client->serial;
	job->id = p->id;
	agent_post(client->set->asks, job);
	return 0;
}

/* Record the promotion. From now on this daemon writes the alive key. */
static void library_on_promoted(struct set *s, const struct client *client,
				struct mirror_epoch epoch)
{
	if (s->holder.client != client)
		return;
	s->holder.epoch = epoch;
	s->may_promote = s->lease_is_over = false;
	memset(&s->renewed, 0, sizeof(s->renewed));
	s->renew_ms = 0;
	LOG_NOTICE("set %s: process %d is primary of epoch %llu", s->conf->name, (int)client->pid,
		   (unsigned long long)epoch.number);
	request_on_promoted(s);
}

/* Refuse a swap because the operator's order has ended. The process waits again, or its map call
 * fails. */
static void library_refuse_swap(const struct set *s, struct client *client, uint32_t id)
{
	struct packet *p = packet_begin(&library_packet, PACKET_SWAPPED, id);

	p->swapped.result = s->has_entry ? PACKET_SWAP_CHANGED : PACKET_SWAP_FAILED;
	p->swapped.revision = s->entry.revision;
	p->swapped.record = s->entry.record;
	if (client)
		local_send(client, p, NULL, 0);
}

static void library_on_swapped(struct agent_job *job)
{
	struct set *s = job->owner;
	struct client *client = library_asker(job);
	struct packet *p;

	if (job->is_ordered)
		request_on_promotion_swapped(s, job->result == REGISTER_UNKNOWN);
	if (job->is_withdrawn && job->result == REGISTER_FAILED) {
		library_refuse_swap(s, client, job->id);
		free(job);
		return;
	}
	p = packet_begin(&library_packet, PACKET_SWAPPED, job->id);
	p->swapped.result = (uint8_t)job->result;
	snprintf(p->swapped.text, sizeof(p->swapped.text), "%s", job->err.text);
	if (job->result == REGISTER_DONE && job->promotes && client)
		library_on_promoted(s, client, job->next.view.epoch);
	if ((job->result == REGISTER_DONE || job->result == REGISTER_CHANGED) &&
	    job->now.revision) {
		p->swapped.revision = job->now.revision;
		p->swapped.record = job->now.record;
	}
	if (client)
		local_send(client, p, NULL, 0);
	if (p->swapped.revision)
		reg_on_entry(s, &job->now, job->sent_ns);
	free(job);
}

_Static_assert((int)PACKET_SWAP_DONE == (int)REGISTER_DONE, "the same numbers");
_Static_assert((int)PACKET_SWAP_CHANGED == (int)REGISTER_CHANGED, "the same numbers");
_Static_assert((int)PACKET_SWAP_UNKNOWN == (int)REGISTER_UNKNOWN, "the same numbers");
_Static_assert((int)PACKET_SWAP_FAILED == (int)REGISTER_FAILED, "the same numbers");

/* Returns true if the promotion displaces no living primary. */
static bool library_is_free(const struct set *s)
{
	uint8_t primary = s->entry.record.view.primary;

	return primary == MIRROR_NO_SLOT || primary == s->meta.super.slot;
}

/* Returns true if the promotion requires an order, and there is none. The order by which the
 * process was permitted to map may have ended, or may be for another view. */
static bool library_lacks_order(const struct set *s, const struct client *client,
				const struct packet_swap_request *swap, enum promotion_kind order)
{
	bool may_follow = library_is_free(s) || map_may_follow(s, client, PROMOTION_NO_ORDER);

	return promotion_lacks_order(&swap->after.view, may_follow, order);
}

/* Returns true if the process may promote. While another primary may be alive, this needs the
 * operator's permission. */
static bool library_may_promote(const struct set *s, const struct packet_swap_request *swap)
{
	return swap->after.view.forced || s->may_promote || library_is_free(s);
}

static int library_swap(struct client *client, const struct packet *p)
{
	struct set *s = client->set;
	enum promotion_kind order = request_order_for(s, &p->swap.before.view);
	struct agent_job *job;

	if (!p->swap.before.config.number || !p->swap.after.config.number)
		return -EPROTO;
	if (p->swap.promotes && library_lacks_order(s, client, &p->swap, order)) {
		LOG_NOTICE("set %s: process %d is not promoted, because the order has ended",
			   s->conf->name, (int)client->pid);
		library_refuse_swap(s, client, p->id);
		return 0;
	}
	if (p->swap.promotes && !library_may_promote(s, &p->swap)) {
		struct packet *answer = packet_begin(&library_packet, PACKET_SWAPPED, p->id);

		answer->swapped.result = PACKET_SWAP_FAILED;
		snprintf(answer->swapped.text, sizeof(answer->swapped.text),
			 "another primary renews its alive key");
		local_send(client, answer, NULL, 0);
		return 0;
	}
	job = agent_job_new(AGENT_SWAP, library_on_swapped, s);
	if (!job)
		return -ENOMEM;
	job->client = client->serial;
	job->id = p->id;
	job->promotes = p->swap.promotes;
	job->is_forced = job->promotes && p->swap.after.view.forced;
	job->is_ordered =
		job->promotes && library_lacks_order(s, client, &p->swap, PROMOTION_NO_ORDER);
	s->promotion.swaps += job->is_ordered;
	job->alive = s->seen;
	job->expected.revision = p->swap.revision;
	job->expected.record = p->swap.before;
	job->next = p->swap.after;
	agent_post(s->asks, job);
	return 0;
}

/* Answer a question about this host's copy, as if it had come through a connection. */
static int library_member(struct client *client, const struct packet *p)
{
	struct packet *answer = packet_begin(&library_packet, PACKET_MEMBER, p->id);

	if (!control_answer(client->set, NULL, &p->member, &answer->member))
		return -EPROTO;
	answer->member.id = p->member.id;
	answer->member.uuid = p->member.uuid;
	answer->member.epoch = p->member.epoch;
	local_send(client, answer, NULL, 0);
	return 0;
}

static void library_verdict(struct client *client, const struct packet *p,
			    const struct member_verdict *v)
{
	local_send_done(client, p->id, v->answer == MEMBER_YES ? PACKET_OK : PACKET_IO,
			v->answer == MEMBER_YES ? "" : v->text);
}

static int library_serve(struct client *client, const struct packet *p)
{
	struct set *s = client->set;
	struct member_verdict v;

	medium_look(s);
	member_serve(&s->member, p->serve.epoch, p->serve.forced, &v);
	/* This call is also needed after a promotion whose swap got no answer. */
	if (v.answer == MEMBER_YES && !mirror_epoch_is_equal(s->holder.epoch, p->serve.epoch))
		library_on_promoted(s, client, p->serve.epoch);
	library_verdict(client, p, &v);
	return 0;
}

static int library_fail(struct client *client, const struct packet *p)
{
	struct member_verdict v;

	LOG_ERROR("set %s: process %d reports that the copy's medium has failed",
		  client->set->conf->name, (int)client->pid);
	member_fail(&client->set->member, &v);
	library_verdict(client, p, &v);
	return 0;
}

static int library_lose(struct client *client, const struct packet *p)
{
	const struct member_verdict yes = {.answer = MEMBER_YES};

	medium_on_word(client->set, p->lost.error);
	library_verdict(client, p, &yes);
	return 0;
}

static void library_on_event(struct set *s, const struct packet_event *event)
{
	const struct mirror_config *config = &s->entry.record.config;
	bool has_member = event->member < MIRROR_MEMBERS_MAX && config->members[event->member].id;

	event_emit(s, has_member ? config->members[event->member].name : NULL,
		   packet_event_2str(event->what), NULL, NULL, event->text);
}

/* Handle requests that only the process that maps the set may send. */
static int library_on_holder(struct client *client, const struct packet *p)
{
	struct set *s = client->set;

	s->holder.is_confirmed = true;
	switch (p->type) {
	case PACKET_UNMAP:
		map_on_unmap(client, p);
		return 0;
	case PACKET_GET_RECORD:
		return library_get(client, p);
	case PACKET_SWAP:
		return library_swap(client, p);
	case PACKET_MEMBER:
		return library_member(client, p);
	case PACKET_HEARTBEAT:
		s->holder.heartbeat_ms = clock_boot_ms();
		return 0;
	case PACKET_SERVE:
		return library_serve(client, p);
	case PACKET_FAIL:
		return library_fail(client, p);
	case PACKET_LOST:
		return library_lose(client, p);
	case PACKET_STATUS:
		s->holder.report = p->report;
		s->holder.report_ms = clock_boot_ms();
		return 0;
	case PACKET_EVENT:
		library_on_event(s, &p->event);
		return 0;
	case PACKET_ORDERED:
		scrub_on_ordered(s, p->id, &p->ordered);
		if (p->id && p->id != SCRUB_ID)
			request_on_ordered(s, p);
		return 0;
	default:
		return -EPROTO;
	}
}

/* Returns the number of the last flush. If the primary is on this host, its report has this number,
 * because the primary does not write the ring. */
static uint64_t library_last_flush(const struct set *s)
{
	const struct packet_report *report = set_report(s);
	uint64_t epoch = s->entry.record.view.epoch.number;
	struct intent_reader ring = {.ring = meta_ring(&s->meta),
				     .size = s->meta.super.size,
				     .from = epoch,
				     .upto = epoch};

	return report && s->holder.epoch.number == epoch ? report->status.acked
							 : intent_last(&ring);
}

static void library_send_age(struct client *client, const struct packet *p)
{
	struct set *s = client->set;
	struct packet *answer = packet_begin(&library_packet, PACKET_AGE, p->id);

	if (s->is_open && s->has_entry) {
		answer->age.fresh_ns = s->fresh_ns;
		answer->age.epoch = s->entry.record.view.epoch.number;
		answer->age.view_seq = s->entry.record.view.seq;
		answer->age.flush_seq = library_last_flush(s);
	}
	local_send(client, answer, NULL, 0);
	reg_ask(s); /* read the register, so that the next question gets a newer answer */
}

int library_on_packet(struct client *client, const struct packet *p)
{
	if (p->type == PACKET_MAP) {
		map_on_request(client, p);
		return 0;
	}
	if (client->set && client->is_reader && p->type == PACKET_GET_AGE) {
		library_send_age(client, p);
		return 0;
	}
	if (!client->set || client->set->holder.client != client)
		return -EPROTO;
	return library_on_holder(client, p);
}
