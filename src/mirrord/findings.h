/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * findings.h -- differences that comparisons of the copies found, here or on other hosts, and that
 * were not mended. A set with findings is not healthy. The loop's thread only.
 */
#ifndef MIRRORD_FINDINGS_H
#define MIRRORD_FINDINGS_H

#include "mirrord/impl.h"

/* Findings in the records of this host's copy. */
bool findings_has_own(const struct set *s);
/* Does any host have findings, even if only another host's daemon has recorded them? */
bool findings_spoil(const struct set *s);
/* Does any host have findings that the return of an excluded member does not repair? */
bool findings_has_open(const struct set *s);
/* The flags MESSAGE_STATUS_DIFFERS and _COMPARED for other hosts. */
uint8_t findings_flags(const struct set *s);
/* Does a majority of the copies differ from this host's copy, while another copy is in-sync? */
bool findings_forbid_promotion(const struct set *s);
/*
 * Drop findings that were mended since: the member has returned, or a later primary has compared
 * all copies.
 */
void findings_look(struct set *s);

/* Texts for the difference and for the operator's choices. */
struct findings_words {
	char why[256];
	const char *next;
};
void findings_get_words(const struct set *s, struct findings_words *words);
/* The findings of this host. */
struct json_t *findings_json(const struct set *s);

#endif
