/* SPDX-License-Identifier: BSD-3-Clause */
/* copies.h -- files of a set's copy, its medium, and how the copy grows. The loop's thread only. */
#ifndef MIRRORD_COPIES_H
#define MIRRORD_COPIES_H

#include "mirrord/impl.h"

/* copy.c: files of a set's copy. */
/* Returns 0 if the set is open. Otherwise set->why_not has the reason, and opening is tried
 * again later. */
int copy_open(struct set *s);
void copy_close(struct set *s);
enum mirror_copy copy_state(const struct set *s);

/* The metadata could not be written or read; `text` is the reason, for the status. */
void copy_note_failure(struct set *s, const char *text);

/*
 * Has this daemon or the member's own reported that its copy failed? A resync does not restore such
 * a copy.
 */
bool copy_has_failed(const struct set *s, uint8_t slot);
#define COPY_FAILED_NEXT                                                                           \
	"when its medium is good again restart rpmirrord on its host; if the copy has failed "     \
	"still, 'rpmirror member replace' gives the member a new one"

/* medium.c: failed write-backs of the copy's data file, whichever process met them. */
/* Call this before the data file is used. */
int medium_open(struct set *s, struct error *err);
void medium_close(struct set *s);
/*
 * Call this after the files were opened. was_left: the previous daemon ended in good order.
 * is_mapped: a process may map the copy, so the page cache is trusted until that process ends.
 */
void medium_begin(struct set *s, bool was_left, bool is_mapped);
/*
 * The process that maps the copy reports the errno of a write-back that failed since; 0: none
 * failed.
 */
void medium_on_word(struct set *s, int error);
/* The process that mapped the copy has ended, or has unmapped it. */
void medium_on_release(struct set *s);
/*
 * If a write-back has failed, mark the copy as failed and record it. Call this before each answer
 * about the copy, with open metadata. It does not wait.
 */
void medium_look(struct set *s);
/* A write-back has failed with that errno. */
void medium_fail(struct set *s, int error);

/* metafault.c: a lost page of the metadata must not end the daemon. 0, or -1 with errno set. */
int metafault_open(struct daemon *d);

/* place.c: check that the opened files are whole and still have their names. The copy is open. */
void place_look(struct set *s, uint64_t now_ms);
/* Call this after opening: records the opened files as those to find under the names. Kinds of
 * error.h. */
int place_begin(struct set *s, struct error *err);
/* Stop waiting for a check; takes at most PLACE_END_MS. */
void place_end(struct set *s);
/* Open the file that has the data file's name now, for a process that resumes. If there is none,
 * open any other file. */
int place_open(const struct set *s);

/* clear.c: unreadable blocks become zeros. */
/* A request by the source of a resync, which repeats it until the blocks are cleared
 * (member_may_clear()). */
void clear_on_request(struct set *s, struct mirror_epoch epoch, struct mirror_range range,
		      struct message_cleared *answer);
/* Forget the result of an earlier resync's request: it does not answer the next. */
void clear_forget(struct set *s);

/* grow.c: a set becomes larger. */
/* Another daemon's question, which orders this copy to grow. */
void grow_on_reserve(struct set *s, const struct message_reserve *asked,
		     struct message_reserve *answer);
/* An operator's order: grow the files of all in-sync copies, then change the register. */
void grow_request(struct client *client, struct set *s, uint64_t size);
/* Let the copy take the register's size as soon as that is possible. May close and open the
 * copy. */
void grow_look(struct set *s);
void grow_tick(struct set *s, uint64_t now_ms);
/*
 * Why the growth is not done yet: the files are being extended, or the copy is in use. NULL: no
 * obstacle.
 */
const char *grow_obstacle(const struct set *s);

#endif
