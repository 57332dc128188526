/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_pair.h -- a link of this process with itself: two byte rings and a bell for each connection.
 * It serves addresses that no network has (203.0.113.0/24, RFC 5737), in two ways: with .1 the
 * receiver can look at bytes in place, and wait for them; .2 has only the functions that every link
 * has. A test that uses it is linked with --wrap=link_of.
 */
#ifndef UNIT_IO_LINK_PAIR_H
#define UNIT_IO_LINK_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PAIR_IN_PLACE 0xcb007101u /* 203.0.113.1 */
#define PAIR_PLAIN    0xcb007102u

/* How many more bytes the link carries, over all connections; SIZE_MAX: any number. */
void pair_allow(size_t bytes);
/* Returns the number of bytes carried so far. */
size_t pair_carried(void);
/* Returns the number of links that are not closed. */
unsigned pair_links(void);
/* The number of links of .1 that report no bytes, because a thread looks for them. */
unsigned pair_silent(void);
/* The number of sends of which not one byte was taken. */
unsigned pair_full(void);
/* From now on .1 does not report a peer's end; only look_for_end() finds it. */
void pair_hide_ends(bool hide);
/*
 * The number of waits for descriptors of these links; and the thread that found bytes without a
 * report.
 */
unsigned pair_waits(void);
pid_t pair_looker(void);

#endif
