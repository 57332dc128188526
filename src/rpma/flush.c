/* SPDX-License-Identifier: BSD-3-Clause */
/* flush.c -- flushes, and the memory for a read that replaces a flush (settle.c). */
#include "rpma/flush.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rpma/err.h"
#include "rpma/mr.h"
#include "rpma/op.h"
#include "rpma/peer.h"

struct flush_sink {
	atomic_uint refs;
	void *page;
	size_t page_size;
	struct rpma_mr_local *mr;
};

static int flush_sink_map(struct flush_sink *sink)
{
	long page_size = sysconf(_SC_PAGESIZE);

	if (page_size < 0) {
		LOG_AT(LOG_LVL_FATAL, "sysconf(_SC_PAGESIZE) failed: %s", strerror(errno));
		return RPMA_E_PROVIDER;
	}
	/* Map the memory shared, so that the device still has the parent's page after a fork(). */
	sink->page_size = (size_t)page_size;
	sink->page = mmap(NULL, sink->page_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);
	if (sink->page == MAP_FAILED)
		return err_set(RPMA_E_NOMEM, "there is no memory for flushes that become reads");
	return 0;
}

static int flush_sink_new(struct rpma_peer *peer, struct flush_sink **out)
{
	struct flush_sink *sink = calloc(1, sizeof(*sink));
	int ret = sink ? flush_sink_map(sink)
		       : err_set(RPMA_E_NOMEM, "there is no memory for a "
					       "flush sink");

	if (ret) {
		free(sink);
		return ret;
	}
	ret = rpma_mr_reg(peer, sink->page, FLUSH_READ_LEN, RPMA_MR_USAGE_READ_DST, &sink->mr);
	if (ret) {
		munmap(sink->page, sink->page_size);
		free(sink);
		return ret;
	}
	atomic_init(&sink->refs, 1);
	*out = sink;
	return 0;
}

int flush_sink_get(struct rpma_peer *peer, struct flush_sink **out)
{
	int ret = 0;

	pthread_mutex_lock(&peer->lock);
	if (!peer->flush_sink)
		ret = flush_sink_new(peer, &peer->flush_sink);
	if (!ret) {
		atomic_fetch_add(&peer->flush_sink->refs, 1);
		*out = peer->flush_sink;
	}
	pthread_mutex_unlock(&peer->lock);
	return ret;
}

int flush_sink_put(struct flush_sink *sink)
{
	int ret;

	if (!sink || atomic_fetch_sub(&sink->refs, 1) != 1)
		return 0;
	ret = rpma_mr_dereg(&sink->mr);
	if (munmap(sink->page, sink->page_size))
		ret = first_error(ret, err_set(RPMA_E_INVAL, "the memory behind flushes cannot be "
							     "unmapped"));
	free(sink);
	return ret;
}

const struct rpma_mr_local *flush_sink_mr(const struct flush_sink *sink)
{
	return sink->mr;
}

/*
 * The variable RPMA_STRICT_PERSIST, which is read once. If it is set, it overrides the default of
 * both versions of rpma_flush().
 */
static struct {
	bool is_set, strict;
} env;

static void flush_read_env(void)
{
	const char *value = getenv("RPMA_STRICT_PERSIST");

	env.is_set = value && (!strcmp(value, "0") || !strcmp(value, "1"));
	env.strict = env.is_set && value[0] == '1';
	if (value && *value && !env.is_set)
		LOG_WARNING("RPMA_STRICT_PERSIST=%s ignored: expected 0 or 1", value);
}

enum vext_flush_type flush_persistent_type(bool strict)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, flush_read_env);
	return (env.is_set ? env.strict : strict) ? VEXT_FLUSH_STRICT : VEXT_FLUSH_PERSISTENT;
}

static bool flush_type_is_valid(enum rpma_flush_type type)
{
	return type == RPMA_FLUSH_TYPE_PERSISTENT || type == RPMA_FLUSH_TYPE_VISIBILITY;
}

/* Turn a flush of length 0 into a flush of the whole region, because the read that replaces a flush
 * does the same. */
void op_flush_whole_region(const struct rpma_mr_remote *dst, size_t *offset, size_t *len)
{
	*len = 1; /* a range that ends one byte past the region, so that the peer refuses it */
	if (*offset > dst->size)
		return;
	*offset = 0;
	*len = dst->size;
}

int op_refuse_flush(const struct rpma_mr_remote *dst, enum rpma_flush_type type, int flags)
{
	if (!dst || !flush_type_is_valid(type) || !flags)
		return err_set(RPMA_E_INVAL, "a flush has flags 0, no region, or a type that is "
					     "none");
	LOG_ERROR("the remote region was not registered for this type of flush");
	return RPMA_E_NOSUPP;
}

int op_flush_all(struct op op, enum rpma_flush_type type, int flags, const void *op_context)
{
	if (!flush_type_is_valid(type) || !flags)
		return err_set(RPMA_E_INVAL, "a flush of everything has flags 0, or a type that is "
					     "none");
	op_begin(op, VEXT_OP_FLUSH_ALL, flags, op_context);
	op.wr->type = type == RPMA_FLUSH_TYPE_PERSISTENT ? flush_persistent_type(true)
							 : VEXT_FLUSH_VISIBLE;
	return 0;
}
