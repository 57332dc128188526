/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit/mirror_core/member_fixture.h"

struct two_layers store;
struct meta meta;
struct member member;
struct mirror_uuid boot;
struct mirror_record rec;
struct member_verdict v;
struct member_report report;

int member_setup(void **state)
{
	boot = copy_uuid(0x70);
	copy_record(&rec);
	copy_create(&store, 1);
	copy_load(&meta, &store);
	return member_init(&member, &meta, &boot);
}

int member_teardown(void **state)
{
	member_fini(&member);
	meta_fini(&meta);
	two_layers_fini(&store);
	return 0;
}

void restart(void)
{
	member_fini(&member);
	meta_fini(&meta);
	copy_load(&meta, &store);
	assert_int_equal(meta.damage, 0);
	assert_int_equal(member_init(&member, &meta, &boot), 0);
}

void expect(enum member_reason reason)
{
	if (v.reason != reason)
		fail_msg("%s instead of %s: %s", member_reason_name(v.reason),
			 member_reason_name(reason), v.text);
	assert_int_equal(v.answer, reason == MEMBER_OK ? MEMBER_YES : MEMBER_NO);
	assert_int_equal(v.text[0] != '\0', reason != MEMBER_OK);
}

void promise(uint64_t number)
{
	member_promise(&member, copy_epoch(number), &v);
}

void connect_with(enum member_kind kind, uint64_t epoch)
{
	struct member_hello hello = {.uuid = copy_uuid(0x10),
				     .member_id = 0xa1,
				     .size = COPY_SIZE,
				     .epoch = copy_epoch(epoch),
				     .kind = kind};

	member_grant(&member, &hello, &v);
}

void ask(void)
{
	assert_int_equal(member_report(&member, &report), 0);
}

void see(uint64_t epoch, enum mirror_phase phase, mirror_mask insync, uint64_t seq)
{
	rec.view = (struct mirror_view){.epoch = copy_epoch(epoch),
					.seq = seq,
					.phase = phase,
					.primary = phase ? 0 : MIRROR_NO_SLOT,
					.clean = !phase,
					.insync = insync};
	member_on_record(&member, &rec, 100 + seq, &v);
}
