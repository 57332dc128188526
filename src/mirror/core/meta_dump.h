/* SPDX-License-Identifier: BSD-3-Clause */
/* meta_dump.h -- prints the metadata of a copy for people and scripts, and finds their defects;
 * reads only. */
#ifndef MIRROR_CORE_META_DUMP_H
#define MIRROR_CORE_META_DUMP_H

#include <stdio.h>

#include "mirror/core/meta.h"

enum meta_form {
	META_FORM_TEXT, /* lines "key: value", indented */
	META_FORM_JSON  /* one object with the same keys */
};

/* Print all metadata: superblock, promise, history, members with their bitmaps, hot extents, and
 * the intents of the ring, with a mark for those that are not acknowledged. The caller checks
 * `out` for errors. */
void meta_dump(const struct meta *m, enum meta_form form, FILE *out);

enum meta_finding {
	META_NOTE,  /* a state that needs an action, for instance a resync after an unclean end */
	META_DEFECT /* damage, or a contradiction */
};

/* Calls say() with a sentence for each finding; returns the number of defects. data_size: size
 * of the data file; 0: unknown. */
unsigned meta_check(const struct meta *m, uint64_t data_size,
		    void (*say)(void *arg, enum meta_finding finding, const char *text), void *arg);

#endif
