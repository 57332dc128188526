/* SPDX-License-Identifier: BSD-3-Clause */
/* verify.c -- questions to the target about a range: its digest, and what persists it. */
#include "base/digest.h"
#include "rpma/err.h"
#include "rpma/mr.h"
#include "rpma/op.h"

/* The target's answers are written as these, and read by the user as ours. */
#define SAME_PLACE(member)                                                                         \
	_Static_assert(offsetof(struct rpma_digest, member) ==                                     \
			       offsetof(struct vext_digest, member),                               \
		       "passed through")
SAME_PLACE(alg);
SAME_PLACE(source);
SAME_PLACE(durability);
SAME_PLACE(len);
SAME_PLACE(bytes);
_Static_assert(sizeof(struct rpma_digest) == sizeof(struct vext_digest), "passed through");
_Static_assert(sizeof(enum rpma_durability) == sizeof(uint32_t), "passed through");

#define SAME(name) _Static_assert((int)RPMA_##name == (int)VEXT_##name, "passed through")
SAME(DIGEST_CRC32C);
SAME(DIGEST_BLAKE2B);
SAME(DIGEST_FROM_MEMORY);
SAME(DIGEST_FROM_CACHE);
SAME(DIGEST_FROM_MEDIUM);
SAME(DIGEST_FROM_DAX);
SAME(DURABILITY_UNKNOWN);
SAME(DURABILITY_VOLATILE);
SAME(DURABILITY_FILE);
SAME(DURABILITY_DAX);

_Static_assert(RPMA_DIGEST_SMALL == DIGEST_SMALL && (int)RPMA_DIGEST_AUTO == (int)DIGEST_AUTO,
	       "both ends choose alike");

static bool is_alg(enum rpma_digest_alg alg)
{
	return alg == RPMA_DIGEST_AUTO || alg == RPMA_DIGEST_CRC32C || alg == RPMA_DIGEST_BLAKE2B;
}

int rpma_digest_compute(enum rpma_digest_alg alg, const void *ptr, size_t len,
			struct rpma_digest *digest)
{
	struct digest d;

	if (!digest || (!ptr && len) || !is_alg(alg) || mr_check_len(len))
		return RPMA_E_INVAL;
	alg = (enum rpma_digest_alg)digest_pick(alg, len);
	digest_init(&d, alg);
	digest_update(&d, ptr, len);
	*digest = (struct rpma_digest){.alg = alg,
				       .source = RPMA_DIGEST_FROM_MEMORY,
				       .durability = RPMA_DURABILITY_UNKNOWN,
				       .len = (uint32_t)len};
	digest_final(&d, digest->bytes);
	return 0;
}

bool rpma_digest_equal(const struct rpma_digest *a, const struct rpma_digest *b)
{
	return a && b && a->alg == b->alg && a->len == b->len &&
	       !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

int op_verify(struct op op, const struct rpma_mr_remote *dst, size_t offset, size_t len,
	      enum rpma_digest_alg alg, struct rpma_digest *digest, int flags,
	      const void *op_context)
{
	if (!dst || !len || !digest || !flags || !is_alg(alg) || mr_check_len(len) ||
	    mr_check_range(offset, len))
		return RPMA_E_INVAL;
	if (!(dst->usage & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)) {
		LOG_ERROR("the remote region was not registered for persistent flushes");
		return RPMA_E_NOSUPP;
	}
	op_begin(op, VEXT_OP_VERIFY, flags, op_context);
	op_target(op, dst, offset, len);
	op.wr->type = VEXT_FLUSH_PERSISTENT;
	op.wr->alg = digest_pick(alg, len);
	op.wr->result = digest;
	return 0;
}

int op_query(struct op op, const struct rpma_mr_remote *dst, size_t offset, size_t len,
	     enum rpma_durability *durability, int flags, const void *op_context)
{
	if (!dst || !len || !durability || !flags || mr_check_range(offset, len))
		return RPMA_E_INVAL;
	op_begin(op, VEXT_OP_QUERY, flags, op_context);
	op_target(op, dst, offset, len);
	op.wr->result = durability;
	return 0;
}
