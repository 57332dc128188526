/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op.h -- the operations, one constant row each. A row contains functions that check a work
 * request, fill it in and build its messages, that receive messages, and that execute and answer
 * the peer's request. A row stands at the end of its op_*.c, and op.c lists all of them.
 */
#ifndef RNIC_OP_H
#define RNIC_OP_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/list.h"
#include "softrnic/proto/rdmap.h"
#include "verbs_ext/verbs_ext.h"

struct irq_entry;
struct mr;
struct park_seg;
struct qp;
struct rx_seg;
struct sq_wr;

enum rx_verdict {
	RX_DONE,  /* continue with the next FPDU */
	RX_MORE,  /* bytes are missing */
	RX_STALL, /* no room for the message: do not read on */
	RX_FAULT, /* an error is recorded */
	RX_OVER,  /* the peer has given up its connection: execute nothing more */
};

/* How to receive a message, after the formal checks of rdmap_check(). */
struct op_rx {
	/* Check and execute a whole segment, which is intact and in its turn, with its payload at
	 * `bytes`. RX_STALL changes nothing; an error may also be recorded with RX_DONE. */
	enum rx_verdict (*whole)(struct qp *qp, struct rx_seg *seg, const uint8_t *bytes);

	/*
	 * The other members are for messages whose payload is placed as it arrives, and for
	 * segments whose end has not arrived. The whole() of such a row uses the same functions:
	 * qp_rx_place_whole().
	 *
	 * accept: can the message be accepted now? The function reserves the resources, and changes
	 * nothing unless it returns RX_DONE.
	 */
	enum rx_verdict (*accept)(struct qp *qp, struct rx_seg *seg);
	/*
	 * Find memory for payload bytes from seg->done on: at most max bytes at *ptr, of the region
	 * in qp->rx.near. Returns 0 if an error is recorded, or the message is lost. NULL: the
	 * payload is a header.
	 */
	uint32_t (*target)(struct qp *qp, struct rx_seg *seg, uint32_t max, void **ptr);
	/* The memory has vanished, and this end had chosen it: set the status of the work request.
	 * NULL: the peer chose the memory. */
	void (*on_fault)(struct qp *qp);
	/* The segment is complete. bytes: the payload, if rx_seg.keep prevented placing it. */
	void (*finish)(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes);
	/* Deliver a parked segment, for which there is a receive now. Returns false if an error is
	 * recorded. */
	bool (*deliver)(struct qp *qp, struct rx_seg *seg, struct park_seg *parked);
	/* Decode a request, whose whole() is qp_request_whole(), into its entry, and count it. */
	void (*decode)(struct qp *qp, struct irq_entry *e, const uint8_t *bytes, uint32_t len);
	/* the payload answers a request of this end, so no Flush of the peer covers it */
	bool is_answer;
};

/* The rows. NULL for a function means that it has nothing to do; a row without work requests has no
 * `build`. */
struct qp_op {
	/* For our work request: */
	int wc; /* enum ibv_wc_opcode */
	enum rdmap_level level;
	uint32_t cap;          /* VEXT_CAP_*: the peer's HELLO must name this kind; 0: not needed */
	bool is_request;       /* the peer answers the message */
	bool is_local;         /* executed at this end; without payload */
	bool places;           /* changes the peer's registered memory */
	bool is_atomic;        /* acts on an aligned word of 8 bytes */
	bool is_patient;       /* may be deferred until the next post, unless it is signalled */
	bool is_patient_alone; /* likewise, except solicited ones and after a deferred Write */
	uint8_t messages;      /* number that an Ack counts; 0 for a request */
	bool (*check)(const struct ibv_send_wr *wr);
	/* Fill in the fields that are specific to this operation. */
	void (*fill)(const struct qp *qp, struct sq_wr *slot, const struct ibv_send_wr *wr);
	bool (*build)(struct qp *qp,
		      struct sq_wr *wr); /* build one more FPDU; false: no room, or an error */
	/* Execute a local operation, with or without a stream. Returns 0 or an errno; EAGAIN: not
	 * now. */
	int (*run)(struct qp *qp, const struct sq_wr *wr);

	/* For its messages: */
	const struct op_rx *message;
	const struct op_rx *answer;
	/* Give the result of a successful answer to the user. rest: the bytes after the answer's
	 * header. Returns 0 or -errno. */
	int (*take_answer)(struct qp *qp, struct sq_wr *wr, const union rdmap_answer *answer,
			   struct rcursor *rest);

	/* Begin the peer's request at the head of the IRQ. */
	void (*begin)(struct qp *qp, struct irq_entry *e);
	/* the owner has finished the job */
	void (*on_job)(struct qp *qp, struct irq_entry *e, int status);
	void (*on_detach)(struct qp *qp, struct irq_entry *e); /* the job's region ends */
	bool (*build_answer)(struct qp *qp, const struct irq_entry *e);
	bool answer_loads; /* the answer's payload comes from registered memory */
};

/* A work request beyond verbs is the member `wr` of a struct vext_wr. */
static inline const struct vext_wr *op_vext(const struct ibv_send_wr *wr)
{
	return container_of(wr, const struct vext_wr, wr);
}

/* The index is verbs' opcode; from here on it is verbs_ext's. */
#define OP_POSTED_VEXT 16u
#define OP_POSTED_MAX  (2 * OP_POSTED_VEXT)
extern const struct qp_op *const op_posted[OP_POSTED_MAX];
/* Both return NULL for an unknown operation. */
static inline const struct qp_op *op_of_wr(enum ibv_wr_opcode opcode)
{
	return (unsigned)opcode < OP_POSTED_VEXT ? op_posted[opcode] : NULL;
}
static inline const struct qp_op *op_of_vext(enum vext_op op)
{
	return (unsigned)op < OP_POSTED_VEXT ? op_posted[OP_POSTED_VEXT + op] : NULL;
}
#define OP_KINDS               16u
#define OP_MESSAGE(code, kind) ((unsigned)(code) | (unsigned)(kind) << 4)
extern const struct qp_op *const op_messages[RDMAP_OPCODES * OP_KINDS];
/* The operation of a request. Kind 0: several operations share the opcode, and this one receives
 * for all of them. NULL: there is no such operation. */
static inline const struct qp_op *op_of_request(enum rdmap_opcode code, unsigned kind)
{
	return kind < OP_KINDS ? op_messages[OP_MESSAGE(code, kind)] : NULL;
}
/* The operation of a message on the control queue. */
const struct qp_op *op_of_control(const uint8_t *bytes);
/* The operation of a segment that rdmap_check() has accepted. bytes: the bytes after the DDP
 * header. kind: the row of its opcode. NULL: the segment is not accepted. */
static inline const struct qp_op *op_of_segment(const struct ddp_hdr *hdr,
						const struct rdmap_op *kind, const uint8_t *bytes)
{
	if (!kind->extension)
		return op_messages[OP_MESSAGE(rdmap_ctrl_opcode(hdr->ulp), 0)];
	return hdr->qn == DDP_QN_CONTROL ? op_of_control(bytes)
					 : op_of_request(RDMAP_EXT_REQ, ext_word_of(bytes).kind);
}
/* The extension requests that this end executes, for its HELLO: a set of EXT_BIT(). */
uint64_t op_kinds(void);
/* The operations that a peer with these kinds executes: VEXT_CAP_*. */
uint32_t op_caps(uint64_t kinds);

/* op_unknown: a message of a later version's kind on the control queue. */
extern const struct qp_op op_hello, op_origin, op_leave, op_ack, op_terminate, op_heartbeat,
	op_link;
extern const struct qp_op op_unknown;
extern const struct op_rx op_ignored_rx;

#endif
