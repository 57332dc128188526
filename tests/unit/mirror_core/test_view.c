/* SPDX-License-Identifier: BSD-3-Clause */
/* Which changes of a set's record are permitted, and how views are compared. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "record.h"
#include "mirror/core/version.h"

/* A refused change must not change the record, and must give a text. */
#define assert_refused(rec, call, error)                                                           \
	do {                                                                                       \
		struct mirror_record before_ = (rec);                                              \
		why = NULL;                                                                        \
		assert_int_equal((call), (error));                                                 \
		assert_non_null(why);                                                              \
		assert_memory_equal(&before_, &(rec), sizeof(before_));                            \
	} while (0)

static void a_life(void **state)
{
	struct mirror_record rec = test_record(3, 1);

	(void)state;
	assert_int_equal(view_promote(&rec, 1, 10, NULL), 0);
	assert_int_equal(rec.view.epoch.number, 1);
	assert_int_equal(rec.view.epoch.nonce, 10);
	assert_int_equal(rec.nonce, 10);
	assert_int_equal(rec.view.insync, 7);
	assert_int_equal(rec.view.phase, MIRROR_PHASE_RECOVERING);
	assert_false(rec.view.clean);
	/* the epoch 0 before the first one is not recorded */
	assert_int_equal(rec.history_count, 0);
	assert_int_equal(view_shrink(&rec, 1, 4, 11, NULL), 0);
	assert_int_equal(view_serve(&rec, 1, 12, NULL), 0);
	assert_int_equal(view_expand(&rec, 1, 4, 13, NULL), 0);
	assert_int_equal(rec.view.insync, 7);
	assert_int_equal(rec.view.seq, 4);
	assert_int_equal(view_demote(&rec, 1, true, 14, NULL), 0);
	assert_true(rec.view.clean);
	assert_int_equal(rec.view.primary, MIRROR_NO_SLOT);
	assert_int_equal(view_promote(&rec, 0, 15, NULL), 0);
	assert_int_equal(rec.history_count, 1);
	assert_int_equal(rec.history[0].epoch.nonce, 10);
	assert_int_equal(rec.history[0].seq, 5);
}

static void a_member_that_is_not_insync_is_not_promoted(void **state)
{
	struct mirror_record rec = test_record(2, 1);
	const char *why;

	(void)state;
	assert_int_equal(view_promote(&rec, 0, 10, NULL), 0);
	assert_int_equal(view_shrink(&rec, 0, 2, 11, NULL), 0);
	assert_refused(rec, view_promote(&rec, 1, 12, &why), -EPERM);
	assert_refused(rec, view_promote(&rec, 2, 12, &why), -EINVAL);
	assert_int_equal(view_force(&rec, 1, 13, NULL), 0);
	assert_true(rec.view.forced);
	assert_int_equal(rec.view.insync, 2);
	assert_int_equal(rec.history[0].epoch.nonce, 10);
}

static void only_the_primary_changes_its_epoch(void **state)
{
	struct mirror_record rec = test_record(3, 1);
	const char *why;

	(void)state;
	assert_refused(rec, view_serve(&rec, 0, 9, &why), -ESTALE);
	assert_int_equal(view_promote(&rec, 0, 10, NULL), 0);
	assert_refused(rec, view_serve(&rec, 1, 11, &why), -ESTALE);
	assert_refused(rec, view_shrink(&rec, 1, 1, 11, &why), -ESTALE);
	/* refused, because the primary does not serve */
	assert_refused(rec, view_expand(&rec, 0, 1, 11, &why), -EAGAIN);
	assert_int_equal(view_serve(&rec, 0, 12, NULL), 0);
	assert_refused(rec, view_serve(&rec, 0, 13, &why), -EALREADY);
	assert_refused(rec, view_expand(&rec, 0, 1, 11, &why), -EINVAL);
	assert_refused(rec, view_expand(&rec, 0, 8, 11, &why), -EINVAL);
	assert_refused(rec, view_supersede(&rec, 2, 11, &why), -ESTALE);
	assert_refused(rec, view_demote(&rec, 2, true, 11, &why), -ESTALE);
}

static void enough_copies_stay(void **state)
{
	struct mirror_record rec = test_record(3, 2);
	const char *why;

	(void)state;
	assert_int_equal(view_promote(&rec, 0, 10, NULL), 0);
	assert_refused(rec, view_shrink(&rec, 0, 6, 11, &why), -EBUSY);
	assert_int_equal(view_shrink(&rec, 0, 4, 11, NULL), 0);
	assert_refused(rec, view_shrink(&rec, 0, 2, 12, &why), -EBUSY);
	assert_refused(rec, view_shrink(&rec, 0, 4, 12, &why), -EINVAL);
	rec.config.min_copies = 1;
	rec.config.lonely = MIRROR_LONELY_BLOCK;
	assert_refused(rec, view_shrink(&rec, 0, 2, 12, &why), -EBUSY);
	rec.config.lonely = MIRROR_LONELY_MANUAL;
	assert_int_equal(view_shrink(&rec, 0, 2, 12, NULL), 0);
	/* refused, because no member would be left */
	assert_refused(rec, view_shrink(&rec, 0, 1, 13, &why), -EBUSY);
}

static void a_filled_copy_takes_the_place_of_a_lost_one(void **state)
{
	struct mirror_record rec = test_record(3, 2);
	const char *why;

	(void)state;
	rec.view.insync = 3;
	assert_refused(rec, view_exchange(&rec, 1, 1, 4, 9, &why), -ESTALE); /* no primary */
	assert_int_equal(view_promote(&rec, 1, 10, NULL), 0);
	assert_refused(rec, view_exchange(&rec, 0, 1, 4, 11, &why), -ESTALE);
	assert_refused(rec, view_exchange(&rec, 1, 2, 4, 11, &why), -EINVAL); /* the primary */
	assert_refused(rec, view_exchange(&rec, 1, 4, 4, 11, &why), -EINVAL);
	assert_refused(rec, view_exchange(&rec, 1, 0, 4, 11, &why), -EINVAL);
	assert_refused(rec, view_exchange(&rec, 1, 1, 1, 11, &why), -EINVAL);
	assert_refused(rec, view_exchange(&rec, 1, 1, 0, 11, &why), -EINVAL);
	assert_refused(rec, view_exchange(&rec, 1, 1, 8, 11, &why), -EINVAL); /* no member */
	rec.config.min_copies = 3;
	assert_refused(rec, view_exchange(&rec, 1, 1, 4, 11, &why), -EBUSY);
	rec.config.min_copies = 2;
	assert_int_equal(view_exchange(&rec, 1, 1, 4, 11, NULL), 0);
	assert_int_equal(rec.view.insync, 6);
	assert_int_equal(rec.view.seq, 2);
	assert_int_equal(rec.nonce, 11);
	assert_int_equal(view_serve(&rec, 1, 12, NULL), 0);
	assert_refused(rec, view_exchange(&rec, 1, 4, 1, 13, &why), -EALREADY);
}

static void configurations_change(void **state)
{
	struct mirror_record rec = test_record(2, 1);
	struct mirror_config next = rec.config;
	const char *why;

	(void)state;
	next.members[2] = next.members[1];
	/* refused: two members have the same name */
	assert_refused(rec, view_set_config(&rec, &next, 9, &why), -EINVAL);
	next.members[2].id = 30;
	next.members[2].name[0] = '\0';
	/* refused: a member has no name */
	assert_refused(rec, view_set_config(&rec, &next, 9, &why), -EINVAL);
	strcpy(next.members[2].name, "c");
	next.size *= 2;
	assert_int_equal(view_set_config(&rec, &next, 9, NULL), 0);
	assert_int_equal(rec.config.number, 2);
	assert_int_equal(rec.view.insync, 3); /* a new member is not in-sync */
	next.size /= 2;
	assert_refused(rec, view_set_config(&rec, &next, 9, &why), -EINVAL);
	next = rec.config;
	next.members[1].id = 20; /* this member is replaced */
	assert_int_equal(view_set_config(&rec, &next, 10, NULL), 0);
	assert_int_equal(rec.view.insync, 1);
	next.members[0].id = 21;
	assert_refused(rec, view_set_config(&rec, &next, 11, &why), -EAGAIN);
	assert_int_equal(view_promote(&rec, 0, 12, NULL), 0);
	assert_refused(rec, view_set_config(&rec, &next, 13, &why), -EBUSY);
	next = rec.config;
	next.min_copies = 4;
	assert_refused(rec, view_set_config(&rec, &next, 13, &why), -EINVAL);
	next.min_copies = 1;
	next.uuid.bytes[3] ^= 1;
	assert_refused(rec, view_set_config(&rec, &next, 13, &why), -EINVAL);
}

static mirror_mask without(struct mirror_record *rec, unsigned slot)
{
	struct mirror_config next = rec->config;

	memset(&next.members[slot], 0, sizeof(next.members[slot]));
	assert_int_equal(view_set_config(rec, &next, 50 + slot, NULL), 0);
	return rec->view.insync;
}

/* The change is refused, because flushes would have to wait without that copy. */
static void a_copy_that_min_copies_needs_is_not_removed(void **state)
{
	struct mirror_record rec = test_record(4, 2);
	struct mirror_config next;
	const char *why;

	(void)state;
	assert_int_equal(view_promote(&rec, 0, 10, NULL), 0);
	assert_int_equal(view_shrink(&rec, 0, 4, 11, NULL), 0);
	assert_int_equal(without(&rec, 3), 3); /* the set has one copy more than it needs */
	next = rec.config;
	memset(&next.members[1], 0, sizeof(next.members[1]));
	assert_refused(rec, view_set_config(&rec, &next, 12, &why), -EAGAIN);
	assert_non_null(strstr(why, "min-copies"));
	next.min_copies = 1;
	assert_int_equal(view_set_config(&rec, &next, 12, NULL), 0);
	assert_int_equal(rec.view.insync, 1);
	/*
	 * A member that is not in-sync does not count. A new copy may replace a lost one.
	 */
	rec = test_record(3, 2);
	assert_int_equal(view_promote(&rec, 0, 10, NULL), 0);
	assert_int_equal(view_shrink(&rec, 0, 4, 11, NULL), 0);
	assert_int_equal(without(&rec, 2), 3);
	next = rec.config;
	next.members[1].id = 20;
	assert_int_equal(view_set_config(&rec, &next, 12, NULL), 0);
	assert_int_equal(rec.view.insync, 1);
}

static void settings_change_when_that_is_safe(void **state)
{
	struct mirror_record rec = test_record(3, 1);
	struct mirror_config next = rec.config;
	const char *why;

	(void)state;
	next.lease_ms *= 2;
	assert_int_equal(view_set_config(&rec, &next, 9, NULL), 0);
	assert_int_equal(view_promote(&rec, 0, 10, NULL), 0);
	next.lease_ms--; /* refused, because another promotion could come too soon */
	assert_refused(rec, view_set_config(&rec, &next, 11, &why), -EBUSY);
	next.lease_ms += 2; /* refused, because the primary could read too long */
	assert_refused(rec, view_set_config(&rec, &next, 11, &why), -EBUSY);
	assert_int_equal(view_serve(&rec, 0, 12, NULL), 0);
	assert_refused(rec, view_set_config(&rec, &next, 13, &why), -EBUSY);
	assert_int_equal(view_demote(&rec, 0, true, 14, NULL), 0);
	assert_int_equal(view_set_config(&rec, &next, 15, NULL), 0);
	assert_int_equal(view_promote(&rec, 0, 16, NULL), 0);

	assert_int_equal(view_shrink(&rec, 0, 4, 17, NULL), 0);
	next = rec.config;
	next.min_copies = 3; /* refused, because no flush could be acknowledged */
	assert_refused(rec, view_set_config(&rec, &next, 18, &why), -EAGAIN);
	next.min_copies = 2;
	assert_int_equal(view_set_config(&rec, &next, 18, NULL), 0);
	assert_refused(rec, view_shrink(&rec, 0, 2, 19, &why), -EBUSY);
	next.min_copies = 1;
	assert_int_equal(view_set_config(&rec, &next, 20, NULL), 0);
	assert_int_equal(view_shrink(&rec, 0, 2, 21, NULL), 0);

	next = rec.config;
	next.lonely = MIRROR_LONELY_BLOCK;
	assert_refused(rec, view_set_config(&rec, &next, 22, &why), -EINVAL);
	next.lonely = rec.config.lonely;
	next.format = (uint8_t)(version_newest() + 1);
	/* refused: the feature is unknown */
	assert_refused(rec, view_set_config(&rec, &next, 22, &why), -EINVAL);
	next.format = 0;
	assert_refused(rec, view_set_config(&rec, &next, 22, &why), -EINVAL);
	next = rec.config;
	next.replica_timeout_ms = next.slow_ms = next.holdoff_ms = next.blocked_ms = 1;
	next.local_error_continues = true;
	next.address = 4096;
	next.members[1].port++;
	assert_int_equal(view_set_config(&rec, &next, 23, NULL), 0);
	assert_int_equal(rec.view.insync, 1); /* the change removes no member of S */
	next.replica_timeout_ms = 0;
	assert_refused(rec, view_set_config(&rec, &next, 24, &why), -EINVAL);
}

static void views_compare(void **state)
{
	struct mirror_record rec = test_record(2, 1);
	struct mirror_view none = {.epoch = {0, 0}}, one, two, other;

	(void)state;
	assert_int_equal(view_compare(&rec, &none), VIEW_OLDER);
	assert_int_equal(view_promote(&rec, 0, 10, NULL), 0);
	one = rec.view;
	assert_int_equal(view_compare(&rec, &one), VIEW_SAME);
	assert_int_equal(view_serve(&rec, 0, 11, NULL), 0);
	assert_int_equal(view_compare(&rec, &one), VIEW_OLDER);
	two = rec.view;
	two.seq++;
	assert_int_equal(view_compare(&rec, &two), VIEW_NEWER); /* the register was restored */
	other = rec.view;
	other.phase = MIRROR_PHASE_RECOVERING;
	assert_int_equal(view_compare(&rec, &other), VIEW_BRANCH);
	assert_int_equal(view_promote(&rec, 1, 12, NULL), 0);
	assert_int_equal(view_compare(&rec, &one), VIEW_OLDER);
	assert_int_equal(view_compare(&rec, &two), VIEW_BRANCH); /* the epoch ended before `two` */
	other = rec.view;
	other.epoch.nonce++;
	assert_int_equal(view_compare(&rec, &other), VIEW_BRANCH);
	one.epoch.nonce++;
	assert_int_equal(view_compare(&rec, &one), VIEW_BRANCH);
	one.epoch.nonce--;
	for (unsigned i = 0; i < MIRROR_HISTORY + 1; i++)
		assert_int_equal(view_promote(&rec, 1, 20 + i, NULL), 0);
	assert_int_equal(rec.history_count, MIRROR_HISTORY);
	/* the record's history no longer has the epoch of `one` */
	assert_int_equal(view_compare(&rec, &one), VIEW_OLDER);
	one.epoch.number = rec.view.epoch.number + 1;
	assert_int_equal(view_compare(&rec, &one), VIEW_NEWER);
}

/*
 * A change of the configuration may remove members from S, but does not raise seq, which counts the
 * primary's changes.
 */
static void a_configuration_is_no_change_of_the_primarys(void **state)
{
	struct mirror_record rec = test_record(3, 1), backup;
	struct mirror_view all, two, shrunk;

	(void)state;
	assert_int_equal(view_promote(&rec, 0, 10, NULL), 0);
	assert_int_equal(view_serve(&rec, 0, 11, NULL), 0);
	all = rec.view;
	backup = rec;
	assert_int_equal(without(&rec, 2), 3);
	assert_int_equal(rec.view.seq, all.seq);
	assert_int_equal(rec.config.number, 2);
	assert_int_equal(view_compare(&rec, &all), VIEW_OLDER);
	two = rec.view;
	/* The register is restored, and its configuration is changed twice: without c, and without
	 * b. */
	assert_int_equal(view_set_config(&backup, &backup.config, 12, NULL), 0);
	assert_int_equal(view_set_config(&backup, &backup.config, 13, NULL), 0);
	assert_int_equal(view_compare(&backup, &two), VIEW_NEWER);
	assert_int_equal(view_compare(&backup, &all), VIEW_SAME);
	shrunk = rec.view;
	shrunk.insync = 5;
	assert_int_equal(view_compare(&rec, &shrunk), VIEW_BRANCH);
	shrunk.seq++;
	assert_int_equal(view_compare(&backup, &shrunk), VIEW_NEWER);
	/* For each promotion the history keeps the set of members that were in-sync. */
	assert_int_equal(view_promote(&backup, 2, 14, NULL), 0);
	assert_int_equal(backup.history[0].insync, 7);
	assert_int_equal(view_compare(&backup, &two), VIEW_BRANCH);
	assert_int_equal(view_compare(&backup, &shrunk), VIEW_BRANCH);
	assert_int_equal(view_compare(&backup, &all), VIEW_OLDER);
	assert_int_equal(view_promote(&rec, 1, 15, NULL), 0);
	assert_int_equal(view_compare(&rec, &two), VIEW_OLDER);
	assert_int_equal(view_compare(&rec, &all), VIEW_OLDER);
	/* An earlier version of this project did not store which members were in-sync. */
	backup.history[0].insync = 0;
	assert_int_equal(view_compare(&backup, &two), VIEW_OLDER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_life),
		cmocka_unit_test(a_member_that_is_not_insync_is_not_promoted),
		cmocka_unit_test(only_the_primary_changes_its_epoch),
		cmocka_unit_test(enough_copies_stay),
		cmocka_unit_test(a_filled_copy_takes_the_place_of_a_lost_one),
		cmocka_unit_test(configurations_change),
		cmocka_unit_test(a_copy_that_min_copies_needs_is_not_removed),
		cmocka_unit_test(settings_change_when_that_is_safe),
		cmocka_unit_test(views_compare),
		cmocka_unit_test(a_configuration_is_no_change_of_the_primarys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
