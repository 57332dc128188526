/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_pair.h -- a link of this process with itself: two byte rings and a bell for each connection.
 * It serves addresses that no network has (203.0.113.0/24, RFC 5737), in two ways:
 * .1 lets the receiver look at bytes in place, and wait for them; .2 has only what every link has.
 * A test that uses it is linked with --wrap=link_of.
 */
#ifndef UNIT_IO_LINK_PAIR_H
#define UNIT_IO_LINK_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PAIR_IN_PLACE 0xcb007101u /* 203.0.113.1 */
#define PAIR_PLAIN    0xcb007102u

/* How many more bytes are carried, of all connections together; SIZE_MAX: any number. */
void pair_allow(size_t bytes);
/* How many were. */
size_t pair_carried(void);
/* Links that are not closed. */
unsigned pair_links(void);
/* Those of .1 that report no bytes, as somebody looks for them. */
unsigned pair_silent(void);
/* Sends of which not a byte was taken, in all. */
unsigned pair_full(void);
/* From now on .1 reports no end of a peer's sending, and finds it only after look_for_end(). */
void pair_hide_ends(bool hide);
/* Waits for descriptors of these that have begun, in all; and the thread that found bytes which
 * were not reported. */
unsigned pair_waits(void);
pid_t pair_looker(void);

#endif
