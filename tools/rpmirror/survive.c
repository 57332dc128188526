/* SPDX-License-Identifier: BSD-3-Clause */
#include "survive.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "mirror/core/view.h"
#include "mirror/core/words.h"
#include "out.h"

void survive_facts_of(const json_t *set, struct survive_facts *facts)
{
	const json_t *store = json_object_get(set, "register"), *member;
	bool is_file = !strcmp(json_text(store, "kind", ""), "file");
	int lonely = words_find(words_lonely, json_text(set, "lonely", "none"));
	size_t i;

	*facts = (struct survive_facts){
		.min_copies = (unsigned)json_count(set, "min_copies", MIRROR_MEMBERS_MAX, 1),
		.lonely = lonely < 0 ? MIRROR_LONELY_NONE : (enum mirror_lonely)lonely,
		.register_members =
			is_file ? 0 : (unsigned)json_count(store, "members", INT_MAX, 0),
		.register_healthy =
			is_file ? 0 : (unsigned)json_count(store, "healthy", INT_MAX, 0),
		.is_register_silent = json_is_false(json_object_get(store, "answers"))};
	json_array_foreach(json_object_get(set, "members"), i, member)
	{
		bool is_insync = json_flag(member, "insync");

		facts->copies += is_insync;
		facts->unreached += is_insync && !strcmp(json_text(member, "link", ""), "down");
	}
}

/* Returns the number of further members of the register that can be lost, or -1 if the register has
 * no majority. */
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
			 "the register cannot be asked: no member can take over or be excluded");
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

/* Write which losses the other in-sync copies survive while some copies cannot be reached. */
static void survive_text_rest(const struct survive_facts *f, char *text, size_t size)
{
	struct survive_facts rest = *f;
	char then[256];

	rest.copies -= f->unreached;
	rest.unreached = 0;
	if (!rest.copies) {
		snprintf(text, size, "none of its in-sync copies is reached from here");
		return;
	}
	survive_text(&rest, then, sizeof(then));
	snprintf(text, size, "%u of its in-sync copies %s not reached from here; without %s: %s",
		 f->unreached, f->unreached == 1 ? "is" : "are", f->unreached == 1 ? "it" : "them",
		 then);
}

void survive_text(const struct survive_facts *f, char *text, size_t size)
{
	if (f->unreached)
		survive_text_rest(f, text, size);
	else if (f->copies < 2)
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

/* Returns the member's slot, or MIRROR_NO_SLOT if the status has no valid slot. */
static uint8_t survive_slot_of(const json_t *member)
{
	return (uint8_t)json_count(member, "slot", MIRROR_MEMBERS_MAX - 1, MIRROR_NO_SLOT);
}

static uint8_t survive_slot(const json_t *set, const char *name)
{
	const json_t *member;
	size_t i;

	json_array_foreach(json_object_get(set, "members"), i, member)
	{
		if (!strcmp(json_text(member, "name", ""), name))
			return survive_slot_of(member);
	}
	return MIRROR_NO_SLOT;
}

/* ---- the parts on a host ---- */

/* Returns true if the endpoint (HOST:PORT or [HOST]:PORT) is on that host. */
static bool survive_is_at(const char *endpoint, const char *host)
{
	size_t len = strlen(host);

	if (endpoint[0] == '[')
		return !strncmp(endpoint + 1, host, len) && endpoint[len + 1] == ']';
	return !strncmp(endpoint, host, len) && endpoint[len] == ':';
}

/* Returns the register's members on the host `name`, or the register's member `name`. */
static uint32_t survive_stores(const json_t *set, const char *name)
{
	const json_t *endpoint, *store = json_object_get(set, "register");
	uint32_t stores = 0;
	size_t i;

	json_array_foreach(json_object_get(store, "endpoints"), i, endpoint)
	{
		const char *text = json_string_value(endpoint);

		if (text && i < 32 && (!strcmp(text, name) || survive_is_at(text, name)))
			stores |= 1u << i;
	}
	return stores;
}

/* Returns the members on a host. *host gets the host of the member in slot of_slot. */
static mirror_mask survive_members(const json_t *set, const char *at, uint8_t of_slot,
				   const char **host)
{
	const json_t *member;
	mirror_mask found = 0;
	size_t i;

	json_array_foreach(json_object_get(set, "members"), i, member)
	{
		uint8_t slot = survive_slot_of(member);

		if (slot == MIRROR_NO_SLOT)
			continue;
		if (at && !strcmp(json_text(member, "host", ""), at))
			found |= MIRROR_BIT(slot);
		if (slot == of_slot && host)
			*host = json_text(member, "host", "");
	}
	return found;
}

bool survive_add_lost(const json_t *set, const char *name, struct survive_lost *lost)
{
	uint8_t slot = survive_slot(set, name);
	struct survive_lost found = {0};
	const char *host = "";

	if (slot < MIRROR_MEMBERS_MAX) {
		survive_members(set, NULL, slot, &host);
		found.members = MIRROR_BIT(slot);
		if (*host && survive_members(set, host, slot, NULL) == MIRROR_BIT(slot))
			found.stores = survive_stores(set, host);
	} else {
		found.members = survive_members(set, name, MIRROR_NO_SLOT, NULL);
		found.stores = survive_stores(set, name);
	}
	lost->members |= found.members;
	lost->stores |= found.stores;
	return found.members || found.stores;
}

/* Remove these members from the facts of the register. If the status does not show which members
 * answer, count all others as healthy. */
static void survive_lose_stores(const json_t *set, uint32_t stores, struct survive_facts *f)
{
	unsigned lost = (unsigned)__builtin_popcount(stores);

	if (!lost)
		return;
	if (!f->register_members) {
		const json_t *store = json_object_get(set, "register");

		f->register_members =
			(unsigned)json_array_size(json_object_get(store, "endpoints"));
		f->register_healthy = f->register_members;
	}
	f->register_healthy = f->register_healthy > lost ? f->register_healthy - lost : 0;
}

/* ---- outcomes ---- */

/* Returns the number of in-sync members that are not lost. *first gets the name of the first
 * member that could serve. */
static unsigned survive_left(const json_t *set, mirror_mask lost, const char **first)
{
	unsigned left = 0;
	const json_t *member;
	size_t i;

	*first = NULL;
	json_array_foreach(json_object_get(set, "members"), i, member)
	{
		uint8_t slot = survive_slot_of(member);

		if (slot == MIRROR_NO_SLOT || !json_flag(member, "insync") ||
		    (lost & MIRROR_BIT(slot)))
			continue;
		if (!left++)
			*first = json_text(member, "name", "?");
	}
	return left;
}

static bool survive_is_block(const struct survive_facts *f, unsigned left)
{
	return !view_is_enough(left, f->min_copies, f->lonely, NULL);
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
			"%s can take over after the lease of %.1f s, but flushes block: %u cop%s left, "
			"min_copies is %u",
			next, json_figure(set, "lease_ms", 0) / 1000, left,
			left == 1 ? "y is" : "ies are", f->min_copies);
		return SURVIVE_BLOCKS;
	}
	snprintf(text, size, "%s can take over after the lease of %.1f s, with %u in-sync cop%s",
		 next, json_figure(set, "lease_ms", 0) / 1000, left, left == 1 ? "y" : "ies");
	return SURVIVE_FAILS_OVER;
}

static enum survive_outcome survive_no_majority(const json_t *set, const struct survive_facts *f,
						mirror_mask members, char *text, size_t size)
{
	if (f->is_register_silent || !f->register_members)
		snprintf(text, size,
			 "flushes block: the register cannot be asked, and has to agree on it");
	else if (members)
		snprintf(text, size,
			 "flushes block: the register has to agree on it, and %u of its %u members "
			 "are no majority",
			 f->register_healthy, f->register_members);
	else
		snprintf(
			text, size,
			"the primary stops when its lease of %.1f s is over, and no member can take over: "
			"%u of the register's %u members are no majority",
			json_figure(set, "lease_ms", 0) / 1000, f->register_healthy,
			f->register_members);
	return SURVIVE_BLOCKS;
}

/* Returns the effect of lost copies while the register has its majority. */
static enum survive_outcome survive_lost_copies(const json_t *set, const struct survive_facts *f,
						unsigned left, char *text, size_t size)
{
	const char *primary = json_text(set, "primary", "");

	if (survive_is_block(f, left)) {
		snprintf(text, size, "flushes block: %u cop%s left, min_copies is %u%s", left,
			 left == 1 ? "y is" : "ies are", f->min_copies,
			 left < f->min_copies ? "" : " and lonely is block");
		return SURVIVE_BLOCKS;
	}
	snprintf(text, size, "%s%s with %u in-sync cop%s", *primary ? primary : "the set",
		 *primary ? " goes on" : " can be promoted", left, left == 1 ? "y" : "ies");
	return SURVIVE_GOES_ON;
}

static enum survive_outcome survive_judge(const json_t *set, const struct survive_lost *lost,
					  const struct survive_facts *f, char *text, size_t size)
{
	uint8_t slot = survive_slot(set, json_text(set, "primary", ""));
	bool is_primary = slot < MIRROR_MEMBERS_MAX && (lost->members & MIRROR_BIT(slot));
	const char *next;
	unsigned left = survive_left(set, lost->members, &next);
	bool is_insync_lost = left != f->copies || is_primary;

	if (!left) {
		snprintf(
			text, size,
			"no in-sync copy is left: nothing that was acknowledged can be read until one "
			"returns");
		return SURVIVE_LOSES;
	}
	if (!is_insync_lost && !lost->stores) {
		snprintf(text, size, "nothing changes: no in-sync copy is lost");
		return SURVIVE_NO_CHANGE;
	}
	if (survive_register_spare(f) < 0)
		return survive_no_majority(set, f, is_insync_lost, text, size);
	if (is_primary)
		return survive_lost_primary(set, f, left, next, text, size);
	if (is_insync_lost)
		return survive_lost_copies(set, f, left, text, size);
	snprintf(text, size, "nothing changes");
	return SURVIVE_NO_CHANGE;
}

enum survive_outcome survive_loss(const json_t *set, const struct survive_lost *lost, char *text,
				  size_t size)
{
	enum survive_outcome outcome;
	struct survive_facts f;
	size_t len;

	survive_facts_of(set, &f);
	survive_lose_stores(set, lost->stores, &f);
	outcome = survive_judge(set, lost, &f, text, size);
	len = strlen(text);
	if (lost->stores && survive_register_spare(&f) >= 0)
		snprintf(text + len, size - len, "; the register goes on with %u of %u members",
			 f.register_healthy, f.register_members);
	return outcome;
}

const char *survive_outcome_str(enum survive_outcome outcome)
{
	static const char *const words[] = {"no-change", "goes-on", "fails-over",
					    "stops",     "blocks",  "loses"};

	return words[outcome];
}
