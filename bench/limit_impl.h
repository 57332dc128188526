/* SPDX-License-Identifier: BSD-3-Clause */
/* limit_impl.h -- the limits: the cost of the same work without librpma. */
#ifndef BENCH_LIMIT_IMPL_H
#define BENCH_LIMIT_IMPL_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/case.h"

/* Each of these functions measures one case and prints its line. */
void limit_pingpong(const struct bench_case *c);
void limit_watch(const struct bench_case *c);
void limit_stream(const struct bench_case *c);
void limit_memcpy(const struct bench_case *c);
void limit_memcpy2(const struct bench_case *c);
void limit_cacheline(const struct bench_case *c);
void limit_ranges(const struct bench_case *c);
void limit_disk(const struct bench_case *c);
void limit_persist(const struct bench_case *c);
void limit_mirrored(const struct bench_case *c);
void limit_wake_futex(const struct bench_case *c);
void limit_wake_socket(const struct bench_case *c);

/* Return a connected socket. The ends exchange the port over fd. */
int limit_socket_accept(const struct bench_case *c, int fd);
int limit_socket_connect(const struct bench_case *c, int fd);
/* Receive exactly len bytes; with `poll` never sleep. Returns false if the other end has closed its
 * side. */
bool limit_socket_recv(int sock, char *buf, size_t len, bool poll);
void limit_socket_send(int sock, const char *buf, size_t len);
/* Returns len bytes of memory whose pages are allocated and not zero. */
char *limit_buffer(size_t len);

#endif
