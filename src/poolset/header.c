/* SPDX-License-Identifier: BSD-3-Clause */
#include "poolset/header.h"

#include <string.h>
#include <sys/types.h>

#include "base/cursor.h"
#include "base/rand.h"

#define HEADER_UNUSED_AT   144 /* the unused bytes from here to the shutdown state are zero */
#define HEADER_2K          2048
#define HEADER_SDS_AT      4024
#define HEADER_SDS_BYTES   64
#define HEADER_CHECKSUM_AT 4088

#define HEADER_SDS_CHECKSUM_AT 56

static uint64_t header_load(const uint8_t *bytes, size_t width)
{
	struct rcursor c = rcursor_init(bytes, width);

	return rcursor_le(&c, width);
}

static void header_store(uint8_t *bytes, uint64_t value)
{
	struct wcursor c = wcursor_init(bytes, 8);

	wcursor_le(&c, value, 8);
}

/*
 * Computes PMDK's checksum over words of 32 bits. The words of the checksum itself, and all words
 * from `skip` on, count as zero.
 */
static uint64_t header_sum(const uint8_t *bytes, size_t len, size_t sum_at, size_t skip)
{
	uint32_t lo = 0, hi = 0;

	for (size_t at = 0; at < len; at += 4) {
		if (at < skip && (at < sum_at || at >= sum_at + 8))
			lo += (uint32_t)header_load(bytes + at, 4);
		hi += lo;
	}
	return (uint64_t)hi << 32 | lo;
}

static uint64_t header_checksum(const uint8_t page[HEADER_BYTES])
{
	uint32_t incompat = (uint32_t)header_load(page + 16, 4);

	return header_sum(page, HEADER_BYTES, HEADER_CHECKSUM_AT,
			  incompat & HEADER_CKSUM_2K ? HEADER_2K : HEADER_BYTES);
}

static uint64_t header_sds_checksum(const uint8_t *sds)
{
	return header_sum(sds, HEADER_SDS_BYTES, HEADER_SDS_CHECKSUM_AT, HEADER_SDS_BYTES);
}

static bool header_bytes_are_zero(const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	uint8_t any = 0;

	for (size_t i = 0; i < len; i++)
		any |= p[i];
	return !any;
}

bool header_is_zero(const uint8_t page[HEADER_BYTES])
{
	return header_bytes_are_zero(page, HEADER_BYTES);
}

bool header_is_intact(const uint8_t page[HEADER_BYTES])
{
	return header_load(page + HEADER_CHECKSUM_AT, 8) == header_checksum(page) &&
	       header_bytes_are_zero(page + HEADER_UNUSED_AT, HEADER_SDS_AT - HEADER_UNUSED_AT);
}

bool poolset_attr_is_zero(const struct poolset_attr *attr)
{
	return !attr || header_bytes_are_zero(attr, sizeof(*attr));
}

void header_set_attr(struct header *h, const struct poolset_attr *attr)
{
	memcpy(h->signature, attr->signature, sizeof(h->signature));
	h->major = attr->major;
	h->compat = attr->compat;
	h->incompat = attr->incompat;
	h->ro_compat = attr->ro_compat;
	memcpy(h->poolset_uuid, attr->poolset_uuid, HEADER_UUID);
	memcpy(h->prev_repl, attr->prev_uuid, HEADER_UUID);
	memcpy(h->next_repl, attr->next_uuid, HEADER_UUID);
	memcpy(h->arch_flags, attr->user_flags, HEADER_ARCH);
}

void header_get_attr(const struct header *h, struct poolset_attr *attr)
{
	memcpy(attr->signature, h->signature, sizeof(h->signature));
	attr->major = h->major;
	attr->compat = h->compat;
	attr->incompat = h->incompat;
	attr->ro_compat = h->ro_compat;
	memcpy(attr->poolset_uuid, h->poolset_uuid, HEADER_UUID);
	memcpy(attr->uuid, h->uuid, HEADER_UUID);
	memcpy(attr->prev_uuid, h->prev_repl, HEADER_UUID);
	memcpy(attr->next_uuid, h->next_repl, HEADER_UUID);
	memcpy(attr->user_flags, h->arch_flags, HEADER_ARCH);
}

static void header_encode_sds(const struct header_sds *sds, uint8_t *bytes)
{
	struct wcursor c = wcursor_init(bytes, HEADER_SDS_BYTES);

	wcursor_le(&c, sds->usc, 8);
	wcursor_le(&c, sds->uuid, 8);
	wcursor_u8(&c, sds->dirty);
	header_store(bytes + HEADER_SDS_CHECKSUM_AT, header_sds_checksum(bytes));
}

void header_encode(const struct header *h, uint8_t page[HEADER_BYTES])
{
	struct wcursor c = wcursor_init(page, HEADER_BYTES);

	memset(page, 0, HEADER_BYTES);
	wcursor_bytes(&c, h->signature, sizeof(h->signature));
	wcursor_le(&c, h->major, 4);
	wcursor_le(&c, h->compat, 4);
	wcursor_le(&c, h->incompat, 4);
	wcursor_le(&c, h->ro_compat, 4);
	wcursor_bytes(&c, h->poolset_uuid, HEADER_UUID);
	wcursor_bytes(&c, h->uuid, HEADER_UUID);
	wcursor_bytes(&c, h->prev_part, HEADER_UUID);
	wcursor_bytes(&c, h->next_part, HEADER_UUID);
	wcursor_bytes(&c, h->prev_repl, HEADER_UUID);
	wcursor_bytes(&c, h->next_repl, HEADER_UUID);
	wcursor_le(&c, h->crtime, 8);
	wcursor_bytes(&c, h->arch_flags, HEADER_ARCH);
	header_encode_sds(&h->sds, page + HEADER_SDS_AT);
	header_store(page + HEADER_CHECKSUM_AT, header_checksum(page));
}

static void header_copy(struct rcursor *c, void *to, size_t len)
{
	memcpy(to, rcursor_bytes(c, len), len);
}

void header_decode(const uint8_t page[HEADER_BYTES], struct header *h)
{
	struct rcursor c = rcursor_init(page, HEADER_BYTES);

	header_copy(&c, h->signature, sizeof(h->signature));
	h->major = (uint32_t)rcursor_le(&c, 4);
	h->compat = (uint32_t)rcursor_le(&c, 4);
	h->incompat = (uint32_t)rcursor_le(&c, 4);
	h->ro_compat = (uint32_t)rcursor_le(&c, 4);
	header_copy(&c, h->poolset_uuid, HEADER_UUID);
	header_copy(&c, h->uuid, HEADER_UUID);
	header_copy(&c, h->prev_part, HEADER_UUID);
	header_copy(&c, h->next_part, HEADER_UUID);
	header_copy(&c, h->prev_repl, HEADER_UUID);
	header_copy(&c, h->next_repl, HEADER_UUID);
	h->crtime = rcursor_le(&c, 8);
	header_copy(&c, h->arch_flags, HEADER_ARCH);
	c = rcursor_init(page + HEADER_SDS_AT, HEADER_SDS_BYTES);
	h->sds.usc = rcursor_le(&c, 8);
	h->sds.uuid = rcursor_le(&c, 8);
	h->sds.dirty = rcursor_u8(&c);
}

bool header_has_sds(const struct header *h)
{
	return (h->incompat & HEADER_SDS) && (h->incompat & HEADER_CKSUM_2K);
}

bool header_sds_is_lost(const uint8_t page[HEADER_BYTES], const struct header_sds *now)
{
	const uint8_t *sds = page + HEADER_SDS_AT;
	struct header h;

	if (header_load(sds + HEADER_SDS_CHECKSUM_AT, 8) != header_sds_checksum(sds))
		return false;
	header_decode(page, &h);
	return h.sds.dirty && (h.sds.usc != now->usc || h.sds.uuid != now->uuid);
}

void header_fresh_uuid(uint8_t uuid[HEADER_UUID])
{
	rand_bytes(uuid, HEADER_UUID);
	uuid[7] =
		/* the third field of a UUID is little-endian here, so its version (4) is in byte
		 * 7 */
		(uint8_t)((uuid[7] & 0x0f) | 0x40);
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
}

#if defined(__x86_64__)
#define HEADER_MACHINE 62
#elif defined(__aarch64__)
#define HEADER_MACHINE 183
#elif defined(__powerpc64__)
#define HEADER_MACHINE 21
#elif defined(__riscv)
#define HEADER_MACHINE 243
#else
#define HEADER_MACHINE 0
#endif

/* Four bits for each type: the type's alignment minus one. */
#define HEADER_ALIGNMENT(type, place) ((uint64_t)(_Alignof(type) - 1) << (4 * (place)))

void header_arch_flags(uint8_t flags[HEADER_ARCH])
{
	struct wcursor c = wcursor_init(flags, HEADER_ARCH);

	wcursor_le(&c,
		   HEADER_ALIGNMENT(char, 0) | HEADER_ALIGNMENT(short, 1) |
			   HEADER_ALIGNMENT(int, 2) | HEADER_ALIGNMENT(long, 3) |
			   HEADER_ALIGNMENT(long long, 4) | HEADER_ALIGNMENT(size_t, 5) |
			   HEADER_ALIGNMENT(off_t, 6) | HEADER_ALIGNMENT(float, 7) |
			   HEADER_ALIGNMENT(double, 8) | HEADER_ALIGNMENT(long double, 9) |
			   HEADER_ALIGNMENT(void *, 10),
		   8);
	wcursor_u8(&c, sizeof(void *) == 8 ? 2 : 1);
	wcursor_u8(&c, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 1 : 2);
	wcursor_le(&c, 0, 4);
	wcursor_le(&c, HEADER_MACHINE, 2);
}
