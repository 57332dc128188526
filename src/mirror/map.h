/* SPDX-License-Identifier: BSD-3-Clause */
/* map.h -- the parts of rpmirror_map() and rpmirror_unmap(). They are called without the set's
 * lock. */
#ifndef MIRROR_MAP_H
#define MIRROR_MAP_H

#include "mirror/set.h"

/* The reason why an attempt to map has failed, if another attempt may succeed. */
struct map_failure {
	/* The register changed after the daemon's permission, for example by the end of the
	 * former primary, or by another host that was faster. */
	bool is_overtaken;
	bool is_absent; /* there is no daemon, or the connection to it is closed */
	bool is_closed; /* the connection ended right after the request was sent */
};

/* Ask the daemon for the set. Returns 0 or an RPMIRROR_E_*. The answer is in m->daemon. */
int map_ask(struct rpmirror *m, unsigned flags);
/* Take the files that came with the answer, and its description of the copy. */
int map_take_answer(struct rpmirror *m, bool readonly);
/* With WAIT: wait for a daemon that restarts, or that has not started yet. Returns false if another
 * attempt is useless. *closed counts the connections that were closed immediately. */
bool map_await_daemon(const char *set, const struct map_failure *failure, unsigned *closed);

/* Stop the set's thread; it has ended on return. */
void map_stop_thread(struct rpmirror *m);
/* Delete the set; the object may be only partly made. */
void map_delete(struct rpmirror *m);

#endif
