/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backend.h -- the calls that a store (etcd or a file) provides for register.c: two keys with
 * texts and revisions, which are read and changed together. Only register.c handles records and
 * nonces.
 */
#ifndef MIRROR_REGISTER_BACKEND_H
#define MIRROR_REGISTER_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "mirror/register/register.h"
#include "mirror/register/value.h"

enum backend_key { BACKEND_RECORD, BACKEND_ALIVE, BACKEND_KEYS };

/* The value of a key. Revision 0: the key is absent. */
struct backend_value {
	uint64_t revision;
	size_t len;
	char text[VALUE_MAX];
};

struct backend_keys {
	struct backend_value key[BACKEND_KEYS];
};

/* The members of the store that answer a read: all of them, or a single one, which may lack the
 * newest values. */
enum backend_word { BACKEND_OF_ALL, BACKEND_OF_ONE };

enum backend_change { BACKEND_KEEP, BACKEND_PUT, BACKEND_DELETE };

/* Either all comparisons hold and all changes are made, or nothing is changed. */
struct backend_txn {
	/* Each key is compared by revision and by the whole text, or as absent; NULL: not
	 * compared. */
	const struct backend_value *expect[BACKEND_KEYS];
	enum backend_change change[BACKEND_KEYS];
	const char *put[BACKEND_KEYS];
};

struct backend_ops {
	/* Read both keys. The read is linearizable unless word is BACKEND_OF_ONE. Returns 0 or
	 * -errno, as register_get() does. */
	int (*read)(struct mirror_register *r, uint64_t deadline, enum backend_word word,
		    struct backend_keys *now, struct error *err);
	/* DONE: *revision is the new revision of the changed keys. CHANGED: *now has both keys.
	 * A change without an answer may be sent again, so CHANGED may also be the answer to a
	 * change that was made. */
	enum register_result (*txn)(struct mirror_register *r, uint64_t deadline,
				    const struct backend_txn *txn, uint64_t *revision,
				    struct backend_keys *now, struct error *err);
	bool (*watch)(struct mirror_register *r, uint64_t revision, unsigned timeout_ms,
		      int wake_fd);
	void (*health)(struct mirror_register *r, struct register_health *health);
	void (*close)(struct mirror_register *r);
};

/* The first member of each backend's handle. */
struct mirror_register {
	const struct backend_ops *ops;
	char set[MIRROR_SET_MAX + 1];
	unsigned limit_ms;
	struct backend_keys now; /* the keys as the last call has found them */
	struct backend_value expect[BACKEND_KEYS], put[BACKEND_KEYS];
};

/* Open a register. rest: the uri after its scheme. uri: the whole uri. The new handle is zeroed
 * except for ops. */
int file_register_open(const char *rest, struct mirror_register **r, struct error *err);
int etcd_register_open(const char *uri, const char *set, struct mirror_register **r,
		       struct error *err);

#endif
