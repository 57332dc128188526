/* SPDX-License-Identifier: BSD-3-Clause */
/* flush.h -- the memory into which an emulated flush reads. */
#ifndef RPMA_FLUSH_H
#define RPMA_FLUSH_H

#include "librpma.h"
#include "verbs_ext/verbs_ext.h"

enum { FLUSH_READ_LEN = 8 };

/* One sink for all connections of a peer, because no program looks at its bytes. */
struct flush_sink;
/* Get the sink. The first connection registers the memory. RPMA_E_NOMEM, RPMA_E_PROVIDER. */
int flush_sink_get(struct rpma_peer *peer, struct flush_sink **out);
/* Release the sink. The last user (the peer or a connection) deregisters the memory. Accepts
 * NULL. */
int flush_sink_put(struct flush_sink *sink);
const struct rpma_mr_local *flush_sink_mr(const struct flush_sink *sink);

/* The type of a persistent flush: strict, unless RPMA_STRICT_PERSIST decides otherwise. */
enum vext_flush_type flush_persistent_type(bool strict);

#endif
