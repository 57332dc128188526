/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verify.c -- operations that return the digest or the durability class of a range at the target.
 */
#include "base/digest.h"
#include "rpma/err.h"
#include "rpma/mr.h"
#include "rpma/op.h"

static bool verify_alg_is_valid(enum rpma_digest_alg alg)
{
	return alg == RPMA_DIGEST_AUTO || alg == RPMA_DIGEST_CRC32C || alg == RPMA_DIGEST_BLAKE2B;
}

int rpma_digest_compute(enum rpma_digest_alg alg, const void *ptr, size_t len,
			struct rpma_digest *digest)
{
	struct digest d;

	if (!digest || (!ptr && len) || !verify_alg_is_valid(alg))
		return INVALID();
	if (mr_check_len(len))
		return RPMA_E_INVAL;
	alg = (enum rpma_digest_alg)vext_digest_pick(alg, len);
	digest_init(&d, alg == RPMA_DIGEST_BLAKE2B);
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
	if (!dst || !len || !digest || !flags || !verify_alg_is_valid(alg))
		return err_set(RPMA_E_INVAL, "a verification has flags 0, no region, no bytes, no "
					     "digest, or an algorithm that is none");
	if (mr_check_len(len) || mr_check_range(offset, len))
		return RPMA_E_INVAL;
	if (!(dst->usage & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)) {
		LOG_ERROR("the remote region was not registered for persistent flushes");
		return RPMA_E_NOSUPP;
	}
	op_begin(op, VEXT_OP_VERIFY, flags, op_context);
	op_target(op, dst, offset, len);
	op.wr->type = flush_persistent_type(true);
	op.wr->alg = vext_digest_pick(alg, len);
	op.wr->result = digest;
	return 0;
}

int op_query(struct op op, const struct rpma_mr_remote *dst, size_t offset, size_t len,
	     enum rpma_durability *durability, int flags, const void *op_context)
{
	if (!dst || !len || !durability || !flags)
		return err_set(RPMA_E_INVAL, "a query has flags 0, no region, no bytes, or nowhere "
					     "for the answer");
	if (mr_check_range(offset, len))
		return RPMA_E_INVAL;
	op_begin(op, VEXT_OP_QUERY, flags, op_context);
	op_target(op, dst, offset, len);
	op.wr->result = durability;
	return 0;
}
