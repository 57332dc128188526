/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * register.h -- the one place where a set's record is agreed upon: compare-and-swap in an existing
 * consensus store (etcd), or in a locked file.
 *
 * A handle serves one thread at a time; open another one for another thread (renewals of the alive
 * key must not wait behind a swap). Every call ends within its handle's time limit. What the
 * results mean when no answer came is the law of the mirror, see enum register_result.
 *
 * The uri:
 *   file:PATH                            for all that share the file system
 *   etcd://HOST:PORT[,HOST:PORT...]      etcd's v3 JSON gateway; the keys are /rpmirror/SET and
 *                                        /rpmirror/SET/alive
 * after etcd's hosts may stand ?key=value[&key=value...]:
 *   ca=FILE                 TLS; the server's certificate must be signed by this authority
 *   cert=FILE  key=FILE     TLS, with a certificate of ours
 *   user=NAME  password-file=FILE   one line; the token that they give is renewed when it ends
 */
#ifndef MIRROR_REGISTER_REGISTER_H
#define MIRROR_REGISTER_REGISTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "mirror/core/types.h"

#define REGISTER_URI_MAX 1023

struct mirror_register;

/* What is known about a swap (or another change) when the call ends. */
enum register_result {
	REGISTER_DONE,    /* it happened */
	REGISTER_CHANGED, /* it did not happen and never will: somebody else's value is there */
	REGISTER_UNKNOWN, /* no answer came: it happened, or did not, or may still happen, until
			     another swap of ours is DONE, or CHANGED is returned for one */
	REGISTER_FAILED   /* it was not sent, or was refused as such (rights, a value that cannot be
			     stored); it never happens */
};

/* A record as it was read or written. */
struct register_entry {
	struct mirror_record record;
	uint64_t revision;
};

/* The alive key: a counter that the primary's daemon rewrites; bound to an epoch. */
struct register_alive {
	bool is_set;
	uint64_t revision;
	struct mirror_epoch epoch;
	uint64_t counter;
};

/* Who of the store answers. */
struct register_health {
	char kind[8]; /* "file", "etcd" */
	unsigned members, healthy;
};

/* HOST:PORT of each member of the store, as a uri has them: the next one after *at, which begins at
 * the uri. NULL: there is none (more), as in a file. */
const char *register_next_address(const char *uri, const char **at, size_t *len);

/* uri as above; set: its name; limit_ms: of each call, over all of the store's members together.
 * Nothing is sent yet. 0, or an error kind: the uri cannot be understood, a file cannot be read. */
int register_open(const char *uri, const char *set, unsigned limit_ms, struct mirror_register **r,
		  struct error *err);
void register_close(struct mirror_register *r); /* NULL: nothing */

/* Linearizable. -ENOENT: there is no such set; -EPROTO: what is there is not a record of a version
 * known here (err says why); -ETIMEDOUT: no answer by a majority; -ENOTCONN: nobody can be reached;
 * -EACCES: not permitted; or another -errno. */
int register_get(struct mirror_register *r, struct register_entry *now, struct error *err);

/*
 * Replace `expected` (compared by revision and by its whole value) by `next`, whose nonce must be
 * new and random: it is how a swap without an answer is recognised. `promotion`: the alive key as
 * the candidate saw it; it is compared, too, and is then written for next's epoch with counter 0,
 * so that a former primary's renewals end. NULL: the alive key is not looked at. *now: the new
 * entry with DONE, what is there instead with CHANGED, else unspecified. It may be `expected`
 * itself. When the key has been deleted meanwhile, CHANGED is returned with revision 0.
 */
enum register_result register_swap(struct mirror_register *r, const struct register_entry *expected,
				   const struct mirror_record *next,
				   const struct register_alive *promotion,
				   struct register_entry *now, struct error *err);

/* The set's first record. CHANGED: there is one already (in *now). */
enum register_result register_create(struct mirror_register *r, const struct mirror_record *first,
				     struct register_entry *now, struct error *err);
/* Both keys. DONE also when they are gone already. */
enum register_result register_delete(struct mirror_register *r,
				     const struct register_entry *expected, struct error *err);

/* Linearizable; results as of register_get(), but an absent key is no error: is_set is false. */
int register_alive_get(struct mirror_register *r, struct register_alive *now, struct error *err);
/* The same as one member of the store knows it, also while there is no majority: it was so, perhaps
 * some time ago. Takes half a second at most. */
int register_alive_peek(struct mirror_register *r, struct register_alive *now, struct error *err);
/*
 * Renew: the counter of `epoch`, which is this daemon's, grows by one. *now: in: what this daemon
 * saw last (zeroed: nothing; it is read first), out: what is there.
 * DONE: the lease counts from the time *before* this call. CHANGED: the key belongs to another
 * epoch or was cleared: this primary's time is over. UNKNOWN: call again with the same *now.
 */
enum register_result register_alive_put(struct mirror_register *r, struct mirror_epoch epoch,
					struct register_alive *now, struct error *err);
/* The primary of that epoch has ended: nobody need wait. DONE also when it was cleared before. */
enum register_result register_alive_clear(struct mirror_register *r, struct mirror_epoch epoch,
					  struct error *err);

/* Wait until the record may be newer than `revision`, or the alive key may have been cleared; a
 * hint only: look then, and look from time to time without it. wake_fd: a descriptor that ends the
 * wait when readable, or -1. true: look now; false: nothing was seen for timeout_ms. */
bool register_watch(struct mirror_register *r, uint64_t revision, unsigned timeout_ms, int wake_fd);

/* Ask each member of the store; takes up to the handle's limit. */
void register_health(struct mirror_register *r, struct register_health *health);

const char *register_result_str(enum register_result result);

#endif
