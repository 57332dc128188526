/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_io.h -- the part of a connection that makes system calls; for conn.c only. */
#ifndef ENGINE_CONN_IO_H
#define ENGINE_CONN_IO_H

#include "softrnic/engine/conn.h"

/* Translate epoll's bits to ours. */
unsigned conn_io_bits(uint32_t epoll_events);
/* With the lock: take conn.want and do what it asks for. */
void conn_serve(struct conn *c);

#endif
