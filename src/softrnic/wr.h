/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wr.h -- work requests of the software RNIC, those of verbs and those beyond, and access rights.
 * Types and values only.
 */
#ifndef SOFTRNIC_WR_H
#define SOFTRNIC_WR_H

#include <infiniband/verbs.h>
#include <stdint.h>

enum softrnic_op {
	SOFTRNIC_OP_VERBS,        /* what `wr` says */
	SOFTRNIC_OP_FLUSH,        /* [remote_addr, +len) of rkey */
	SOFTRNIC_OP_FLUSH_ALL,    /* whatever this connection placed earlier, in any region */
	SOFTRNIC_OP_ATOMIC_WRITE, /* `bytes` to an aligned address, by one store */
	SOFTRNIC_OP_VERIFY,       /* a persistent flush, then a digest of the range as read back */
	SOFTRNIC_OP_QUERY,        /* the durability class of the range */
};

enum softrnic_flush_type {
	SOFTRNIC_FLUSH_VISIBLE = 1,
	SOFTRNIC_FLUSH_PERSISTENT = 2,
	SOFTRNIC_FLUSH_STRICT = 3, /* persistent, or refused where memory cannot be */
};

enum softrnic_digest_alg { SOFTRNIC_DIGEST_CRC32C = 1, SOFTRNIC_DIGEST_BLAKE2B = 2 };
enum softrnic_digest_source {
	SOFTRNIC_DIGEST_FROM_MEMORY, /* volatile */
	SOFTRNIC_DIGEST_FROM_CACHE,  /* the file system permits no direct read */
	SOFTRNIC_DIGEST_FROM_MEDIUM, /* direct read */
	SOFTRNIC_DIGEST_FROM_DAX,    /* loads */
};
enum softrnic_durability {
	SOFTRNIC_DURABILITY_UNKNOWN,
	SOFTRNIC_DURABILITY_VOLATILE,
	SOFTRNIC_DURABILITY_FILE,
	SOFTRNIC_DURABILITY_DAX,
};

#define SOFTRNIC_DIGEST_LEN 32
struct softrnic_digest {
	uint32_t alg, source, durability, len;
	uint8_t bytes[SOFTRNIC_DIGEST_LEN]; /* CRC32C: 4, big-endian; the rest 0 */
};

/*
 * One work request. `wr` of all: wr_id and send_flags; of those beyond verbs also
 * wr.rdma.remote_addr and wr.rdma.rkey, and nothing else. wr.next is not looked at.
 */
struct softrnic_wr {
	enum softrnic_op op;
	struct ibv_send_wr wr;
	uint64_t len;                  /* FLUSH, VERIFY, QUERY */
	enum softrnic_flush_type type; /* FLUSH, FLUSH_ALL */
	uint8_t bytes[8];              /* ATOMIC_WRITE, in the order of memory */
	uint32_t alg;                  /* VERIFY */
	void *result; /* VERIFY: struct softrnic_digest, QUERY: uint32_t; written before a
		       * successful completion, and never once the QP is destroyed */
};

/*
 * A right of memory regions beside verbs' own, for softrnic_reg_mr() and, through the interposer,
 * ibv_reg_mr(): every connection of the protection domain may invalidate the region by a Send with
 * Invalidate. Outside of the bits that rdma-core takes for optional, so other devices refuse it.
 */
#define SOFTRNIC_ACCESS_REMOTE_INVALIDATE (1 << 30)

/* What the peer of a connection can be asked for. */
#define SOFTRNIC_CAP_SOFTRNIC     (1u << 0) /* of our kind: it agreed to the extensions */
#define SOFTRNIC_CAP_FLUSH        (1u << 1)
#define SOFTRNIC_CAP_FLUSH_ALL    (1u << 2)
#define SOFTRNIC_CAP_ATOMIC_WRITE (1u << 3)
#define SOFTRNIC_CAP_VERIFY       (1u << 4)
#define SOFTRNIC_CAP_QUERY        (1u << 5)
#define SOFTRNIC_CAP_IMM          (1u << 6) /* with a Write; with a Send only if SOFTRNIC, too */
#define SOFTRNIC_CAP_ATOMICS      (1u << 7)
#define SOFTRNIC_CAP_KNOWN        (1u << 31) /* the connection is or was established */

/* vendor_err of a failed completion: a reason, and a code that explains it. */
enum softrnic_reason {
	SOFTRNIC_REASON_NONE,
	SOFTRNIC_REASON_WRITE_BACK,    /* errno at the target */
	SOFTRNIC_REASON_VOLATILE,      /* strict, and the memory cannot persist */
	SOFTRNIC_REASON_GONE,          /* the range is gone, or past the end of its file */
	SOFTRNIC_REASON_TERMINATE_IN,  /* the peer's Terminate: 0xLTCC = layer, type, code */
	SOFTRNIC_REASON_TERMINATE_OUT, /* ours */
	SOFTRNIC_REASON_LINK,          /* errno of the connection */
	SOFTRNIC_REASON_LOCAL,         /* errno at this end */
};

static inline uint32_t softrnic_vendor_err(enum softrnic_reason reason, uint32_t code)
{
	return (uint32_t)reason << 24 | (code & 0xffffff);
}

#endif
