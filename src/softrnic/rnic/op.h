/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op.h -- the operations, one constant row each: how a work request is checked, filled in and
 * built, how its messages are received, how the peer's request is executed and answered. A row
 * stands at the end of its op_*.c, and op.c lists all of them.
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
	RX_DONE,  /* go on with the next FPDU */
	RX_MORE,  /* bytes are missing */
	RX_STALL, /* no room for it: do not read on */
	RX_FAULT, /* an error is recorded */
	RX_OVER,  /* the peer has given its connection up: nothing more is executed */
};

/* How a message is received. rdmap_check() has made the formal checks before. */
struct op_rx {
	/*
	 * All of the segment is here, intact and in its turn, with its payload at `bytes`: check it,
	 * execute it. RX_STALL changes nothing; an error may be recorded with RX_DONE, too.
	 */
	enum rx_verdict (*whole)(struct qp *qp, struct rx_seg *seg, const uint8_t *bytes);

	/*
	 * The other members are for messages whose payload is placed as it comes, and for segments
	 * whose end has not arrived. The whole() of such a row consists of the same functions:
	 * qp_rx_place_whole().
	 *
	 * accept: is the message acceptable now? It reserves what it needs, and changes nothing
	 * unless it returns RX_DONE.
	 */
	enum rx_verdict (*accept)(struct qp *qp, struct rx_seg *seg);
	/* Memory for payload bytes from seg->done on: at most max bytes at *ptr, of the region that
	 * is now qp->rx.near. 0: an error is recorded, or the message is lost. NULL: the payload is a
	 * header. */
	uint32_t (*target)(struct qp *qp, struct rx_seg *seg, uint32_t max, void **ptr);
	/*
	 * The memory vanished, and this end had chosen it: set the status of its work request.
	 * NULL: the peer chose the memory.
	 */
	void (*on_fault)(struct qp *qp);
	/*
	 * The segment is complete. bytes: its payload, if it was not placed because of rx_seg.keep.
	 */
	void (*finish)(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes);
	/*
	 * The segment was parked, and there is a receive for it now. False: an error is recorded.
	 */
	bool (*deliver)(struct qp *qp, struct rx_seg *seg, struct park_seg *parked);
	/* A request, whose whole() is qp_request_whole(): decode it into its place, and count it. */
	void (*decode)(struct qp *qp, struct irq_entry *e, const uint8_t *bytes, uint32_t len);
	/* the payload answers a request of this end, so no Flush of the peer covers it */
	bool is_answer;
};

/* A NULL member means that there is nothing to do; a row that is no work request has no `build`. */
struct qp_op {
	/* Our work request. */
	int wc; /* enum ibv_wc_opcode */
	enum rdmap_level level;
	uint32_t cap;    /* VEXT_CAP_*: the peer's HELLO must name this kind; 0: it need not */
	bool is_request; /* the peer answers it */
	bool is_local;   /* executed at this end; has no payload */
	bool places;     /* the peer's registered memory changes */
	bool is_atomic;  /* an 8-byte word at an aligned address */
	bool is_patient; /* it may wait for what is posted next, unless it is signalled */
	bool is_patient_alone; /* likewise, unless it is solicited or a Write waits before it */
	uint8_t messages;      /* that an Ack counts; a request has an answer instead: 0 */
	bool (*check)(const struct ibv_send_wr *wr);
	/* Fill in the fields that only this operation has. */
	void (*fill)(const struct qp *qp, struct sq_wr *slot, const struct ibv_send_wr *wr);
	bool (*build)(struct qp *qp,
		      struct sq_wr *wr); /* build one more FPDU; false: no room, or an error */
	/* Execute one that is_local, with a stream or without. 0 or an errno; EAGAIN: not now. */
	int (*run)(struct qp *qp, const struct sq_wr *wr);

	/* Its messages. */
	const struct op_rx *message;
	const struct op_rx *answer;
	/*
	 * Give the result of a successful answer to the user. rest: the bytes after the answer's
	 * header. 0 or -errno.
	 */
	int (*take_answer)(struct qp *qp, struct sq_wr *wr, const union rdmap_answer *answer,
			   struct rcursor *rest);

	/* The peer's request at the head of the IRQ. */
	void (*begin)(struct qp *qp, struct irq_entry *e);
	/* the owner has finished the job */
	void (*on_job)(struct qp *qp, struct irq_entry *e, int status);
	void (*on_detach)(struct qp *qp, struct irq_entry *e); /* the job's region goes away */
	bool (*build_answer)(struct qp *qp, const struct irq_entry *e);
	bool answer_loads; /* the answer's payload is loaded from registered memory */
};

/* A work request beyond verbs is the member `wr` of a struct vext_wr. */
static inline const struct vext_wr *op_vext(const struct ibv_send_wr *wr)
{
	return container_of(wr, const struct vext_wr, wr);
}

/* The index is the opcode of verbs; those of verbs_ext follow after them. */
#define OP_POSTED_VEXT 16u
#define OP_POSTED_MAX  (2 * OP_POSTED_VEXT)
extern const struct qp_op *const op_posted[OP_POSTED_MAX];
/* Both return NULL if there is no such operation. */
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
/*
 * The operation that a request belongs to. Kind 0: several operations share the opcode, and this
 * one receives for all of them. NULL: there is no such operation.
 */
static inline const struct qp_op *op_of_request(enum rdmap_opcode code, unsigned kind)
{
	return kind < OP_KINDS ? op_messages[OP_MESSAGE(code, kind)] : NULL;
}
/* The operation of a message on the control queue. */
const struct qp_op *op_of_control(const uint8_t *bytes);
/*
 * The operation that a segment belongs to, once rdmap_check() has accepted it. bytes: those after
 * the DDP header. kind: the row of its opcode. NULL: the segment is not accepted.
 */
static inline const struct qp_op *op_of_segment(const struct ddp_hdr *hdr,
						const struct rdmap_op *kind, const uint8_t *bytes)
{
	if (!kind->extension)
		return op_messages[OP_MESSAGE(rdmap_ctrl_opcode(hdr->ulp), 0)];
	return hdr->qn == DDP_QN_CONTROL ? op_of_control(bytes)
					 : op_of_request(RDMAP_EXT_REQ, ext_word_of(bytes).kind);
}
/* The requests of the extensions that this end executes, for its HELLO: EXT_BIT() each. */
uint64_t op_kinds(void);
/* What can be requested of a peer that executes these: VEXT_CAP_*. */
uint32_t op_caps(uint64_t kinds);

/* op_unknown: a message on the control queue whose kind a later version has defined. */
extern const struct qp_op op_hello, op_origin, op_leave, op_ack, op_terminate, op_heartbeat,
	op_link;
extern const struct qp_op op_unknown;
extern const struct op_rx op_ignored_rx;

#endif
