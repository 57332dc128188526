/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * header.h -- the header of a pool's part: the first 4096 bytes of the part, as PMDK writes them;
 * pure.
 *
 * All integers are little-endian. Bytes that the table does not list are zero.
 *
 *    0  signature 8        24  poolset_uuid 16     88  prev_repl_uuid 16
 *    8  major 4            40  uuid 16            104  next_repl_uuid 16
 *   12  compat 4           56  prev_part_uuid 16  120  crtime 8, seconds since the epoch
 *   16  incompat 4         72  next_part_uuid 16  128  arch_flags 16
 *   20  ro_compat 4                              4024  shutdown state 64
 *                                                4088  checksum 8
 *
 * The shutdown state is usc 8, uuid 8, dirty 1, zero 39, checksum 8. Only the first part has a
 * shutdown state, if the features SDS and CKSUM_2K are set. With CKSUM_2K the header's checksum
 * covers only the first 2048 bytes, so that the state can change without the checksum.
 */
#ifndef POOLSET_HEADER_H
#define POOLSET_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define HEADER_BYTES 4096u

#define HEADER_SIGNATURE 8
#define HEADER_UUID      16
#define HEADER_ARCH      16

enum header_incompat {
	HEADER_SINGLEHDR = 1 << 0,
	HEADER_CKSUM_2K = 1 << 1,
	HEADER_SDS = 1 << 2,
};

/* The attributes of a pool, in the layout of librpmem's struct rpmem_pool_attr. */
struct poolset_attr {
	char signature[HEADER_SIGNATURE];
	uint32_t major, compat, incompat, ro_compat;
	uint8_t poolset_uuid[HEADER_UUID];
	uint8_t uuid[HEADER_UUID]; /* the UUID of the first part */
	/* UUIDs of the neighbouring replicas */
	uint8_t next_uuid[HEADER_UUID], prev_uuid[HEADER_UUID];
	uint8_t user_flags[HEADER_ARCH]; /* the header's arch_flags */
};

/*
 * usc counts the power failures that the devices did not survive; dirty: a process uses the pool.
 */
struct header_sds {
	uint64_t usc, uuid;
	uint8_t dirty;
};

struct header {
	char signature[HEADER_SIGNATURE];
	uint32_t major, compat, incompat, ro_compat;
	uint8_t poolset_uuid[HEADER_UUID], uuid[HEADER_UUID];
	uint8_t prev_part[HEADER_UUID], next_part[HEADER_UUID];
	uint8_t prev_repl[HEADER_UUID], next_repl[HEADER_UUID];
	uint64_t crtime;
	uint8_t arch_flags[HEADER_ARCH];
	struct header_sds sds;
};

/* Returns true also for NULL, which stands for a pool without headers. */
bool poolset_attr_is_zero(const struct poolset_attr *attr);

/* Copy the attributes that all parts share. The uuid and the links of the ring of parts stay. */
void header_set_attr(struct header *h, const struct poolset_attr *attr);
void header_get_attr(const struct header *h, struct poolset_attr *attr);

/* Encode the header, including both checksums. */
void header_encode(const struct header *h, uint8_t page[HEADER_BYTES]);
/* Decode the page without checking it. */
void header_decode(const uint8_t page[HEADER_BYTES], struct header *h);
bool header_is_zero(const uint8_t page[HEADER_BYTES]);
/* Returns true if the checksum is right and the unused bytes are zero. */
bool header_is_intact(const uint8_t page[HEADER_BYTES]);

/* Returns true if these features include a shutdown state. */
bool header_has_sds(const struct header *h);
/*
 * Returns true if a power failure came while the pool was in use, and the pool's devices did not
 * survive the failure. Then the stored state is dirty, and its counts differ from the present ones.
 * A state with a wrong checksum counts as no state.
 */
bool header_sds_is_lost(const uint8_t page[HEADER_BYTES], const struct header_sds *now);

/* Make a UUID, in the mixed form in which headers store it. */
void header_fresh_uuid(uint8_t uuid[HEADER_UUID]);
/* Get the arch_flags of this machine. */
void header_arch_flags(uint8_t flags[HEADER_ARCH]);

/* The headers of a pool: one for each part that has a header. */
struct header_set {
	uint8_t (*pages)[HEADER_BYTES];
	const char *const *names; /* names of the files, for the text of an error */
	unsigned count;
	bool is_single; /* the pool set has the option SINGLEHDR */
};

/*
 * Check that the headers belong together. The checks and their order are PMDK's. Each part's
 * header is not all zero; has the signature, version and features of the first header; is intact;
 * has the UUIDs, the neighbouring replicas and the arch_flags of the first header. The last check
 * is the part's position in the ring of parts. The cause of a failure is EINVAL, or EBADMSG for a
 * header that is not intact.
 */
int header_check(const struct header_set *set, struct error *err);

#endif
