/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp_pair.h -- two queue pairs in one thread. A test moves the bytes between them, in pieces of any
 * size. All functions check with cmocka's assertions.
 */
#ifndef TESTLIB_QP_PAIR_H
#define TESTLIB_QP_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softrnic/proto/ddp.h"
#include "softrnic/rnic/qp.h"

#define WB_LOG 16

struct qp_end {
	struct qp_end *peer;
	struct ibv_context context;
	struct ibv_pd pd;
	struct mr_table *mrs;
	struct cq scq, rcq;
	struct srq srq; /* used only if the options request an SRQ */
	struct qp *qp;
	void *rxmem, *txmem;
	/* rxmem and txmem; NULL while the queue pair has borrowed the buffer */
	void *rxbuf, *txbuf;
	uint8_t *wire; /* bytes that this end has sent and its peer has not taken yet */
	size_t wire_len, wire_room;
	bool in_place;   /* this end parses its peer's bytes in place, where possible */
	size_t put_room; /* bytes of link memory for short messages; 0: the link has none */
	int asyncs;
	enum ibv_event_type async; /* the last asynchronous event */
	int notified, gets, failures;
	int wb_status; /* status that each write-back returns */
	bool wb_hold;  /* do not end write-backs */
	bool wb_running;
	int wb_count;
	struct qp_job wb;             /* the last write-back */
	struct qp_job wb_log[WB_LOG]; /* the first write-backs */
	struct vext_digest wb_answer; /* the answer to jobs that request a digest */
};

struct qp_pair {
	struct qp_end a, b;
};

struct pair_options {
	struct qp_stream stream; /* options of both ends; A is the initiator */
	uint32_t depth, max_sge, max_inline, cq_size;
	bool sq_sig_all, srq, peer_rfc7306, unreliable;
	bool acks, only_a_acks; /* acks: both ends ask for Acks; only_a_acks: only A does */
	enum qp_rtr rtr;
	bool hold_b;       /* without consent, B must not send before A has sent, as with an RTR */
	bool before_hello; /* the consenting ends have not exchanged their HELLOs yet */
};

/* Number of FPDUs, and of gathers, that each end sends first if both consent: the HELLO. */
#define PAIR_HELLO 1u

/* Returns depth 16, 4 SGEs, 64 bytes inline, IRD and ORD 4, consent, no CRC. */
struct pair_options pair_defaults(void);
void pair_open(struct qp_pair *p, const struct pair_options *o);
void pair_close(struct qp_pair *p);

/* Move bytes, and end write-backs, until nothing is left to do. */
void pair_run(struct qp_pair *p);
/* Like pair_run(), but move at most `chunk` bytes at a time in each direction. */
void pair_run_chunked(struct qp_pair *p, size_t chunk);

/*
 * Gather once, and send at most `max` bytes of the result. Returns the number of bytes; *n_iov is
 * the number of pieces.
 */
size_t end_gather(struct qp_end *e, size_t max, int *n_iov);
/* Put all bytes that e can send onto e's wire. */
void end_send_all(struct qp_end *e);
/* Deliver to e at most `max` bytes of its peer. Returns how many bytes e took. */
size_t end_take(struct qp_end *e, size_t max);
/* Let e take bytes in place. Returns 0 if that is impossible now. */
size_t end_take_in_place(struct qp_end *e, size_t len);
/* Deliver bytes to e that the test made, as if the peer had sent them. The end must take all of
 * them. */
void end_inject(struct qp_end *e, const void *bytes, size_t len);
void end_run_writebacks(struct qp_end *e);
void end_finish_writeback(struct qp_end *e, int status);

struct mr *end_reg(struct qp_end *e, void *buf, size_t len, int access);
void end_dereg(struct mr *mr);
#define REMOTE_ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* Post a request, signalled unless flags has NOSIG. Returns 0 or an errno value. */
#define NOSIG (1u << 30)
int end_post(struct qp_end *e, enum ibv_wr_opcode op, uint64_t wr_id, const struct mr *local,
	     size_t off, size_t len, struct mr *remote, size_t remote_off, unsigned flags);
int end_write(struct qp_end *e, uint64_t wr_id, const struct mr *local, size_t off, size_t len,
	      struct mr *remote, size_t remote_off);
int end_read(struct qp_end *e, uint64_t wr_id, const struct mr *local, size_t off, size_t len,
	     struct mr *remote, size_t remote_off);
int end_send(struct qp_end *e, uint64_t wr_id, const struct mr *local, size_t off, size_t len);
int end_recv(struct qp_end *e, uint64_t wr_id, const struct mr *local, size_t off, size_t len);
int end_flush(struct qp_end *e, uint64_t wr_id, struct mr *remote, size_t off, size_t len,
	      bool persistent);

/* Take the next completion, which must have this wr_id and status. */
void expect_wc(struct cq *cq, uint64_t wr_id, enum ibv_wc_status status);
struct ibv_wc next_wc(struct cq *cq);
void expect_no_wc(struct cq *cq);
/* Check that e failed, and that the stream ended with this error, which e sent or received. */
void expect_terminated(struct qp_end *e, bool sent, unsigned error);

/* Make a raw FPDU. Returns its length. */
size_t fpdu_make(uint8_t *to, const struct ddp_hdr *hdr, const void *payload, size_t len, bool crc);
struct ddp_hdr hdr_tagged(unsigned opcode, uint32_t stag, uint64_t to, bool last);
struct ddp_hdr hdr_untagged(unsigned opcode, uint32_t qn, uint32_t msn, uint32_t mo, bool last);
void end_inject_fpdu(struct qp_end *e, const struct ddp_hdr *hdr, const void *payload, size_t len);

#endif
