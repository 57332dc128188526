/* SPDX-License-Identifier: BSD-3-Clause */
/* flush.h -- the memory (sink) into which a read that replaces a flush reads. */
#ifndef RPMA_FLUSH_H
#define RPMA_FLUSH_H

#include "librpma.h"
#include "verbs_ext/verbs_ext.h"

enum { FLUSH_READ_LEN = 8 };

/* One sink serves all connections of a peer, because the program never reads its bytes. */
struct flush_sink;
/* Get the sink. The first connection registers its memory. Returns 0, RPMA_E_NOMEM or
 * RPMA_E_PROVIDER. */
int flush_sink_get(struct rpma_peer *peer, struct flush_sink **out);
/* Release the sink. The last user, which is a connection or the peer, deregisters the memory.
 * Accepts NULL. */
int flush_sink_put(struct flush_sink *sink);
const struct rpma_mr_local *flush_sink_mr(const struct flush_sink *sink);

/* Returns the type of a persistent flush: strict if `strict` is true, unless RPMA_STRICT_PERSIST
 * overrides it. */
enum vext_flush_type flush_persistent_type(bool strict);

#endif
