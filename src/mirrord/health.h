/* SPDX-License-Identifier: BSD-3-Clause */
/* health.h -- is a set served, and how well. The loop's thread only. */
#ifndef MIRRORD_HEALTH_H
#define MIRRORD_HEALTH_H

#include "mirrord/impl.h"

/* health.c: what the primary says of the set: its process here, or the daemon of its host. */
struct primary_words {
	const struct message_status *status; /* NULL: it says nothing now */
	const struct packet_report *report;  /* the same, and more; only of a process here */
	bool is_silent;                      /* there is a process that should */
	bool has_ended;                      /* no process has the copy mapped */
	bool is_unreachable;                 /* the daemon of its host does not answer */
	enum mirror_copy copy;               /* its own, as its daemon has it */
	struct message_status of_neighbour;
};
/* words->status may point into *words or *s. */
void health_ask_primary(const struct set *s, struct primary_words *words);
enum mirror_health health_of(const struct set *s, const struct primary_words *words);
/* Why it is not known that a set is served which the register says is; NULL: it is known, or not
 * so. */
const char *health_doubt(const struct set *s, const struct primary_words *words);
/* This host's copy is no member's any more. */
bool health_is_removed(const struct set *s);
/* By the register's view alone. */
enum mirror_health health_by_register(const struct set *s);

/* alive_words.c: the primary is silent, or has ended, and nobody has followed it: in words, and
 * what the set's health is for that. */
struct fence_words {
	char what[96], why[192], next[320];
	int64_t deadline_ms, retry_ms; /* from now; -1: none */
};
bool alive_obstacle(const struct set *s, struct fence_words *words, enum mirror_health *health);

#endif
