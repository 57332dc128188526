/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model.h -- the requests of one end to the other, and the contents that the other's memory may
 * therefore have.
 *
 * The stream is in order, so the peer's targets are always the state after some prefix of the
 * operations, plus a part of the next one. A completed Read, a completed Flush or a received Send
 * gives the least length of that prefix; a completed Flush to persistence gives for each byte the
 * oldest version that the medium may hold.
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

/* The properties of a kind of operation, from one table. */
struct op_traits {
	int wc;         /* opcode of the operation's completion */
	uint32_t caps;  /* VEXT_CAP_* that the peer must have */
	bool request;   /* a request: the peer answers these in order */
	bool message;   /* takes a receive of the peer */
	bool writes;    /* changes the peer's memory */
	bool flushes;   /* covers a range, or everything, that was written before */
	bool is_atomic; /* works on one word, and in order */
	bool has_data;  /* sends bytes of this end */
};
extern const struct op_traits op_traits[OP_KINDS];

struct op {
	enum op_kind kind;
	enum area_kind area; /* the peer's area */
	uint64_t off;        /* offset in the peer's arena */
	uint32_t len;
	/* the bytes that the operation sends or writes; for an atomic `after`, set at the post */
	const uint8_t *data;
	uint64_t sink;  /* READ, atomics: offset in this end's arena */
	unsigned phase; /* an operation waits until all of earlier phases are complete */
	bool signalled, fence, is_inline, persistent, strict, solicited;
	bool forbidden;   /* the peer must refuse the operation */
	bool changing;    /* WRITE from the changing source, to a target that is not checked */
	bool reads_flush; /* READ: the peer makes earlier writes durable before the answer */
	bool done;
	bool staged;    /* sends from this end's AREA_STAGE... */
	uint64_t stage; /* ...from this offset on, until the operation is complete */
	uint32_t imm;
	uint32_t alg;              /* VERIFY */
	bool matches;              /* CMP_SWAP: the compared value is the present one... */
	uint64_t mismatch;         /* ...otherwise it differs from the present value in this bit */
	uint64_t operand;          /* value to be added, swapped in, or written */
	uint8_t after[8];          /* the word after the execution */
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
/* A read of no bytes names no region. */
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
	unsigned completed;         /* every operation before this one is complete */
	unsigned applied;           /* every request before this operation is executed */
	unsigned executed;          /* and every request before this one is executed */
	uint64_t word[MODEL_WORDS]; /* the peer's words, after everything posted is executed */
	unsigned lost_at;           /* bytes were lost with their region before this operation */
	unsigned observed;          /* atomics seen in memory before their answer arrived */
	unsigned received;          /* the peer has received the Sends before this one */
	bool failed;                /* a completion had an error */
	unsigned first_failed;
	unsigned culprits; /* completions with an error other than WR_FLUSH_ERR */
	/*
	 * for each byte of the peer's arena: 1 + an operation; the medium must have the bytes of
	 * that operation or later bytes; 0: no operation
	 */
	uint16_t *durable;
	uint16_t *floor; /* scratch */
	uint8_t *state;  /* scratch */
	uint64_t room;
};

/* Begin a new run, without a plan. */
void model_init(struct model *m);
/* Set the size of the peer's memory. */
void model_set_peer(struct model *m, uint64_t size);
void model_free(struct model *m);
/* The peer is about to deregister the area: from now on the area's content is not checked. */
void model_drop_area(struct model *m, const struct memory *peer, const struct area *a);

/*
 * The checks return NULL, or a text that states the violation.
 *
 * Check one completion of the send queue: its order, the count, and what it proves about the peer's
 * memory, unless contents cannot be trusted.
 */
const char *model_on_completion(struct model *m, const struct ibv_wc *wc, const struct memory *own,
				const struct memory *peer, bool trusted);
/* The success of an acknowledged operation: the peer has everything up to that operation. */
const char *model_on_acknowledged(struct model *m, unsigned id, const struct memory *peer);
/* The peer's receive `wc` must be the next message, with the content `bytes` (NULL: the content
 * is lost). */
const char *model_on_received(struct model *m, const struct ibv_wc *wc, const uint8_t *bytes,
			      const struct memory *peer);
/* Returns the last received message. */
const struct op *model_last_received(const struct model *m);
/* Set the initial words of the peer's memory. */
void model_set_words(struct model *m, const struct memory *peer);
/* word: the word before the execution; the call changes it to the word after the execution. */
void model_execute(struct op *op, uint64_t *word);
uint64_t *model_word(struct model *m, const struct memory *peer, const struct op *op);
/*
 * Atomics that are visible in the peer's memory prove as much as their answers: data of earlier
 * flushes are on the medium.
 */
const char *model_on_observed(struct model *m, const struct memory *peer);
/*
 * The peer's cache must be the state after a prefix of the writes, and a prefix of the atomics;
 * whole_words: parts end at word boundaries.
 */
const char *model_check_cache(struct model *m, const struct memory *peer, bool whole_words);
/* Data acknowledged as persistent must be on the peer's medium. */
const char *model_check_medium(const struct model *m, const struct memory *peer);
/* The same check for one area, before the area goes away. */
const char *model_check_medium_area(const struct model *m, const struct memory *peer,
				    const struct area *a);
/* The queue pair is gone: every signalled operation must have completed. */
const char *model_check_complete(const struct model *m);

#endif
