/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librpmem.h -- keeps a copy of a persistent memory pool on another machine.
 *
 * This header has the functions, structures and numbers of version 1.3 of PMDK's librpmem, which
 * PMDK's release 1.13 dropped. A pool is memory of this process; the target is a machine with
 * rpmemd, reached through ssh ("[user@]host[:port]") or directly ("rpma://host[:port]").
 *
 * These rules hold for every call, except where its comment states otherwise:
 * - On failure a pointer is NULL and an integer is -1, with errno set; rpmem_errormsg() returns the
 *   reason.
 * - A wrong argument is refused with EINVAL and changes nothing. The loss of the target, and a
 *   failed write-back there, are final: each later call on the pool fails with the errno of the
 *   first failed call.
 * - No call waits longer than RPMEM_TIMEOUT_MS (30 s) without any progress: ETIMEDOUT, ECONNRESET.
 * - Calls on different pools may run in parallel. Calls on one pool may run in parallel for
 *   different lanes; one lane is used by one thread at a time. No other call on the pool may run
 *   during rpmem_close().
 * - A forked child must not use its parent's pools. The child may close them; this does not affect
 *   the parent.
 *
 * There is a manual page for each function; librpmem(7) describes the whole library, with the
 * environment variables.
 */
#ifndef LIBRPMEM_H
#define LIBRPMEM_H 1

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Every function is deprecated, as in PMDK 1.12; -Wno-deprecated-declarations silences the
 * warning. */
#define RPMEM_DEPR_STR  "librpmem is deprecated in PMDK; new programs use librpma"
#define RPMEM_DEPR_ATTR __attribute__((deprecated(RPMEM_DEPR_STR)))

#define RPMEM_MAJOR_VERSION 1
#define RPMEM_MINOR_VERSION 3

typedef struct rpmem_pool RPMEMpool;

#define RPMEM_POOL_HDR_SIG_LEN    8
#define RPMEM_POOL_HDR_UUID_LEN   16
#define RPMEM_POOL_USER_FLAGS_LEN 16

/* Content of the pool's header at the target. Note that next_uuid precedes prev_uuid. */
struct rpmem_pool_attr {
	char signature[RPMEM_POOL_HDR_SIG_LEN];
	uint32_t major;
	uint32_t compat_features;
	uint32_t incompat_features;
	uint32_t ro_compat_features;
	unsigned char poolset_uuid[RPMEM_POOL_HDR_UUID_LEN];
	unsigned char uuid[RPMEM_POOL_HDR_UUID_LEN];      /* UUID of the first part */
	unsigned char next_uuid[RPMEM_POOL_HDR_UUID_LEN]; /* UUID of the next replica */
	unsigned char prev_uuid[RPMEM_POOL_HDR_UUID_LEN]; /* UUID of the previous replica */
	unsigned char user_flags[RPMEM_POOL_USER_FLAGS_LEN];
};

#define RPMEM_MIN_POOL ((size_t)(1024 * 8))        /* the smallest pool */
#define RPMEM_MIN_PART ((size_t)(1024 * 1024 * 2)) /* the smallest part */

/*
 * Create a pool at the target, as its pool set file describes. pool_addr and pool_size: the local
 * pool, in whole pages; the caller keeps this memory. *nlanes: on entry, the requested number of
 * lanes; on return, the number that the target grants. create_attr NULL or all zero: a pool
 * without headers. On failure no file remains at the target.
 */
RPMEMpool *rpmem_create(const char *target, const char *pool_set_name, void *pool_addr,
			size_t pool_size, unsigned *nlanes,
			const struct rpmem_pool_attr *create_attr) RPMEM_DEPR_ATTR;
/* Open an existing pool. *open_attr gets the pool's attributes; open_attr may be NULL. pool_size
 * may be smaller than the pool. */
RPMEMpool *rpmem_open(const char *target, const char *pool_set_name, void *pool_addr,
		      size_t pool_size, unsigned *nlanes,
		      struct rpmem_pool_attr *open_attr) RPMEM_DEPR_ATTR;
/* Write other attributes to the headers. For a pool without headers attr must be NULL or all zero;
 * for a pool with headers it must have attributes. */
int rpmem_set_attr(RPMEMpool *rpp, const struct rpmem_pool_attr *attr) RPMEM_DEPR_ATTR;
/* Close the pool. The pool object is gone in any case. -1: the target did not confirm the close.
 * The call does not access the local pool, which may already be unmapped. */
int rpmem_close(RPMEMpool *rpp) RPMEM_DEPR_ATTR;

#define RPMEM_PERSIST_RELAXED (1U << 0)
#define RPMEM_FLUSH_RELAXED   (1U << 0)

/*
 * Begin to copy a range of the local pool to the target. The next rpmem_drain() or rpmem_persist()
 * of the lane makes the range durable. With RPMEM_FLUSH_RELAXED the range must not change until
 * that call returns. The first 4096 bytes of a pool with headers are refused, as in
 * rpmem_persist() and rpmem_deep_persist().
 */
int rpmem_flush(RPMEMpool *rpp, size_t offset, size_t length, unsigned lane,
		unsigned flags) RPMEM_DEPR_ATTR;
/* Wait until all flushed bytes of the lane are durable; flags is 0. */
int rpmem_drain(RPMEMpool *rpp, unsigned lane, unsigned flags) RPMEM_DEPR_ATTR;
/* Flush and drain. flags: 0 or RPMEM_PERSIST_RELAXED. */
int rpmem_persist(RPMEMpool *rpp, size_t offset, size_t length, unsigned lane,
		  unsigned flags) RPMEM_DEPR_ATTR;
/* Like rpmem_persist(), and also flush the platform's buffers at the target. */
int rpmem_deep_persist(RPMEMpool *rpp, size_t offset, size_t length, unsigned lane) RPMEM_DEPR_ATTR;
/* Copy a range of the pool at the target to buff, which may be any memory. */
int rpmem_read(RPMEMpool *rpp, void *buff, size_t offset, size_t length,
	       unsigned lane) RPMEM_DEPR_ATTR;

#define RPMEM_REMOVE_FORCE    0x1 /* ignore errors of parts; a part in use is not removed */
#define RPMEM_REMOVE_POOL_SET 0x2 /* also remove the pool set file */

/* Remove the pool of this set at the target; flags: RPMEM_REMOVE_*. If rpmemd refuses, errno is its
 * exit status. */
int rpmem_remove(const char *target, const char *pool_set, int flags) RPMEM_DEPR_ATTR;

/* Returns NULL if the library works with programs that were built for this version, else a text
 * with the reason. */
const char *rpmem_check_version(unsigned major_required, unsigned minor_required) RPMEM_DEPR_ATTR;

/* Returns the reason of the calling thread's last failed call; "" before the first failure. Each
 * thread has its own text, which stays until the thread's next failed call. */
const char *rpmem_errormsg(void) RPMEM_DEPR_ATTR;

#ifdef __cplusplus
}
#endif

#endif
