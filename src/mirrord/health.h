/* SPDX-License-Identifier: BSD-3-Clause */
/* health.h -- whether a set is served and how well. The loop's thread only. */
#ifndef MIRRORD_HEALTH_H
#define MIRRORD_HEALTH_H

#include "mirrord/impl.h"

/*
 * health.c: the primary's report about the set, through its process here or the daemon on its host.
 */
struct primary_words {
	const struct message_status *status; /* NULL: the primary does not report now */
	/* the same in more detail; only from a process on this host */
	const struct packet_report *report;
	bool is_silent;        /* a process should report, and does not */
	bool has_ended;        /* no process has the copy mapped */
	bool is_unreachable;   /* the daemon on its host does not answer */
	enum mirror_copy copy; /* state of the primary's own copy, from its daemon */
	struct message_status of_neighbour;
};
/* words->status may point into *words or *s. */
void health_ask_primary(const struct set *s, struct primary_words *words);
enum mirror_health health_of(const struct set *s, const struct primary_words *words);
/*
 * Why it is uncertain that the set is served, although the register has a primary. NULL: it is
 * certain, or there is no primary.
 */
const char *health_doubt(const struct set *s, const struct primary_words *words);
/* Does this host's copy belong to no member any more? */
bool health_is_removed(const struct set *s);
/* The health by the register's view alone. */
enum mirror_health health_by_register(const struct set *s);

/* alive_words.c: text and health for a primary that is silent, or has ended without a successor. */
struct fence_words {
	char what[96], why[192], next[320];
	int64_t deadline_ms, retry_ms; /* milliseconds from now; -1: none */
};
bool alive_obstacle(const struct set *s, struct fence_words *words, enum mirror_health *health);

#endif
