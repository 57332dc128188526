/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin.h -- in place of the daemons: this host's with its socket and a register, and those of
 * other members with their copies, in one thread of the test. What a test wants to go wrong goes
 * wrong here.
 */
#ifndef TESTS_MIRROR_STANDIN_H
#define TESTS_MIRROR_STANDIN_H

#include <sys/types.h>

#include "mirror/wire/packet.h"

#define STANDIN_SET  "set"
#define STANDIN_SIZE (8u << 20)

struct standin;

/* A set with so many members in S, of which slot 0 is on this host; RPMIRROR_SOCKET is set. */
struct standin *standin_new(unsigned members);
void standin_delete(struct standin *s);

/* What a member's file holds, slot 0 included. */
const uint8_t *standin_copy(struct standin *s, unsigned slot);
/* Other bytes at the begin of a member's file, by write(2). */
void standin_spoil(struct standin *s, unsigned slot);
/* The member's file ends here, so that its last pages can be neither read nor stored into, until it
 * is asked to clear them: then they are zeros, or it fails with that errno. */
void standin_set_bad(struct standin *s, unsigned slot, uint64_t end, int error);
/* The register's record now. */
struct mirror_record standin_record(struct standin *s);
void standin_set_local_error_continues(struct standin *s);
/* Of a member's file. */
ino_t standin_inode(struct standin *s, unsigned slot);
void standin_set_min_copies(struct standin *s, unsigned min_copies);
void standin_set_lease_ms(struct standin *s, uint32_t ms);
void standin_set_blocked_ms(struct standin *s, uint32_t ms);
void standin_set_replica_timeout_ms(struct standin *s, uint32_t ms);

/* The member's connections break, and nobody listens there until it is up again. */
void standin_cut(struct standin *s, unsigned slot);
void standin_mend(struct standin *s, unsigned slot);
/* The register does not answer: swaps are FAILED, reads fail. */
void standin_set_register(struct standin *s, bool works);
/* This host's daemon does not answer to swaps and
 * reads, as one that is stopped; then all at once. */
void standin_set_silent(struct standin *s, bool silent);
/* This host's daemon goes, with its socket; and is there again. */
void standin_stop_daemon(struct standin *s);
void standin_start_daemon(struct standin *s);
/* Leases are not renewed. */
void standin_set_lease(struct standin *s, bool renewed);
/* Another member promotes itself, and this host's daemon hears of it. */
void standin_overtake(struct standin *s);
/* The last primary did not end in good order. */
void standin_set_unclean(struct standin *s);
/* Ranges that a member reports as perhaps different. */
void standin_set_records(struct standin *s, unsigned slot, struct mirror_range range);
/* It does not say any more which epoch's flushes it may hold. */
void standin_forget_epoch(struct standin *s, unsigned slot);
/* How many questions of a kind a member was asked. */
unsigned standin_asked(struct standin *s, unsigned slot, unsigned message_type);
/* Give the primary an order, and wait for its answer. */
struct packet_ordered standin_order(struct standin *s, const struct packet_order_request *order);
/* As the last STATUS of the library has it. */
enum mirror_health standin_health(struct standin *s);
/* What the primary last reported of itself. */
struct message_status standin_status(struct standin *s);
/* The last UNMAP was there, and clean. */
bool standin_unmapped_clean(struct standin *s);

#endif
