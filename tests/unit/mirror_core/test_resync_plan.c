/* SPDX-License-Identifier: BSD-3-Clause */
/* Every combination of crashes, and the ranges that are made equal afterwards. Member 0 is the
 * primary. */
#include <string.h>

#include "lib/unit.h"
#include "mirror/core/meta.h"
#include "mirror/core/resync_plan.h"

#define SELF_ID  0xa0
#define OTHER_ID 0xb1
#define THIRD_ID 0xc2
#define SIZE     (64ull << 20)

/* How a case differs from the default: two in-sync members, epoch 7, and the epochs 5 and 6 before
 * it. */
struct situation {
	const char *name;
	enum resync_verdict verdict;
	const char *why; /* why: a part of the expected text */
	bool absent;     /* the member is not in S */
	bool recovering; /* the primary does not serve yet */
	bool not_primary, own_absent;
	bool own_uncertain, unacknowledged, bitmap, discarded, held, uncertain, other_uuid;
	uint32_t own_records, records;
	enum mirror_copy copy;
	uint64_t copy_id, size, source;
	struct mirror_epoch epoch; /* number 0 means the present epoch */
	bool history_is_full;
};

#define IS MIRROR_COPY_INSYNC

static const struct situation situations[] = {
	{"another set's copy", RESYNC_PLAN_REFUSE, "copy of set 0901", .other_uuid = true,
	 .copy = IS},
	{"a smaller copy", RESYNC_PLAN_REFUSE, "size is 4096, and the mapping's is 67108864",
	 .size = 4096, .copy = IS},
	{"a copy that has grown since the set was mapped", RESYNC_PLAN_BITMAP, "was away",
	 .size = 2 * SIZE, .absent = true, .bitmap = true, .copy = MIRROR_COPY_STALE},
	{"a copy that was replaced", RESYNC_PLAN_REFUSE,
	 "copy c2, and the configuration names copy b1", .copy_id = THIRD_ID, .copy = IS},
	{"a former primary's process lives", RESYNC_PLAN_REFUSE, "still maps it", .held = true,
	 .absent = true, .bitmap = true, .copy = MIRROR_COPY_STALE},
	{"a failed medium", RESYNC_PLAN_REFUSE, "medium has failed", .absent = true,
	 .copy = MIRROR_COPY_FAILED},
	{"a source that is not primary", RESYNC_PLAN_REFUSE, "not the primary", .not_primary = true,
	 .copy = IS},
	{"a source that is not in sync", RESYNC_PLAN_REFUSE, "not in sync", .own_absent = true,
	 .copy = IS},
	{"an empty copy", RESYNC_PLAN_FULL, "empty", .absent = true, .copy = MIRROR_COPY_EMPTY},
	{"an empty copy whose bitmap exists", RESYNC_PLAN_FULL, "empty", .absent = true,
	 .bitmap = true, .copy = MIRROR_COPY_EMPTY},
	{"the replica crashed, the primary went on", RESYNC_PLAN_BITMAP, "was away", .absent = true,
	 .bitmap = true, .records = 1, .copy = MIRROR_COPY_STALE},
	{"the link was cut for a moment", RESYNC_PLAN_NOTHING, "nothing has changed", .copy = IS},
	{"the same, with flushes under way", RESYNC_PLAN_RECORDS, "under way",
	 .unacknowledged = true, .copy = IS},
	{"the primary's process restarts", RESYNC_PLAN_RECORDS, "former primary",
	 .recovering = true, .own_records = 3, .copy = IS},
	{"only the replica has intents", RESYNC_PLAN_RECORDS, "former primary", .recovering = true,
	 .records = 1, .copy = IS},
	{"after a clean end", RESYNC_PLAN_NOTHING, "nothing has changed", .recovering = true,
	 .copy = IS},
	{"all hosts lost power", RESYNC_PLAN_DIGESTS, "lost with a host", .recovering = true,
	 .uncertain = true, .own_records = 3, .copy = IS},
	{"the primary's host lost power", RESYNC_PLAN_DIGESTS, "lost with a host",
	 .recovering = true, .own_uncertain = true, .copy = IS},
	{"the former primary returns", RESYNC_PLAN_BITMAP, "was away", .absent = true,
	 .bitmap = true, .records = 12, .epoch = {6, 60}, .copy = MIRROR_COPY_STALE},
	{"the former primary returns uncertain", RESYNC_PLAN_DIGESTS,
	 "records of the ranges that may differ", .absent = true, .bitmap = true, .uncertain = true,
	 .epoch = {6, 60}, .copy = MIRROR_COPY_STALE},
	{"the target crashed in the middle", RESYNC_PLAN_BITMAP, "continues where it stopped",
	 .absent = true, .bitmap = true, .source = SELF_ID, .copy = MIRROR_COPY_SYNCING},
	{"the target's source is another copy", RESYNC_PLAN_DIGESTS, "from another copy",
	 .absent = true, .bitmap = true, .source = THIRD_ID, .copy = MIRROR_COPY_SYNCING},
	{"a shrink was not committed", RESYNC_PLAN_RECORDS, "former primary", .recovering = true,
	 .own_records = 1, .epoch = {6, 60}, .copy = IS},
	{"a shrink was committed", RESYNC_PLAN_DIGESTS, "no record of the changes", .absent = true,
	 .epoch = {6, 60}, .copy = MIRROR_COPY_STALE},
	{"promotion by force, a former member returns", RESYNC_PLAN_DIGESTS, "no record",
	 .absent = true, .epoch = {5, 50}, .copy = MIRROR_COPY_STALE},
	{"the register was restored", RESYNC_PLAN_SPLIT, "epoch 8 (50)", .epoch = {8, 0x50},
	 .copy = IS},
	{"a twin of an epoch, by force", RESYNC_PLAN_SPLIT, "epoch 6 (3d)", .absent = true,
	 .bitmap = true, .epoch = {6, 61}, .copy = MIRROR_COPY_STALE},
	{"the same, resolved", RESYNC_PLAN_DIGESTS, "discarded", .absent = true, .bitmap = true,
	 .discarded = true, .epoch = {6, 61}, .copy = MIRROR_COPY_STALE},
	{"an epoch before all that is remembered", RESYNC_PLAN_DIGESTS, "more epochs",
	 .absent = true, .bitmap = true, .history_is_full = true, .epoch = {2, 20},
	 .copy = MIRROR_COPY_STALE},
	{"the bitmap was dropped", RESYNC_PLAN_DIGESTS, "no record", .absent = true,
	 .copy = MIRROR_COPY_STALE},
	{"damaged metadata", RESYNC_PLAN_DIGESTS, "records", .absent = true, .bitmap = true,
	 .copy = MIRROR_COPY_UNKNOWN},
};

static struct mirror_record rec;

static void make_record(const struct situation *s)
{
	memset(&rec, 0, sizeof(rec));
	rec.config.uuid.bytes[0] = 7;
	rec.config.size = 2 * SIZE; /* the set has grown since it was mapped */
	rec.config.members[0].id = SELF_ID;
	rec.config.members[1].id = OTHER_ID;
	rec.view.epoch = (struct mirror_epoch){7, 70};
	rec.view.primary = s->not_primary ? 1 : 0;
	rec.view.phase = s->recovering ? MIRROR_PHASE_RECOVERING : MIRROR_PHASE_SERVING;
	rec.view.insync = (s->own_absent ? 0 : 1) | (s->absent ? 0 : 2);
	rec.history_count = s->history_is_full ? MIRROR_HISTORY : 2;
	for (uint32_t i = 0; i < rec.history_count; i++)
		rec.history[i].epoch = (struct mirror_epoch){6 - i % 3, (6 - i % 3) * 10};
}

static struct resync_facts facts_of(const struct situation *s)
{
	struct resync_facts f = {
		.rec = &rec,
		.own_uncertain = s->own_uncertain,
		.own_size = SIZE,
		.own_records = s->own_records,
		.unacknowledged = s->unacknowledged,
		.bitmap_is_usable = s->bitmap,
		.is_discarded = s->discarded,
		.slot = 1,
		.uuid = rec.config.uuid,
		.copy_id = s->copy_id ? s->copy_id : OTHER_ID,
		.size = s->size ? s->size : SIZE,
		.copy = s->copy,
		.held = s->held,
		.uncertain = s->uncertain,
		.records = s->records,
		.epoch = s->epoch.number ? s->epoch : rec.view.epoch,
		.source_id = s->source,
	};

	if (s->other_uuid)
		f.uuid = (struct mirror_uuid){{9, 1}};
	return f;
}

static void test_every_situation_has_its_decision(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(situations); i++) {
		const struct situation *s = &situations[i];
		struct resync_facts f;
		char why[256] = "";
		enum resync_verdict verdict;

		make_record(s);
		f = facts_of(s);
		verdict = resync_plan(&f, why, sizeof(why));
		if (verdict != s->verdict || !strstr(why, s->why))
			fail_msg("%s: %s because %s", s->name, resync_verdict_2str(verdict), why);
	}
}

/* A copy that may lack bytes must never be taken for equal, whatever its report says. */
static void test_what_was_away_is_never_taken_for_equal(void **state)
{
	struct situation s = {.absent = true};

	for (unsigned bits = 0; bits < 256; bits++) {
		for (s.copy = 0; s.copy < MIRROR_COPY_COUNT; s.copy++) {
			struct resync_facts f;
			char why[256];

			s.bitmap = bits & 1, s.uncertain = bits & 2, s.recovering = bits & 4;
			s.discarded = bits & 8, s.own_records = bits & 16, s.records = bits & 32;
			s.unacknowledged = bits & 64, s.source = bits & 128 ? SELF_ID : 0;
			make_record(&s);
			f = facts_of(&s);
			assert_int_not_equal(resync_plan(&f, why, sizeof(why)),
					     RESYNC_PLAN_NOTHING);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_situation_has_its_decision),
		cmocka_unit_test(test_what_was_away_is_never_taken_for_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
