/* SPDX-License-Identifier: BSD-3-Clause */
/* flush.h -- the memory into which an emulated flush reads. */
#ifndef RPMA_FLUSH_H
#define RPMA_FLUSH_H

#include "librpma.h"
#include "verbs_ext/verbs_ext.h"

enum { FLUSH_READ_LEN = 8 };

struct flush_sink {
	void *page;
	size_t page_size;
	struct rpma_mr_local *mr;
};

/* RPMA_E_NOMEM, RPMA_E_PROVIDER. On failure nothing is left behind. */
int flush_sink_init(struct flush_sink *sink, struct rpma_peer *peer);
int flush_sink_fini(struct flush_sink *sink);

/* How to ask for persistence: strict, or as RPMA_STRICT_PERSIST says. */
enum vext_flush_type flush_persistent_type(bool strict);

#endif
