/* SPDX-License-Identifier: BSD-3-Clause */
/* copies.h -- files of a set's copy, its medium, and how it gets larger. The loop's thread only. */
#ifndef MIRRORD_COPIES_H
#define MIRRORD_COPIES_H

#include "mirrord/impl.h"

/* copy.c: files of a set's copy. */
/* 0: the set is open. Otherwise set->why_not says why, and it is tried again later. */
int copy_open(struct set *s);
void copy_close(struct set *s);
enum mirror_copy copy_state(const struct set *s);

/* Its metadata could not be written, or read: why, for the status. */
void copy_note_failure(struct set *s, const char *text);

/* Of a member, by this daemon or its own: a failed copy, which no resync brings back. */
bool copy_has_failed(const struct set *s, uint8_t slot);
#define COPY_FAILED_NEXT                                                                           \
	"when its medium is good again restart rpmirrord on its host; if the copy has failed "     \
	"still, 'rpmirror member replace' gives the member a new one"

/* medium.c: write-backs of the copy's data file that failed, whoever met them. */
/* Before the data file is used. */
int medium_open(struct set *s, struct error *err);
void medium_close(struct set *s);
/* Before it was opened. was_left: the daemon before has ended in good order; is_mapped: a process
 * may map the copy, so what is cached is believed until that ends. */
void medium_begin(struct set *s, bool was_left, bool is_mapped);
/* The process that maps the copy says which errno a
 * write-back has had since; 0: none has failed. */
void medium_on_word(struct set *s, int error);
/* The process that mapped the copy has ended, or has unmapped it. */
void medium_on_release(struct set *s);
/* If one has failed, the copy has, and it is recorded. Before each answer about the copy; it waits
 * for nothing. The metadata are open. */
void medium_look(struct set *s);
/* One has, with that errno. */
void medium_fail(struct set *s, int error);

/* metafault.c: a page of the metadata that is gone ends no daemon. 0, or -1 with errno set. */
int metafault_open(struct daemon *d);

/* place.c: the files are still those under their names, and whole. The copy is open. */
void place_look(struct set *s, uint64_t now_ms);
/* The files were opened: these are the ones to be found there. Kinds of error.h. */
int place_begin(struct set *s, struct error *err);
/* No look is waited for any more, for longer than a moment. */
void place_end(struct set *s);
/* What is there now, for a process that resumes; another file if there is none. */
int place_open(const struct set *s);

/* clear.c: blocks that cannot be read become zeros. */
/* The source of a resync asks for it, and again until it is done (member_may_clear()). */
void clear_on_request(struct set *s, struct mirror_epoch epoch, struct mirror_range range,
		      struct message_cleared *answer);
/* What is known of a resync before is not an answer to the next. */
void clear_forget(struct set *s);

/* grow.c: a set gets larger. */
/* A question of another daemon, which gives an order to grow. */
void grow_on_reserve(struct set *s, const struct message_reserve *asked,
		     struct message_reserve *answer);
/* An operator's order: the files of all in-sync copies, then the register. */
void grow_request(struct client *client, struct set *s, uint64_t size);
/* The register's size is taken over as soon as that is possible. May close and open the copy. */
void grow_look(struct set *s);
void grow_tick(struct set *s, uint64_t now_ms);
/* The files are made longer, or the copy waits for its turn: why, or NULL. */
const char *grow_obstacle(const struct set *s);

#endif
