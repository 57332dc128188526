/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * register.h -- the register: the store in which hosts agree on a set's record, by
 * compare-and-swap in an existing consensus store (etcd) or in a locked file.
 *
 * A handle serves one thread at a time. Each thread opens a separate handle, because renewals of
 * the alive key must not wait for a swap. Every call ends within its handle's time limit. enum
 * register_result also defines the result of a call without an answer; the mirror's rules depend
 * on these definitions.
 *
 * The uri:
 *   file:PATH                            for all hosts that share the file system
 *   etcd://HOST:PORT[,HOST:PORT...]      etcd's v3 JSON gateway; the keys are /rpmirror/SET and
 *                                        /rpmirror/SET/alive
 * etcd's hosts may be followed by ?key=value[&key=value...]:
 *   ca=FILE                 TLS; the server's certificate must be signed by this authority
 *   cert=FILE  key=FILE     TLS, with a client certificate
 *   user=NAME  password-file=FILE   one line; the user's token is renewed when it expires
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

/* The result of a swap (or another change) when the call ends. */
enum register_result {
	REGISTER_DONE, /* the change was made */
	/* the change was not made and never will be: the register has another value */
	REGISTER_CHANGED,
	REGISTER_UNKNOWN, /* no answer came: the change happened, or did not, or may still happen.
	                   * After another swap of this host is DONE or CHANGED, it can no longer
	                   * happen */
	REGISTER_FAILED   /* the change was not sent, or was refused as such (rights, a value that
	                   * cannot be stored); it never happens */
};

/* A record with its revision. */
struct register_entry {
	struct mirror_record record;
	uint64_t revision;
};

/* The alive key: a counter that the primary's daemon rewrites regularly. The key belongs to one
 * epoch. */
struct register_alive {
	bool is_set;
	uint64_t revision;
	struct mirror_epoch epoch;
	uint64_t counter;
};

/* The members of the store that answer. */
struct register_health {
	char kind[8]; /* "file", "etcd" */
	unsigned members, healthy;
	bool is_full; /* etcd: the database has no space left, and refuses writes until an operator acts */
};

/* Iterates over the HOST:PORT of the store's members in a uri; *at starts as the uri. Returns
 * NULL after the last member, or if the store is a file. */
const char *register_next_address(const char *uri, const char **at, size_t *len);

/* Open a register, without sending anything yet. uri: see the head of this file. set: name of the
 * set. limit_ms: time limit of each call, for all members of the store together. Returns 0 or an
 * error kind: the uri cannot be parsed, or a file cannot be read. */
int register_open(const char *uri, const char *set, unsigned limit_ms, struct mirror_register **r,
		  struct error *err);
void register_close(struct mirror_register *r); /* r may be NULL */

/* Read the record; linearizable. -ENOENT: there is no such set; -EPROTO: the value is not a record
 * of a known version (err has the reason); -ETIMEDOUT: no answer by a majority; -ENOTCONN: no
 * member can be reached; -EACCES: not permitted; or another -errno. */
int register_get(struct mirror_register *r, struct register_entry *now, struct error *err);

/*
 * Replace `expected` (compared by revision and by its whole value) by `next`. The nonce of `next`
 * must be new and random, because it identifies a swap without an answer. `promotion`: the alive
 * key as the candidate read it. This key is compared, too, and is then written for next's epoch
 * with counter 0, so that a former primary's renewals fail. NULL: the alive key is not compared.
 * *now: the new entry with DONE, the present one with CHANGED, else unspecified. `now` may be
 * `expected` itself. If the key has been deleted meanwhile, the result is CHANGED with revision 0.
 */
enum register_result register_swap(struct mirror_register *r, const struct register_entry *expected,
				   const struct mirror_record *next,
				   const struct register_alive *promotion,
				   struct register_entry *now, struct error *err);

/* Store the set's first record. CHANGED: the set already has a record, which is in *now. */
enum register_result register_create(struct mirror_register *r, const struct mirror_record *first,
				     struct register_entry *now, struct error *err);
/* Delete both keys. The result is DONE even if they were deleted before. */
enum register_result register_delete(struct mirror_register *r,
				     const struct register_entry *expected, struct error *err);

/* Read the alive key; linearizable. Results are those of register_get(), except that an absent key
 * is no error: is_set is false. */
int register_alive_get(struct mirror_register *r, struct register_alive *now, struct error *err);
/* Read the alive key from one member of the store, even without a majority: the value may be out
 * of date. Takes half a second at most. */
int register_alive_peek(struct mirror_register *r, struct register_alive *now, struct error *err);
/*
 * Renew the alive key: the counter of `epoch`, this daemon's epoch, grows by one. *now: on entry
 * the last value that this daemon read (zeroed: no value, so the call reads first), on return the
 * present value. DONE: the lease counts from the time *before* this call. CHANGED: the key belongs
 * to another epoch or was cleared, so this primary must stop. UNKNOWN: call again with the same
 * *now.
 */
enum register_result register_alive_put(struct mirror_register *r, struct mirror_epoch epoch,
					struct register_alive *now, struct error *err);
/* Clear the alive key, because the primary of that epoch has ended, so that no candidate needs to
 * wait. The result is DONE even if the key was cleared before. */
enum register_result register_alive_clear(struct mirror_register *r, struct mirror_epoch epoch,
					  struct error *err);

/* Wait until the record may be newer than `revision`, or the alive key may have been cleared. The
 * result is only a hint, so also read from time to time without it. wake_fd: a descriptor that
 * ends the wait when readable, or -1. Returns true if the caller should read now, false if nothing
 * changed for timeout_ms. */
bool register_watch(struct mirror_register *r, uint64_t revision, unsigned timeout_ms, int wake_fd);

/* Ask each member of the store whether it answers; takes up to the handle's time limit. */
void register_health(struct mirror_register *r, struct register_health *health);

const char *register_result_str(enum register_result result);

#endif
