/* SPDX-License-Identifier: BSD-3-Clause */
#include "survive.h"

#include <stdio.h>
#include <string.h>

#include "core_words.h"
#include "out.h"

void survive_facts_of(const json_t *set, struct survive_facts *facts)
{
	const json_t *store = json_object_get(set, "register"), *member;
	bool is_file = !strcmp(json_text(store, "kind", ""), "file");
	size_t i;

	*facts = (struct survive_facts){
		.min_copies = (unsigned)json_figure(set, "min_copies", 1),
		.lonely = words_lonely_of(json_text(set, "lonely", "none")),
		.register_members = is_file ? 0 : (unsigned)json_figure(store, "members", 0),
		.register_healthy = is_file ? 0 : (unsigned)json_figure(store, "healthy", 0),
		.is_register_silent = json_is_false(json_object_get(store, "answers"))};
	json_array_foreach(json_object_get(set, "members"), i, member) facts->copies +=
		json_flag(member, "insync");
}

/* How many of the store's members may be lost from now on; -1: it has no majority. */
static int survive_register_spare(const struct survive_facts *f)
{
	if (f->is_register_silent)
		return -1;
	if (!f->register_members)
		return MIRROR_MEMBERS_MAX;
	return (int)f->register_healthy - (int)(f->register_members / 2 + 1);
}

static void survive_text_etcd(const struct survive_facts *f, char *text, size_t size)
{
	int spare = survive_register_spare(f);
	unsigned copies = f->copies > f->min_copies ? f->copies - f->min_copies : 0;

	if (spare < 0)
		snprintf(text, size,
			 "the register does not answer: nobody can take over or be excluded");
	else if (!copies)
		snprintf(
			text, size,
			"no acknowledged byte is lost with one host, but then flushes block until it "
			"is back (min_copies %u)",
			f->min_copies);
	else if (!spare)
		snprintf(text, size,
			 "survives the loss of a copy's host, but not of a host of the register");
	else if (copies == 1 || spare == 1)
		snprintf(text, size, "survives the loss of any one host");
	else
		snprintf(text, size, "survives the loss of any %u hosts",
			 copies < (unsigned)spare ? copies : (unsigned)spare);
}

void survive_text(const struct survive_facts *f, char *text, size_t size)
{
	if (f->copies < 2)
		snprintf(text, size, "does not survive the loss of its only in-sync copy");
	else if (f->lonely == MIRROR_LONELY_BLOCK)
		snprintf(
			text, size,
			"no acknowledged byte is lost with one host, but then the set stops until an "
			"operator acts");
	else if (f->lonely == MIRROR_LONELY_MANUAL)
		snprintf(text, size,
			 "goes on alone without its other copies; without the primary's host an "
			 "operator has to promote another copy");
	else
		survive_text_etcd(f, text, size);
}

uint8_t survive_slot(const json_t *set, const char *name)
{
	const json_t *member;
	size_t i;

	json_array_foreach(json_object_get(set, "members"), i,
			   member) if (!strcmp(json_text(member, "name", ""),
					       name)) return (uint8_t)json_figure(member, "slot",
										  MIRROR_NOBODY);
	return MIRROR_NOBODY;
}

/* The in-sync members without the lost ones, and the name of the first that could serve. */
static unsigned survive_left(const json_t *set, mirror_mask lost, const char **first)
{
	unsigned left = 0;
	const json_t *member;
	size_t i;

	*first = NULL;
	json_array_foreach(json_object_get(set, "members"), i, member)
	{
		uint8_t slot = (uint8_t)json_figure(member, "slot", 0);

		if (!json_flag(member, "insync") || (lost & MIRROR_BIT(slot % 8)))
			continue;
		if (!left++)
			*first = json_text(member, "name", "?");
	}
	return left;
}

static bool survive_is_block(const struct survive_facts *f, unsigned left)
{
	return left < f->min_copies || (f->lonely == MIRROR_LONELY_BLOCK && left < 2);
}

static enum survive_outcome survive_lost_primary(const json_t *set, const struct survive_facts *f,
						 unsigned left, const char *next, char *text,
						 size_t size)
{
	if (f->lonely != MIRROR_LONELY_NONE) {
		snprintf(
			text, size,
			"the set stops: once its host is known to be off, promote %s (rpmirror fence, "
			"rpmirror promote)",
			next);
		return SURVIVE_STOPS;
	}
	if (survive_is_block(f, left)) {
		snprintf(
			text, size,
			"%s can take over after the lease of %.1f s, but flushes block: %u copies are "
			"left, min_copies is %u",
			next, json_figure(set, "lease_ms", 0) / 1000, left, f->min_copies);
		return SURVIVE_BLOCKS;
	}
	snprintf(text, size, "%s can take over after the lease of %.1f s, with %u in-sync cop%s",
		 next, json_figure(set, "lease_ms", 0) / 1000, left, left == 1 ? "y" : "ies");
	return SURVIVE_FAILS_OVER;
}

enum survive_outcome survive_loss(const json_t *set, mirror_mask lost, char *text, size_t size)
{
	const char *primary = json_text(set, "primary", "");
	uint8_t slot = survive_slot(set, primary);
	bool is_primary = slot < MIRROR_MEMBERS_MAX && (lost & MIRROR_BIT(slot));
	struct survive_facts f;
	const char *next;
	unsigned left;

	survive_facts_of(set, &f);
	left = survive_left(set, lost, &next);
	if (!left) {
		snprintf(
			text, size,
			"no in-sync copy is left: nothing that was acknowledged can be read until one "
			"returns");
		return SURVIVE_LOSES;
	}
	if (left == f.copies && !is_primary) {
		snprintf(text, size, "nothing changes: no in-sync copy is lost");
		return SURVIVE_NO_CHANGE;
	}
	if (survive_register_spare(&f) < 0) {
		snprintf(text, size,
			 "flushes block: the register does not answer, and has to agree on it");
		return SURVIVE_BLOCKS;
	}
	if (is_primary)
		return survive_lost_primary(set, &f, left, next, text, size);
	if (survive_is_block(&f, left)) {
		snprintf(text, size, "flushes block: %u cop%s left, min_copies is %u%s", left,
			 left == 1 ? "y is" : "ies are", f.min_copies,
			 left < f.min_copies ? "" : " and lonely is block");
		return SURVIVE_BLOCKS;
	}
	snprintf(text, size, "%s%s with %u in-sync cop%s", *primary ? primary : "the set",
		 *primary ? " goes on" : " can be promoted", left, left == 1 ? "y" : "ies");
	return SURVIVE_GOES_ON;
}

const char *survive_outcome_str(enum survive_outcome outcome)
{
	static const char *const words[] = {"no-change", "goes-on", "fails-over",
					    "stops",     "blocks",  "loses"};

	return words[outcome];
}
