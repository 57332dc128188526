/* SPDX-License-Identifier: BSD-3-Clause */
/* meta_slot.c -- writes two slots alternately, so that a torn write leaves the previous record. */
#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "mirror/core/killpoint.h"
#include "mirror/core/meta_impl.h"

#define SLOT_COUNTER_AT 8
#define SLOT_LEN_AT     16
#define SLOT_SUM_AT     20
#define SLOT_DONE_AT    24

static const struct slot_pair {
	uint64_t at;
	uint32_t bytes;
	char magic[9];
} slot_pairs[META_PAIRS] = {
	[META_PAIR_SUPER] = {META_SUPER_AT, 4096, "RPMSUPER"},
	[META_PAIR_PROMISE] = {META_PROMISE_AT, 4096, "RPMPROMI"},
	[META_PAIR_HISTORY] = {META_HISTORY_AT, 2048, "RPMHISTO"},
	[META_PAIR_MEMBERS] = {META_MEMBERS_AT, 6144, "RPMMEMBR"},
};

struct slot {
	const uint8_t *bytes;
	uint64_t counter, done;
	uint32_t len;
	bool is_valid, is_zero;
};

static uint64_t slot_at(enum meta_pair_name pair, unsigned slot)
{
	return slot_pairs[pair].at + (uint64_t)slot * slot_pairs[pair].bytes;
}

static uint64_t slot_load(const uint8_t *bytes, size_t width)
{
	struct rcursor c = rcursor_init(bytes, width);

	return rcursor_le(&c, width);
}

/* Returns the CRC of the slot, without the fields of the CRC itself and `done`. */
static uint32_t slot_sum(const uint8_t *bytes, uint32_t size)
{
	uint32_t crc = crc32c_update(CRC32C_INIT, bytes, SLOT_SUM_AT);

	return crc32c_final(crc32c_update(crc, bytes + META_SLOT_HEAD, size - META_SLOT_HEAD));
}

static struct slot slot_read(const struct meta_store *store, enum meta_pair_name pair, unsigned i)
{
	uint32_t size = slot_pairs[pair].bytes;
	struct slot s = {.bytes = (const uint8_t *)store->base + slot_at(pair, i)};

	s.counter = slot_load(s.bytes + SLOT_COUNTER_AT, 8);
	s.done = slot_load(s.bytes + SLOT_DONE_AT, 8);
	s.len = (uint32_t)slot_load(s.bytes + SLOT_LEN_AT, 4);
	s.is_valid = !memcmp(s.bytes, slot_pairs[pair].magic, 8) && s.counter &&
		     s.len <= size - META_SLOT_HEAD &&
		     slot_load(s.bytes + SLOT_SUM_AT, 4) == slot_sum(s.bytes, size);
	/* `done` still has the value of the slot's former use: the write of this record was torn
	 * before that field. */
	if (s.done + 1 == s.counter)
		s.done = 0;
	/* The first byte is zero, and every other byte equals the one before it. */
	s.is_zero = !s.bytes[0] && !memcmp(s.bytes, s.bytes + 1, size - 1);
	return s;
}

/* Returns true if it is certain that no newer record was answered. `newest` is a valid slot. */
static bool slot_is_newest(const struct slot *newest, const struct slot *other)
{
	if (newest->done)
		return false;
	if (!other->is_valid)
		return true;
	return other->counter + 1 == newest->counter &&
	       (!other->done || other->done == newest->counter);
}

enum meta_found meta_pair_read(const struct meta_store *store, enum meta_pair_name pair,
			       struct meta_place *place, struct rcursor *body)
{
	struct slot s[2] = {slot_read(store, pair, 0), slot_read(store, pair, 1)};
	unsigned i = s[1].is_valid && (!s[0].is_valid || s[1].counter > s[0].counter);

	*place = (struct meta_place){0};
	*body = rcursor_init(s[i].bytes + META_SLOT_HEAD, s[i].is_valid ? s[i].len : 0);
	if (s[0].is_zero && s[1].is_zero)
		return META_FOUND_NOTHING;
	if (!s[i].is_valid)
		return META_FOUND_DAMAGED;
	*place = (struct meta_place){.counter = s[i].counter, .slot = (uint8_t)i};
	return slot_is_newest(&s[i], &s[!i]) ? META_FOUND : META_FOUND_OLDER;
}

static void slot_fill(uint8_t *bytes, enum meta_pair_name pair, uint64_t counter,
		      const struct wcursor *body)
{
	uint32_t size = slot_pairs[pair].bytes;
	struct wcursor c = wcursor_init(bytes, META_SLOT_HEAD);

	memset(bytes + META_SLOT_HEAD, 0, size - META_SLOT_HEAD);
	memcpy(bytes + META_SLOT_HEAD, body->start, wcursor_len(body));
	wcursor_bytes(&c, slot_pairs[pair].magic, 8);
	wcursor_le(&c, counter, 8);
	wcursor_le(&c, wcursor_len(body), 4);
	wcursor_le(&c, slot_sum(bytes, size), 4);
	wcursor_le(&c, 0, 8);
}

static int slot_mark_done(struct meta *m, enum meta_pair_name pair, unsigned i, uint64_t counter)
{
	uint64_t at = slot_at(pair, i) + SLOT_DONE_AT;

	__atomic_store_n((uint64_t *)((uint8_t *)m->store.base + at), htole64(counter),
			 __ATOMIC_RELAXED);
	return meta_persist(m, at, 8);
}

int meta_pair_write(struct meta *m, enum meta_pair_name pair, const struct wcursor *body)
{
	struct meta_place *place = &m->places[pair];
	unsigned old = place->slot, i = place->counter ? !old : 0;
	uint64_t at = slot_at(pair, i);
	int rc = m->broken;

	if (rc)
		return rc;
	if (body->bad || wcursor_len(body) > slot_pairs[pair].bytes - META_SLOT_HEAD)
		return -EMSGSIZE;
	slot_fill((uint8_t *)m->store.base + at, pair, place->counter + 1, body);
	rc = meta_persist(m, at, slot_pairs[pair].bytes);
	killpoint(KILLPOINT_slot_written);
	if (!rc && place->counter)
		rc = slot_mark_done(m, pair, old, place->counter + 1);
	if (!rc)
		*place = (struct meta_place){.counter = place->counter + 1, .slot = (uint8_t)i};
	return rc;
}

int meta_pair_settle(struct meta *m, enum meta_pair_name pair)
{
	struct meta_place place = m->places[pair];
	struct slot other = slot_read(&m->store, pair, !place.slot);
	int rc = meta_persist(m, slot_at(pair, place.slot), slot_pairs[pair].bytes);

	/* If the other slot is torn, the next write fills it. */
	if (!rc && other.is_valid && !other.done)
		rc = slot_mark_done(m, pair, !place.slot, place.counter);
	return rc;
}
