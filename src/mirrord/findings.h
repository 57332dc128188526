/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * findings.h -- differences between copies: comparisons on this host or on other hosts found them,
 * and they were not repaired. A set with findings is not healthy. Only the loop's thread calls
 * these functions.
 */
#ifndef MIRRORD_FINDINGS_H
#define MIRRORD_FINDINGS_H

#include "mirrord/impl.h"

/* Returns true if the records of this host's copy have findings. */
bool findings_has_own(const struct set *s);
/* Returns true if any host has findings, even if only another host's daemon has recorded them. */
bool findings_spoil(const struct set *s);
/* Returns true if any host has findings that the return of an excluded member does not repair. */
bool findings_has_open(const struct set *s);
/* Returns the flags MESSAGE_STATUS_DIFFERS and MESSAGE_STATUS_COMPARED for other hosts. */
uint8_t findings_flags(const struct set *s);
/* Returns true if a majority of the copies differs from this host's copy, while another copy is
 * in-sync. */
bool findings_forbid_promotion(const struct set *s);
/*
 * Drop the findings that were repaired meanwhile: the member has returned, or a later primary has
 * compared all copies.
 */
void findings_look(struct set *s);

/* The text about the difference, and the text about the operator's choices. */
struct findings_words {
	char why[256];
	const char *next;
};
void findings_get_words(const struct set *s, struct findings_words *words);
/* Returns the findings of this host as JSON. */
struct json_t *findings_json(const struct set *s);

#endif
