/* SPDX-License-Identifier: BSD-3-Clause */
/* counters.h -- what the device counted for a connection, for operators and for measuring. */
#ifndef SESSION_COUNTERS_H
#define SESSION_COUNTERS_H

#include <librpma.h>
#include <stddef.h>

#define COUNTERS_TEXT 1024

/* " NAME=VALUE" for each that is not 0; "" where the device counts nothing. */
void counters_text(const struct rpma_conn *conn, char *text, size_t size);

#endif
