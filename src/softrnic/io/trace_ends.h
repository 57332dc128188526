/* SPDX-License-Identifier: BSD-3-Clause */
/* trace_ends.h -- which connection it is. */
#ifndef IO_TRACE_ENDS_H
#define IO_TRACE_ENDS_H

#include <stdint.h>

#include "softrnic/io/link_addr.h"
#include "softrnic/trace/flow.h"

/* Addresses and ports, as they are on the wire. */
void trace_ends(struct flow *f, const struct link_addr *us, const struct link_addr *peer);
/* The same at both ends of a connection. */
uint64_t trace_key(const struct flow *f, enum flow_side initiator);

#endif
