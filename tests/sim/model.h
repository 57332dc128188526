/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model.h -- the requests of one end to the other, and the contents of the other end's memory that
 * these requests permit.
 *
 * The stream is in order, so the peer's targets always have the content that some prefix of the
 * operations produces, plus a part of the next operation. A completed Read, a completed Flush or a
 * received Send determines the least length of that prefix. A completed persistent Flush
 * determines, for each byte, the oldest version that is permitted on the medium.
 */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory.h"
#include "verbs_ext/verbs_ext.h"

#define MODEL_OPS   64
#define MODEL_WORDS 8 /* number of words in AREA_WORDS */

enum op_kind {
	OP_WRITE,
	OP_READ,
	OP_SEND,
	OP_FLUSH,
	OP_WRITE_IMM,
	OP_SEND_IMM,
	OP_SEND_INV,
	OP_FETCH_ADD,
	OP_CMP_SWAP,
	OP_ATOMIC_WRITE,
	OP_FLUSH_ALL,
	OP_VERIFY,
	OP_QUERY,
	OP_KINDS
};

/* Properties of a kind of operation; one table lists all kinds. */
struct op_traits {
	int wc;         /* opcode of the completion */
	uint32_t caps;  /* VEXT_CAP_* bits that the peer needs */
	bool request;   /* a request, which the peer answers; answers arrive in order */
	bool message;   /* consumes a receive of the peer */
	bool writes;    /* changes the peer's memory */
	bool flushes;   /* flushes a range, or all earlier bytes */
	bool is_atomic; /* changes one word, in order with the other requests */
	bool has_data;  /* sends bytes from this end's memory */
};
extern const struct op_traits op_traits[OP_KINDS];

struct op {
	enum op_kind kind;
	enum area_kind area; /* the area in the peer's memory */
	uint64_t off;        /* offset in the peer's arena */
	uint32_t len;
	/* the bytes that the operation sends or writes. For an atomic these are `after`, set by the
	 * post. */
	const uint8_t *data;
	uint64_t sink; /* READ, atomics: offset in this end's arena */
	/* the operation is posted after all operations of earlier phases are complete */
	unsigned phase;
	bool signalled, fence, is_inline, persistent, strict, solicited;
	bool forbidden; /* the peer must refuse the operation */
	/* a WRITE from the changing source to a target whose contents are not checked */
	bool changing;
	/* READ: the peer makes earlier Writes durable before it sends the answer */
	bool reads_flush;
	bool done;
	bool staged;    /* the source is in this end's AREA_STAGE until the operation is complete */
	uint64_t stage; /* offset of the source in AREA_STAGE */
	uint32_t imm;
	uint32_t alg;              /* VERIFY */
	bool matches;              /* CMP_SWAP: the compared value equals the word */
	uint64_t mismatch;         /* if !matches: the bit in which the two differ */
	uint64_t operand;          /* the value to add, swap in or write */
	uint8_t after[8];          /* the word after the operation */
	uint64_t original;         /* the word before the operation */
	struct vext_digest digest; /* VERIFY: the answer */
	uint32_t durability;       /* QUERY: the answer */
};

static inline bool op_is_message(const struct op *op)
{
	return op_traits[op->kind].message;
}
static inline bool op_is_request(const struct op *op)
{
	return op_traits[op->kind].request;
}
static inline bool op_flushes(const struct op *op)
{
	return op_traits[op->kind].flushes;
}
/* Returns true if the operation is a READ that flushes; a READ of zero bytes names no region. */
static inline bool op_is_read_flush(const struct op *op)
{
	return op->kind == OP_READ && op->reads_flush;
}
static inline bool op_is_atomic(const struct op *op)
{
	return op_traits[op->kind].is_atomic;
}

struct model {
	struct op op[MODEL_OPS];
	unsigned planned;
	unsigned posted;
	unsigned completed; /* every operation with a smaller number is complete */
	/* every request with a smaller number has been applied to `word` */
	unsigned applied;
	unsigned executed;          /* the peer has executed every request with a smaller number */
	uint64_t word[MODEL_WORDS]; /* the peer's words after all posted requests */
	/* bytes of operations before this one were lost with the region that contained them */
	unsigned lost_at;
	/* atomics that were visible in the peer's memory before their answers arrived */
	unsigned observed;
	unsigned received; /* the peer has received every Send with a smaller number */
	bool failed;       /* a completion had an error */
	unsigned first_failed;
	unsigned culprits; /* failed completions whose status is not WR_FLUSH_ERR */
	/*
	 * For each byte of the peer's arena: 0, or 1 + the number of an operation. The medium must
	 * have this operation's byte or a later one.
	 */
	uint16_t *durable;
	uint16_t *floor; /* scratch */
	uint8_t *state;  /* scratch */
	uint64_t room;
};

/* Begin a new run with no plan. */
void model_init(struct model *m);
/* Set the size of the peer's memory. */
void model_set_peer(struct model *m, uint64_t size);
void model_free(struct model *m);
/* From now on do not check the area's contents. Call this when the peer is about to deregister the
 * area. */
void model_drop_area(struct model *m, const struct memory *peer, const struct area *a);

/*
 * Each check returns NULL, or a text that describes the violation.
 *
 * Check one completion of the send queue: its order and the number of completions. If `trusted`,
 * also check the content of the peer's memory that it proves.
 */
const char *model_on_completion(struct model *m, const struct ibv_wc *wc, const struct memory *own,
				const struct memory *peer, bool trusted);
/* Check that the peer has executed all operations up to this one. Call this when an acknowledged
 * operation has succeeded. */
const char *model_on_acknowledged(struct model *m, unsigned id, const struct memory *peer);
/* Check that the peer's completion `wc` belongs to the next message, and that `bytes` is the
 * message's content (NULL: the content is lost). */
const char *model_on_received(struct model *m, const struct ibv_wc *wc, const uint8_t *bytes,
			      const struct memory *peer);
/* Returns the message that was received last. */
const struct op *model_last_received(const struct model *m);
/* Take the initial words from the peer's memory. */
void model_set_words(struct model *m, const struct memory *peer);
/* Execute the operation on `word`, which has the value before it and gets the value after it. */
void model_execute(struct op *op, uint64_t *word);
uint64_t *model_word(struct model *m, const struct memory *peer, const struct op *op);
/* Look for atomics whose effect is visible in the peer's memory although their answers have not
 * arrived. Such an atomic proves as much as its answer would prove: check that the data of earlier
 * flushes are on the medium. */
const char *model_on_observed(struct model *m, const struct memory *peer);
/*
 * Check that the peer's cache is the state after a prefix of the writes and a prefix of the
 * atomics. whole_words: a part of a write ends at a word boundary.
 */
const char *model_check_cache(struct model *m, const struct memory *peer, bool whole_words);
/* Check that data acknowledged as persistent are on the peer's medium. */
const char *model_check_medium(const struct model *m, const struct memory *peer);
/* Like model_check_medium(), for one area that is about to be deregistered. */
const char *model_check_medium_area(const struct model *m, const struct memory *peer,
				    const struct area *a);
/* After the end of the queue pair, check that every signalled operation has completed. */
const char *model_check_complete(const struct model *m);

#endif
