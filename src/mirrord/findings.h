/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * findings.h -- what comparisons of the copies have found and nothing has mended, here or at other
 * hosts: such a set is not healthy. The loop's thread only.
 */
#ifndef MIRRORD_FINDINGS_H
#define MIRRORD_FINDINGS_H

#include "mirrord/impl.h"

/* Recorded with this host's copy. */
bool findings_has_own(const struct set *s);
/* Also where only another host's daemon has recorded them. */
bool findings_spoil(const struct set *s);
/* Likewise, and the return of an excluded member does not mend all of it. */
bool findings_has_open(const struct set *s);
/* MESSAGE_STATUS_DIFFERS and _COMPARED, for other hosts. */
uint8_t findings_flags(const struct set *s);
/* A majority of the copies speaks against this host's copy, and another one is in-sync. */
bool findings_forbid_promotion(const struct set *s);
/* Drop those that were mended since: the member has returned, or a later primary has compared all
 * copies. */
void findings_look(struct set *s);

/* In words: what differs, and what an operator decides. */
struct findings_words {
	char why[256];
	const char *next;
};
void findings_get_words(const struct set *s, struct findings_words *words);
/* Of this host's. */
struct json_t *findings_json(const struct set *s);

#endif
