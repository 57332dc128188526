/* SPDX-License-Identifier: BSD-3-Clause */
/* copies.h -- the files of a set's copy, their medium, and the growth of the copy. Only the loop's
 * thread calls these functions. */
#ifndef MIRRORD_COPIES_H
#define MIRRORD_COPIES_H

#include "mirrord/impl.h"

/* copy.c: files of a set's copy. */
/* Open the copy. Returns 0 if the set is open. Otherwise set->why_not has the reason, and the
 * daemon tries again later. */
int copy_open(struct set *s);
void copy_close(struct set *s);
enum mirror_copy copy_state(const struct set *s);

/* Record that the metadata could not be written or read. `text` is the reason, for the status. */
void copy_note_failure(struct set *s, const char *text);

/*
 * Returns true if this daemon, or the daemon of the member's host, has reported that the member's
 * copy failed. A resync does not restore such a copy.
 */
bool copy_has_failed(const struct set *s, uint8_t slot);
#define COPY_FAILED_NEXT                                                                           \
	"when its medium is good again restart rpmirrord on its host; if the copy has failed "     \
	"still, 'rpmirror member replace' gives the member a new one"

/* medium.c: detects failed write-backs of the copy's data file, whichever process caused them. */
/* Open the descriptor that gets errors of write-backs. Call this before the data file is used. */
int medium_open(struct set *s, struct error *err);
void medium_close(struct set *s);
/*
 * Look for write-backs that failed before the files were opened: the copy then has failed, or has
 * to be compared. Call this after the files were opened. was_left: the previous daemon exited in
 * good order. is_mapped: a process may map the copy, so the page cache is trusted until that
 * process exits.
 */
void medium_begin(struct set *s, bool was_left, bool is_mapped);
/*
 * Handle the report of the process that maps the copy: the errno of a write-back that has failed
 * since the process's connection was lost, or 0.
 */
void medium_on_word(struct set *s, int error);
/* If the process has not reported whether a write-back has failed, write its cached pages again.
 * Call this when the process that mapped the copy has ended, or has unmapped the copy. */
void medium_on_release(struct set *s);
/*
 * Check for a failed write-back. If there is one, mark the copy as failed and record the failure.
 * Call this before each answer about the copy, with open metadata. The call does not wait.
 */
void medium_look(struct set *s);
/* Record that a write-back has failed with that errno. */
void medium_fail(struct set *s, int error);

/* metafault.c: keeps the daemon alive when a page of the metadata is lost. Returns 0, or -1 with
 * errno. */
int metafault_open(struct daemon *d);

/* place.c: checks that the opened files are whole and still have their names. The copy must be
 * open. */
void place_look(struct set *s, uint64_t now_ms);
/* Record the identity of the opened files: from now on place_look() must find them under their
 * names. Call this after opening. Returns 0 or an error kind of error.h. */
int place_begin(struct set *s, struct error *err);
/* Stop waiting for a check; takes at most PLACE_END_MS. */
void place_end(struct set *s);
/* For a process that resumes, open the file that has the data file's name now. If no file has that
 * name, open another file. */
int place_open(const struct set *s);

/* clear.c: overwrites unreadable blocks with zeros. */
/* Handle a request of the primary that sends a resync. The primary repeats the request until the
 * blocks are cleared (member_may_clear()). */
void clear_on_request(struct set *s, struct mirror_epoch epoch, struct mirror_range range,
		      struct message_cleared *answer);
/* Forget the result of an earlier resync's request, because it must not answer the next one. */
void clear_forget(struct set *s);

/* grow.c: enlarges a set. */
/* Handle RESERVE of another daemon: make this copy grow, and answer how far the files are
 * extended. */
void grow_on_reserve(struct set *s, const struct message_reserve *asked,
		     struct message_reserve *answer);
/* Handle an operator's order: grow the files of all in-sync copies, then change the register. */
void grow_request(struct client *client, struct set *s, uint64_t size);
/* Give the copy the register's size as soon as possible. May close and open the copy. */
void grow_look(struct set *s);
void grow_tick(struct set *s, uint64_t now_ms);
/*
 * Returns the reason why the growth is not done yet: the files are being extended, or the copy is
 * in use. NULL: there is no obstacle.
 */
const char *grow_obstacle(const struct set *s);

#endif
