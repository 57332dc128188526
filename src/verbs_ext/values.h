/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * values.h -- the numbers of the extensions to verbs: flush types, digests, durability classes,
 * access rights, capabilities, completion opcodes and reasons of failure.
 *
 * All folders of the source, the wire (doc/wire.md) and librpma's users use the same numbers. This
 * file has no types of verbs, so that pure code may include it.
 */
#ifndef VERBS_EXT_VALUES_H
#define VERBS_EXT_VALUES_H

#include <stddef.h>
#include <stdint.h>

enum vext_flush_type {
	VEXT_FLUSH_VISIBLE = 1,
	VEXT_FLUSH_PERSISTENT = 2,
	VEXT_FLUSH_STRICT = 3, /* persistent; refused if the memory cannot be persistent */
};

/* Durability class of memory after a persistent flush, the weakest first. */
enum vext_durability {
	VEXT_DURABILITY_UNKNOWN,
	VEXT_DURABILITY_VOLATILE, /* no flush can persist the memory */
	VEXT_DURABILITY_FILE,     /* shared mapping of a file; a flush calls msync(MS_SYNC) */
	/* MAP_SYNC mapping or device DAX; a flush writes back cache lines and fences */
	VEXT_DURABILITY_DAX,
};

enum vext_digest_alg {
	VEXT_DIGEST_AUTO, /* vext_digest_pick() chooses; never sent on the wire */
	VEXT_DIGEST_CRC32C,
	VEXT_DIGEST_BLAKE2B,
};
#define VEXT_DIGEST_SMALL 4096 /* AUTO chooses CRC32C up to this length */

/* The place from which the bytes were read, the weakest evidence first. */
enum vext_digest_source {
	VEXT_DIGEST_FROM_MEMORY, /* volatile memory, which has no medium */
	/* from the page cache of the kernel or of a file server */
	VEXT_DIGEST_FROM_CACHE,
	VEXT_DIGEST_FROM_MEDIUM, /* from the medium, by a direct read */
	VEXT_DIGEST_FROM_DAX,    /* by loads from a DAX mapping */
};

#define VEXT_DIGEST_LEN 32
struct vext_digest {
	uint32_t alg;        /* enum vext_digest_alg, never AUTO */
	uint32_t source;     /* enum vext_digest_source: the weakest in the range */
	uint32_t durability; /* enum vext_durability: the weakest in the range */
	uint32_t len;        /* length of the range */
	/* a CRC32C has 4 bytes, big-endian; the remaining bytes are 0 */
	uint8_t bytes[VEXT_DIGEST_LEN];
};

/* Returns the algorithm for a range of len bytes. For AUTO the length decides; else the result is
 * `alg`. */
static inline uint32_t vext_digest_pick(uint32_t alg, size_t len)
{
	if (alg != VEXT_DIGEST_AUTO)
		return alg;
	return len <= VEXT_DIGEST_SMALL ? VEXT_DIGEST_CRC32C : VEXT_DIGEST_BLAKE2B;
}

static inline int vext_digest_is_alg(uint32_t alg)
{
	return alg == VEXT_DIGEST_CRC32C || alg == VEXT_DIGEST_BLAKE2B;
}

/* Rights of memory regions. rdma-core names them (IBV_ACCESS_FLUSH_...) from release 45 on. */
#define VEXT_ACCESS_FLUSH_GLOBAL     (1 << 8)
#define VEXT_ACCESS_FLUSH_PERSISTENT (1 << 9)
/*
 * A right of the software RNIC, for softrnic_reg_mr() and, through the interposer, ibv_reg_mr():
 * every connection of the protection domain may invalidate the region by a Send with Invalidate.
 * The bit is not one of those that rdma-core treats as optional, so other devices refuse it.
 */
#define VEXT_ACCESS_REMOTE_INVALIDATE (1 << 30)

/* Capability bits of a device (device_cap_flags_ex). rdma-core names these, too, from release 45
 * on. */
#define VEXT_DEVICE_FLUSH_GLOBAL     (1ULL << 38)
#define VEXT_DEVICE_FLUSH_PERSISTENT (1ULL << 39)
#define VEXT_DEVICE_FLUSH            (VEXT_DEVICE_FLUSH_GLOBAL | VEXT_DEVICE_FLUSH_PERSISTENT)
#define VEXT_DEVICE_ATOMIC_WRITE     (1ULL << 40)

/* Opcodes of completions: two of rdma-core 45, and two that no release of rdma-core uses. */
#define VEXT_WC_FLUSH        8
#define VEXT_WC_ATOMIC_WRITE 9
#define VEXT_WC_VERIFY       0x50
#define VEXT_WC_QUERY        0x51

/* The operations that the peer of a connection supports. */
/* the peer is a softrnic that has agreed to the extensions */
#define VEXT_CAP_SOFTRNIC     (1u << 0)
#define VEXT_CAP_FLUSH        (1u << 1)
#define VEXT_CAP_FLUSH_ALL    (1u << 2)
#define VEXT_CAP_ATOMIC_WRITE (1u << 3)
#define VEXT_CAP_VERIFY       (1u << 4)
#define VEXT_CAP_QUERY        (1u << 5)
/* immediate data with a Write; with a Send only if VEXT_CAP_SOFTRNIC is also set */
#define VEXT_CAP_IMM     (1u << 6)
#define VEXT_CAP_ATOMICS (1u << 7)
#define VEXT_CAP_KNOWN   (1u << 31) /* the connection is or was established */

/* The kind of a rejection (RDMA_CM_EVENT_REJECTED). */
enum vext_rejection {
	VEXT_REJECTION_NONE,
	/* the device does not report which end rejected the connection */
	VEXT_REJECTION_UNKNOWN,
	VEXT_REJECTION_NO_LISTENER, /* there is no listener */
	VEXT_REJECTION_REFUSED,     /* the application rejected the connection */
	VEXT_REJECTION_CLOSED,      /* the other program closed the connection without an answer */
};

/*
 * Reason in vendor_err of a failed completion. vendor_err also has a code that explains the reason.
 */
enum vext_reason {
	VEXT_REASON_NONE,
	VEXT_REASON_WRITE_BACK,    /* the write-back failed; code: errno at the target */
	VEXT_REASON_VOLATILE,      /* a strict flush of memory that cannot be persistent */
	VEXT_REASON_GONE,          /* the range is unmapped, or past the end of its file */
	VEXT_REASON_TERMINATE_IN,  /* the peer sent a Terminate; code: 0xLTCC = layer, type, code */
	VEXT_REASON_TERMINATE_OUT, /* this end sent a Terminate; code: 0xLTCC = layer, type, code */
	VEXT_REASON_LINK,          /* the connection broke; code: errno of the connection */
	VEXT_REASON_LOCAL,         /* an error at this end; code: errno */
};

static inline uint32_t vext_vendor_err(enum vext_reason reason, uint32_t code)
{
	return (uint32_t)reason << 24 | (code & 0xffffff);
}

static inline enum vext_reason vext_vendor_err_reason(uint32_t vendor_err)
{
	return (enum vext_reason)(vendor_err >> 24);
}

static inline uint32_t vext_vendor_err_code(uint32_t vendor_err)
{
	return vendor_err & 0xffffff;
}

#endif
