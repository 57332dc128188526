/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin.h -- replaces all daemons by one thread of the test: this host's daemon with its socket
 * and a register, and the other members' daemons with their copies. Tests make the replacement fail
 * on purpose.
 */
#ifndef TESTS_MIRROR_STANDIN_H
#define TESTS_MIRROR_STANDIN_H

#include <sys/types.h>

#include "mirror/wire/packet.h"

#define STANDIN_SET  "set"
#define STANDIN_SIZE (8u << 20)

struct standin;

/* Make a set with this many members in S; slot 0 is this host's. Sets RPMIRROR_SOCKET. */
struct standin *standin_new(unsigned members);
void standin_delete(struct standin *s);

/* Returns the content of a member's file; slot 0 is this host's. */
const uint8_t *standin_copy(struct standin *s, unsigned slot);
/* Change the beginning of a member's file by write(2). */
void standin_spoil(struct standin *s, unsigned slot);
/*
 * Truncate the member's file at `end`, so that its last pages can be neither read nor written. When
 * the member is asked to clear these pages, they become zeros, or the call fails with `error`.
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

/* Break the member's connections. standin_mend() lets it listen again. */
void standin_cut(struct standin *s, unsigned slot);
void standin_mend(struct standin *s, unsigned slot);
/* works == false: the register answers neither swaps nor reads. */
void standin_set_register(struct standin *s, bool works);
/*
 * silent: this host's daemon answers no swaps and reads, as if it were stopped. Afterwards it
 * answers all of them.
 */
void standin_set_silent(struct standin *s, bool silent);
/* End this host's daemon, with its socket, and start it again. */
void standin_stop_daemon(struct standin *s);
void standin_start_daemon(struct standin *s);
/* renewed == false: leases are no longer renewed. */
void standin_set_lease(struct standin *s, bool renewed);
/* Let another member become primary; this host's daemon gets this change. */
void standin_overtake(struct standin *s);
/* Act as if the last primary had not ended in good order. */
void standin_set_unclean(struct standin *s);
/* Set the ranges that a member reports as possibly different. */
void standin_set_records(struct standin *s, unsigned slot, struct mirror_range range);
/* Let the member no longer report the epoch whose flushes it may have. */
void standin_forget_epoch(struct standin *s, unsigned slot);
/* Returns how many requests of this type a member got. */
unsigned standin_asked(struct standin *s, unsigned slot, unsigned message_type);
/* Give the primary an order, and wait for the answer. */
struct packet_ordered standin_order(struct standin *s, const struct packet_order_request *order);
/* Returns the health in the library's last STATUS. */
enum mirror_health standin_health(struct standin *s);
/* Returns the primary's last report. */
struct message_status standin_status(struct standin *s);
/* Returns true if the last UNMAP has arrived and was clean. */
bool standin_unmapped_clean(struct standin *s);

#endif
