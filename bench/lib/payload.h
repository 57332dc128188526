/* SPDX-License-Identifier: BSD-3-Clause */
/* payload.h -- makes bytes that do not compress, so that a server writes as many bytes as it
 * receives. */
#ifndef BENCH_LIB_PAYLOAD_H
#define BENCH_LIB_PAYLOAD_H

#include <stddef.h>

/* The caller frees the result with free(). */
char *payload_new(size_t size);

#endif
