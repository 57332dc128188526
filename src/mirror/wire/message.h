/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * message.h -- the messages of control connections: 256 bytes each, sent and received.
 *
 * Every connection begins with PROVE and GRANT (greeting.h). Then the end that connected asks
 * questions, and the daemon answers each question with the same id. Questions of one connection
 * are answered in order, except that PING may be answered earlier. An OBSERVE connection permits
 * GET_STATUS, RESERVE and PING. A daemon only answers. A message that cannot be decoded, or that
 * is not permitted now, ends the connection. At most MESSAGE_OUTSTANDING questions may be without
 * an answer.
 *
 *   question        answer
 *   PROVE           GRANT
 *   PROMISE         PROMISED, or DONE with a refusal
 *   GET_RANGES      RANGES
 *   RECORD_RANGES   DONE, when the ranges are durable (W9)
 *   RESYNC_BEGIN    DONE, when `syncing` and the primary's epoch are durable (W4)
 *   RESYNC_END      DONE, when the copy's bitmap and then the flag are cleared (W5)
 *   CLEAR_ERRORS    ERRORS_CLEARED, immediately: either the work has begun, and the primary asks
 *                   again, or the work is done: unreadable blocks are zeros, durably
 *   RETIRE          DONE, when hot extents and intents of former epochs are removed
 *   VIEW            DONE, when the view is durable as the newest view seen
 *   GET_STATUS      STATUS
 *   PING            PONG
 *   RESERVE         RESERVED: how far the copy's files are extended; the sender asks until they
 *                   have the new length
 *
 * Little-endian; the header has magic 4, version, type, used length 2, id 4, set and epoch of the
 * sender. The version is the one on which the greetings agreed. Bytes behind the length must be
 * zero; the receiver checks this.
 */
#ifndef MIRROR_WIRE_MESSAGE_H
#define MIRROR_WIRE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mirror/core/state.h"
#include "mirror/core/types.h"
#include "mirror/wire/greeting.h"

#define MESSAGE_SIZE        256
#define MESSAGE_OUTSTANDING 8
#define MESSAGE_MAC         32
#define MESSAGE_DESC_MAX    32
#define MESSAGE_RANGES_MAX  12 /* largest number of ranges in one message */
#define MESSAGE_CLEAR_MAX   (1u << 20)

enum message_type {
	MESSAGE_PROVE = 1,
	MESSAGE_GRANT,
	MESSAGE_PROMISE,
	MESSAGE_PROMISED,
	MESSAGE_GET_RANGES,
	MESSAGE_RANGES,
	MESSAGE_RECORD_RANGES,
	MESSAGE_RESYNC_BEGIN,
	MESSAGE_RESYNC_END,
	MESSAGE_RETIRE,
	MESSAGE_VIEW,
	MESSAGE_GET_STATUS,
	MESSAGE_STATUS,
	MESSAGE_PING,
	MESSAGE_PONG,
	MESSAGE_DONE,
	MESSAGE_RESERVE,
	MESSAGE_RESERVED,
	MESSAGE_CLEAR_ERRORS,
	MESSAGE_ERRORS_CLEARED,
	MESSAGE_TYPE_END
};

/* Proves the secret; proof.h defines the proof. */
struct message_prove {
	uint8_t nonce[GREETING_NONCE];
	uint8_t mac[MESSAGE_MAC];
};

struct message_desc {
	uint8_t len; /* 0: no descriptor */
	uint8_t bytes[MESSAGE_DESC_MAX];
};

struct message_grant {
	uint8_t status;     /* enum greeting_status; unless it is OK, the other members are zero */
	uint8_t copy;       /* enum mirror_copy */
	uint8_t durability; /* enum rpma_durability of the data */
	uint64_t size;      /* size of the file */
	/* LANE only: number of slots, each of INTENT_BYTES, from the ring's beginning on */
	uint32_t ring_slots;
	/* descriptors of librpma; CONTROL and OBSERVE have only peer_cfg */
	struct message_desc peer_cfg, data, ring;
	uint8_t mac[MESSAGE_MAC];
};

/* a process maps the copy, so no resync begins before the process exits */
#define MESSAGE_REPORT_HELD (1 << 0)
/* the copy's records may lack a range, so the whole copy has to be compared */
#define MESSAGE_REPORT_UNCERTAIN (1 << 1)
#define MESSAGE_REPORT_FORCED    (1 << 2) /* an epoch of this copy was begun by force */
/* the copy was damaged, restored or given up: any byte may differ */
#define MESSAGE_REPORT_UNKNOWN (1 << 3)

/* A member's report on its copy, made when no more bytes of former epochs can be placed. */
struct message_promised {
	uint8_t copy;    /* enum mirror_copy */
	uint8_t flags;   /* MESSAGE_REPORT_* */
	uint32_t ranges; /* number of ranges that GET_RANGES returns */
	uint64_t copy_id;
	uint64_t size;
	uint64_t revision; /* revision of the register's record when the member stored it */
	/* the newest view that the member has seen; epoch 0: none */
	struct mirror_view seen;
	struct mirror_epoch copy_epoch; /* the last epoch whose flushes the copy may hold */
	/* id of the copy that sends a resync that has not ended, or 0 */
	uint64_t source_id;
};

struct message_ranges {
	/* RANGES: index of the message's first range; GET_RANGES: index of the first requested
	 * range */
	uint32_t index;
	uint32_t total;
	uint8_t count;
	struct mirror_range ranges[MESSAGE_RANGES_MAX];
};

#define MESSAGE_RESYNC_WHOLE (1 << 0) /* the resync may write the whole copy */

struct message_resync {
	uint8_t source; /* slot of the primary, which sends the resync */
	uint8_t flags;  /* MESSAGE_RESYNC_* */
};

struct message_view {
	uint64_t revision;
	struct mirror_view view;
};

struct message_member {
	uint8_t copy, link, flow; /* enum mirror_copy, mirror_link, mirror_flow */
	uint64_t remaining;       /* bytes to send until the copy is equal */
	uint32_t rate;            /* rate of the member's resync, in KiB a second */
	uint32_t p99_us;          /* 99th percentile of the durations of flushes to the member */
};

#define MESSAGE_STATUS_HELD     (1 << 0) /* a process on this host maps the set */
#define MESSAGE_STATUS_REGISTER (1 << 1) /* the register has answered within the last seconds */
#define MESSAGE_STATUS_WAITING  (1 << 2) /* a process on this host waits to be primary */
#define MESSAGE_STATUS_STUCK    (1 << 3) /* a wait on this host makes no progress */
#define MESSAGE_STATUS_SILENT   (1 << 4) /* the process maps the set and has not reported lately */
#define MESSAGE_STATUS_DIFFERS                                                                     \
	(1 << 5) /* a comparison by a primary of this host found differences */
/* this host has the primary, which has compared all copies, and no difference is left */
#define MESSAGE_STATUS_COMPARED (1 << 6)
#define MESSAGE_STATUS_FINDINGS (MESSAGE_STATUS_DIFFERS | MESSAGE_STATUS_COMPARED)

/* The status of one member, as its daemon reports it. */
struct message_status {
	uint8_t role, health, copy; /* enum mirror_role, mirror_health, mirror_copy */
	uint8_t flags;              /* MESSAGE_STATUS_* */
	uint32_t pid;               /* pid of the process that maps the set */
	uint64_t size;              /* size of the member's copy; 0: unknown */
	/* number of flushes begun, and number up to which all flushes are acknowledged */
	uint64_t flushes, acked;
	uint32_t p50_us, p99_us; /* 50th and 99th percentile of the durations of flushes */
	/* Indexed by slot; zeros unless the primary's host sends it. */
	struct message_member members[MIRROR_MEMBERS_MAX];
	/* The highest format of the record that both this host's daemon and the process that maps
	 * the set support; 0: unknown. */
	uint8_t format;
};

/* The answer to questions that have no answer of another type. */
struct message_done {
	uint8_t to;                /* enum message_type of the question */
	uint8_t status;            /* enum greeting_status */
	struct mirror_epoch known; /* the highest epoch that this daemon's copy has promised */
};

enum message_reserve_state {
	MESSAGE_RESERVE_UNDER_WAY,
	MESSAGE_RESERVE_DONE,  /* both files of the copy are durably long enough */
	MESSAGE_RESERVE_FAILED /* nothing has changed */
};

/* Asks the daemon to extend the copy's files, because the set will grow to that size. */
struct message_reserve {
	uint64_t size;  /* a multiple of MIRROR_BLOCK */
	uint8_t state;  /* RESERVED: enum message_reserve_state */
	uint16_t error; /* RESERVED, FAILED: an errno */
};

/* Asks the daemon to clear the blocks of the range that the medium cannot return. */
struct message_clear {
	uint64_t offset; /* offset and len are multiples of MIRROR_BLOCK */
	uint32_t len;    /* at most MESSAGE_CLEAR_MAX */
};

struct message_cleared {
	bool is_under_way; /* the work is not finished, and the other fields are not set */
	uint16_t blocks;   /* number of blocks that could not be read */
	uint16_t error;    /* 0: the whole range can be read now; else an errno */
	uint64_t offset;   /* with an error: offset of the block that failed, which is unchanged */
};

struct message {
	enum message_type type;
	uint32_t id;
	struct mirror_uuid uuid;
	struct mirror_epoch epoch;
	/* The body, by type. GET_RANGES, RANGES and RECORD_RANGES share one body; RESERVE and
	 * RESERVED share another. PROMISE, RESYNC_END, RETIRE, GET_STATUS, PING and PONG have no
	 * body. */
	union {
		struct message_prove prove;
		struct message_grant grant;
		struct message_promised promised;
		struct message_ranges ranges;
		struct message_resync resync;
		struct message_view view;
		struct message_status status;
		struct message_done done;
		struct message_reserve reserve;
		struct message_clear clear;
		struct message_cleared cleared;
	};
};

/* Fill buf[MESSAGE_SIZE] completely. The caller has checked the values (assert). */
void message_encode(const struct message *m, unsigned version, uint8_t *buf);
/* Returns 0; -EPROTO: no valid message; -EPROTONOSUPPORT: the message has another version than
 * `version`. Decoded values are within their enumerations and arrays. */
int message_decode(const void *buf, size_t len, unsigned version, struct message *m);

/* Returns the type's name, such as "PROMISE"; "?" for an unknown type. */
const char *message_type_2str(unsigned type);

#endif
