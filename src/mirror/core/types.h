/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * types.h -- a mirror set: its configuration, and the view of its members.
 *
 * A *member* is a host with a copy of the file. Members have slots 0 to 7, and a mirror_mask has a
 * bit for each slot. The *record* is the content of the set's register; it changes only by
 * compare-and-swap (register/register.h). core/view.h contains the permitted changes.
 */
#ifndef MIRROR_CORE_TYPES_H
#define MIRROR_CORE_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#define MIRROR_MEMBERS_MAX 8
#define MIRROR_NO_SLOT     0xff
#define MIRROR_BLOCK       4096u      /* number of bytes for which one bit of a bitmap stands */
#define MIRROR_EXTENT      (2u << 20) /* number of bytes for which one hot slot stands */
#define MIRROR_HISTORY     64
#define MIRROR_SET_MAX     63 /* largest length of a set's name, without the NUL */
#define MIRROR_NAME_MAX    31 /* largest length of a member's name, without the NUL */
#define MIRROR_HOST_MAX    255
#define MIRROR_PATH_MAX    1023
#define MIRROR_SIZE_MAX    (1ull << 46) /* largest size of a set's file */

typedef uint8_t mirror_mask; /* bit i: the member in slot i */

#define MIRROR_BIT(slot) ((mirror_mask)(1u << (slot)))

struct mirror_uuid {
	uint8_t bytes[16];
};

/* The epoch's number grows with each promotion. Forced promotions may give two epochs the same
 * number; their nonces then differ. Number 0: no epoch. */
struct mirror_epoch {
	uint64_t number, nonce;
};

struct mirror_member {
	uint64_t id; /* random id of this copy; a copy that replaces another has a new id. 0: the
	              * slot is free */
	char name[MIRROR_NAME_MAX + 1];
	char host[MIRROR_HOST_MAX + 1]; /* host on which the member's daemon listens */
	uint16_t port;
	char path[MIRROR_PATH_MAX + 1]; /* path of the file on that host */
};

/* Behaviour of a primary that has lost every other copy, in a set without automatic failover. */
enum mirror_lonely {
	MIRROR_LONELY_NONE,  /* the register decides: etcd */
	MIRROR_LONELY_BLOCK, /* flushes block */
	MIRROR_LONELY_MANUAL /* flushes continue; another copy can be promoted by force only */
};

struct mirror_config {
	uint64_t number; /* grows with each change */
	/* format of the record: a version that every reader supports; the format never decreases */
	uint32_t format;
	struct mirror_uuid uuid;
	char set[MIRROR_SET_MAX + 1];
	uint64_t size;       /* size of the file; a multiple of MIRROR_BLOCK */
	uint64_t address;    /* address at which each host maps the file; 0: anywhere */
	uint32_t min_copies; /* with fewer durable copies no flush is acknowledged */
	enum mirror_lonely lonely;
	uint32_t lease_ms;
	uint32_t replica_timeout_ms; /* a member that does not answer for this time is excluded */
	uint32_t slow_ms;            /* a flush that takes longer is reported by an event */
	/* pause before an excluded member may join again; doubles each time */
	uint32_t holdoff_ms;
	/* time for which a flush waits for copies; UINT32_MAX: for ever */
	uint32_t blocked_ms;
	bool local_error_continues; /* continue if only the primary's own copy has failed */
	struct mirror_member members[MIRROR_MEMBERS_MAX];
};

enum mirror_phase {
	MIRROR_PHASE_NONE, /* there is no primary */
	/* the primary makes the other members equal; no application reads */
	MIRROR_PHASE_RECOVERING,
	MIRROR_PHASE_SERVING
};

struct mirror_view {
	struct mirror_epoch epoch;
	uint64_t seq; /* grows with each change by the epoch's primary */
	enum mirror_phase phase;
	uint8_t primary; /* slot of the primary, or MIRROR_NO_SLOT */
	/* the last primary ended in good order: everything was flushed, and all copies of insync
	 * are equal */
	bool clean;
	bool forced;        /* the epoch began without proof that no acknowledged byte is lost */
	mirror_mask insync; /* S: the members that hold every acknowledged flush */
};

struct mirror_record {
	struct mirror_config config;
	struct mirror_view view;
	uint64_t nonce; /* nonce of the swap that wrote the record */
	uint32_t history_count;
	struct mirror_ended {
		struct mirror_epoch epoch;
		uint64_t seq; /* the last seq in the epoch */
		/* the in-sync set at the epoch's end; 0: an earlier version did not record it */
		mirror_mask insync;
	} history[MIRROR_HISTORY]; /* epochs that have ended, the newest first */
};

/* A range that may differ between copies, in bytes of the file. */
struct mirror_range {
	uint64_t offset, len;
};

struct mirror_uuid_text {
	char text[33];
};

/* Returns 32 hexadecimal digits. */
struct mirror_uuid_text mirror_uuid_text(const struct mirror_uuid *uuid);
bool mirror_epoch_is_equal(struct mirror_epoch a, struct mirror_epoch b);
/* Returns the slot of the member with that name, or MIRROR_NO_SLOT. */
uint8_t mirror_config_find(const struct mirror_config *config, const char *name);
/* Returns the mask of all slots that are in use. */
mirror_mask mirror_config_members(const struct mirror_config *config);

#endif
