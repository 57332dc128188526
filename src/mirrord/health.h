/* SPDX-License-Identifier: BSD-3-Clause */
/* health.h -- finds out whether a set is served and how well. Only the loop's thread calls these
 * functions. */
#ifndef MIRRORD_HEALTH_H
#define MIRRORD_HEALTH_H

#include "mirrord/impl.h"

/*
 * health.c: the primary's report about the set. It comes from the primary's process if this process
 * is on this host, else from the daemon on the primary's host.
 */
struct primary_words {
	const struct message_status *status; /* NULL: the primary does not report now */
	/* a more detailed report; only from a process on this host */
	const struct packet_report *report;
	bool is_silent;        /* a process should report, but does not */
	bool has_ended;        /* no process maps the copy */
	bool is_unreachable;   /* the daemon on the primary's host does not answer */
	enum mirror_copy copy; /* state of the primary's own copy, as its daemon reports it */
	struct message_status of_neighbour;
};
/* Fill *words. words->status may point into *words or *s. */
void health_ask_primary(const struct set *s, struct primary_words *words);
enum mirror_health health_of(const struct set *s, const struct primary_words *words);
/*
 * Returns the reason why it is uncertain that the set is served although the register has a
 * primary. NULL: the set is served, or there is no primary.
 */
const char *health_doubt(const struct set *s, const struct primary_words *words);
/* Returns true if this host's copy no longer belongs to a member. */
bool health_is_removed(const struct set *s);
/* Returns the health that follows from the register's view alone. */
enum mirror_health health_by_register(const struct set *s);

/* alive_words.c: texts and health for a primary that is silent, or that has ended without a
 * successor. */
struct fence_words {
	char what[96], why[192], next[320];
	int64_t deadline_ms, retry_ms; /* milliseconds from now; -1: none */
};
bool alive_obstacle(const struct set *s, struct fence_words *words, enum mirror_health *health);

#endif
