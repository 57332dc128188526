/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packet.h -- packets between the library and the daemon of its host: a UNIX socket of type
 * SOCK_SEQPACKET, one packet for each send, at most PACKET_MAX bytes.
 *
 * One connection belongs to one process and one set. SO_PEERCRED identifies the peer. A packet
 * that begins with '{' is a request of the tool instead (src/mirrord/REQUESTS.md).
 *
 * Each packet states its version and the lowest version of its sender. MAP has the library's
 * newest version. The daemon answers in the newest version that both support, or with DONE and
 * PACKET_VERSION, whose form is the same in all versions. Packets that the library sends before
 * the answer have the library's lowest version.
 *
 *   from the library answer, with the same id
 *   MAP              MAPPED, perhaps much later with PACKET_MAP_WAIT; descriptors come with it
 *                    (SCM_RIGHTS): the data file and the metadata file, both O_RDWR. Without
 *                    PACKET_MAP_RESUME the data file comes once more, O_RDONLY, for LOST. With
 *                    PACKET_MAP_READONLY only the data file comes, O_RDONLY
 *   UNMAP            DONE: no process maps the copy. If a process ends without UNMAP, the daemon
 *                    notices its end. A process that only loses its connection (the daemon was
 *                    restarted) continues by PACKET_MAP_RESUME. If a process loses the connection
 *                    before its first packet after MAPPED, such as HEARTBEAT, it has mapped
 *                    nothing. A program that the process executes has another `image`, and has
 *                    mapped nothing either
 *   GET_RECORD       RECORD
 *   GET_AGE          AGE, of the copy that is mapped read-only
 *   SWAP             SWAPPED
 *   MEMBER           MEMBER: a control message for the member of this host, as if it had come
 *                    through a control connection: PROMISE, ranges, RETIRE, VIEW
 *   HEARTBEAT        none. Sent every PACKET_HEARTBEAT_MS; without heartbeats the alive key is not
 *                    renewed
 *   SERVE            DONE, when it is durable that the copy holds this epoch's flushes. After the
 *                    swap that promotes, the alive key is renewed as long as heartbeats come
 *   FAIL             DONE. Reports that the medium of this host's copy has failed
 *   LOST             DONE. Reports after PACKET_MAP_RESUME whether a write-back has failed since
 *                    the copy was mapped, because the daemon may have no report of the failure
 *   STATUS           none. Reports the status of the set, for `rpmirror status`
 *   EVENT            none. Reports a line for `rpmirror events`
 *   ORDERED          none. Reports the end of an ORDER
 *
 *   from the daemon, without a request
 *   LEASE            reports a renewal of the alive key, with the time at which the daemon sent it
 *   CHANGED          reports a record of the register (a hint: the record can already be old)
 *   FENCED           reports that this host's copy has promised a higher epoch, and has ended the
 *                    connections of lower epochs
 *   ORDER            gives an operator's order to the primary, which answers by ORDERED
 */
#ifndef MIRROR_WIRE_PACKET_H
#define MIRROR_WIRE_PACKET_H

#include "mirror/core/finding.h"
#include "mirror/wire/message.h"

#define PACKET_MAX          65536
#define PACKET_FILES        3   /* largest number of descriptors that come with a packet */
#define PACKET_TEXT         512 /* size of a text, with the NUL */
#define PACKET_HEARTBEAT_MS 100
#define PACKET_STATUS_MS    1000

enum packet_type {
	PACKET_MAP = 1,
	PACKET_MAPPED,
	PACKET_UNMAP,
	PACKET_GET_RECORD,
	PACKET_RECORD,
	PACKET_SWAP,
	PACKET_SWAPPED,
	PACKET_MEMBER,
	PACKET_HEARTBEAT,
	PACKET_SERVE,
	PACKET_FAIL,
	PACKET_STATUS,
	PACKET_EVENT,
	PACKET_LEASE,
	PACKET_CHANGED,
	PACKET_FENCED,
	PACKET_ORDER,
	PACKET_ORDERED,
	PACKET_DONE,
	PACKET_GET_AGE,
	PACKET_AGE,
	PACKET_LOST,
	PACKET_TYPE_END
};

/* The result of a request. */
enum packet_status {
	PACKET_OK,
	PACKET_BAD,         /* the request is invalid */
	PACKET_NO_SET,      /* the set is not configured on this host */
	PACKET_PERMISSION,  /* the client's user may not map the set */
	PACKET_BUSY,        /* another process maps the set, or another host's primary is alive */
	PACKET_NOT_INSYNC,  /* this host's copy is not in-sync */
	PACKET_SPLIT,       /* copies or the register contradict each other: an operator decides */
	PACKET_COPY_FAILED, /* this host's copy or its metadata have failed */
	PACKET_REGISTER,    /* the register does not answer */
	PACKET_IO,          /* a file of this host cannot be used */
	PACKET_COPIES,      /* too few copies would be left */
	PACKET_TIMEOUT,     /* the request was not carried out in time */
	PACKET_EPOCH,       /* a newer primary exists */
	PACKET_VERSION,     /* library, daemon and the set's record have no version in common */
	PACKET_STATUS_END
};

/* wait until the other primary is gone; without this flag the answer is PACKET_BUSY */
#define PACKET_MAP_WAIT     (1 << 0)
#define PACKET_MAP_READONLY (1 << 1) /* map a copy that may be stale; the process gets no role */
/* map even if the copy may lack acknowledged bytes or a primary is alive */
#define PACKET_MAP_FORCE (1 << 2)
/* this process already maps the copy, and continues after a restart of the daemon */
#define PACKET_MAP_RESUME (1 << 3)

struct packet_map {
	uint8_t flags; /* PACKET_MAP_* */
	char set[MIRROR_SET_MAX + 1];
	/* RESUME: the epoch in which the process is primary; zero: it is not primary */
	struct mirror_epoch epoch;
	/* Identifies the program that the process runs. execve(2) changes the number, and the
	 * former program's mapping is then gone. 0: unknown; a library of version 1 sends 0. */
	uint64_t image;
};

struct packet_unmap {
	bool clean; /* everything is flushed, and bitmaps and slots are written (W7) */
};

struct packet_mapped {
	uint8_t status; /* enum packet_status */
	uint8_t slot;   /* slot of this host's member */
	bool has_secret;
	/* an operator promotes this member even if it lacks bytes or another primary is alive */
	bool is_forced;
	bool is_silent; /* the former primary's host was silent for a lease */
	struct mirror_uuid uuid;
	uint64_t copy_id, size;
	uint8_t key[32]; /* derived from the secret; proves the secret to other daemons */
	char data_path[MIRROR_PATH_MAX + 1], meta_path[MIRROR_PATH_MAX + 1];
	uint64_t revision;           /* revision of `record` */
	struct mirror_record record; /* the register's record, which was read just now */
	char text[PACKET_TEXT];      /* advice for the user, unless the status is OK */
};

struct packet_record {
	uint8_t status;
	uint64_t revision;
	struct mirror_record record;
	char text[PACKET_TEXT];
};

/* The result of a swap, as in register/register.h. */
enum packet_swap {
	PACKET_SWAP_DONE,
	/* another program has changed the record: revision and record have the present values */
	PACKET_SWAP_CHANGED,
	PACKET_SWAP_UNKNOWN, /* the swap may have happened, or may happen later */
	PACKET_SWAP_FAILED,  /* the swap has not happened and will not */
	PACKET_SWAP_END
};

struct packet_swap_request {
	/* The swap is a promotion: the alive key must be the key that the daemon has found
	 * abandoned. If the key has changed, the daemon answers CHANGED, or FAILED with a text. */
	bool promotes;
	uint64_t revision; /* revision of the record that will be replaced */
	struct mirror_record before, after;
};

struct packet_swapped {
	uint8_t result; /* enum packet_swap */
	uint64_t revision;
	struct mirror_record record; /* DONE, CHANGED: the present record */
	char text[PACKET_TEXT];
};

struct packet_serve {
	struct mirror_epoch epoch;
	bool forced;
};

struct packet_lost {
	uint16_t error; /* an errno; 0: no write-back has failed */
};

/* Times by CLOCK_BOOTTIME. The library computes its lease (core/lease.h) from sent_ns. */
struct packet_lease {
	uint64_t sent_ns, confirmed_ns;
};

struct packet_fenced {
	struct mirror_epoch known;
};

enum packet_order {
	PACKET_ORDER_DEMOTE = 1,
	PACKET_ORDER_RESYNC, /* resync the member; flag: the whole copy */
	PACKET_ORDER_PAUSE,  /* stop the resync of the member */
	PACKET_ORDER_RESUME,
	PACKET_ORDER_VERIFY, /* compare the member, or all members (MIRROR_NO_SLOT); flag: repair */
	PACKET_ORDER_FENCE,  /* exclude the member */
	PACKET_ORDER_END
};

struct packet_order_request {
	uint8_t order;       /* enum packet_order */
	uint8_t member;      /* slot of the member, or MIRROR_NO_SLOT */
	bool flag;           /* meaning depends on `order` */
	bool is_automatic;   /* VERIFY without an operator: only differences about which a majority
	                      * of copies agrees are repaired */
	uint32_t timeout_ms; /* time limit for the answer */
	uint64_t rate;       /* VERIFY: bytes a second for each member; 0: no limit */
};

/* The age of this host's copy, for a process that maps it read-only. */
struct packet_age {
	/* time by CLOCK_BOOTTIME at which the copy had all acknowledged data; 0: unknown */
	uint64_t fresh_ns;
	uint64_t epoch, view_seq;
	uint64_t flush_seq; /* the last flush of the epoch that has reached the copy; 0: none */
};

struct packet_done {
	uint8_t status; /* enum packet_status */
	char text[PACKET_TEXT];
};

/* The id of a scrub's ORDER. Operators' orders have small ids. */
#define PACKET_SCRUB_ID UINT32_MAX

#define PACKET_DIFFERENCES 64

enum packet_mended {
	PACKET_DIFFERS_STILL,
	PACKET_IS_REPAIRED,
	PACKET_IS_DUE, /* the member is excluded, and has to get the range before it returns */
	PACKET_MENDED_END
};

struct packet_difference {
	uint8_t member; /* slot of the member */
	uint8_t wrong;  /* enum finding_wrong */
	uint8_t mended; /* enum packet_mended */
	struct mirror_range range;
};

/* The progress of a comparison of copies, or its result. */
struct packet_verified {
	uint64_t compared, different; /* in bytes, summed over all members */
	mirror_mask members;          /* members whose copies were compared as a whole */
	uint64_t left;                /* bytes that were not repaired */
	mirror_mask left_members;     /* members that have bytes in `left` */
	/* number of listed differences; the list has the first differences that were found */
	uint8_t count;
	struct packet_difference differences[PACKET_DIFFERENCES];
};

struct packet_ordered {
	uint8_t status; /* enum packet_status */
	char text[PACKET_TEXT];
	struct packet_verified verified; /* used for VERIFY */
};

/* Size of a text that explains the state of a member or of the set, with the NUL. */
#define PACKET_WHY 128

/* The primary's report, sent at least every PACKET_STATUS_MS. */
struct packet_report {
	struct message_status status;
	/* the reason why the set is blocked or stuck; "" if it is neither */
	char why[PACKET_WHY];
	char reasons[MIRROR_MEMBERS_MAX][PACKET_WHY]; /* the reason why a member is not in-sync */
	/* In ms by CLOCK_BOOTTIME: the time of the next attempt to reach an absent member, and the
	 * time at which a member for which flushes wait counts as lost; 0: none. */
	uint64_t retry_ms[MIRROR_MEMBERS_MAX], deadline_ms[MIRROR_MEMBERS_MAX];
	/* progress of a comparison; total 0: no comparison is running */
	uint64_t verify_total, verify_compared;
	uint64_t verify_different;
};

enum packet_event_what {
	PACKET_EVENT_LOST, /* the connection to a member is lost */
	PACKET_EVENT_SLOW,
	PACKET_EVENT_LEASE,
	PACKET_EVENT_FENCED,
	PACKET_EVENT_MEDIUM, /* the medium of this host's copy has failed */
	PACKET_EVENT_ERROR,
	PACKET_EVENT_STUCK,
	PACKET_EVENT_VERIFY,
	PACKET_EVENT_END
};

struct packet_event {
	uint8_t what;   /* enum packet_event_what */
	uint8_t member; /* slot of the member, or MIRROR_NO_SLOT */
	char text[PACKET_TEXT];
};

struct packet {
	enum packet_type type;
	uint32_t id; /* id of the request; 0 in a packet that is not an answer */
	/* version of the packet, and lowest version of its sender */
	struct mirror_versions versions;
	/* The body, by type. GET_RECORD, GET_AGE, FAIL and HEARTBEAT have no body; RECORD and
	 * CHANGED share one body. */
	union {
		struct packet_map map;
		struct packet_unmap unmap;
		struct packet_mapped mapped;
		struct packet_record record;
		struct packet_swap_request swap;
		struct packet_swapped swapped;
		struct message member;
		struct packet_serve serve;
		struct packet_lost lost;
		struct packet_report report;
		struct packet_event event;
		struct packet_lease lease;
		struct packet_fenced fenced;
		struct packet_order_request order;
		struct packet_ordered ordered;
		struct packet_done done;
		struct packet_age age;
	};
};

/* Clear the packet, set type and id, and return it. */
struct packet *packet_begin(struct packet *p, enum packet_type type, uint32_t id);
/* Encode in that version. Returns the number of bytes written to buf[PACKET_MAX]. Only texts may
 * be cut (assert). */
size_t packet_encode(struct packet *p, unsigned version, uint8_t *buf);
/* Returns 0; -EPROTO: no valid packet; -EPROTONOSUPPORT: another version, and only type, id and
 * versions are set. *p is large, about 25 KiB. */
int packet_decode(const void *buf, size_t len, struct packet *p);

const char *packet_type_2str(unsigned type);
/* Returns the word for the event, such as "slow". */
const char *packet_event_2str(unsigned what);
/* Returns one line for people. */
const char *packet_status_2str(unsigned status);

#endif
