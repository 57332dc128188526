/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_ext.h -- what goes beyond verbs: work requests, flush types, digests, durability classes,
 * access rights, capabilities and reasons of failure. Types and values only.
 */
#ifndef VERBS_EXT_VERBS_EXT_H
#define VERBS_EXT_VERBS_EXT_H

#include <infiniband/verbs.h>
#include <stdint.h>

enum vext_op {
	VEXT_OP_VERBS,        /* what `wr` says */
	VEXT_OP_FLUSH,        /* [remote_addr, +len) of rkey */
	VEXT_OP_FLUSH_ALL,    /* whatever this connection placed earlier, in any region */
	VEXT_OP_ATOMIC_WRITE, /* `bytes` to an aligned address, by one store */
	VEXT_OP_VERIFY,       /* a persistent flush, then a digest of the range as read back */
	VEXT_OP_QUERY,        /* the durability class of the range */
};

enum vext_flush_type {
	VEXT_FLUSH_VISIBLE = 1,
	VEXT_FLUSH_PERSISTENT = 2,
	VEXT_FLUSH_STRICT = 3, /* persistent, or refused where memory cannot be */
};

enum vext_digest_alg { VEXT_DIGEST_CRC32C = 1, VEXT_DIGEST_BLAKE2B = 2 };
enum vext_digest_source {
	VEXT_DIGEST_FROM_MEMORY, /* volatile */
	VEXT_DIGEST_FROM_CACHE,  /* the file system permits no direct read */
	VEXT_DIGEST_FROM_MEDIUM, /* direct read */
	VEXT_DIGEST_FROM_DAX,    /* loads */
};
enum vext_durability {
	VEXT_DURABILITY_UNKNOWN,
	VEXT_DURABILITY_VOLATILE,
	VEXT_DURABILITY_FILE,
	VEXT_DURABILITY_DAX,
};

#define VEXT_DIGEST_LEN 32
struct vext_digest {
	uint32_t alg, source, durability, len;
	uint8_t bytes[VEXT_DIGEST_LEN]; /* CRC32C: 4, big-endian; the rest 0 */
};

/*
 * One work request. `wr` of all: wr_id and send_flags; of those beyond verbs also
 * wr.rdma.remote_addr and wr.rdma.rkey, and nothing else. wr.next is not looked at.
 */
struct vext_wr {
	enum vext_op op;
	struct ibv_send_wr wr;
	uint64_t len;              /* FLUSH, VERIFY, QUERY */
	enum vext_flush_type type; /* FLUSH, FLUSH_ALL */
	uint8_t bytes[8];          /* ATOMIC_WRITE, in the order of memory */
	uint32_t alg;              /* VERIFY */
	void *result;              /* VERIFY: struct vext_digest, QUERY: uint32_t; written before a
				    * successful completion, and never once the QP is destroyed */
};

/*
 * A right of memory regions beside verbs' own, for softrnic_reg_mr() and, through the interposer,
 * ibv_reg_mr(): every connection of the protection domain may invalidate the region by a Send with
 * Invalidate. Outside of the bits that rdma-core takes for optional, so other devices refuse it.
 */
#define VEXT_ACCESS_REMOTE_INVALIDATE (1 << 30)

/* What the peer of a connection can be asked for. */
#define VEXT_CAP_SOFTRNIC     (1u << 0) /* of our kind: it agreed to the extensions */
#define VEXT_CAP_FLUSH        (1u << 1)
#define VEXT_CAP_FLUSH_ALL    (1u << 2)
#define VEXT_CAP_ATOMIC_WRITE (1u << 3)
#define VEXT_CAP_VERIFY       (1u << 4)
#define VEXT_CAP_QUERY        (1u << 5)
#define VEXT_CAP_IMM          (1u << 6) /* with a Write; with a Send only if SOFTRNIC, too */
#define VEXT_CAP_ATOMICS      (1u << 7)
#define VEXT_CAP_KNOWN        (1u << 31) /* the connection is or was established */

/* vendor_err of a failed completion: a reason, and a code that explains it. */
enum vext_reason {
	VEXT_REASON_NONE,
	VEXT_REASON_WRITE_BACK,    /* errno at the target */
	VEXT_REASON_VOLATILE,      /* strict, and the memory cannot persist */
	VEXT_REASON_GONE,          /* the range is gone, or past the end of its file */
	VEXT_REASON_TERMINATE_IN,  /* the peer's Terminate: 0xLTCC = layer, type, code */
	VEXT_REASON_TERMINATE_OUT, /* ours */
	VEXT_REASON_LINK,          /* errno of the connection */
	VEXT_REASON_LOCAL,         /* errno at this end */
};

static inline uint32_t vext_vendor_err(enum vext_reason reason, uint32_t code)
{
	return (uint32_t)reason << 24 | (code & 0xffffff);
}

#endif
