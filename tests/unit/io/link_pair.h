/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_pair.h -- a link between two ends in this process: two byte rings and an eventfd for each
 * connection. It serves addresses that no network has (203.0.113.0/24, RFC 5737), in two ways. At
 * .1 the receiver can parse bytes in place and wait for them; .2 has only the functions that every
 * link has. A program that uses this link is linked with --wrap=link_of.
 */
#ifndef UNIT_IO_LINK_PAIR_H
#define UNIT_IO_LINK_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PAIR_IN_PLACE 0xcb007101u /* the address 203.0.113.1 */
#define PAIR_PLAIN    0xcb007102u

/* Set how many more bytes all links together carry; SIZE_MAX: no limit. */
void pair_allow(size_t bytes);
/* Returns how many bytes the links have carried. */
size_t pair_carried(void);
/* Returns how many links are open. */
unsigned pair_links(void);
/* Returns how many links of .1 report no bytes because a thread itself looks for bytes. */
unsigned pair_silent(void);
/* Returns how many sends could not send a single byte. */
unsigned pair_full(void);
/* From now on links of .1 do not report a peer's end: only look_for_end() finds it. */
void pair_hide_ends(bool hide);
/*
 * pair_waits() returns how often threads waited for descriptors of these links; pair_looker()
 * returns the thread that last found bytes without a report.
 */
unsigned pair_waits(void);
pid_t pair_looker(void);

#endif
