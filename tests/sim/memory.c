/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "softrnic/rnic/rnic.h"

#define GUARD_MIN 64
#define BURIED    0xdb

const uint8_t *memory_pool(void)
{
	static uint8_t *pool;
	struct prng rng = {.state = 1};

	if (pool)
		return pool;
	pool = malloc(POOL_LEN);
	if (!pool)
		abort();
	for (size_t i = 0; i < POOL_LEN; i += sizeof(uint64_t)) {
		uint64_t v = prng_next(&rng);

		memcpy(pool + i, &v, sizeof(v));
	}
	return pool;
}

static uint8_t *memory_layer_new(uint8_t *old, uint64_t room)
{
	uint8_t *layer = aligned_alloc(64, room);

	free(old);
	if (!layer)
		abort();
	return layer;
}

static void memory_resize(struct memory *m, uint64_t size)
{
	if (size > m->room) {
		m->room = (size + 65535) / 65536 * 65536;
		m->cache = memory_layer_new(m->cache, m->room);
		m->medium = memory_layer_new(m->medium, m->room);
	}
	m->size = size;
}

/* Choose access rights as an application grants them; some lack the right to flush. */
static int area_access(enum area_kind kind, struct prng *rng)
{
	int access = IBV_ACCESS_LOCAL_WRITE;

	if (kind == AREA_RECV || kind >= AREA_SOURCE)
		return access;
	access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND;
	if (kind == AREA_SINK || kind == AREA_SCRATCH)
		return access;
	access |= IBV_ACCESS_REMOTE_READ;
	if (kind == AREA_WORDS)
		access |= IBV_ACCESS_REMOTE_ATOMIC;
	if (kind == AREA_LEASE)
		access |= VEXT_ACCESS_REMOTE_INVALIDATE;
	if (prng_chance(rng, 70))
		access |= VEXT_ACCESS_FLUSH_GLOBAL | VEXT_ACCESS_FLUSH_PERSISTENT;
	return access;
}

/* Returns true if write-backs of the area need no registration. This always holds for AREA_LEASE.
 * Otherwise, if the peer flushes by reading and an invalidation loses a Write, the peer's stream
 * would end. */
static bool area_is_lasting(enum area_kind kind, struct prng *rng)
{
	return kind == AREA_LEASE || prng_chance(rng, 70);
}

static void area_register(struct memory *m, struct prng *rng, enum area_kind kind,
			  struct mr_table *mrs, struct ibv_pd *pd)
{
	struct area *a = &m->area[kind];
	int access = area_access(kind, rng);
	struct mr_backing backing = {
		.persist = m,
		.durable = access & RNIC_REMOTE_ACCESS,
		.lasting = area_is_lasting(kind, rng),
	};
	uint8_t *addr = m->cache + a->off;

	a->iova = prng_chance(rng, 30) ? prng_below(rng, 1u << 20) & ~7ull : (uintptr_t)addr;
	/* An aligned TO must mean an aligned address, as in every registration of whole pages. */
	a->iova = (a->iova & ~7ull) | (a->off & 7);
	if (mr_new(mrs, pd, addr, a->len, a->iova, access, &backing, &a->mr))
		abort();
	a->stag = a->mr->ibv.rkey;
	a->lasting = backing.lasting;
}

void memory_init(struct memory *m, struct prng *rng, const uint64_t len[AREA_COUNT],
		 struct mr_table *mrs, struct ibv_pd *pd)
{
	uint64_t at = 0;

	for (int i = 0; i < AREA_COUNT; i++) {
		at += GUARD_MIN + prng_below(rng, 64);
		at = i == AREA_WORDS ? (at + 7) & ~7ull : at;
		m->area[i] = (struct area){.off = at, .len = len[i] ? len[i] : 1};
		at += m->area[i].len;
	}
	memory_resize(m, at + GUARD_MIN);
	list_init(&m->digested);
	assert(m->size < POOL_LEN);
	m->initial = memory_pool() + prng_below(rng, POOL_LEN - m->size);
	memcpy(m->cache, m->initial, m->size);
	memcpy(m->medium, m->initial, m->size);
	for (int i = 0; i < AREA_COUNT; i++)
		area_register(m, rng, (enum area_kind)i, mrs, pd);
	if (mr_new(mrs, pd, (void *)(uintptr_t)memory_pool(), POOL_LEN, (uintptr_t)memory_pool(), 0,
		   NULL, &m->pool_mr))
		abort();
	m->pool_stag = m->pool_mr->ibv.lkey;
}

/* --- digests ------------------------------------------------------------------------------ */

uint32_t memory_durability(const struct memory *m, enum area_kind kind)
{
	if (m->area[kind].is_volatile)
		return VEXT_DURABILITY_VOLATILE;
	return m->is_dax ? VEXT_DURABILITY_DAX : VEXT_DURABILITY_FILE;
}

/* The RNIC does not interpret a digest, so any function whose result has 4 or 32 bytes is
 * sufficient. */
static void memory_make_digest(const uint8_t *bytes, uint64_t len, uint32_t alg, uint8_t sum[32])
{
	struct prng r = {.state = len};
	unsigned used = alg == VEXT_DIGEST_CRC32C ? 4 : 32;

	for (uint64_t i = 0; i < len; i++)
		r.state = r.state * 0x100000001b3ull + bytes[i];
	memset(sum, 0, 32);
	for (unsigned i = 0; i < used; i++)
		sum[i] = (uint8_t)prng_next(&r);
}

void memory_digest(struct memory *m, uint64_t off, const uint8_t *bytes, uint64_t len,
		   struct vext_digest *digest)
{
	struct digested *d = malloc(sizeof(*d) + len);

	if (!d)
		abort();
	d->off = off;
	d->len = len;
	memcpy(d->bytes, bytes, len);
	memory_make_digest(bytes, len, digest->alg, d->sum);
	memcpy(digest->bytes, d->sum, sizeof(d->sum));
	list_add_tail(&m->digested, &d->link);
}

struct digested *memory_digested(const struct memory *m, uint64_t off, uint64_t len,
				 const uint8_t *sum)
{
	const struct list *l;

	for (l = m->digested.next; l != &m->digested; l = l->next) {
		struct digested *d = container_of(l, struct digested, link);

		if (d->off == off && d->len == len && memcmp(d->sum, sum, sizeof(d->sum)) == 0)
			return d;
	}
	return NULL;
}

static void memory_drop_digests(struct memory *m)
{
	struct list *l;

	while (m->digested.next && (l = list_pop(&m->digested)))
		free(container_of(l, struct digested, link));
}

/* --- deregistration ----------------------------------------------------------------------- */

static bool area_dereg(struct mr *mr)
{
	if (!mr)
		return true;
	mr_kill(mr);
	if (mr->holds > 0)
		return false;
	mr_delete(mr);
	return true;
}

bool memory_fini(struct memory *m)
{
	bool idle = area_dereg(m->pool_mr);

	m->pool_mr = NULL;
	memory_drop_digests(m);
	for (int i = 0; i < AREA_COUNT; i++) {
		idle &= area_dereg(m->area[i].mr);
		m->area[i].mr = NULL;
		free(m->area[i].pages);
		m->area[i].pages = NULL;
	}
	return idle;
}

void memory_free(struct memory *m)
{
	free(m->cache);
	free(m->medium);
	*m = (struct memory){0};
}

struct area *memory_area_at(struct memory *m, uint64_t off)
{
	for (int i = 0; i < AREA_COUNT; i++) {
		if (off >= m->area[i].off && off - m->area[i].off < m->area[i].len)
			return &m->area[i];
	}
	return NULL;
}

uint64_t memory_to(const struct memory *m, enum area_kind kind, uint64_t off)
{
	return m->area[kind].iova + (off - m->area[kind].off);
}

void memory_retire(struct memory *m, enum area_kind kind)
{
	struct area *a = &m->area[kind];

	a->gone = true;
	a->mr = NULL;
	if (a->lasting) {
		a->pages = malloc(a->len);
		if (!a->pages)
			abort();
		memcpy(a->pages, m->cache + a->off, a->len);
	}
	memset(m->cache + a->off, BURIED, a->len);
}

const uint8_t *memory_pages(struct memory *m, uint64_t off)
{
	const struct area *a = memory_area_at(m, off);

	return a && a->pages ? a->pages + (off - a->off) : m->cache + off;
}

static int64_t memory_find_other(const uint8_t *have, const uint8_t *want, uint64_t from,
				 uint64_t to)
{
	if (memcmp(have + from, want + from, to - from) == 0)
		return -1;
	while (have[from] == want[from])
		from++;
	return (int64_t)from;
}

static int64_t memory_find_changed(const struct memory *m, const struct area *a)
{
	for (uint64_t i = a->off; i < a->off + a->len; i++) {
		if (m->cache[i] != BURIED)
			return (int64_t)i;
	}
	return -1;
}

int64_t memory_find_damage(const struct memory *m)
{
	uint64_t at = 0;

	for (int i = 0; i <= AREA_COUNT; i++) {
		const struct area *a = i < AREA_COUNT ? &m->area[i] : NULL;
		uint64_t end = a ? a->off : m->size;
		int64_t bad = memory_find_other(m->cache, m->initial, at, end);

		if (bad < 0)
			bad = memory_find_other(m->medium, m->initial, at, end);
		if (bad < 0 && a && a->gone)
			bad = memory_find_changed(m, a);
		if (bad >= 0)
			return bad;
		at = a ? a->off + a->len : end;
	}
	return -1;
}
