/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coverage.h -- counts how often all runs together have reached each case. A simulation that never
 * reaches a case proves nothing about it.
 */
#ifndef SIM_COVERAGE_H
#define SIM_COVERAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "sim.h"

/* Each count must be positive after some thousand runs with faults. */
#define COVERAGE(X)                                                                                \
	X(established)                                                                             \
	X(rejected)                                                                                \
	X(redialled)                                                                               \
	X(crc)                                                                                     \
	X(no_crc)                                                                                  \
	X(consent)                                                                                 \
	X(no_consent)                                                                              \
	X(peer_to_peer)                                                                            \
	X(revision_1)                                                                              \
	X(operations)                                                                              \
	X(reads)                                                                                   \
	X(flushes)                                                                                 \
	X(reads_as_flush)                                                                          \
	X(consented_read_flushes)                                                                  \
	X(changing)                                                                                \
	X(sends)                                                                                   \
	X(parked_sends)                                                                            \
	X(acks)                                                                                    \
	X(stalls)                                                                                  \
	X(direct_bytes)                                                                            \
	X(in_place_bytes)                                                                          \
	X(put_bytes)                                                                               \
	X(rings)                                                                                   \
	X(rings_both_ways)                                                                         \
	X(rings_refused)                                                                           \
	X(scrambled_headers)                                                                       \
	X(crc_errors)                                                                              \
	X(terminates)                                                                              \
	X(writebacks)                                                                              \
	X(writeback_failures)                                                                      \
	X(shared_writebacks)                                                                       \
	X(errors)                                                                                  \
	X(write_imms)                                                                              \
	X(send_imms)                                                                               \
	X(invalidates)                                                                             \
	X(fetch_adds)                                                                              \
	X(cmp_swaps)                                                                               \
	X(atomic_writes)                                                                           \
	X(atomics_seen_early)                                                                      \
	X(flushes_of_all)                                                                          \
	X(verifies)                                                                                \
	X(queries)                                                                                 \
	X(strict_flushes)                                                                          \
	X(lists)                                                                                   \
	X(refused_lists)                                                                           \
	X(waiting_writes)                                                                          \
	X(solicited_events)                                                                        \
	X(shared_srqs)                                                                             \
	X(connections)                                                                             \
	X(dax)                                                                                     \
	X(evictions)                                                                               \
	X(power_cuts)                                                                              \
	X(bytes)
struct coverage {
	unsigned long long runs, events;
	unsigned long long fault_hit[FAULT_COUNT];
#define X(name) unsigned long long name;
	COVERAGE(X)
#undef X
};

/* Call this after a run, before world_stop(). */
void coverage_add(struct coverage *c, const struct world *w);
void coverage_print(const struct coverage *c, FILE *to);
/* Returns true if each case happened at least once. Prints the cases that did not. */
bool coverage_is_complete(const struct coverage *c, const struct sim_options *opt, FILE *to);

#endif
