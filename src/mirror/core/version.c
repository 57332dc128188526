/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/version.h"

#include <stdio.h>

/* Tests define MIRROR_LATER to build this file as a later release. */
#ifndef MIRROR_LATER
#define MIRROR_LATER 0
#endif
#define VERSION_THIS   VERSION_FINDINGS
#define VERSION_NEWEST (VERSION_THIS + MIRROR_LATER)
#define VERSION_LOWEST (VERSION_NEWEST - 1)

struct mirror_versions version_ours(void)
{
	return (struct mirror_versions){VERSION_NEWEST, VERSION_LOWEST};
}

unsigned version_newest(void)
{
	return VERSION_NEWEST;
}

bool version_is_possible(struct mirror_versions v)
{
	return v.lowest && v.lowest <= v.newest;
}

bool version_is_known(unsigned version)
{
	return version >= VERSION_LOWEST && version <= VERSION_NEWEST;
}

unsigned version_agree(struct mirror_versions a, struct mirror_versions b)
{
	unsigned version = a.newest < b.newest ? a.newest : b.newest;

	return version_is_possible(a) && version_is_possible(b) && version >= a.lowest &&
			       version >= b.lowest
		       ? version
		       : 0;
}

static void version_print(struct mirror_versions v, char text[32])
{
	if (v.lowest == v.newest)
		snprintf(text, 32, "version %u", v.newest);
	else
		snprintf(text, 32, "versions %u to %u", v.lowest, v.newest);
}

void version_explain(struct mirror_versions theirs, const char *they, const char *we, char *text,
		     size_t size)
{
	char a[32], b[32];

	version_print(theirs, a);
	version_print(version_ours(), b);
	snprintf(text, size,
		 "%s supports %s of the mirror's protocols, but %s supports %s; hosts are upgraded "
		 "one release at a time: upgrade %s",
		 they, a, we, b, theirs.newest < VERSION_NEWEST ? they : we);
}

#if MIRROR_LATER

#define VERSION_TAIL 0x5458454eu /* "NEXT" */

void version_put_tail(struct wcursor *c, unsigned version)
{
	if (version > VERSION_THIS)
		wcursor_le(c, VERSION_TAIL, 4);
}

void version_get_tail(struct rcursor *c, unsigned version)
{
	if (version > VERSION_THIS && rcursor_le(c, 4) != VERSION_TAIL)
		c->bad = true;
}

const char *version_value_tail(unsigned format)
{
	return format > VERSION_THIS ? ",\"next\":true" : "";
}

#else

void version_put_tail(struct wcursor *c, unsigned version)
{
	(void)c;
	(void)version;
}

void version_get_tail(struct rcursor *c, unsigned version)
{
	(void)c;
	(void)version;
}

const char *version_value_tail(unsigned format)
{
	(void)format;
	return "";
}

#endif
