/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes promises: after the answer to a promise, no byte of an earlier epoch is placed in the
 * copy. */

#include "mirrord/clients.h"
#include "mirrord/connections.h"
#include "mirrord/copies.h"

/* Returns the status in messages for a reason of core/member.h. */
enum greeting_status fence_status(enum member_reason reason)
{
	switch (reason) {
	case MEMBER_OK:
		return GREETING_OK;
	case MEMBER_OTHER_SET:
		return GREETING_NO_SET;
	case MEMBER_OTHER_COPY:
	case MEMBER_OTHER_SIZE:
		return GREETING_WRONG_COPY;
	case MEMBER_EPOCH_OLD:
	case MEMBER_EPOCH_TWIN:
	case MEMBER_NOT_PROMISED:
		return GREETING_EPOCH;
	case MEMBER_IS_HELD:
		return GREETING_HELD;
	case MEMBER_HAS_FAILED:
	case MEMBER_IS_UNKNOWN:
		return GREETING_COPY_FAILED;
	case MEMBER_IS_SPLIT:
		return GREETING_SPLIT;
	case MEMBER_IS_SYNCING:
	case MEMBER_NOT_BEGUN:
		return GREETING_BAD_REQUEST;
	case MEMBER_IO:
	case MEMBER_REASONS:
		break;
	}
	return GREETING_IO;
}

void fence_refuse(const struct set *s, const struct member_verdict *v, uint8_t to,
		  struct message *answer)
{
	LOG_WARNING_LIMITED("set %s: %s is refused: %s", s->conf->name, message_type_2str(to),
			    v->text);
	answer->type = MESSAGE_DONE;
	answer->done = (struct message_done){.to = to,
					     .status = (uint8_t)fence_status(v->reason),
					     .known = s->meta.promise.epoch};
}

/* Notify the process on this host that was primary of a lower epoch: immediately, and only once. */
static void fence_notify_holder(struct set *s, struct mirror_epoch epoch)
{
	struct packet p = {.type = PACKET_FENCED, .fenced = {.known = epoch}};

	if (!s->holder.client || !s->holder.epoch.number ||
	    s->holder.epoch.number >= epoch.number || s->holder.fenced_by >= epoch.number)
		return;
	s->holder.fenced_by = epoch.number;
	LOG_NOTICE("set %s: process %d is no longer primary", s->conf->name, (int)s->holder.pid);
	local_send(s->holder.client, &p, NULL, 0);
}

static void fence_report(struct set *s, struct message *answer)
{
	struct member_report report;
	struct message_promised *promised = &answer->promised;
	int rc = member_report(&s->member, &report);

	if (rc) {
		answer->type = MESSAGE_DONE;
		answer->done = (struct message_done){.to = MESSAGE_PROMISE,
						     .status = GREETING_IO,
						     .known = s->meta.promise.epoch};
		return;
	}
	answer->type = MESSAGE_PROMISED;
	promised->copy = (uint8_t)report.copy;
	promised->flags = (uint8_t)((report.is_held ? MESSAGE_REPORT_HELD : 0) |
				    (report.is_uncertain ? MESSAGE_REPORT_UNCERTAIN : 0) |
				    (report.flags & META_FORCED ? MESSAGE_REPORT_FORCED : 0) |
				    (report.is_unknown ? MESSAGE_REPORT_UNKNOWN : 0));
	promised->ranges = report.range_count;
	promised->copy_id = s->meta.super.member_id;
	promised->size = s->meta.super.size;
	promised->revision = report.seen.revision;
	promised->seen = report.seen.view;
	promised->copy_epoch = report.epoch;
	promised->source_id = report.source_id;
}

void fence_promise(struct set *s, const struct inbound *asker, struct mirror_epoch epoch,
		   struct message *answer)
{
	struct member_verdict v;

	member_promise(&s->member, epoch, &v);
	if (v.answer != MEMBER_NO)
		inbounds_cut(s, epoch, asker);
	if (v.answer == MEMBER_CUT_FIRST)
		member_promise(&s->member, epoch, &v);
	/* The answer covers all bytes that were placed earlier, so record a failed write-back
	 * first. */
	medium_look(s);
	if (v.answer != MEMBER_YES) {
		fence_refuse(s, &v, MESSAGE_PROMISE, answer);
		return;
	}
	fence_notify_holder(s, epoch);
	fence_report(s, answer);
}
