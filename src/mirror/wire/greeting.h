/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * greeting.h -- the private data with which the end that connects and a member's daemon begin a
 * connection.
 *
 * The daemon accepts a greeting that it understands and answers with a status; GREETING_OK permits
 * nothing yet. Then messages follow (message.h): PROVE from the end that connected, with zeros if
 * the set has no secret, and the daemon's GRANT, which carries the registrations made for this
 * connection alone. After any other status the daemon disconnects.
 *
 * Both state which versions their program understands (core/version.h), and all that follows is
 * written in the one they agree on. Without one the daemon answers GREETING_BAD_VERSION. The first
 * 8 bytes are the same in all versions: magic 4, newest, lowest, length, kind or status. A longer
 * greeting of a newer program is read as far as its fields are known.
 *
 * Little-endian. Both stay below what InfiniBand's connection manager carries. A longer buffer is
 * accepted, as that manager pads with zeros; a padding that is not zero is refused.
 */
#ifndef MIRROR_WIRE_GREETING_H
#define MIRROR_WIRE_GREETING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mirror/core/types.h"
#include "mirror/core/version.h"

#define GREETING_SIZE  56 /* of a greeting, with its padding */
#define GREETING_REPLY 64 /* of its answer */
#define GREETING_NONCE 32

/* The purpose of a connection. */
enum greeting_kind {
	GREETING_CONTROL = 1, /* messages of a candidate or primary */
	GREETING_LANE,        /* flushes: data and ring are registered for it */
	GREETING_BULK,        /* resync and comparison: data is */
	GREETING_OBSERVE,     /* another daemon or a tool asks for the status, without an epoch */
	/* the primary reads bytes that its own copy has lost: data, to be read */
	GREETING_RESTORE,
	GREETING_KIND_END
};

/* Why an answer is negative: of a greeting, a GRANT and a DONE alike. */
enum greeting_status {
	GREETING_OK,
	GREETING_BAD_VERSION,
	GREETING_BAD_REQUEST, /* invalid here: order, kind, or values */
	GREETING_NO_SET,      /* this host has no copy of that set */
	GREETING_NOT_MEMBER,  /* `to` is not the slot of the copy here, or `from` is no member's */
	GREETING_EPOCH,       /* a higher epoch is promised: see `known` */
	GREETING_SECRET_WRONG,
	GREETING_HELD,        /* a process still maps the copy */
	GREETING_BUSY,        /* too many connections, or another resync: later */
	GREETING_COPY_FAILED, /* the copy here, or its metadata */
	GREETING_WRONG_COPY,  /* this copy is not the one that the configuration names */
	GREETING_FULL,        /* no room in the records: compare everything */
	GREETING_IO,          /* a record that had to be durable could not be written */
	GREETING_SPLIT,       /* the copy here has an epoch or view that the register lacks */
	GREETING_SMALLER,     /* the copy has not grown to the set's size yet: later */
	GREETING_STATUS_END
};

struct greeting {
	struct mirror_versions versions; /* newest 0: this program's */
	struct mirror_uuid uuid;
	struct mirror_epoch epoch; /* of the end that connects */
	uint64_t copy_id;          /* id of the copy that is meant; 0: any in that slot */
	uint8_t from, to;          /* slots; from: MIRROR_NO_SLOT for a tool */
	uint8_t kind;              /* enum greeting_kind */
};

struct greeting_reply {
	struct mirror_versions versions; /* newest 0: this program's */
	uint8_t status;                  /* enum greeting_status */
	bool has_secret;
	struct mirror_epoch known;     /* the highest epoch promised */
	uint8_t nonce[GREETING_NONCE]; /* for the proof; zeros without a secret */
};

/* In this version: a sender uses version_newest(). Bytes written to buf: GREETING_SIZE,
 * GREETING_REPLY. */
size_t greeting_encode(const struct greeting *g, unsigned version, uint8_t *buf);
size_t greeting_reply_encode(const struct greeting_reply *reply, unsigned version, uint8_t *buf);

/* 0; -EPROTO: not of this protocol, or impossible values; -EPROTONOSUPPORT: no version in
 * common: only `versions` is set, and of an answer its status. */
int greeting_decode(const void *buf, size_t len, struct greeting *g);
int greeting_reply_decode(const void *buf, size_t len, struct greeting_reply *reply);

/* One line for people: "a higher epoch is promised there". */
const char *greeting_status_2str(unsigned status);

#endif
