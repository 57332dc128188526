/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oracle.c -- the rules that must hold. The value of each word identifies the store that wrote it:
 * epoch, number, and a hash that includes the word's position. So the checks detect a torn word, a
 * misplaced word, and a word that no store wrote.
 */
#include <stdarg.h>
#include <stdio.h>

#include "sim.h"

static uint64_t value_hash(unsigned word, uint64_t epoch, uint64_t seq)
{
	uint64_t z = (epoch << 40 ^ seq << 8 ^ word) * 0xbf58476d1ce4e5b9ull;

	return (z ^ z >> 31) & 0xffffff;
}

/* Make the value of a store. Later stores have greater values. */
uint64_t value_make(unsigned word, uint64_t epoch, uint64_t seq)
{
	return epoch << 48 | seq << 24 | value_hash(word, epoch, seq);
}

static bool value_is_valid(unsigned word, uint64_t v)
{
	return v == 0 || value_make(word, v >> 48, v >> 24 & 0xffffff) == v;
}

void oracle_fail(struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (w->violated)
		return;
	w->violated = true;
	va_start(ap, fmt);
	vsnprintf(w->violation, sizeof(w->violation), fmt, ap);
	va_end(ap);
	sim_trace(w, "VIOLATION: %s", w->violation);
}

/* A mapping must have the size that was in the register when the mapping was permitted. */
void oracle_on_map(struct world *w, const struct lib *lib, const struct mirror_record *rec)
{
	if (lib->size < rec->config.size)
		oracle_fail(w, "%u maps %llu bytes, and the register says %llu", lib->host,
			    (unsigned long long)lib->size, (unsigned long long)rec->config.size);
}

/* Returns the value that a process would read now if it mapped the copy. */
static uint64_t oracle_word(const struct host *h, unsigned word)
{
	return word_offset(word) < h->meta.super.size ? h->disk.cache[word] : 0;
}

/* No process flushes at this time, so all copies of S must be equal. Words past the end of a
 * smaller copy count as zeros. */
static void oracle_check_equal(struct world *w, const struct mirror_record *rec)
{
	const struct host *primary = &w->host[rec->view.primary];

	for (unsigned h = 0; h < w->hosts; h++)
		for (unsigned i = 0; rec->view.insync & MIRROR_BIT(h) && i < WORDS; i++)
			if (oracle_word(&w->host[h], i) != oracle_word(primary, i))
				oracle_fail(w,
					    "%u begins to serve epoch %llu, and %u of S differs in "
					    "word %u",
					    rec->view.primary,
					    (unsigned long long)rec->view.epoch.number, h, i);
}

/* The register changes to `serving`: from now on the primary's application is allowed to read the
 * whole copy. A promotion by force gives up the data that this copy lacks. */
void oracle_on_serving(struct world *w, const struct mirror_record *rec)
{
	const struct host *primary = &w->host[rec->view.primary];

	for (unsigned i = 0; w->gave_up && i < WORDS; i++)
		w->acked[i] = w->floor[i] = 0;
	w->gave_up = false;

	for (unsigned i = 0; i < WORDS; i++) {
		uint64_t v = oracle_word(primary, i);

		if (!value_is_valid(i, v))
			oracle_fail(w, "%u serves word %u, which nobody stored: %#llx",
				    rec->view.primary, i, (unsigned long long)v);
		else if (v < w->acked[i])
			oracle_fail(
				w,
				"%u serves epoch %llu without acknowledged word %u: %#llx < %#llx",
				rec->view.primary, (unsigned long long)rec->view.epoch.number, i,
				(unsigned long long)v, (unsigned long long)w->acked[i]);
		else if (v < w->floor[i])
			oracle_fail(
				w,
				"%u serves epoch %llu, and word %u that was read has changed back",
				rec->view.primary, (unsigned long long)rec->view.epoch.number, i);
		w->floor[i] = v;
	}
	oracle_check_equal(w, rec);
}

void oracle_on_ack(struct world *w, const struct flight *f)
{
	w->count.acks++;
	for (unsigned i = 0; i < WORDS; i++)
		if (f->mask >> i & 1 && f->words[i] > w->acked[i])
			w->acked[i] = f->words[i];
}

/* The application has confirmed a read. */
void oracle_on_read(struct world *w, struct lib *lib)
{
	const struct mirror_view *v = &w->reg.rec.view;

	if (!lib->served || !lease_holds(&lib->lease, host_ms(w, &w->host[lib->host])) ||
	    w->restored)
		return;
	if (!mirror_epoch_is_equal(v->epoch, lib->p.rec.view.epoch) &&
	    v->phase == MIRROR_PHASE_SERVING)
		oracle_fail(w, "%u has the lease of epoch %llu, and %u serves epoch %llu",
			    lib->host, (unsigned long long)lib->p.rec.view.epoch.number, v->primary,
			    (unsigned long long)v->epoch.number);
}

void oracle_on_place(struct world *w, struct host *h, const struct conn *c)
{
	if (h->lib && h->lib->served && h->lib->uid != c->lib_uid && !h->lib->ended)
		oracle_fail(w, "epoch %llu writes into the copy of %u, which serves epoch %llu",
			    (unsigned long long)c->epoch.number, h->id,
			    (unsigned long long)h->lib->p.rec.view.epoch.number);
}

/* Check a member outside S: every difference must be recorded in the bitmap for this member or in
 * the member's own records, including the records of a process that still maps the copy. */
static void oracle_check_absent(struct world *w, struct lib *lib, unsigned slot)
{
	const struct peer *peer = &lib->peers[slot];
	const struct disk *ours = &w->host[lib->host].disk;
	struct host *h = &w->host[slot];

	/* The process has just ended, and the daemon has not recorded the end yet. */
	if ((!h->lib && h->meta.super.holder.pid) || !h->daemon_uid || peer->whole ||
	    h->meta.damage ||
	    h->meta.super.flags & (META_UNCERTAIN | META_UNKNOWN | META_EMPTY | META_FAILED) ||
	    flush_members(&lib->flush) & MIRROR_BIT(slot) ||
	    !meta_bitmap_is_usable(&lib->meta, (uint8_t)slot, h->meta.super.epoch))
		return;
	for (unsigned i = 0; i < lib->words; i++) {
		uint64_t at = word_offset(i), block = at / MIRROR_BLOCK;
		struct mirror_range run;

		if (ours->cache[i] == oracle_word(h, i) ||
		    (meta_bitmap_next(&lib->meta, (uint8_t)slot, block * MIRROR_BLOCK, MIRROR_BLOCK,
				      &run) &&
		     run.offset == block * MIRROR_BLOCK) ||
		    (peer->running && peer->bits[block / 64] >> block % 64 & 1) ||
		    (w->direct && meta_hot_is(&lib->meta, meta_extent_of(at))) ||
		    (at < h->meta.super.size &&
		     meta_hot_is(h->lib ? &h->lib->meta : &h->meta, meta_extent_of(at))))
			continue;
		/* When the member returns, it reads its own intents. */
		struct member_report r;

		member_report(&h->member, &r);
		for (uint32_t k = 0; k < h->member.range_count; k++)
			if (words_in(&h->member.ranges[k]) >> i & 1)
				goto named;
		oracle_fail(w, "%u: word %u differs at %u, outside of its bitmap", lib->host, i,
			    slot);
	named:;
	}
}

void oracle_step(struct world *w)
{
	for (unsigned i = 0; i < w->hosts; i++) {
		struct lib *lib = w->host[i].lib;

		if (!lib || !lib->served || lib->ended || w->host[i].stopping ||
		    !mirror_epoch_is_equal(lib->p.rec.view.epoch, w->reg.rec.view.epoch))
			continue;
		/*
		 * The failed file lacks words that other members have, and the other members keep
		 * records of them.
		 */
		if (lib->failed_seq)
			continue;
		w->count.step_checks++;
		for (unsigned slot = 0; slot < w->hosts; slot++)
			if (slot != i && !(lib->p.rec.view.insync & MIRROR_BIT(slot)) &&
			    !(w->reg.rec.view.insync & MIRROR_BIT(slot)))
				oracle_check_absent(w, lib, slot);
	}
}

/* At the end every member must be in-sync, and all copies must be equal, also on their media. */
void oracle_at_end(struct world *w)
{
	const struct mirror_view *v = &w->reg.rec.view;
	const struct disk *d = &w->host[v->primary].disk;

	const struct lib *lib = w->host[v->primary].lib;

	for (unsigned h = 0; h < w->hosts; h++)
		for (unsigned i = 0; i < lib->words; i++)
			if (w->direct && meta_hot_is(&lib->meta, meta_extent_of(word_offset(i))))
				continue; /* the mapping can have unflushed stores */
			else if (w->host[h].disk.cache[i] != d->cache[i] ||
				 w->host[h].disk.medium[i] != d->medium[i])
				oracle_fail(w,
					    "all are in-sync, and word %u of %u differs from %u's: "
					    "%#llx %#llx",
					    i, h, v->primary,
					    (unsigned long long)w->host[h].disk.cache[i],
					    (unsigned long long)d->cache[i]);
	for (unsigned i = 0; i < WORDS; i++) {
		uint64_t has = oracle_word(&w->host[v->primary], i);

		if (has < w->acked[i] || !value_is_valid(i, has))
			oracle_fail(w, "word %u is older than what was acknowledged: %#llx < %#llx",
				    i, (unsigned long long)has, (unsigned long long)w->acked[i]);
	}
}
