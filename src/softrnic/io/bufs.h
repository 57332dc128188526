/* SPDX-License-Identifier: BSD-3-Clause */
/* bufs.h -- a pool of receive and send buffers, which connections borrow while they need one. */
#ifndef IO_BUFS_H
#define IO_BUFS_H

enum buf_kind { BUF_RX, BUF_TX, BUF_KINDS };

void *buf_get(enum buf_kind kind);           /* returns NULL if out of memory */
void buf_put(enum buf_kind kind, void *buf); /* accepts NULL */

#endif
