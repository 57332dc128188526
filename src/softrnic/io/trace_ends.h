/* SPDX-License-Identifier: BSD-3-Clause */
/* trace_ends.h -- which connection a socket is of. */
#ifndef IO_TRACE_ENDS_H
#define IO_TRACE_ENDS_H

#include <stdint.h>

#include "softrnic/trace/flow.h"

/* Addresses and ports, as they are on the wire. 0, or -errno: it is not connected any more. */
int trace_ends(struct flow *f, int fd);
/* The same at both ends of a connection. */
uint64_t trace_key(const struct flow *f, enum flow_side initiator);

#endif
