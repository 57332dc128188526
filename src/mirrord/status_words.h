/* SPDX-License-Identifier: BSD-3-Clause */
/* status_words.h -- describes a set's problems in sentences for operators. Only the loop's thread
 * calls these functions. */
#ifndef MIRRORD_STATUS_WORDS_H
#define MIRRORD_STATUS_WORDS_H

#include "mirrord/health.h"

struct status_words {
	enum mirror_health health;
	bool progresses;             /* the state changes without an operator */
	char reason[768], next[384]; /* "": no text */
};

/* Returns advice for a set without a primary. */
const char *status_next_of_down(const struct set *s);
void status_get_words(const struct set *s, const struct primary_words *words,
		      struct status_words *out);

#endif
