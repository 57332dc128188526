/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vocabulary.c -- asserts that librpma's public numbers and layouts equal those of verbs_ext.
 *
 * They must be equal, because librpma passes numbers through without conversion, and writes results
 * directly into the user's structures. This file contains no code.
 */
#include "librpma.h"
#include "verbs_ext/verbs_ext.h"

#define SAME(name)                                                                                 \
	_Static_assert((uint64_t)RPMA_##name == (uint64_t)VEXT_##name, #name " is passed through");

SAME(CAP_SOFTRNIC)
SAME(CAP_FLUSH)
SAME(CAP_FLUSH_ALL)
SAME(CAP_ATOMIC_WRITE)
SAME(CAP_VERIFY)
SAME(CAP_QUERY)
SAME(CAP_IMM)
SAME(CAP_ATOMICS)

SAME(WC_FLUSH)
SAME(WC_ATOMIC_WRITE)
SAME(WC_VERIFY)
SAME(WC_QUERY)

SAME(DURABILITY_UNKNOWN)
SAME(DURABILITY_VOLATILE)
SAME(DURABILITY_FILE)
SAME(DURABILITY_DAX)
_Static_assert(sizeof(enum rpma_durability) == sizeof(uint32_t), "answers are written as such");

SAME(DIGEST_AUTO)
SAME(DIGEST_CRC32C)
SAME(DIGEST_BLAKE2B)
SAME(DIGEST_SMALL)
SAME(DIGEST_FROM_MEMORY)
SAME(DIGEST_FROM_CACHE)
SAME(DIGEST_FROM_MEDIUM)
SAME(DIGEST_FROM_DAX)

#define SAME_PLACE(member)                                                                         \
	_Static_assert(offsetof(struct rpma_digest, member) ==                                     \
			       offsetof(struct vext_digest, member),                               \
		       #member " is passed through");
SAME_PLACE(alg)
SAME_PLACE(source)
SAME_PLACE(durability)
SAME_PLACE(len)
SAME_PLACE(bytes)
_Static_assert(sizeof(struct rpma_digest) == sizeof(struct vext_digest), "passed through");

SAME(REJECTION_NONE)
SAME(REJECTION_UNKNOWN)
SAME(REJECTION_NO_LISTENER)
SAME(REJECTION_REFUSED)
SAME(REJECTION_CLOSED)

SAME(REASON_NONE)
SAME(REASON_WRITE_BACK)
SAME(REASON_VOLATILE)
SAME(REASON_GONE)
SAME(REASON_TERMINATE_IN)
SAME(REASON_TERMINATE_OUT)
SAME(REASON_LINK)
SAME(REASON_LOCAL)
