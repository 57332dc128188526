/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Input: the metadata file of a copy with any damage. The file is loaded, printed, checked and
 * repaired without harm; metadata that load without damage are the same after they are written. An
 * input is a list of patches: 4 bytes of offset, 1 byte of length, and the bytes. If a bit of the
 * first byte is set, the checksums of the slots are corrected.
 */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "mirror/core/member.h"
#include "mirror/core/meta_dump.h"

#define SIZE (16u << 20)
#define LEN  (META_BITMAPS_AT + 7 * 4096)

static _Alignas(4096) uint8_t file[LEN];
static char shown[1 << 20];

static int persist(void *arg, uint64_t offset, uint64_t len)
{
	EXPECT(offset <= LEN && len <= LEN - offset);
	return 0;
}

static void make(void)
{
	struct meta_store store = {file, LEN, persist, NULL};
	struct meta_super super = {
		.member_id = 1, .size = SIZE, .hot_slots = 16, .set = "fuzz", .slot = 1};
	struct meta_members members = {.members = {{.id = 2, .name = "a"}, {.id = 1, .name = "b"}}};

	memset(file, 0, META_RING_AT);
	memset(file + META_BITMAPS_AT, 0, LEN - META_BITMAPS_AT);
	EXPECT(!meta_create(&store, &super, &members));
}

static void patch(const uint8_t *data, size_t len)
{
	while (len > 5) {
		uint32_t at = (data[0] | data[1] << 8 | data[2] << 16) % (META_RING_AT + 4096);
		size_t n = data[4] % 32 + 1;

		data += 5;
		len -= 5;
		n = n < len ? n : len;
		memcpy(file + at, data, n);
		data += n;
		len -= n;
	}
}

static void sum(uint32_t at, uint32_t size)
{
	uint32_t crc = crc32c_update(CRC32C_INIT, file + at, 20);

	crc = crc32c_final(crc32c_update(crc, file + at + 32, size - 32));
	memcpy(file + at + 20, &crc, 4);
}

static void say(void *arg, enum meta_finding finding, const char *text)
{
	EXPECT(text[0]);
}

static void show(const struct meta *m)
{
	FILE *out = fmemopen(shown, sizeof(shown), "w");

	EXPECT(out);
	meta_dump(m, META_FORM_JSON, out);
	meta_dump(m, META_FORM_TEXT, out);
	fclose(out);
	meta_check(m, SIZE, say, NULL);
}

static void use(struct meta *m, const struct meta_store *store)
{
	struct mirror_uuid boot = {{1}};
	struct member_report report;
	struct member member;
	struct meta again;
	unsigned damage = m->damage;

	EXPECT(!member_init(&member, m, &boot));
	EXPECT(!m->damage);
	EXPECT(!damage || m->super.flags & META_UNKNOWN);
	EXPECT(!member_report(&member, &report));
	EXPECT(!damage || report.is_uncertain);
	EXPECT(!meta_load(&again, store, NULL));
	EXPECT(!again.damage);
	EXPECT(mirror_epoch_is_equal(again.promise.epoch, m->promise.epoch));
	EXPECT(again.hot_count == m->hot_count);
	meta_fini(&again);
	member_fini(&member);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct meta_store store = {file, LEN, persist, NULL};
	struct error err = {0};
	struct meta m;

	if (!len)
		return 0;
	make();
	patch(data + 1, len - 1);
	for (uint32_t i = 0; i < 2 && data[0] & 1; i++) {
		sum(META_SUPER_AT + 4096 * i, 4096);
		sum(META_PROMISE_AT + 4096 * i, 4096);
		sum(META_HISTORY_AT + 2048 * i, 2048);
		sum(META_MEMBERS_AT + 6144 * i, 6144);
	}
	if (meta_load(&m, &store, &err)) {
		EXPECT(err.cause && err.text[0]);
		return 0;
	}
	show(&m);
	use(&m, &store);
	meta_fini(&m);
	return 0;
}
