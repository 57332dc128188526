/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The metadata of a copy: the layout byte by byte, values that are stored and loaded, and bad
 * metadata, which are refused.
 */
#include "lib/mirror_copy.h"
#include "lib/unit.h"

#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "mirror/core/meta_impl.h"
#include "mirror/core/version.h"

static struct two_layers store;
static struct meta meta;

static int setup(void **state)
{
	copy_create(&store, 1);
	copy_load(&meta, &store);
	return 0;
}

static int teardown(void **state)
{
	meta_fini(&meta);
	two_layers_fini(&store);
	return 0;
}

static void load_again(void)
{
	meta_fini(&meta);
	copy_load(&meta, &store);
	assert_int_equal(meta.damage, 0);
}

static void a_fresh_one_holds_what_it_was_made_of(void **state)
{
	struct meta_super super;

	copy_super(&super);
	assert_int_equal(meta.damage, 0);
	assert_memory_equal(&meta.super.uuid, &super.uuid, sizeof(super.uuid));
	assert_int_equal(meta.super.member_id, 0xa1);
	assert_int_equal(meta.super.flags, META_CLEAN);
	assert_string_equal(meta.super.set, "orders");
	assert_string_equal(meta.members.members[2].host, "192.0.2.3");
	assert_int_equal(meta.promise.epoch.number, 0);
	assert_int_equal(meta.promise.seen.view.primary, MIRROR_NO_SLOT);
	assert_int_equal(meta.hot_count, 0);
}

/* Compare the encoded bytes, because structures may differ in their padding. */
static void assert_same(const struct meta_super *a, const struct meta_super *b)
{
	uint8_t x[META_BODY_MAX], y[META_BODY_MAX];
	struct wcursor cx = wcursor_init(x, sizeof(x)), cy = wcursor_init(y, sizeof(y));

	meta_super_encode(a, &cx);
	meta_super_encode(b, &cy);
	assert_int_equal(wcursor_len(&cx), wcursor_len(&cy));
	assert_memory_equal(x, y, wcursor_len(&cx));
}

static void what_is_set_is_found_again(void **state)
{
	struct meta_super super = meta.super;
	struct meta_promise promise = {.epoch = copy_epoch(7),
				       .seen = {.revision = 99,
						.config_number = 3,
						.view = {.epoch = copy_epoch(6),
							 .seq = 12,
							 .phase = MIRROR_PHASE_SERVING,
							 .primary = 2,
							 .clean = true,
							 .insync = 5}}};
	struct meta_history history = {.count = MIRROR_HISTORY};

	super.flags = META_SYNCING | META_FORCED;
	super.epoch = copy_epoch(6);
	super.source_id = 0xa2;
	super.source_epoch = copy_epoch(7);
	super.acked = 17;
	super.retired_below = 6;
	super.holder = (struct meta_holder){4711, 123456, copy_uuid(0x40), 22};
	super.files = (struct meta_files){11, 12, 13};
	for (unsigned i = 0; i < MIRROR_HISTORY; i++)
		history.ended[i] = (struct mirror_ended){copy_epoch(70 - i), i, 0};
	for (unsigned twice = 0; twice < 3; twice++) {
		assert_int_equal(meta_set_super(&meta, &super), 0);
		assert_int_equal(meta_set_promise(&meta, &promise), 0);
		assert_int_equal(meta_set_history(&meta, &history), 0);
	}
	load_again();
	assert_same(&meta.super, &super);
	assert_true(mirror_epoch_is_equal(meta.promise.epoch, promise.epoch));
	assert_true(mirror_epoch_is_equal(meta.promise.seen.view.epoch, copy_epoch(6)));
	assert_int_equal(meta.promise.seen.view.seq, 12);
	assert_int_equal(meta.promise.seen.view.phase, MIRROR_PHASE_SERVING);
	assert_int_equal(meta.promise.seen.view.primary, 2);
	assert_true(meta.promise.seen.view.clean);
	assert_int_equal(meta.promise.seen.view.insync, 5);
	assert_int_equal(meta.promise.seen.revision, 99);
	assert_int_equal(meta.history.count, MIRROR_HISTORY);
	assert_int_equal(meta.history.ended[63].seq, 63);
	assert_true(mirror_epoch_is_equal(meta.history.ended[63].epoch, copy_epoch(7)));
}

static void the_last_slot_of_an_oversized_history_is_refused(void **state)
{
	struct meta_history history = {.count = MIRROR_HISTORY + 1};

	assert_int_equal(meta_set_history(&meta, &history), -EINVAL);
}

static uint64_t field(uint64_t at, unsigned width)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < width; i++)
		v |= (uint64_t)store.medium[at + i] << (8 * i);
	return v;
}

static uint32_t sum_of_slot(uint64_t at, uint32_t size)
{
	uint32_t crc = crc32c_update(CRC32C_INIT, store.medium + at, 20);

	return crc32c_final(crc32c_update(crc, store.medium + at + 32, size - 32));
}

/* The layout must be that of doc/mirror-format.md. */
static void the_superblock_lies_as_documented(void **state)
{
	struct meta_super super = meta.super;

	super.flags = META_SYNCING | META_UNCERTAIN;
	super.epoch = (struct mirror_epoch){0x1122334455667788, 0x99aabbccddeeff00};
	super.address = 0x7f0000000000;
	super.acked = 5;
	super.holder.pid = 77;
	super.holder.image = 0x8877665544332211;
	super.scrub = (struct meta_scrub){1700000000, 8192, 4096};
	super.room = 2 * COPY_SIZE;
	super.files.data_time_ns = 21;
	super.findings = (struct findings){.time_s = 1700000001,
					   .epoch = {5, 6},
					   .is_whole = true,
					   .count = 1,
					   .more = 12288,
					   .more_members = 4};
	super.findings.list[0] = (struct finding){6, FINDING_PRIMARY, true, {4096, 8192}};
	assert_int_equal(meta_set_super(&meta, &super), 0);
	/* The second write goes to the second slot, as the number in it shows. */
	assert_memory_equal(store.medium + 0x1000, "RPMSUPER", 8);
	assert_int_equal(field(0x1008, 8), 2);
	assert_int_equal(field(0x18, 8), 2);
	assert_int_equal(field(0x1018, 8), 0);
	assert_int_equal(field(0x1010, 4), 536);
	assert_int_equal(field(0x1014, 4), sum_of_slot(0x1000, 4096));
	assert_int_equal(field(0x1020, 4), 1);    /* version of the format */
	assert_int_equal(field(0x102c, 4), 0x22); /* flags */
	assert_memory_equal(store.medium + 0x1030, super.uuid.bytes, 16);
	assert_int_equal(field(0x1040, 8), 0xa1);
	assert_int_equal(field(0x1048, 8), COPY_SIZE);
	assert_int_equal(field(0x1050, 4), 4096);
	assert_int_equal(field(0x1054, 4), 2 << 20);
	assert_int_equal(field(0x1058, 4), 8);
	assert_int_equal(field(0x105c, 4), COPY_SLOT);
	assert_int_equal(field(0x1060, 8), 0x7f0000000000);
	assert_int_equal(field(0x1068, 8), 0x1122334455667788);
	assert_int_equal(field(0x1070, 8), 0x99aabbccddeeff00);
	assert_int_equal(field(0x1090, 8), 5);
	assert_int_equal(field(0x10a0, 8), 77);
	assert_string_equal((char *)store.medium + 0x10e0, "orders");
	assert_int_equal(field(0x1120, 8), 1700000000);
	assert_int_equal(field(0x1128, 8), 8192);
	assert_int_equal(field(0x1130, 8), 4096);
	assert_int_equal(field(0x1138, 8), 2 * COPY_SIZE);
	assert_int_equal(field(0x1140, 8), 21);
	assert_int_equal(field(0x1148, 8), 1700000001);
	assert_int_equal(field(0x1150, 8), 5);
	assert_int_equal(field(0x1160, 4), 0x40101);
	assert_int_equal(field(0x1168, 8), 12288);
	assert_int_equal(field(0x1170, 4), 0x10106);
	assert_int_equal(field(0x1178, 8), 4096);
	assert_int_equal(field(0x1180, 8), 8192);
	assert_int_equal(field(0x1230, 8), 0x8877665544332211);
	load_again();
	assert_same(&meta.super, &super);
}

static void the_other_records_lie_as_documented(void **state)
{
	struct meta_promise promise = meta.promise;
	struct meta_history history = {.count = 1, .ended = {{.epoch = {3, 4}, .seq = 5}}};

	promise.epoch = copy_epoch(9);
	promise.seen.revision = 0x31;
	promise.seen.view.insync = 6;
	assert_int_equal(meta_set_promise(&meta, &promise), 0);
	assert_int_equal(meta_set_history(&meta, &history), 0);
	assert_memory_equal(store.medium + 0x3000, "RPMPROMI", 8);
	assert_int_equal(field(0x3020, 8), 9);
	assert_int_equal(field(0x3028, 8), 0x1009);
	assert_int_equal(field(0x3038, 8), 0x31);
	assert_int_equal(field(0x3064, 1), 6);
	assert_int_equal(field(0x3014, 4), sum_of_slot(0x3000, 4096));
	assert_memory_equal(store.medium + 0x4800, "RPMHISTO", 8);
	assert_int_equal(field(0x4820, 8), 1);
	assert_int_equal(field(0x4828, 8), 3);
	assert_int_equal(field(0x4838, 8), 5);
	assert_int_equal(field(0x4814, 4), sum_of_slot(0x4800, 2048));
	assert_memory_equal(store.medium + 0x5000, "RPMMEMBR", 8);
	assert_int_equal(field(0x5020, 8), 1); /* number of the configuration */
	assert_int_equal(field(0x5028, 8), 0xa0);
	assert_int_equal(field(0x5034, 4), 7000);
	assert_string_equal((char *)store.medium + 0x5058, "a");
	assert_string_equal((char *)store.medium + 0x5078, "192.0.2.1");
	assert_int_equal(field(0x5028 + 336, 8), 0xa1);
	assert_int_equal(field(0x5014, 4), sum_of_slot(0x5000, 6144));
}

static void a_hot_slot_lies_as_documented(void **state)
{
	uint32_t extent = 5;
	uint64_t word;

	assert_int_equal(meta_hot_mark(&meta, &extent, 1), 0);
	word = field(0x8000, 8);
	assert_int_equal(word & 0xffffffffff, 6);
	assert_int_equal(word >> 48, 1);
	/* The hot slot must have the top byte of (extent + 1 | tick << 40) * 0x9e3779b97f4a7c15. */
	assert_int_equal(word >> 40 & 0xff, (6 | 1ull << 40) * 0x9e3779b97f4a7c15 >> 56);
}

static void bitmaps_lie_behind_the_ring_without_the_own_slot(void **state)
{
	assert_int_equal(META_BITMAPS_AT, 0x118000);
	assert_int_equal(meta_size_for(1u << 30), 0x118000 + 7 * (32 << 10));
	assert_int_equal(meta_size_for(4096), 0x118000 + 7 * 4096);
	assert_int_equal(meta_bitmap_start(&meta, 0, copy_epoch(1), copy_epoch(1), NULL), 0);
	assert_int_equal(meta_bitmap_start(&meta, 2, copy_epoch(1), copy_epoch(1), NULL), 0);
	meta_bitmap_set(&meta, 0, (struct mirror_range){3 * 4096, 1});
	meta_bitmap_set(&meta, 2, (struct mirror_range){64 * 4096, 4096});
	assert_int_equal(meta_bitmap_persist(&meta, 0), 0);
	assert_int_equal(meta_bitmap_persist(&meta, 2), 0);
	assert_int_equal(field(0x118000, 8), 8);
	/* slot 1 is this copy's, so its bitmap stays empty */
	assert_int_equal(field(0x119000, 8), 0);
	assert_int_equal(field(0x119008, 8), 1);
}

static int load_cause(uint64_t len)
{
	struct meta_store s = two_layers_store(&store);
	struct error err = {0};
	struct meta m;

	s.len = len;
	assert_int_not_equal(meta_load(&m, &s, &err), 0);
	assert_int_not_equal(err.text[0], '\0');
	return err.cause;
}

static void what_is_no_metadata_is_refused(void **state)
{
	memset(store.cache, 0, META_HOT_AT);
	assert_int_equal(load_cause(store.len), ENODATA);
	memset(store.cache, 0x55, META_HOT_AT);
	assert_int_equal(load_cause(store.len), EBADMSG);
}

static void a_shorter_file_is_refused(void **state)
{
	assert_int_equal(load_cause(0), EMSGSIZE);
	assert_int_equal(load_cause(META_BITMAPS_AT), EMSGSIZE);
	assert_int_equal(load_cause(store.len - 1), EMSGSIZE);
}

static void put_field_into_superblocks(uint64_t at, uint32_t value)
{
	for (unsigned slot = 0; slot < 2; slot++) {
		uint8_t *bytes = store.cache + 0x1000 * slot;
		uint32_t sum;

		memcpy(bytes + at, &value, 4);
		memcpy(store.medium, store.cache, store.len);
		sum = sum_of_slot(0x1000 * slot, 4096);
		memcpy(bytes + 20, &sum, 4);
	}
}

static void another_format_or_feature_is_refused(void **state)
{
	assert_int_equal(meta_set_super(&meta, &meta.super), 0);
	put_field_into_superblocks(0x20, version_newest() + 1);
	assert_int_equal(load_cause(store.len), EPROTONOSUPPORT);
	put_field_into_superblocks(0x20, 1);
	load_again();
	put_field_into_superblocks(0x28, 1); /* an incompatible feature */
	assert_int_equal(load_cause(store.len), EPROTONOSUPPORT);
	put_field_into_superblocks(0x28, 0);
	put_field_into_superblocks(0x24, 1); /* a compatible feature */
	load_again();
	assert_int_equal(meta.super.compat, 1);
}

static void a_store_that_fails_stays_failed(void **state)
{
	uint32_t extent = 3;

	store.cut_at = store.persists + 1;
	assert_int_equal(meta_set_super(&meta, &meta.super), -ESHUTDOWN);
	store.is_cut = false;
	assert_int_equal(meta_set_promise(&meta, &meta.promise), -ESHUTDOWN);
	assert_int_equal(meta_hot_mark(&meta, &extent, 1), -ESHUTDOWN);
	assert_false(meta_hot_is(&meta, extent));
}

static void growing_keeps_all_where_bitmaps_lie_as_before(void **state)
{
	uint32_t extent = 31;
	uint64_t small = META_BITMAPS_AT + 7 * 4096;

	assert_int_equal(store.len, small);
	assert_int_equal(meta_bitmap_start(&meta, 0, copy_epoch(1), copy_epoch(1), NULL), 0);
	meta_bitmap_set(&meta, 0, (struct mirror_range){COPY_SIZE - 1, 1});
	assert_int_equal(meta_bitmap_persist(&meta, 0), 0);
	assert_int_equal(meta_hot_mark(&meta, &extent, 1), 0);
	assert_int_equal(meta_set_size(&meta, COPY_SIZE - 4096), -EINVAL);
	assert_int_equal(meta_set_size(&meta, COPY_SIZE + 1), -EINVAL);
	assert_int_equal(meta_set_size(&meta, 1u << 30), -EMSGSIZE);
	assert_int_equal(meta_set_size(&meta, 2 * COPY_SIZE), 0);
	load_again();
	assert_int_equal(meta.super.size, 2 * COPY_SIZE);
	assert_int_equal(meta.extents, 64);
	assert_true(meta_hot_is(&meta, 31));
	assert_true(meta_bitmap_is_usable(&meta, 0, copy_epoch(1)));
	assert_int_equal(meta_bitmap_count(&meta, 0), 1);
	meta_bitmap_set(&meta, 0, (struct mirror_range){2 * COPY_SIZE - 1, 1});
	assert_int_equal(meta_bitmap_count(&meta, 0), 2);
}

/*
 * Cut the power at each step. Afterwards the copy must have the old size, with all bitmaps or none,
 * or the new size without bitmaps.
 */
static void growing_drops_bitmaps_that_would_lie_elsewhere(void **state)
{
	const uint64_t large = 3ull * COPY_SIZE;
	struct meta_super super;
	struct meta_members members;
	uint32_t cut = 0, extent = 3;
	bool is_done = false;

	copy_super(&super);
	copy_members(&members);
	while (!is_done) {
		struct meta_store inner;
		struct two_layers t;
		struct meta m;

		two_layers_init(&t, meta_size_for(large), ++cut);
		inner = two_layers_store(&t);
		assert_int_equal(meta_create(&inner, &super, &members), 0);
		copy_load(&m, &t);
		assert_int_equal(meta_bitmap_start(&m, 2, copy_epoch(1), copy_epoch(1), NULL), 0);
		assert_int_equal(meta_hot_mark(&m, &extent, 1), 0);
		t.cut_at = t.persists + cut;
		is_done = !meta_set_size(&m, large);
		meta_fini(&m);
		two_layers_reboot(&t);
		copy_load(&m, &t);
		assert_int_equal(m.damage, 0);
		assert_true(meta_hot_is(&m, extent));
		assert_true(m.super.size == large || (!is_done && m.super.size == COPY_SIZE));
		if (m.super.size == large)
			assert_false(meta_bitmap_is_usable(&m, 2, copy_epoch(1)));
		meta_fini(&m);
		two_layers_fini(&t);
	}
	assert_in_range(cut, 4, 10);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_fresh_one_holds_what_it_was_made_of),
		TEST(what_is_set_is_found_again),
		TEST(the_last_slot_of_an_oversized_history_is_refused),
		TEST(the_superblock_lies_as_documented),
		TEST(the_other_records_lie_as_documented),
		TEST(a_hot_slot_lies_as_documented),
		TEST(bitmaps_lie_behind_the_ring_without_the_own_slot),
		TEST(what_is_no_metadata_is_refused),
		TEST(a_shorter_file_is_refused),
		TEST(another_format_or_feature_is_refused),
		TEST(a_store_that_fails_stays_failed),
		TEST(growing_keeps_all_where_bitmaps_lie_as_before),
		TEST(growing_drops_bitmaps_that_would_lie_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
