/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Walks through the primary's states by random events, expected or not. The register carries out
 * swaps late or without an answer. In every state these rules must hold:
 *
 *   - The primary waits for each member that is in S, or may be after a swap that can still take
 *      effect.
 *   - The action SERVE comes once, after the register has `serving` for this epoch.
 *   - No action follows the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "mirror/core/primary.h"
#include "record.h"

#define WALKS    4000
#define STEPS    150
#define LATE_MAX 16

enum event {
	TICK,
	SWAP_DONE,
	SWAP_UNKNOWN,
	SWAP_LATE,
	SWAP_FAILED,
	LATE_LANDS,
	RECORD,
	PROMISED,
	REFUSED,
	RANGES,
	PROGRESS,
	EQUAL,
	JOINING,
	JOINED,
	LOST,
	LOCAL_FAILED,
	DEMOTE,
	QUIESCED,
	CONFIG,
	OTHER,
	EVENT_COUNT
};

static struct primary p;
static struct mirror_record reg, sent;
static uint64_t revision, sent_revision, seed;
static bool swap_sent, served;
static struct {
	struct mirror_record rec;
	uint64_t expected;
} late[LATE_MAX];
static unsigned late_count;
static uint64_t seen[PRIMARY_STATE_COUNT][EVENT_COUNT];

static uint64_t walk_random(void *arg)
{
	(void)arg;
	uint64_t z = seed += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	return z ^ (z >> 31);
}

static unsigned below(unsigned n)
{
	return (unsigned)(walk_random(NULL) >> 33) % n;
}

static void walk_actions(void)
{
	struct primary_action a;
	bool ended = false;

	while (primary_next(&p, &a)) {
		assert_false(ended); /* no action may follow the end */
		if (a.type == PRIMARY_DO_SWAP) {
			assert_false(swap_sent);
			assert_memory_equal(a.expected, &p.rec, sizeof(p.rec));
			sent = *a.record;
			sent_revision = a.revision;
			swap_sent = true;
		} else if (a.type == PRIMARY_DO_SERVE) {
			assert_false(served);
			assert_int_equal(p.rec.view.phase, MIRROR_PHASE_SERVING);
			served = true;
		}
		ended = a.type >= PRIMARY_DO_DEMOTED;
	}
	assert_int_equal(primary_next_deadline(&p) > p.now, 1);
}

static void walk_check(void)
{
	bool is_ours = p.rec.view.epoch.number && reg.view.primary == p.slot &&
		       mirror_epoch_is_equal(reg.view.epoch, p.rec.view.epoch);

	if (p.state < PRIMARY_RECOVERING || p.state > PRIMARY_STOPPING || !is_ours)
		return;
	assert_int_equal(reg.view.insync & ~primary_must_have(&p), 0);
	for (unsigned i = 0; i < late_count; i++)
		if (late[i].expected == revision)
			assert_int_equal(late[i].rec.view.insync & ~primary_must_have(&p), 0);
	if (served)
		assert_true(p.state >= PRIMARY_SERVING);
	if (primary_may_ack(&p))
		assert_true(served);
}

static bool walk_land(const struct mirror_record *rec, uint64_t expected)
{
	if (expected != revision)
		return false;
	reg = *rec;
	revision++;
	return true;
}

static void walk_swap(enum event event)
{
	if (!swap_sent)
		return;
	swap_sent = false;
	if (event == SWAP_FAILED) {
		primary_on_swap(&p, PRIMARY_SWAP_FAILED, NULL, 0);
		return;
	}
	if (event == SWAP_LATE && late_count < LATE_MAX) {
		late[late_count].rec = sent;
		late[late_count++].expected = sent_revision;
	}
	bool done = event != SWAP_LATE && walk_land(&sent, sent_revision);

	if (event == SWAP_DONE)
		primary_on_swap(&p, done ? PRIMARY_SWAP_DONE : PRIMARY_SWAP_CHANGED, &reg,
				revision);
	else
		primary_on_swap(&p, PRIMARY_SWAP_UNKNOWN, NULL, 0);
}

static void walk_late(void)
{
	if (late_count == 0)
		return;
	unsigned i = below(late_count);

	walk_land(&late[i].rec, late[i].expected);
	late[i] = late[--late_count];
}

static void walk_config(bool other)
{
	struct mirror_config next = reg.config;
	uint8_t slot = (uint8_t)below(4);

	if (other) {
		if (below(8) == 0 && view_promote(&reg, slot, walk_random(NULL), NULL) == 0)
			revision++;
		return;
	}
	next.members[slot].id = walk_random(NULL) | 1;
	snprintf(next.members[slot].name, sizeof(next.members[slot].name), "%c", 'a' + slot);
	if (view_set_config(&reg, &next, walk_random(NULL), NULL) == 0)
		revision++;
}

static void walk_promised(uint8_t slot)
{
	struct primary_report report = {
		.copy = below(10) ? MIRROR_COPY_INSYNC : (enum mirror_copy)below(MIRROR_COPY_COUNT),
		.held = below(8) == 0,
		.uncertain = below(4) == 0,
	};

	if (below(200) == 0)
		report.seen = (struct mirror_view){.epoch = {1000, 1}};
	primary_on_promised(&p, slot, &report);
}

static void walk_step(enum event event)
{
	uint8_t slot = (uint8_t)below(5);

	switch (event) {
	case TICK:
		primary_tick(&p, p.now + below(4) * below(1000));
		break;
	case SWAP_DONE:
	case SWAP_UNKNOWN:
	case SWAP_LATE:
	case SWAP_FAILED:
		walk_swap(event);
		break;
	case LATE_LANDS:
		walk_late();
		break;
	case RECORD:
		primary_on_record(&p, &reg, revision);
		break;
	case PROMISED:
		walk_promised(slot);
		break;
	case REFUSED:
		if (below(6) == 0)
			primary_on_refused(&p, slot, (enum primary_refusal)below(4),
					   (struct mirror_epoch){500, below(2)});
		break;
	case RANGES:
		primary_on_ranges(&p, slot);
		break;
	case PROGRESS:
		primary_on_progress(&p, slot);
		break;
	case EQUAL:
		primary_on_equal(&p, slot);
		break;
	case JOINING:
		primary_on_joining(&p, slot);
		break;
	case JOINED:
		primary_on_joined(&p, slot);
		break;
	case LOST:
		if (below(3) == 0)
			primary_on_lost(&p, slot);
		break;
	case LOCAL_FAILED:
		if (below(60) == 0)
			primary_on_local_failed(&p);
		break;
	case DEMOTE:
		if (below(30) == 0)
			primary_demote(&p);
		break;
	case QUIESCED:
		primary_on_quiesced(&p, below(2));
		break;
	case CONFIG:
	case OTHER:
		if (below(4) == 0)
			walk_config(event == OTHER);
		break;
	case EVENT_COUNT:
		break;
	}
}

static void walk(uint64_t first)
{
	seed = first * 7919;
	reg = test_record(2 + below(3), 1 + below(2));
	reg.config.lonely = (enum mirror_lonely)below(3);
	reg.view.clean = below(2);
	revision = 1;
	swap_sent = served = false;
	late_count = 0;
	primary_start(&p, &reg, revision, (uint8_t)below(2), NULL, below(10) == 0, 1000,
		      walk_random, NULL);
	for (unsigned i = 0; i < STEPS; i++) {
		enum event event = (enum event)below(EVENT_COUNT);

		seen[p.state][event]++;
		walk_step(event);
		walk_actions();
		walk_check();
	}
}

static void all_events_in_all_states(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= WALKS; i++)
		walk(i);
	for (unsigned s = PRIMARY_PROMOTING; s < PRIMARY_STATE_COUNT; s++)
		for (unsigned e = 0; e < EVENT_COUNT; e++)
			if (!seen[s][e])
				fail_msg("event %u never came in state %s", e,
					 primary_state_2str((enum primary_state)s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all_events_in_all_states)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
