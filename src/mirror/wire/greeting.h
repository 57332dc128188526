/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * greeting.h -- private data at the beginning of a connection: the greeting of the end that
 * connects, and the reply of a member's daemon.
 *
 * The daemon accepts a greeting that it can decode and answers with a status; GREETING_OK permits
 * nothing yet. Then messages follow (message.h): PROVE from the end that connected, with zeros if
 * the set has no secret, and the daemon's GRANT, which carries the registrations made for this
 * connection alone. After any other status the daemon disconnects.
 *
 * Both ends state which versions their program supports (core/version.h), and all messages that
 * follow use the version on which they agree. Without a common version the daemon answers
 * GREETING_BAD_VERSION. The first 8 bytes are the same in all versions: magic 4, newest, lowest,
 * length, kind or status. Unknown fields at the end of a newer program's greeting are skipped.
 *
 * Little-endian. Greeting and reply fit into the private data of InfiniBand's connection manager.
 * A longer buffer is accepted, because that manager pads with zeros; any other padding is refused.
 */
#ifndef MIRROR_WIRE_GREETING_H
#define MIRROR_WIRE_GREETING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mirror/core/types.h"
#include "mirror/core/version.h"

#define GREETING_SIZE  56 /* bytes of a greeting, with its padding */
#define GREETING_REPLY 64 /* bytes of the reply */
#define GREETING_NONCE 32

/* The purpose of a connection. */
enum greeting_kind {
	GREETING_CONTROL = 1, /* messages of a candidate or primary */
	GREETING_LANE,        /* flushes: data and ring are registered for the connection */
	GREETING_BULK,        /* resync and comparison: only data is registered */
	GREETING_OBSERVE,     /* another daemon or a tool asks for the status, without an epoch */
	/* the primary reads bytes that its own copy has lost: data is registered for reading */
	GREETING_RESTORE,
	GREETING_KIND_END
};

/* The reason of a negative answer, in a reply, a GRANT or a DONE. */
enum greeting_status {
	GREETING_OK,
	GREETING_BAD_VERSION,
	/* the request is not valid at this point: its order, kind or values */
	GREETING_BAD_REQUEST,
	GREETING_NO_SET, /* this host has no copy of that set */
	/* `to` is not the slot of this host's copy, or `from` is not a member's slot */
	GREETING_NOT_MEMBER,
	GREETING_EPOCH, /* a higher epoch was promised, which is in `known` */
	GREETING_SECRET_WRONG,
	GREETING_HELD,        /* a process still maps the copy */
	GREETING_BUSY,        /* too many connections, or another resync: try again later */
	GREETING_COPY_FAILED, /* this host's copy or its metadata have failed */
	GREETING_WRONG_COPY,  /* this copy is not the one that the configuration names */
	GREETING_FULL,        /* the records are full: compare the whole copy */
	GREETING_IO,          /* a record that had to be durable could not be written */
	GREETING_SPLIT,       /* this host's copy has an epoch or view that the register lacks */
	GREETING_SMALLER,     /* the copy has not grown to the set's size yet: try again later */
	GREETING_STATUS_END
};

struct greeting {
	struct mirror_versions versions; /* newest 0 stands for this program's versions */
	struct mirror_uuid uuid;
	struct mirror_epoch epoch; /* epoch of the end that connects */
	uint64_t copy_id;          /* id of the expected copy; 0: any copy in that slot */
	uint8_t from, to;          /* slots; from: MIRROR_NO_SLOT for a tool */
	uint8_t kind;              /* enum greeting_kind */
};

struct greeting_reply {
	struct mirror_versions versions; /* newest 0 stands for this program's versions */
	uint8_t status;                  /* enum greeting_status */
	bool has_secret;
	struct mirror_epoch known;     /* the highest epoch that was promised */
	uint8_t nonce[GREETING_NONCE]; /* random bytes for the proof; zeros without a secret */
};

/* Encode in that version (a sender uses version_newest()). Returns the number of bytes written to
 * buf: GREETING_SIZE or GREETING_REPLY. */
size_t greeting_encode(const struct greeting *g, unsigned version, uint8_t *buf);
size_t greeting_reply_encode(const struct greeting_reply *reply, unsigned version, uint8_t *buf);

/* Returns 0; -EPROTO: another protocol, or impossible values; -EPROTONOSUPPORT: no version in
 * common, and only `versions` and a reply's status are set. */
int greeting_decode(const void *buf, size_t len, struct greeting *g);
int greeting_reply_decode(const void *buf, size_t len, struct greeting_reply *reply);

/* Returns one line for people, for instance "a higher epoch is promised there". */
const char *greeting_status_2str(unsigned status);

#endif
