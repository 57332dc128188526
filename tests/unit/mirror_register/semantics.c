/* SPDX-License-Identifier: BSD-3-Clause */
#include "semantics.h"

#include <errno.h>
#include <string.h>

#include "lib/unit.h"
#include "records.h"

void semantics_create(struct mirror_register *r, struct register_entry *now)
{
	struct mirror_record first;
	struct error err;

	record_init(&first, "orders");
	if (register_create(r, &first, now, &err) != REGISTER_DONE)
		fail_msg("%s", err.text);
}

static void semantics_swap(struct mirror_register *r, struct mirror_register *other)
{
	struct register_entry now, seen, stale;
	struct mirror_record next;
	struct error err;

	assert_int_equal(register_get(r, &now, &err), -ENOENT);
	semantics_create(r, &now);
	assert_int_equal(register_create(other, &now.record, &seen, &err), REGISTER_DONE);
	next = now.record;
	record_next(&next);
	assert_int_equal(register_create(other, &next, &seen, &err), REGISTER_CHANGED);
	assert_int_equal(seen.record.nonce, now.record.nonce);

	stale = now;
	assert_int_equal(register_swap(r, &now, &next, NULL, &now, &err), REGISTER_DONE);
	assert_int_equal(now.record.nonce, next.nonce);
	assert_true(now.revision > stale.revision);
	assert_int_equal(register_get(other, &seen, &err), 0);
	assert_int_equal(seen.revision, now.revision);
	assert_int_equal(seen.record.view.seq, 1);

	/*
	 * A repeated swap counts as done; a different swap from the same old value is refused.
	 */
	assert_int_equal(register_swap(other, &stale, &next, NULL, &seen, &err), REGISTER_DONE);
	assert_int_equal(seen.revision, now.revision);
	record_next(&next);
	assert_int_equal(register_swap(other, &stale, &next, NULL, &seen, &err), REGISTER_CHANGED);
	assert_int_equal(seen.record.nonce, now.record.nonce);
}

static void semantics_impossible(struct mirror_register *r, struct mirror_register *other)
{
	struct register_entry now, after;
	struct mirror_record next;
	struct error err;

	semantics_create(r, &now);
	next = now.record;
	next.view.insync = 0;
	assert_int_equal(register_swap(r, &now, &next, NULL, &after, &err), REGISTER_FAILED);
	assert_int_equal(register_get(r, &after, &err), 0);
	assert_int_equal(after.revision, now.revision);
}

static void semantics_promotion(struct mirror_register *r, struct mirror_register *other)
{
	struct register_alive alive = {0}, seen, peeked;
	struct register_entry now, first;
	struct mirror_record next;
	struct error err;

	semantics_create(r, &now);
	assert_int_equal(register_alive_get(r, &seen, &err), 0);
	assert_false(seen.is_set);
	next = now.record;
	record_promote(&next, 0);
	assert_int_equal(register_swap(r, &now, &next, &seen, &now, &err), REGISTER_DONE);
	first = now;

	/* The daemon of the primary renews the alive key. */
	assert_int_equal(register_alive_put(r, next.view.epoch, &alive, &err), REGISTER_DONE);
	assert_int_equal(alive.counter, 1);
	seen = alive;
	assert_int_equal(register_alive_put(r, next.view.epoch, &alive, &err), REGISTER_DONE);
	assert_int_equal(alive.counter, 2);

	/* A candidate that read the key before the last renewal is refused. */
	record_promote(&next, 1);
	assert_int_equal(register_swap(r, &now, &next, &seen, &now, &err), REGISTER_CHANGED);
	assert_int_equal(now.revision, first.revision);
	assert_int_equal(register_alive_get(r, &seen, &err), 0);
	assert_int_equal(seen.counter, 2);
	/* One member of the store may have an older value than the others. */
	assert_int_equal(register_alive_peek(r, &peeked, &err), 0);
	assert_true(!peeked.is_set || peeked.revision <= seen.revision);
	assert_int_equal(register_swap(r, &now, &next, &seen, &now, &err), REGISTER_DONE);

	/* From now on the earlier primary's renewals fail, whatever record it has read. */
	assert_int_equal(register_alive_put(r, first.record.view.epoch, &alive, &err),
			 REGISTER_CHANGED);
	memset(&alive, 0, sizeof(alive));
	assert_int_equal(register_alive_put(r, first.record.view.epoch, &alive, &err),
			 REGISTER_CHANGED);
	assert_int_equal(register_alive_clear(r, first.record.view.epoch, &err), REGISTER_CHANGED);
	assert_int_equal(register_alive_clear(r, next.view.epoch, &err), REGISTER_DONE);
	assert_int_equal(register_alive_clear(r, next.view.epoch, &err), REGISTER_DONE);
	memset(&alive, 0, sizeof(alive));
	assert_int_equal(register_alive_put(r, next.view.epoch, &alive, &err), REGISTER_CHANGED);
}

static void semantics_delete(struct mirror_register *r, struct mirror_register *other)
{
	struct register_entry now, gone;
	struct mirror_record next;
	struct error err;

	semantics_create(r, &now);
	next = now.record;
	record_next(&next);
	gone = now;
	assert_int_equal(register_swap(r, &now, &next, NULL, &now, &err), REGISTER_DONE);
	assert_int_equal(register_delete(r, &gone, &err), REGISTER_CHANGED);
	assert_int_equal(register_delete(r, &now, &err), REGISTER_DONE);
	assert_int_equal(register_get(r, &gone, &err), -ENOENT);
	assert_int_equal(register_delete(r, &now, &err), REGISTER_DONE);
	record_next(&next);
	assert_int_equal(register_swap(r, &now, &next, NULL, &gone, &err), REGISTER_CHANGED);
	assert_int_equal(gone.revision, 0);
}

static void semantics_forget(struct mirror_register *r)
{
	struct register_entry now;
	struct error err;

	if (!register_get(r, &now, &err))
		assert_int_equal(register_delete(r, &now, &err), REGISTER_DONE);
}

void semantics_check(struct mirror_register *r, struct mirror_register *other)
{
	void (*const checks[])(struct mirror_register *, struct mirror_register *) = {
		semantics_swap, semantics_impossible, semantics_promotion, semantics_delete};

	for (unsigned i = 0; i < ARRAY_LEN(checks); i++) {
		semantics_forget(r);
		checks[i](r, other);
	}
}
