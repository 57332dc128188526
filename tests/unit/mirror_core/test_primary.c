/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The primary's state machine, one test for each rule. test_primary_walk.c tests the product of
 * states and events.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/log.h"
#include "mirror/core/primary.h"
#include "record.h"

static struct primary p;
static struct mirror_record reg; /* the content of the register */
static uint64_t revision, nonces;
static struct primary_action last;

static uint64_t next_nonce(void *arg)
{
	(void)arg;
	return ++nonces;
}

/* Take the next action, which must have this type and this member. */
static void assert_next(enum primary_action_type type, unsigned slot)
{
	assert_true(primary_next(&p, &last));
	assert_string_equal(primary_action_2str(last.type), primary_action_2str(type));
	assert_int_equal(last.slot, slot);
}

static void assert_nothing(void)
{
	if (primary_next(&p, &last))
		fail_msg("there is %s", primary_action_2str(last.type));
}

static void skip_all(void)
{
	while (primary_next(&p, &last)) {
	}
}

static void begin(unsigned members, unsigned min_copies, unsigned slot)
{
	reg = test_record(members, min_copies);
	revision = 1;
	nonces = 100;
	reg.view.clean = false; /* the earlier primary crashed */
	primary_start(&p, &reg, revision, (uint8_t)slot, NULL, false, 1000, next_nonce, NULL);
}

/* Skip the actions before the swap, and answer the swap. */
static void swap_done(void)
{
	do
		assert_true(primary_next(&p, &last));
	while (last.type != PRIMARY_DO_SWAP);
	reg = *last.record;
	primary_on_swap(&p, PRIMARY_SWAP_DONE, &reg, ++revision);
}

static void promised(unsigned slot)
{
	struct primary_report report = {.copy = MIRROR_COPY_INSYNC};

	assert_next(PRIMARY_DO_PROMISE, slot);
	primary_on_promised(&p, (uint8_t)slot, &report);
	assert_next(PRIMARY_DO_VIEW, slot);
}

/* Make a set whose members all answer immediately, and advance until the application is allowed to
 * read. */
static void serve(unsigned members, unsigned min_copies)
{
	begin(members, min_copies, 0);
	swap_done();
	promised(0);
	skip_all();
	primary_on_ranges(&p, 0);
	for (unsigned i = 1; i < members; i++) {
		struct primary_report report = {.copy = MIRROR_COPY_INSYNC};

		primary_on_promised(&p, (uint8_t)i, &report);
		primary_on_ranges(&p, (uint8_t)i);
	}
	skip_all();
	for (unsigned i = 1; i < members; i++)
		primary_on_equal(&p, (uint8_t)i);
	while (primary_next(&p, &last))
		if (last.type == PRIMARY_DO_SWAP) {
			reg = *last.record;
			primary_on_swap(&p, PRIMARY_SWAP_DONE, &reg, ++revision);
		}
	assert_int_equal(p.state, PRIMARY_SERVING);
	assert_int_equal(reg.view.phase, MIRROR_PHASE_SERVING);
}

static void fence_all_then_look_then_serve(void **state)
{
	struct primary_report report = {.copy = MIRROR_COPY_INSYNC};

	(void)state;
	begin(3, 1, 1);
	assert_next(PRIMARY_DO_SWAP, MIRROR_NO_SLOT);
	assert_true(last.promotion);
	assert_int_equal(last.record->view.insync, 7);
	assert_nothing(); /* only one swap is under way at a time */
	reg = p.offer;
	primary_on_swap(&p, PRIMARY_SWAP_DONE, &reg, ++revision);
	assert_next(PRIMARY_DO_PROMISE, 1); /* the primary's own copy is asked first */
	assert_nothing();
	primary_on_promised(&p, 1, &report);
	assert_next(PRIMARY_DO_PROMISE, 0);
	assert_next(PRIMARY_DO_VIEW, 1);
	assert_next(PRIMARY_DO_RANGES, 1);
	assert_next(PRIMARY_DO_PROMISE, 2);
	primary_on_promised(&p, 0, &report);
	assert_next(PRIMARY_DO_VIEW, 0);
	assert_next(PRIMARY_DO_RANGES, 0);
	primary_on_ranges(&p, 0);
	primary_on_ranges(&p, 1);
	assert_nothing(); /* member 2 has not promised, so its ranges are unknown */
	primary_on_promised(&p, 2, &report);
	assert_next(PRIMARY_DO_VIEW, 2);
	assert_next(PRIMARY_DO_RANGES, 2);
	primary_on_ranges(&p, 2);
	assert_next(PRIMARY_DO_EQUALISE, 0);
	assert_next(PRIMARY_DO_EQUALISE, 2);
	primary_on_equal(&p, 0);
	assert_nothing();
	assert_int_equal(primary_sends_to(&p), 0);
	primary_on_equal(&p, 2);
	assert_next(PRIMARY_DO_SWAP, MIRROR_NO_SLOT);
	assert_false(last.promotion);
	assert_int_equal(last.record->view.phase, MIRROR_PHASE_SERVING);
	/* until this swap is done, the application must not read, and no record is retired */
	assert_nothing();
	reg = p.offer;
	primary_on_swap(&p, PRIMARY_SWAP_DONE, &reg, ++revision);
	assert_next(PRIMARY_DO_VIEW, 0);
	assert_next(PRIMARY_DO_RETIRE, 0);
	assert_next(PRIMARY_DO_VIEW, 1);
	assert_next(PRIMARY_DO_RETIRE, 1);
	assert_next(PRIMARY_DO_VIEW, 2);
	assert_next(PRIMARY_DO_RETIRE, 2);
	assert_next(PRIMARY_DO_SERVE, MIRROR_NO_SLOT);
	assert_nothing();
	assert_int_equal(primary_must_have(&p), 7);
	assert_int_equal(primary_sends_to(&p), 5);
	assert_true(primary_may_ack(&p));
}

static void records_that_may_lack_something_name_nothing(void **state)
{
	struct primary_report report = {.copy = MIRROR_COPY_INSYNC}, lost = report;

	(void)state;
	lost.uncertain = true;
	begin(3, 1, 0);
	swap_done();
	promised(0);
	skip_all();
	primary_on_ranges(&p, 0);
	primary_on_promised(&p, 1, &report);
	primary_on_promised(&p, 2, &lost);
	skip_all();
	primary_on_ranges(&p, 1);
	primary_on_ranges(&p, 2);
	assert_next(PRIMARY_DO_EQUALISE, 1);
	assert_false(last.whole);
	assert_next(PRIMARY_DO_EQUALISE, 2);
	assert_true(last.whole);
}

/* The register shows a clean end, but a member's metadata were damaged or restored meanwhile. */
static void what_cannot_vouch_for_itself_is_not_taken_for_clean(void **state)
{
	struct primary_report report = {.copy = MIRROR_COPY_INSYNC};
	struct primary_report lost = {.copy = MIRROR_COPY_UNKNOWN, .uncertain = true};
	unsigned equalised = 0;

	(void)state;
	for (unsigned own = 0; own < 2; own++) {
		reg = test_record(3, 1);
		reg.view.clean = true;
		revision = 1;
		primary_start(&p, &reg, revision, 0, NULL, false, 1000, next_nonce, NULL);
		swap_done();
		skip_all();
		primary_on_promised(&p, 0, own ? &lost : &report);
		primary_on_promised(&p, 1, &report);
		primary_on_promised(&p, 2, &lost);
		while (primary_next(&p, &last)) {
			bool is_lost = own || last.slot == 2;

			if (last.type != PRIMARY_DO_EQUALISE)
				continue;
			assert_int_equal(last.whole, is_lost);
			assert_int_equal(last.nothing, !is_lost);
			equalised++;
		}
	}
	assert_int_equal(equalised, 4);
}

static void a_member_that_does_not_answer_is_swapped_out_in_time(void **state)
{
	(void)state;
	begin(2, 1, 0);
	swap_done();
	promised(0);
	skip_all();
	primary_on_ranges(&p, 0);
	primary_on_lost(&p, 1);
	assert_next(PRIMARY_DO_DROP, 1);
	assert_nothing();
	primary_tick(&p, 1000 + 300);
	/* until the time limit the primary asks for the promise again */
	assert_next(PRIMARY_DO_PROMISE, 1);
	primary_tick(&p, 1000 + 1999);
	assert_nothing();
	primary_tick(&p, 1000 + 2000);
	assert_next(PRIMARY_DO_DROP, 1);
	swap_done();
	assert_int_equal(reg.view.insync, 1);
	swap_done();
	assert_int_equal(reg.view.phase, MIRROR_PHASE_SERVING);
	assert_int_equal(primary_must_have(&p), 1);
	assert_int_equal(primary_sends_to(&p), 0);
}

static void assert_trouble(unsigned slot, const char *text)
{
	assert_non_null(p.members[slot].trouble);
	assert_string_equal(p.members[slot].trouble, text);
}

/* Reports for people distinguish a refusal from silence: a refusal is shown until the member stops
 * answering. */
static void silence_and_a_refusal_are_distinguished(void **state)
{
	(void)state;
	begin(3, 1, 0);
	swap_done();
	promised(0);
	skip_all();
	primary_on_ranges(&p, 0);
	/* the primary has asked the member, which can still answer */
	assert_false(primary_is_refused(&p, 1));
	primary_on_refused(&p, 2, PRIMARY_REFUSED_SPLIT, (struct mirror_epoch){0, 0});
	assert_true(primary_is_refused(&p, 2));
	assert_trouble(2, "it has seen a state that the register lacks");
	primary_tick(&p, 1000 + 2000); /* the time limit of the first question has passed */
	assert_trouble(1, "it does not answer");
	assert_false(primary_is_refused(&p, 1));
	assert_trouble(2, "it has seen a state that the register lacks");
	assert_int_equal(p.members[2].state, PRIMARY_MEMBER_FENCING); /* member 2 is asked again */
	/* member 2 is lost before it answers */
	primary_on_lost(&p, 2);
	assert_trouble(2, "it does not answer");
	assert_false(primary_is_refused(&p, 2));
}

static unsigned warnings;

static void count_warning(enum log_level level, const char *file, int line, const char *func,
			  const char *text)
{
	warnings += strstr(text, "'b' cannot be used") != NULL;
}

static void a_refusal_is_reported_once(void **state)
{
	(void)state;
	begin(3, 1, 0);
	swap_done();
	promised(0);
	log_set(count_warning, LOG_LVL_WARNING);
	for (unsigned i = 0; i < 3; i++) {
		primary_on_refused(&p, 1, PRIMARY_REFUSED_COPY, (struct mirror_epoch){0, 0});
		primary_tick(&p, p.now + 10000);
		skip_all();
	}
	log_set(NULL, LOG_LVL_WARNING);
	assert_int_equal(warnings, 1);
}

static void a_member_that_is_lost_after_it_answered_is_not_called_silent(void **state)
{
	(void)state;
	serve(2, 2);
	primary_on_lost(&p, 1);
	assert_null(p.members[1].trouble);
	assert_false(primary_is_refused(&p, 1));
}

/* Member 1 promotes itself. S contains the members 0 and 1, and member 0 does not answer within its
 * time limit. */
static void begin_with_stale_copy(unsigned min_copies)
{
	struct primary_report report = {.copy = MIRROR_COPY_INSYNC};

	reg = test_record(3, min_copies);
	reg.view.insync = 3;
	reg.view.clean = false;
	revision = 1;
	nonces = 100;
	primary_start(&p, &reg, revision, 1, NULL, false, 1000, next_nonce, NULL);
	swap_done();
	assert_next(PRIMARY_DO_PROMISE, 1);
	primary_on_promised(&p, 1, &report);
	skip_all();
	primary_on_ranges(&p, 1);
	assert_nothing();
	/* the set waits for member 0 first */
	assert_int_equal(p.members[2].state, PRIMARY_MEMBER_AWAY);
	primary_tick(&p, 1000 + 2000);
	assert_next(PRIMARY_DO_DROP, 0);
}

static void fill(unsigned slot)
{
	struct primary_report stale = {.copy = MIRROR_COPY_STALE};

	assert_next(PRIMARY_DO_PROMISE, slot);
	assert_next(PRIMARY_DO_BLOCKED, MIRROR_NO_SLOT);
	assert_string_equal(last.why, "waits for 'a' (it does not answer), or until another copy "
				      "is filled, since fewer than min_copies would be left");
	primary_on_promised(&p, (uint8_t)slot, &stale);
	assert_next(PRIMARY_DO_VIEW, slot);
	assert_next(PRIMARY_DO_RESYNC, slot);
	assert_true(last.whole); /* the bitmap does not contain the ranges of the records yet */
	primary_on_joining(&p, (uint8_t)slot);
	assert_nothing();
	primary_on_joined(&p, (uint8_t)slot);
}

static void a_stale_copy_is_filled_before_too_few_serve(void **state)
{
	(void)state;
	begin_with_stale_copy(2);
	fill(2);
	assert_next(PRIMARY_DO_SWAP, MIRROR_NO_SLOT);
	/* the swap that adds member 2 removes member 0 */
	assert_int_equal(last.record->view.insync, 6);
	assert_int_equal(last.record->view.phase, MIRROR_PHASE_RECOVERING);
	reg = *last.record;
	primary_on_swap(&p, PRIMARY_SWAP_DONE, &reg, ++revision);
	do {
		assert_true(primary_next(&p, &last));
		/* no record is retired before the next swap */
		assert_int_not_equal(last.type, PRIMARY_DO_RETIRE);
	} while (last.type != PRIMARY_DO_SWAP);
	assert_int_equal(last.record->view.phase, MIRROR_PHASE_SERVING);
	reg = *last.record;
	primary_on_swap(&p, PRIMARY_SWAP_DONE, &reg, ++revision);
	assert_int_equal(p.state, PRIMARY_SERVING);
	assert_true(primary_may_ack(&p));
	assert_int_equal(primary_must_have(&p), 6);
	assert_int_equal(primary_sends_to(&p), 4);
}

/* The lost member returns before the swap, so the set can serve without the filled copy. */
static void a_lost_member_may_return_while_another_is_filled(void **state)
{
	struct primary_report report = {.copy = MIRROR_COPY_INSYNC};

	(void)state;
	begin_with_stale_copy(2);
	fill(2);
	primary_tick(&p, 1000 + 2000 + 400);
	assert_int_equal(p.members[0].state, PRIMARY_MEMBER_FENCING);
	primary_on_promised(&p, 0, &report);
	while (primary_next(&p, &last))
		assert_int_not_equal(last.type, PRIMARY_DO_SWAP);
	primary_on_ranges(&p, 0);
	skip_all();
	primary_on_equal(&p, 0);
	swap_done();
	assert_int_equal(reg.view.phase, MIRROR_PHASE_SERVING);
	assert_int_equal(reg.view.insync, 3);
	swap_done();
	assert_int_equal(reg.view.insync, 7); /* the copy that was filled joins as usual */
}

/* The swap had no answer, and the copy that the swap may have added to S is lost. No second resync
 * of this copy may begin before the primary reads the register. */
static void a_copy_that_was_perhaps_taken_in_is_not_filled_again(void **state)
{
	struct mirror_record landed;

	(void)state;
	begin_with_stale_copy(2);
	fill(2);
	assert_next(PRIMARY_DO_SWAP, MIRROR_NO_SLOT);
	landed = *last.record;
	primary_on_swap(&p, PRIMARY_SWAP_UNKNOWN, NULL, 0);
	assert_int_equal(primary_must_have(&p), 7);
	primary_on_lost(&p, 2);
	primary_tick(&p, p.now + 60000);
	assert_int_equal(p.members[2].state, PRIMARY_MEMBER_AWAY);
	skip_all();
	primary_on_record(&p, &landed, ++revision);
	assert_int_equal(p.rec.view.insync, 6);
	assert_int_equal(p.state, PRIMARY_RECOVERING);
	primary_tick(&p, p.now + 60000);
	assert_int_equal(p.members[2].state, PRIMARY_MEMBER_FENCING); /* member 2 is in S now */
}

static void no_copy_is_filled_where_enough_are_left(void **state)
{
	(void)state;
	begin_with_stale_copy(1);
	swap_done();
	assert_int_equal(reg.view.insync, 2);
	assert_int_equal(p.members[2].state, PRIMARY_MEMBER_AWAY);
}

/*
 * The earlier primary's host was silent for the whole lease, so the new primary's time limit for
 * this host is shorter than for others.
 */
static void a_suspect_has_little_time(void **state)
{
	(void)state;
	begin(3, 1, 0);
	primary_suspect(&p, 1);
	swap_done();
	promised(0);
	skip_all();
	primary_on_ranges(&p, 0);
	primary_tick(&p, 1000 + PRIMARY_SILENT_MS - 1);
	assert_nothing();
	primary_tick(&p, 1000 + PRIMARY_SILENT_MS);
	swap_done();
	assert_int_equal(reg.view.insync, 5);
	skip_all();
	primary_tick(&p, 1000 + 1999); /* the third member's time limit is not shortened */
	skip_all();
	assert_false(p.swapping);
	primary_tick(&p, 1000 + 2000);
	swap_done();
	assert_int_equal(reg.view.insync, 1);
}

/* The suspect has answered, so from now on it is an ordinary member. */
static void a_suspect_that_answers_is_none(void **state)
{
	struct primary_report report = {.copy = MIRROR_COPY_INSYNC};

	(void)state;
	begin(2, 1, 0);
	primary_suspect(&p, 1);
	swap_done();
	promised(0);
	skip_all();
	primary_on_promised(&p, 1, &report);
	skip_all();
	primary_tick(&p, 1000 + PRIMARY_SILENT_MS);
	assert_nothing();
	primary_tick(&p, 1000 + 2000);
	assert_next(PRIMARY_DO_DROP, 1);
}

static void below_min_copies_it_waits(void **state)
{
	(void)state;
	begin(2, 2, 0);
	swap_done();
	promised(0);
	skip_all();
	primary_on_ranges(&p, 0);
	primary_tick(&p, 3000);
	assert_next(PRIMARY_DO_DROP, 1);
	assert_next(PRIMARY_DO_BLOCKED, MIRROR_NO_SLOT);
	assert_non_null(strstr(last.why, "'b'"));
	assert_non_null(strstr(last.why, "min_copies"));
	assert_nothing();
	primary_tick(&p, primary_next_deadline(&p));
	promised(1);
	assert_next(PRIMARY_DO_RANGES, 1);
	assert_next(PRIMARY_DO_UNBLOCKED, MIRROR_NO_SLOT);
}

/* The only other copy is lost permanently, and the operator replaces it. */
static void one_copy_is_reported_in_the_singular(void **state)
{
	struct mirror_config next;

	(void)state;
	serve(2, 2);
	next = reg.config;
	next.members[1].id = 20;
	assert_int_equal(view_set_config(&reg, &next, 5, NULL), 0);
	primary_on_record(&p, &reg, ++revision);
	do
		assert_true(primary_next(&p, &last));
	while (last.type != PRIMARY_DO_BLOCKED);
	assert_non_null(strstr(last.why, "1 copy is in-sync, min_copies is 2"));
}

static void a_process_that_maps_the_copy_is_waited_for(void **state)
{
	struct primary_report held = {.copy = MIRROR_COPY_INSYNC, .held = true};

	(void)state;
	begin(2, 1, 0);
	swap_done();
	promised(0);
	skip_all();
	primary_on_ranges(&p, 0);
	for (uint64_t now = 1000; now < 3000; now += 200) {
		primary_on_promised(&p, 1, &held);
		assert_next(PRIMARY_DO_DROP, 1);
		assert_nothing();
		primary_tick(&p, now + 200);
		if (now + 200 < 3000)
			assert_next(PRIMARY_DO_PROMISE, 1);
	}
	swap_done();
	assert_int_equal(reg.view.insync, 1);
}

/* An earlier primary that unmaps releases its copy shortly after it gives up the role. */
static void a_process_that_unmaps_is_asked_again_soon(void **state)
{
	struct primary_report held = {.copy = MIRROR_COPY_INSYNC, .held = true};
	uint64_t now = 1000, pause, last_pause = 0;

	(void)state;
	begin(2, 1, 0);
	swap_done();
	promised(0);
	skip_all();
	primary_on_ranges(&p, 0);
	for (unsigned i = 0; i < 5; i++) {
		if (i)
			assert_next(PRIMARY_DO_PROMISE, 1);
		primary_on_promised(&p, 1, &held);
		assert_next(PRIMARY_DO_DROP, 1);
		pause = primary_next_deadline(&p) - now;
		assert_true(pause > last_pause && pause < 100);
		last_pause = pause;
		now += pause;
		primary_tick(&p, now);
	}
	promised(1);
	assert_next(PRIMARY_DO_RANGES, 1);
}

static void nothing_is_acknowledged_before_the_shrink_is_known(void **state)
{
	(void)state;
	serve(3, 1);
	primary_on_lost(&p, 2);
	assert_int_equal(primary_must_have(&p), 7);
	assert_int_equal(primary_sends_to(&p), 2);
	assert_next(PRIMARY_DO_DROP, 2);
	assert_next(PRIMARY_DO_SWAP, MIRROR_NO_SLOT);
	assert_int_equal(last.record->view.insync, 3);
	primary_on_lost(&p, 1); /* the next swap excludes this member, too */
	assert_int_equal(primary_must_have(&p), 7);
	reg = *last.record;
	primary_on_swap(&p, PRIMARY_SWAP_DONE, &reg, ++revision);
	assert_int_equal(primary_must_have(&p), 3);
	assert_int_equal(primary_sends_to(&p), 0);
	skip_all();
	primary_on_swap(&p, PRIMARY_SWAP_UNKNOWN, NULL, 0);
	assert_int_equal(primary_must_have(&p), 3);
	assert_next(PRIMARY_DO_BLOCKED, MIRROR_NO_SLOT);
	assert_next(PRIMARY_DO_READ, MIRROR_NO_SLOT);
	/* the record does not contain the change that the swap made */
	primary_on_record(&p, &reg, revision);
	assert_int_equal(primary_must_have(&p), 3);
	uint64_t nonce = p.offer.nonce;

	swap_done();
	assert_int_not_equal(reg.nonce, nonce);
	assert_int_equal(primary_must_have(&p), 1);
}

/* Make member 2, which is out of S, join again. */
static void join(void)
{
	struct primary_report report = {.copy = MIRROR_COPY_STALE};

	serve(3, 1);
	primary_on_lost(&p, 2);
	skip_all();
	reg = p.offer;
	primary_on_swap(&p, PRIMARY_SWAP_DONE, &reg, ++revision);
	skip_all();
	primary_tick(&p, 1000 + 4999);
	assert_nothing(); /* the hold-off has not passed */
	primary_tick(&p, 1000 + 5000);
	assert_next(PRIMARY_DO_PROMISE, 2);
	primary_on_promised(&p, 2, &report);
	assert_next(PRIMARY_DO_VIEW, 2);
	assert_next(PRIMARY_DO_RESYNC, 2);
	assert_false(last.whole);
	assert_int_equal(primary_must_have(&p), 3);
	primary_on_joining(&p, 2);
	assert_int_equal(primary_must_have(&p), 7);
	assert_int_equal(primary_sends_to(&p), 6);
	assert_nothing();
	primary_on_joined(&p, 2);
	assert_next(PRIMARY_DO_SWAP, MIRROR_NO_SLOT);
	assert_int_equal(last.record->view.insync, 7);
}

static void a_member_joins_before_it_is_of_s(void **state)
{
	(void)state;
	join();
	reg = *last.record;
	primary_on_swap(&p, PRIMARY_SWAP_DONE, &reg, ++revision);
	assert_int_equal(primary_must_have(&p), 7);
	skip_all();
	/* The member is lost again, so its hold-off doubles. */
	primary_on_lost(&p, 2);
	skip_all();
	reg = p.offer;
	primary_on_swap(&p, PRIMARY_SWAP_DONE, &reg, ++revision);
	skip_all();
	primary_tick(&p, p.now + 9999);
	assert_nothing();
	primary_tick(&p, p.now + 1);
	assert_next(PRIMARY_DO_PROMISE, 2);
}

static void a_member_that_an_operator_excludes_stays_away(void **state)
{
	const char *why = NULL;

	(void)state;
	serve(3, 2);
	assert_int_equal(primary_exclude(&p, 0, &why), -EINVAL); /* slot 0 is the primary */
	assert_int_equal(primary_exclude(&p, 5, &why), -EINVAL);
	assert_int_equal(primary_exclude(&p, 2, &why), 0);
	assert_next(PRIMARY_DO_DROP, 2);
	swap_done();
	assert_int_equal(reg.view.insync, 3);
	skip_all();
	/* If fewer than min_copies would be left, no member is excluded. */
	assert_int_equal(primary_exclude(&p, 1, &why), -EBUSY);
	assert_non_null(why);
	assert_int_equal(p.members[1].state, PRIMARY_MEMBER_EQUAL);
	primary_tick(&p, p.now + 600000);
	assert_nothing();
	/* The operator's order skips the hold-off. */
	primary_readmit(&p, 2);
	assert_next(PRIMARY_DO_PROMISE, 2);
}

static void a_member_whose_exclusion_is_not_answered_is_used_again(void **state)
{
	struct primary_report report = {.copy = MIRROR_COPY_INSYNC};
	const char *why;

	(void)state;
	serve(3, 1);
	assert_int_equal(primary_exclude(&p, 2, &why), 0);
	assert_next(PRIMARY_DO_DROP, 2);
	assert_next(PRIMARY_DO_SWAP, MIRROR_NO_SLOT);
	primary_on_swap(&p, PRIMARY_SWAP_FAILED, NULL, 0);
	assert_next(PRIMARY_DO_PROMISE, 2);
	primary_on_promised(&p, 2, &report);
	assert_false(p.members[2].kept_out);
	primary_on_equal(&p, 2);
	assert_int_equal(primary_must_have(&p), 7);
}

static void a_member_whose_expansion_is_unknown_is_waited_for(void **state)
{
	(void)state;
	join();
	primary_on_swap(&p, PRIMARY_SWAP_UNKNOWN, NULL, 0);
	primary_on_lost(&p, 2);
	assert_int_equal(primary_must_have(&p), 7);
	assert_int_equal(primary_sends_to(&p), 2);
	assert_next(PRIMARY_DO_DROP, 2);
	assert_next(PRIMARY_DO_READ, MIRROR_NO_SLOT);
	primary_on_record(&p, &reg, revision);
	assert_int_equal(primary_must_have(&p), 7);
	/* only this swap makes sure that the earlier one cannot take effect any more */
	swap_done();
	assert_int_equal(reg.view.insync, 3);
	assert_int_equal(primary_must_have(&p), 3);
}

static void an_expansion_that_lands_late_is_undone(void **state)
{
	struct mirror_record late;

	(void)state;
	join();
	late = *last.record;
	primary_on_swap(&p, PRIMARY_SWAP_UNKNOWN, NULL, 0);
	primary_on_lost(&p, 2);
	skip_all();
	primary_tick(&p, p.now + 5000);
	assert_next(PRIMARY_DO_SWAP, MIRROR_NO_SLOT);
	primary_on_swap(&p, PRIMARY_SWAP_CHANGED, &late, ++revision);
	assert_int_equal(primary_must_have(&p), 7);
	skip_all();
	assert_int_equal(p.offer.view.insync, 3);
	reg = p.offer;
	primary_on_swap(&p, PRIMARY_SWAP_DONE, &reg, ++revision);
	assert_int_equal(primary_must_have(&p), 3);
}

static void a_promotion_without_an_answer_is_found_by_its_nonce(void **state)
{
	struct mirror_record late;

	(void)state;
	begin(2, 1, 0);
	assert_next(PRIMARY_DO_SWAP, MIRROR_NO_SLOT);
	late = *last.record;
	primary_on_swap(&p, PRIMARY_SWAP_UNKNOWN, NULL, 0);
	assert_next(PRIMARY_DO_READ, MIRROR_NO_SLOT);
	primary_on_record(&p, &reg, revision);
	assert_next(PRIMARY_DO_SWAP, MIRROR_NO_SLOT);
	assert_int_not_equal(last.record->nonce, late.nonce);
	primary_on_swap(&p, PRIMARY_SWAP_CHANGED, &late, ++revision);
	assert_int_equal(p.state, PRIMARY_RECOVERING);
	assert_int_equal(p.rec.view.epoch.nonce, late.nonce);
	assert_next(PRIMARY_DO_PROMISE, 0);
}

static void a_promotion_ends_when_another_member_was_faster(void **state)
{
	struct mirror_record other;

	(void)state;
	begin(2, 1, 0);
	other = reg;
	assert_int_equal(view_promote(&other, 1, 5, NULL), 0);
	skip_all();
	primary_on_swap(&p, PRIMARY_SWAP_CHANGED, &other, 2);
	assert_next(PRIMARY_DO_FAILED, MIRROR_NO_SLOT);
	assert_int_equal(last.error, -EAGAIN);
	begin(2, 1, 0);
	skip_all();
	/* the register was unchanged, so the alive key caused the refusal */
	primary_on_swap(&p, PRIMARY_SWAP_CHANGED, &reg, 1);
	assert_next(PRIMARY_DO_FAILED, MIRROR_NO_SLOT);
	assert_int_equal(last.error, -EBUSY);
}

static void a_higher_epoch_fences_for_good(void **state)
{
	struct mirror_record other;

	(void)state;
	serve(2, 1);
	other = reg;
	assert_int_equal(view_promote(&other, 1, 5, NULL), 0);
	primary_on_record(&p, &other, ++revision);
	assert_next(PRIMARY_DO_DROP, 1);
	assert_next(PRIMARY_DO_FENCED, MIRROR_NO_SLOT);
	assert_false(primary_may_ack(&p));
	primary_on_record(&p, &reg, ++revision);
	primary_tick(&p, 1000000);
	assert_nothing();
	assert_int_equal(p.state, PRIMARY_FENCED);
}

static void an_overtaken_candidate_never_serves(void **state)
{
	struct mirror_record other;

	(void)state;
	begin(1, 1, 0);
	swap_done();
	promised(0);
	skip_all();
	primary_on_ranges(&p, 0);
	assert_next(PRIMARY_DO_SWAP, MIRROR_NO_SLOT);
	other = reg;
	assert_int_equal(view_promote(&other, 0, 5, NULL), 0);
	primary_on_swap(&p, PRIMARY_SWAP_CHANGED, &other, ++revision);
	assert_next(PRIMARY_DO_FENCED, MIRROR_NO_SLOT);
}

static void a_register_older_than_its_primary_is_split(void **state)
{
	struct mirror_record old;

	(void)state;
	serve(3, 1);
	old = reg;
	old.view.seq--;
	old.nonce = 3;
	primary_on_lost(&p, 1);
	skip_all();
	primary_on_swap(&p, PRIMARY_SWAP_CHANGED, &old, 2);
	skip_all();
	assert_int_equal(p.state, PRIMARY_FAILED);
	assert_int_equal(p.error, -ENOTUNIQ);
}

static void a_register_older_than_a_member_is_split(void **state)
{
	struct primary_report report = {.copy = MIRROR_COPY_INSYNC};
	struct mirror_view seen;

	(void)state;
	begin(2, 1, 0);
	seen = reg.view;
	seen.epoch.number = 4;
	primary_start(&p, &reg, 1, 0, &seen, false, 0, next_nonce, NULL);
	assert_int_equal(p.state, PRIMARY_FAILED);
	assert_int_equal(p.error, -ENOTUNIQ);
	begin(2, 1, 0);
	swap_done();
	promised(0);
	skip_all();
	primary_on_ranges(&p, 0);
	report.seen = seen;
	primary_on_promised(&p, 1, &report);
	assert_next(PRIMARY_DO_DROP, 1);
	assert_next(PRIMARY_DO_READ, MIRROR_NO_SLOT);
	/* the primary makes no swap, because a swap would hide the split */
	primary_tick(&p, 1000000);
	assert_next(PRIMARY_DO_PROMISE, 1);
	assert_nothing();
	for (unsigned i = 0; i < 4; i++)
		/* this record may have been read before the split */
		primary_on_changed(&p, &reg, revision);
	/* this record, too, may have been read before the split */
	primary_on_record(&p, &reg, revision);
	assert_int_equal(p.state, PRIMARY_RECOVERING);
	assert_next(PRIMARY_DO_READ, MIRROR_NO_SLOT);
	primary_on_record(&p, &reg, revision);
	assert_int_equal(p.state, PRIMARY_FAILED);
	assert_int_equal(p.error, -ENOTUNIQ);
}

/* A swap without an answer has taken effect, and a member reads the record before the primary
 * does. */
static void what_a_member_has_read_earlier_is_no_split(void **state)
{
	struct primary_report report = {.copy = MIRROR_COPY_STALE};

	(void)state;
	serve(3, 1);
	primary_on_lost(&p, 2);
	do
		assert_true(primary_next(&p, &last));
	while (last.type != PRIMARY_DO_SWAP);
	reg = *last.record;
	report.seen = reg.view;
	primary_on_swap(&p, PRIMARY_SWAP_UNKNOWN, NULL, 0);
	skip_all();
	primary_tick(&p, p.now + 1000);
	assert_next(PRIMARY_DO_PROMISE, 2);
	primary_on_promised(&p, 2, &report);
	assert_int_equal(p.state, PRIMARY_SERVING);
	skip_all();
	primary_on_record(&p, &reg, ++revision);
	assert_int_equal(p.state, PRIMARY_SERVING);
	assert_int_equal(p.rec.view.insync, 3);
	assert_int_equal(p.members[2].ahead.epoch.number, 0);
}

/*
 * A member outside S joins, and the swap takes effect although it was reported as failed. The
 * primary uses the member after asking it again.
 */
static void a_member_that_has_joined_unnoticed_is_used(void **state)
{
	struct primary_report report = {.copy = MIRROR_COPY_INSYNC};

	(void)state;
	join();
	reg = *last.record;
	report.seen = reg.view;
	primary_on_swap(&p, PRIMARY_SWAP_FAILED, NULL, 0); /* the swap was reported as failed */
	primary_on_lost(&p, 2);
	skip_all();
	primary_tick(&p, p.now + 30000);
	assert_next(PRIMARY_DO_PROMISE, 2);
	primary_on_promised(&p, 2, &report);
	assert_int_equal(p.state, PRIMARY_SERVING);
	skip_all();
	primary_on_record(&p, &reg, ++revision);
	assert_int_equal(p.state, PRIMARY_SERVING);
	assert_int_equal(p.rec.view.insync, 7);
}

/* A member has already seen the next primary, but this primary has not. */
static void a_primary_overtaken_in_its_recovery_is_fenced(void **state)
{
	struct primary_report report = {.copy = MIRROR_COPY_INSYNC};

	(void)state;
	begin(3, 1, 0);
	swap_done();
	promised(0);
	skip_all();
	assert_int_equal(view_promote(&reg, 2, 5, NULL), 0);
	report.seen = reg.view;
	primary_on_promised(&p, 1, &report);
	assert_int_equal(p.state, PRIMARY_RECOVERING);
	skip_all();
	primary_on_record(&p, &reg, ++revision);
	assert_int_equal(p.state, PRIMARY_FENCED);
}

/* The primary's own daemon has newer information than the primary. */
static void a_primary_overtaken_before_its_own_promise_is_fenced(void **state)
{
	struct primary_report report = {.copy = MIRROR_COPY_INSYNC};

	(void)state;
	begin(3, 1, 0);
	swap_done();
	assert_next(PRIMARY_DO_PROMISE, 0);
	assert_int_equal(view_promote(&reg, 2, 5, NULL), 0);
	report.seen = reg.view;
	primary_on_promised(&p, 0, &report);
	assert_int_equal(p.state, PRIMARY_RECOVERING);
	skip_all();
	primary_on_record(&p, &reg, ++revision);
	assert_int_equal(p.state, PRIMARY_FENCED);
}

/* The primary gets the refusal of its swap after it has read the configuration that caused the
 * refusal. */
static void a_swap_that_a_configuration_has_overtaken_is_made_again(void **state)
{
	(void)state;
	serve(3, 1);
	primary_on_lost(&p, 1);
	do
		assert_true(primary_next(&p, &last));
	while (last.type != PRIMARY_DO_SWAP);
	assert_int_equal(view_set_config(&reg, &reg.config, 5, NULL), 0);
	primary_on_changed(&p, &reg, ++revision);
	primary_on_swap(&p, PRIMARY_SWAP_CHANGED, &reg, revision);
	assert_int_equal(p.state, PRIMARY_SERVING);
	swap_done();
	assert_int_equal(reg.view.insync, 5);
	assert_int_equal(p.rec.config.number, reg.config.number);
}

static void a_promise_that_the_register_lacks_is_split(void **state)
{
	struct mirror_epoch higher = {9, 9};

	(void)state;
	begin(2, 1, 0);
	swap_done();
	promised(0);
	skip_all();
	primary_on_ranges(&p, 0);
	primary_on_refused(&p, 1, PRIMARY_REFUSED_EPOCH, higher);
	assert_next(PRIMARY_DO_DROP, 1);
	assert_next(PRIMARY_DO_READ, MIRROR_NO_SLOT);
	/* the primary makes no swap, because a swap would hide the split */
	primary_tick(&p, 1000000);
	assert_next(PRIMARY_DO_PROMISE, 1);
	assert_nothing();
	primary_on_record(&p, &reg, revision);
	assert_next(PRIMARY_DO_READ, MIRROR_NO_SLOT);
	primary_on_record(&p, &reg, revision);
	assert_int_equal(p.state, PRIMARY_FAILED);
	assert_int_equal(p.error, -ENOTUNIQ);
}

static void a_member_that_says_split_is_not_swapped_out(void **state)
{
	(void)state;
	begin(2, 1, 0);
	swap_done();
	promised(0);
	skip_all();
	primary_on_ranges(&p, 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(p.state, PRIMARY_RECOVERING);
		primary_on_refused(&p, 1, PRIMARY_REFUSED_SPLIT, (struct mirror_epoch){0, 0});
		skip_all();
		assert_false(p.swapping);
		primary_tick(&p, p.now + 5000);
		skip_all();
	}
	assert_int_equal(p.state, PRIMARY_FAILED);
	assert_int_equal(p.error, -ENOTUNIQ);
}

/* The primary serves. A member that reports a split may recover soon, so the primary repeats its
 * question until the member gives another answer. */
static void a_member_that_says_split_is_asked_again(void **state)
{
	struct primary_report report = {.copy = MIRROR_COPY_INSYNC};

	(void)state;
	serve(2, 2);
	primary_on_lost(&p, 1);
	skip_all();
	primary_tick(&p, 2000);
	assert_next(PRIMARY_DO_PROMISE, 1);
	primary_on_refused(&p, 1, PRIMARY_REFUSED_SPLIT, (struct mirror_epoch){0, 0});
	skip_all();
	primary_tick(&p, primary_next_deadline(&p));
	assert_next(PRIMARY_DO_PROMISE, 1);
	primary_on_promised(&p, 1, &report);
	assert_next(PRIMARY_DO_VIEW, 1);
	assert_next(PRIMARY_DO_EQUALISE, 1);
}

/*
 * The only other copy is lost, and cannot be excluded. A member that left S earlier returns before
 * this copy does.
 */
static void a_copy_that_returns_takes_the_place_of_the_last_other_one(void **state)
{
	struct primary_report report = {.copy = MIRROR_COPY_STALE};

	(void)state;
	serve(3, 2);
	primary_on_lost(&p, 2);
	swap_done();
	assert_int_equal(reg.view.insync, 3);
	primary_on_lost(&p, 1);
	do {
		skip_all();
		primary_tick(&p, primary_next_deadline(&p));
	} while (p.members[2].state != PRIMARY_MEMBER_FENCING);
	assert_true(p.blocked);
	skip_all();
	primary_on_promised(&p, 2, &report);
	skip_all();
	primary_on_joining(&p, 2);
	assert_int_equal(primary_must_have(&p), 7);
	primary_on_joined(&p, 2);
	swap_done();
	assert_int_equal(reg.view.insync, 7);
	swap_done();
	assert_int_equal(reg.view.insync, 5);
	assert_int_equal(primary_must_have(&p), 5);
	assert_true(primary_may_ack(&p));
	skip_all();
	assert_false(p.blocked);
}

static void the_last_copies_are_repaired_in_their_places(void **state)
{
	struct primary_report report = {.copy = MIRROR_COPY_INSYNC};

	(void)state;
	serve(2, 2);
	primary_on_lost(&p, 1);
	assert_next(PRIMARY_DO_DROP, 1);
	assert_next(PRIMARY_DO_BLOCKED, MIRROR_NO_SLOT);
	assert_nothing();
	primary_tick(&p, 2000);
	assert_next(PRIMARY_DO_PROMISE, 1);
	primary_on_promised(&p, 1, &report);
	assert_next(PRIMARY_DO_VIEW, 1);
	assert_next(PRIMARY_DO_EQUALISE, 1);
	assert_int_equal(primary_must_have(&p), 3);
	assert_int_equal(primary_sends_to(&p), 2);
	primary_on_equal(&p, 1);
	assert_next(PRIMARY_DO_RETIRE, 1);
	assert_next(PRIMARY_DO_UNBLOCKED, MIRROR_NO_SLOT);
	assert_nothing();
}

/*
 * The set has grown beyond the mapping, and the member's own records were damaged. No other member
 * is left, so this member is used, and the part of its copy past the mapping's end stays in doubt.
 */
static void a_larger_copy_of_s_that_is_in_doubt_is_used_and_stays_so(void **state)
{
	struct primary_report report = {
		.copy = MIRROR_COPY_UNKNOWN, .uncertain = true, .tail_unknown = true};

	(void)state;
	serve(2, 2);
	primary_on_lost(&p, 1);
	skip_all();
	primary_tick(&p, 2000);
	assert_next(PRIMARY_DO_PROMISE, 1);
	primary_on_promised(&p, 1, &report);
	assert_next(PRIMARY_DO_VIEW, 1);
	assert_next(PRIMARY_DO_EQUALISE, 1);
	assert_true(last.whole);
	primary_on_equal(&p, 1);
	assert_next(PRIMARY_DO_RETIRE, 1);
	assert_true(last.keeps);
	assert_next(PRIMARY_DO_UNBLOCKED, MIRROR_NO_SLOT);
	assert_true(primary_may_ack(&p));
}

/* A copy whose part past the mapping's end is in doubt does not delay the promotion. */
static void a_larger_copy_in_doubt_holds_no_promotion_up(void **state)
{
	struct primary_report report = {
		.copy = MIRROR_COPY_UNKNOWN, .uncertain = true, .tail_unknown = true};

	(void)state;
	begin(2, 2, 0);
	swap_done();
	promised(0);
	skip_all();
	primary_on_ranges(&p, 0);
	primary_on_promised(&p, 1, &report);
	skip_all();
	primary_on_ranges(&p, 1);
	assert_next(PRIMARY_DO_EQUALISE, 1);
	assert_true(last.whole);
	primary_on_equal(&p, 1);
	swap_done();
	assert_int_equal(reg.view.phase, MIRROR_PHASE_SERVING);
	assert_int_equal(reg.view.insync, 3);
	assert_next(PRIMARY_DO_VIEW, 0);
	assert_next(PRIMARY_DO_RETIRE, 0);
	assert_false(last.keeps);
	assert_next(PRIMARY_DO_VIEW, 1);
	assert_next(PRIMARY_DO_RETIRE, 1);
	assert_true(last.keeps);
}

/* The end of a resync would mark the whole copy as compared, so the member waits. */
static void a_larger_copy_outside_of_s_that_is_in_doubt_waits_for_the_next_mapping(void **state)
{
	struct primary_report report = {
		.copy = MIRROR_COPY_UNKNOWN, .uncertain = true, .tail_unknown = true};

	(void)state;
	serve(3, 1);
	primary_on_lost(&p, 2);
	swap_done();
	skip_all();
	primary_tick(&p, 1000 + 5000);
	assert_next(PRIMARY_DO_PROMISE, 2);
	primary_on_promised(&p, 2, &report);
	assert_next(PRIMARY_DO_DROP, 2);
	assert_nothing();
	assert_int_equal(p.members[2].state, PRIMARY_MEMBER_AWAY);
	assert_non_null(strstr(p.members[2].trouble, "when the set is mapped again"));
	/* Meanwhile the rest of the copy was compared. */
	report = (struct primary_report){.copy = MIRROR_COPY_STALE};
	primary_tick(&p, primary_next_deadline(&p));
	assert_next(PRIMARY_DO_PROMISE, 2);
	primary_on_promised(&p, 2, &report);
	assert_next(PRIMARY_DO_VIEW, 2);
	assert_next(PRIMARY_DO_RESYNC, 2);
}

static void the_own_copy_leaves_s_when_it_fails(void **state)
{
	(void)state;
	serve(2, 1);
	primary_on_local_failed(&p);
	assert_int_equal(primary_must_have(&p), 3);
	swap_done();
	assert_int_equal(reg.view.insync, 2);
	assert_int_equal(primary_must_have(&p), 2);
	assert_int_equal(p.state, PRIMARY_SERVING);
}

/* The failed copy may lack data that other members have acknowledged after its failure, so the copy
 * is not a source. */
static void a_failed_copy_makes_no_other_one_equal(void **state)
{
	struct primary_report report = {.copy = MIRROR_COPY_STALE};

	(void)state;
	serve(3, 1);
	primary_on_lost(&p, 2);
	swap_done();
	do {
		skip_all();
		primary_tick(&p, primary_next_deadline(&p));
	} while (p.members[2].state != PRIMARY_MEMBER_FENCING);
	skip_all();
	primary_on_promised(&p, 2, &report);
	assert_int_equal(p.members[2].state, PRIMARY_MEMBER_RESYNC);
	skip_all();
	primary_on_local_failed(&p);
	assert_next(PRIMARY_DO_DROP, 2);
	swap_done();
	assert_int_equal(reg.view.insync, 2);
	skip_all();
	primary_on_joining(&p, 2);
	assert_int_equal(p.members[2].state, PRIMARY_MEMBER_AWAY);
	assert_int_equal(p.state, PRIMARY_SERVING);
	primary_on_lost(&p, 1); /* the failed copy does not make the lost member equal, either */
	skip_all();
	primary_tick(&p, p.now + 100000);
	assert_nothing();
	assert_int_equal(p.state, PRIMARY_FAILED);
	assert_int_equal(p.error, -EIO);
}

/* The primary gives up, because otherwise it would wait for ever. */
static void a_failed_copy_gives_up_when_another_one_is_lost_that_is_needed(void **state)
{
	(void)state;
	serve(2, 2);
	primary_on_local_failed(&p);
	skip_all();
	/* the primary waits, because an operator may lower min_copies */
	assert_int_equal(p.state, PRIMARY_SERVING);
	assert_true(p.blocked);
	primary_on_lost(&p, 1);
	assert_int_equal(p.state, PRIMARY_FAILED);
	assert_int_equal(p.error, -EIO);
	/* Members that can be excluded are excluded. */
	serve(3, 1);
	primary_on_local_failed(&p);
	primary_on_lost(&p, 1);
	swap_done();
	if (reg.view.insync != 4)
		swap_done();
	assert_int_equal(reg.view.insync, 4);
	assert_int_equal(p.state, PRIMARY_SERVING);
	/* A primary that is ending has no flush to wait for. */
	serve(2, 2);
	primary_demote(&p);
	skip_all();
	primary_on_local_failed(&p);
	assert_int_equal(p.state, PRIMARY_QUIESCING);
	primary_on_lost(&p, 1);
	assert_int_equal(p.state, PRIMARY_STOPPING);
	swap_done();
	assert_int_equal(p.state, PRIMARY_DEMOTED);
	assert_false(reg.view.clean);
	assert_int_equal(reg.view.insync, 3);
}

/* Exclude the other member, and then let this host's own medium fail. */
static void lose_all_but_a_failed_copy(void)
{
	serve(2, 1);
	primary_on_lost(&p, 1);
	swap_done();
	assert_int_equal(reg.view.insync, 1);
	primary_on_local_failed(&p);
}

/* Let the other member return and become equal to this copy. */
static void join_the_failed_copy(void)
{
	struct primary_report report = {.copy = MIRROR_COPY_STALE};

	do {
		skip_all();
		assert_true(primary_next_deadline(&p) != UINT64_MAX);
		primary_tick(&p, primary_next_deadline(&p));
	} while (p.members[1].state != PRIMARY_MEMBER_FENCING);
	skip_all();
	primary_on_promised(&p, 1, &report);
	skip_all();
	primary_on_joining(&p, 1);
	primary_on_joined(&p, 1);
	swap_done();
}

/*
 * A demoted primary whose own copy has failed makes the other copy equal first: the primary's last
 * flushes wait for a copy that has not failed.
 */
static void the_last_copy_that_failed_makes_others_equal_also_at_the_end(void **state)
{
	(void)state;
	lose_all_but_a_failed_copy();
	primary_demote(&p);
	join_the_failed_copy();
	swap_done();
	assert_int_equal(reg.view.insync, 2);
}

/* The failed copy is the only one that has the acknowledged flushes. */
static void the_last_copy_makes_others_equal_though_it_failed(void **state)
{
	(void)state;
	lose_all_but_a_failed_copy();
	join_the_failed_copy();
	do
		assert_true(primary_next(&p, &last));
	while (last.type != PRIMARY_DO_RETIRE);
	assert_int_equal(last.slot, 1);
	/* keep the member's records: another member may get other bytes from this copy */
	assert_true(last.keeps);
	swap_done();
	assert_int_equal(reg.view.insync, 2);
}

/* The member's medium fails at each write, but the member still answers. */
static void a_member_that_cannot_be_made_equal_does_not_hold_a_promotion_up(void **state)
{
	struct primary_report report = {.copy = MIRROR_COPY_INSYNC};

	(void)state;
	begin(2, 1, 0);
	swap_done();
	promised(0);
	skip_all();
	primary_on_ranges(&p, 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(p.members[1].state, PRIMARY_MEMBER_FENCING);
		assert_int_equal(reg.view.insync, 3);
		skip_all();
		primary_on_promised(&p, 1, &report);
		primary_on_ranges(&p, 1);
		assert_int_equal(p.members[1].state, PRIMARY_MEMBER_EQUALISE);
		primary_on_lost(&p, 1);
		if (i < 2)
			primary_tick(&p, primary_next_deadline(&p));
	}
	swap_done();
	assert_int_equal(reg.view.insync, 1);
	swap_done();
	assert_int_equal(reg.view.phase, MIRROR_PHASE_SERVING);
}

static void the_configuration_changes_under_it(void **state)
{
	struct mirror_config next;

	(void)state;
	serve(3, 1);
	next = reg.config;
	next.members[2].id = 99; /* the configuration replaces this member */
	next.members[3].id = 4;
	strcpy(next.members[3].name, "d");
	assert_int_equal(view_set_config(&reg, &next, 5, NULL), 0);
	primary_on_record(&p, &reg, ++revision);
	assert_int_equal(primary_must_have(&p), 3);
	assert_next(PRIMARY_DO_VIEW, 0);
	assert_next(PRIMARY_DO_VIEW, 1);
	assert_next(PRIMARY_DO_DROP, 2);
	assert_next(PRIMARY_DO_PROMISE, 2);
	assert_next(PRIMARY_DO_PROMISE, 3);
	assert_nothing();
}

/* The restored record lists members that have left S. The primary must not continue from this
 * record, and must not count these members as in-sync. */
static void a_register_that_was_restored_and_configured_is_split(void **state)
{
	struct mirror_config next;
	struct mirror_record backup;

	(void)state;
	for (unsigned changes = 1; changes < 4; changes++) {
		serve(3, 1);
		backup = reg;
		primary_on_lost(&p, 2);
		swap_done();
		for (unsigned i = 0; i < changes; i++) {
			next = backup.config;
			assert_int_equal(view_set_config(&backup, &next, 5 + i, NULL), 0);
		}
		primary_on_record(&p, &backup, ++revision);
		assert_int_equal(p.state, PRIMARY_SERVING);
		assert_int_equal(p.rec.view.insync, 3);
		primary_on_lost(&p, 1);
		while (primary_next(&p, &last) && last.type != PRIMARY_DO_SWAP) {
		}
		primary_on_swap(&p, PRIMARY_SWAP_CHANGED, &backup, revision);
		assert_int_equal(p.state, PRIMARY_FAILED);
		assert_int_equal(p.error, -ENOTUNIQ);
		skip_all();
	}
	/* An operator has removed a member. */
	serve(3, 1);
	backup = reg;
	next = reg.config;
	memset(&next.members[2], 0, sizeof(next.members[2]));
	assert_int_equal(view_set_config(&reg, &next, 5, NULL), 0);
	primary_on_record(&p, &reg, ++revision);
	assert_int_equal(p.rec.view.insync, 3);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(view_set_config(&backup, &backup.config, 6 + i, NULL), 0);
	primary_on_record(&p, &backup, ++revision);
	assert_int_equal(p.state, PRIMARY_FAILED);
	assert_int_equal(p.error, -ENOTUNIQ);
}

static void it_ends_in_order(void **state)
{
	(void)state;
	serve(2, 1);
	primary_demote(&p);
	assert_next(PRIMARY_DO_QUIESCE, MIRROR_NO_SLOT);
	assert_nothing();
	assert_true(primary_may_ack(&p));
	primary_on_quiesced(&p, true);
	swap_done();
	assert_true(reg.view.clean);
	assert_next(PRIMARY_DO_DROP, 1);
	assert_next(PRIMARY_DO_DEMOTED, MIRROR_NO_SLOT);
	/* The next primary has no copy to make equal, but still fences the others. */
	primary_start(&p, &reg, revision, 1, NULL, false, 0, next_nonce, NULL);
	struct primary_report report = {.copy = MIRROR_COPY_INSYNC};

	swap_done();
	assert_next(PRIMARY_DO_PROMISE, 1);
	primary_on_promised(&p, 1, &report);
	assert_next(PRIMARY_DO_PROMISE, 0);
	primary_on_promised(&p, 0, &report);
	assert_next(PRIMARY_DO_VIEW, 0);
	assert_next(PRIMARY_DO_EQUALISE, 0);
	assert_true(last.nothing);
	primary_on_equal(&p, 0);
	swap_done();
	assert_int_equal(reg.view.phase, MIRROR_PHASE_SERVING);
}

/*
 * The promotion may have taken effect. If the primary ended before the answer, the epoch would have
 * no primary.
 */
static void an_end_waits_for_the_swap_of_the_promotion(void **state)
{
	(void)state;
	begin(2, 1, 0);
	assert_next(PRIMARY_DO_SWAP, MIRROR_NO_SLOT);
	primary_demote(&p);
	assert_int_equal(p.state, PRIMARY_PROMOTING);
	assert_nothing();
	reg = p.offer;
	primary_on_swap(&p, PRIMARY_SWAP_DONE, &reg, ++revision);
	swap_done();
	assert_int_equal(reg.view.phase, MIRROR_PHASE_NONE);
	assert_int_equal(p.state, PRIMARY_DEMOTED);
}

static void an_end_before_serving_takes_a_swap(void **state)
{
	(void)state;
	begin(2, 1, 0);
	swap_done();
	assert_int_equal(p.state, PRIMARY_RECOVERING);
	primary_demote(&p);
	assert_int_equal(p.state, PRIMARY_STOPPING);
	swap_done();
	assert_int_equal(reg.view.phase, MIRROR_PHASE_NONE);
}

static void an_end_is_not_clean_while_a_member_lacks_something(void **state)
{
	(void)state;
	serve(2, 2);
	primary_demote(&p);
	primary_on_lost(&p, 1);
	skip_all();
	primary_on_quiesced(&p, true);
	while (p.state == PRIMARY_STOPPING)
		swap_done();
	assert_false(reg.view.clean);
}

static void force_leaves_no_other_member_in_s(void **state)
{
	(void)state;
	begin(2, 1, 0);
	reg.view.insync = 2;
	primary_start(&p, &reg, 1, 0, NULL, false, 0, next_nonce, NULL);
	assert_int_equal(p.error, -EPERM);
	primary_start(&p, &reg, 1, 0, NULL, true, 0, next_nonce, NULL);
	swap_done();
	assert_int_equal(reg.view.insync, 1);
	assert_true(reg.view.forced);
	promised(0);
	assert_next(PRIMARY_DO_RANGES, 0);
	primary_on_ranges(&p, 0);
	swap_done();
	skip_all();
	struct primary_report report = {.copy = MIRROR_COPY_INSYNC};

	primary_on_promised(&p, 1, &report);
	assert_next(PRIMARY_DO_VIEW, 1);
	assert_next(PRIMARY_DO_RESYNC, 1);
	assert_true(last.whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fence_all_then_look_then_serve),
		cmocka_unit_test(records_that_may_lack_something_name_nothing),
		cmocka_unit_test(what_cannot_vouch_for_itself_is_not_taken_for_clean),
		cmocka_unit_test(a_member_that_does_not_answer_is_swapped_out_in_time),
		cmocka_unit_test(silence_and_a_refusal_are_distinguished),
		cmocka_unit_test(a_refusal_is_reported_once),
		cmocka_unit_test(a_member_that_is_lost_after_it_answered_is_not_called_silent),
		cmocka_unit_test(a_stale_copy_is_filled_before_too_few_serve),
		cmocka_unit_test(a_lost_member_may_return_while_another_is_filled),
		cmocka_unit_test(a_copy_that_was_perhaps_taken_in_is_not_filled_again),
		cmocka_unit_test(no_copy_is_filled_where_enough_are_left),
		cmocka_unit_test(a_suspect_has_little_time),
		cmocka_unit_test(a_suspect_that_answers_is_none),
		cmocka_unit_test(below_min_copies_it_waits),
		cmocka_unit_test(one_copy_is_reported_in_the_singular),
		cmocka_unit_test(a_process_that_maps_the_copy_is_waited_for),
		cmocka_unit_test(a_process_that_unmaps_is_asked_again_soon),
		cmocka_unit_test(nothing_is_acknowledged_before_the_shrink_is_known),
		cmocka_unit_test(a_member_joins_before_it_is_of_s),
		cmocka_unit_test(a_member_that_an_operator_excludes_stays_away),
		cmocka_unit_test(a_member_whose_exclusion_is_not_answered_is_used_again),
		cmocka_unit_test(a_member_whose_expansion_is_unknown_is_waited_for),
		cmocka_unit_test(an_expansion_that_lands_late_is_undone),
		cmocka_unit_test(a_promotion_without_an_answer_is_found_by_its_nonce),
		cmocka_unit_test(a_promotion_ends_when_another_member_was_faster),
		cmocka_unit_test(a_higher_epoch_fences_for_good),
		cmocka_unit_test(an_overtaken_candidate_never_serves),
		cmocka_unit_test(a_register_older_than_its_primary_is_split),
		cmocka_unit_test(a_register_older_than_a_member_is_split),
		cmocka_unit_test(what_a_member_has_read_earlier_is_no_split),
		cmocka_unit_test(a_member_that_has_joined_unnoticed_is_used),
		cmocka_unit_test(a_primary_overtaken_in_its_recovery_is_fenced),
		cmocka_unit_test(a_primary_overtaken_before_its_own_promise_is_fenced),
		cmocka_unit_test(a_swap_that_a_configuration_has_overtaken_is_made_again),
		cmocka_unit_test(a_promise_that_the_register_lacks_is_split),
		cmocka_unit_test(a_member_that_says_split_is_not_swapped_out),
		cmocka_unit_test(a_member_that_says_split_is_asked_again),
		cmocka_unit_test(a_copy_that_returns_takes_the_place_of_the_last_other_one),
		cmocka_unit_test(the_last_copies_are_repaired_in_their_places),
		cmocka_unit_test(a_larger_copy_of_s_that_is_in_doubt_is_used_and_stays_so),
		cmocka_unit_test(a_larger_copy_in_doubt_holds_no_promotion_up),
		cmocka_unit_test(
			a_larger_copy_outside_of_s_that_is_in_doubt_waits_for_the_next_mapping),
		cmocka_unit_test(the_own_copy_leaves_s_when_it_fails),
		cmocka_unit_test(a_failed_copy_makes_no_other_one_equal),
		cmocka_unit_test(a_failed_copy_gives_up_when_another_one_is_lost_that_is_needed),
		cmocka_unit_test(the_last_copy_makes_others_equal_though_it_failed),
		cmocka_unit_test(the_last_copy_that_failed_makes_others_equal_also_at_the_end),
		cmocka_unit_test(a_member_that_cannot_be_made_equal_does_not_hold_a_promotion_up),
		cmocka_unit_test(the_configuration_changes_under_it),
		cmocka_unit_test(a_register_that_was_restored_and_configured_is_split),
		cmocka_unit_test(it_ends_in_order),
		cmocka_unit_test(an_end_waits_for_the_swap_of_the_promotion),
		cmocka_unit_test(an_end_before_serving_takes_a_swap),
		cmocka_unit_test(an_end_is_not_clean_while_a_member_lacks_something),
		cmocka_unit_test(force_leaves_no_other_member_in_s),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
