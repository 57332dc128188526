/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin.h -- a replacement for the daemons, in one thread of the test: this host's daemon with
 * its socket and a register, and the daemons of other members with their copies. Tests make the
 * replacement fail on purpose.
 */
#ifndef TESTS_MIRROR_STANDIN_H
#define TESTS_MIRROR_STANDIN_H

#include <sys/types.h>

#include "mirror/wire/packet.h"

#define STANDIN_SET  "set"
#define STANDIN_SIZE (8u << 20)

struct standin;

/* Make a set with that many members in S, with slot 0 on this host; RPMIRROR_SOCKET is set. */
struct standin *standin_new(unsigned members);
void standin_delete(struct standin *s);

/* The content of a member's file, also for slot 0. */
const uint8_t *standin_copy(struct standin *s, unsigned slot);
/* Write other bytes to the beginning of a member's file, by write(2). */
void standin_spoil(struct standin *s, unsigned slot);
/*
 * Truncate the member's file here, so that its last pages can be neither read nor stored into. When
 * the member is asked to clear the pages, they become zeros, or the call fails with that errno.
 */
void standin_set_bad(struct standin *s, unsigned slot, uint64_t end, int error);
/* Returns the present record of the register. */
struct mirror_record standin_record(struct standin *s);
void standin_set_local_error_continues(struct standin *s);
/* Returns the inode of a member's file. */
ino_t standin_inode(struct standin *s, unsigned slot);
void standin_set_min_copies(struct standin *s, unsigned min_copies);
void standin_set_lease_ms(struct standin *s, uint32_t ms);
void standin_set_blocked_ms(struct standin *s, uint32_t ms);
void standin_set_replica_timeout_ms(struct standin *s, uint32_t ms);

/* Break the member's connections; the member does not listen until it is restored. */
void standin_cut(struct standin *s, unsigned slot);
void standin_mend(struct standin *s, unsigned slot);
/* The register stops answering: swaps and reads fail. */
void standin_set_register(struct standin *s, bool works);
/*
 * This host's daemon stops answering swaps and reads, as if the daemon were stopped. Later it
 * answers all of them.
 */
void standin_set_silent(struct standin *s, bool silent);
/* End this host's daemon, with its socket; and start the daemon again. */
void standin_stop_daemon(struct standin *s);
void standin_start_daemon(struct standin *s);
/* Stop the renewal of leases. */
void standin_set_lease(struct standin *s, bool renewed);
/* Another member promotes itself, and this host's daemon sees the promotion. */
void standin_overtake(struct standin *s);
/* The last primary did not end in good order. */
void standin_set_unclean(struct standin *s);
/* Set the ranges that a member reports as possibly different. */
void standin_set_records(struct standin *s, unsigned slot, struct mirror_range range);
/* The member no longer reports the epoch whose flushes it may hold. */
void standin_forget_epoch(struct standin *s, unsigned slot);
/* The number of questions of a kind that a member got. */
unsigned standin_asked(struct standin *s, unsigned slot, unsigned message_type);
/* Give the primary an order, and wait for the answer. */
struct packet_ordered standin_order(struct standin *s, const struct packet_order_request *order);
/* Returns the health in the library's last STATUS. */
enum mirror_health standin_health(struct standin *s);
/* Returns the primary's last report. */
struct message_status standin_status(struct standin *s);
/* Has the last UNMAP come, and was that UNMAP clean? */
bool standin_unmapped_clean(struct standin *s);

#endif
