/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op.h -- the table of operations, with one constant row (struct qp_op) for each. The functions of
 * a row check a work request, fill it in, build its messages, receive messages, and execute and
 * answer the peer's request. Each row stands at the end of its op_*.c. op.c lists all rows.
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
	RX_STALL, /* no memory for the message now: parse no further */
	RX_FAULT, /* an error is recorded */
	RX_OVER,  /* the peer has given up its connection: execute nothing more */
};

/* How to receive a message, after the formal checks of rdmap_check(). */
struct op_rx {
	/* Check and execute a whole segment, which is intact and the next one of its queue. Its
	 * payload is at `bytes`. If the function returns RX_STALL, it has changed nothing. It may
	 * record an error and still return RX_DONE. */
	enum rx_verdict (*whole)(struct qp *qp, struct rx_seg *seg, const uint8_t *bytes);

	/*
	 * The other members serve messages whose payload is placed while it arrives, that is,
	 * before the whole segment has arrived. For such a row whole() is made of the same
	 * functions (qp_rx_place_whole()).
	 *
	 * accept() decides whether the message can be accepted now, and reserves its resources. It
	 * changes nothing unless it returns RX_DONE.
	 */
	enum rx_verdict (*accept)(struct qp *qp, struct rx_seg *seg);
	/*
	 * Find memory for payload bytes from seg->done on: at most max bytes at *ptr, of the region
	 * in qp->rx.near. Returns the number of bytes, or 0 if an error is recorded or the message
	 * is lost. `target` is NULL if the payload is a header.
	 */
	uint32_t (*target)(struct qp *qp, struct rx_seg *seg, uint32_t max, void **ptr);
	/* Called when memory that this end had chosen has vanished: set the status of the work
	 * request. NULL: the peer chose the memory. */
	void (*on_fault)(struct qp *qp);
	/* Called when the segment is complete. `bytes` is the payload if rx_seg.keep prevented
	 * placing it. */
	void (*finish)(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes);
	/* Deliver a parked segment (queues.h), because a receive for it was posted. Returns false
	 * if an error is recorded. */
	bool (*deliver)(struct qp *qp, struct rx_seg *seg, struct park_seg *parked);
	/* Decode a request into its IRQ entry, and count the request. For rows whose whole() is
	 * qp_request_whole(). */
	void (*decode)(struct qp *qp, struct irq_entry *e, const uint8_t *bytes, uint32_t len);
	/*
	 * the payload answers a request of this end, so no Flush of the peer has to write it back
	 */
	bool is_answer;
};

/* The rows. A function is NULL if there is nothing to do. `build` is NULL in a row without work
 * requests. */
struct qp_op {
	/* Members for a work request of this end: */
	int wc; /* enum ibv_wc_opcode */
	enum rdmap_level level;
	/* VEXT_CAP_* that the peer must have; 0: every peer has the operation */
	uint32_t cap;
	bool is_request; /* the peer answers the message */
	bool scatters;   /* the answer may be placed in several SGEs */
	bool is_local;   /* the operation is executed at this end, and has no payload */
	bool places;     /* the operation changes the peer's registered memory */
	bool is_atomic;  /* the operation acts on an aligned word of 8 bytes */
	/* may be deferred until the next post, unless the request is signalled */
	bool is_patient;
	/* may be deferred like is_patient, unless the request is solicited or follows a deferred
	 * Write */
	bool is_patient_alone;
	/* number of messages that an Ack counts; 0 for a request with an answer */
	uint8_t messages;
	bool (*check)(const struct ibv_send_wr *wr);
	/* Fill in the fields that are specific to this operation. */
	void (*fill)(const struct qp *qp, struct sq_wr *slot, const struct ibv_send_wr *wr);
	bool (*build)(struct qp *qp,
		      /* build one more FPDU; returns false if the batch is full or an error is
		       * recorded */
		      struct sq_wr *wr);
	/* Execute a local operation. This does not need a stream. Returns 0 or an errno value;
	 * EAGAIN: not possible now. */
	int (*run)(struct qp *qp, const struct sq_wr *wr);

	/* Members for the messages of the operation: */
	const struct op_rx *message;
	const struct op_rx *answer;
	/* Give the result of a successful answer to the user. `rest` contains the bytes after the
	 * answer's header. Returns 0 or -errno. */
	int (*take_answer)(struct qp *qp, struct sq_wr *wr, const union rdmap_answer *answer,
			   struct rcursor *rest);

	/* Begin the peer's request at the head of the IRQ. */
	void (*begin)(struct qp *qp, struct irq_entry *e);
	/* Called when the owner has finished the job. */
	void (*on_job)(struct qp *qp, struct irq_entry *e, int status);
	/* called when the region of the job is being deregistered */
	void (*on_detach)(struct qp *qp, struct irq_entry *e);
	bool (*build_answer)(struct qp *qp, const struct irq_entry *e);
	bool answer_loads; /* the payload of the answer is loaded from registered memory */
};

/* Returns the struct vext_wr that contains this work request. Only valid for operations beyond
 * verbs. */
static inline const struct vext_wr *op_vext(const struct ibv_send_wr *wr)
{
	return container_of(wr, const struct vext_wr, wr);
}

/*
 * Table indices below this value are opcodes of verbs; from here on they are opcodes of verbs_ext.
 */
#define OP_POSTED_VEXT 16u
#define OP_POSTED_MAX  (2 * OP_POSTED_VEXT)
extern const struct qp_op *const op_posted[OP_POSTED_MAX];
/* These return NULL for an unknown operation. */
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
/* Returns the operation of a request, or NULL if there is no such operation. With kind 0, several
 * operations share the opcode, and the returned one receives the messages of all of them. */
static inline const struct qp_op *op_of_request(enum rdmap_opcode code, unsigned kind)
{
	return kind < OP_KINDS ? op_messages[OP_MESSAGE(code, kind)] : NULL;
}
/* Returns the operation of a message on the control queue. */
const struct qp_op *op_of_control(const uint8_t *bytes);
/*
 * Returns the operation of a segment that rdmap_check() has accepted. `bytes` are the bytes after
 * the DDP header; `kind` is the row of the segment's opcode. Returns NULL if the segment is not
 * accepted.
 */
static inline const struct qp_op *op_of_segment(const struct ddp_hdr *hdr,
						const struct rdmap_op *kind, const uint8_t *bytes)
{
	if (!kind->extension)
		return op_messages[OP_MESSAGE(rdmap_ctrl_opcode(hdr->ulp), 0)];
	return hdr->qn == DDP_QN_CONTROL ? op_of_control(bytes)
					 : op_of_request(RDMAP_EXT_REQ, ext_word_of(bytes).kind);
}
/* The extension requests that this end executes, as a set of EXT_BIT() for its HELLO. */
uint64_t op_kinds(void);
/* The operations that a peer can execute if its HELLO lists these kinds, as VEXT_CAP_* flags. */
uint32_t op_caps(uint64_t kinds);

/* Rows without a work request. op_unknown is for messages of unknown kinds on the control queue,
 * which later versions may send. */
extern const struct qp_op op_hello, op_origin, op_leave, op_ack, op_terminate, op_heartbeat,
	op_link;
extern const struct qp_op op_unknown;
extern const struct op_rx op_ignored_rx;

#endif
