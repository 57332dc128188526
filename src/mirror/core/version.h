/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * version.h -- the versions of the mirror's protocols and formats that this program supports.
 *
 * One version number covers all protocols and formats: connections between hosts, the socket of a
 * host, the register's record, the metadata of a copy. Each release that changes one of them
 * raises the number, and supports the previous version as well, so that hosts can be upgraded one
 * after the other (doc/architecture/mirror.md). A newer version adds its fields at the end.
 */
#ifndef MIRROR_CORE_VERSION_H
#define MIRROR_CORE_VERSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

/*
 * Version 2 adds to MAP the number of the program, to VERIFY whether an operator asked, to ORDERED
 * a verdict on each difference, and to STATUS the findings of comparisons. Its records and metadata
 * are those of version 1; optional fields of the superblock have no version.
 */
#define VERSION_FINDINGS 2

/* The versions that a program announces. */
struct mirror_versions {
	uint8_t newest, lowest;
};

struct mirror_versions version_ours(void);
unsigned version_newest(void);
/* Returns true if 1 <= lowest <= newest. */
bool version_is_possible(struct mirror_versions v);
/* Returns true if this program supports the version. */
bool version_is_known(unsigned version);
/* Returns the lower one of the two newest versions, or 0 if one end does not support that
 * version. */
unsigned version_agree(struct mirror_versions a, struct mirror_versions b);
/* Explains why two ends have no version in common, and which program to upgrade: "its rpmirrord
 * speaks versions 3 to 4 ...". */
void version_explain(struct mirror_versions theirs, const char *they, const char *we, char *text,
		     size_t size);

/*
 * Write and read the fields that a later version adds: at the end of greetings, messages, packets
 * and records in binary form, and of the configuration in the register's value. This version adds
 * none. Tests build this file again as a later version, which adds a field.
 */
void version_put_tail(struct wcursor *c, unsigned version);
void version_get_tail(struct rcursor *c, unsigned version);
const char *version_value_tail(unsigned format);

#endif
