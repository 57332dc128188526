/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim.h -- deterministic simulation of two hosts with software RNICs.
 *
 * A run is a world made from a seed: a clock, random numbers, a queue of events, and one or more
 * connections between the same two hosts. The connections of a host share its STag table, its
 * protection domain and sometimes an SRQ. Each connection has a scenario of its own. Only the first
 * connection has a fault, which must not affect the others.
 *
 * The product's stream, queue pair, CQ, SRQ and STag table run unchanged. The following parts are
 * simulated: the link (link.c), the move to rings in shared memory (rings.c), the medium and its
 * write-backs (memory.c, writeback.c), the time, and the application (workload*.c). model*.c
 * computes the permitted content of each end's memory and medium, and the permitted completions;
 * verdict.c compares the actual ones with them.
 *
 * Fault model: for each layer, the faults that the design must survive, and the rules that must
 * still hold.
 *
 *   layer        fault                              scenario    what must hold
 *   link         any split, delay, window, MSS      every run   everything succeeds
 *                each direction may use a ring      50 %        everything succeeds
 *                a header in a ring changes after   50 %        the first read counts
 *                it was read
 *                one bit flips                      FLIP        with CRC none of it is placed,
 *                                                               without CRC the bounds hold
 *                a FIN or RST at any byte           FIN, RST    requests complete or are flushed
 *                no byte crosses the link any more  BLACKHOLE   LOST in time (consenting ends)
 *   peer         requests without the right         ACCESS      Terminate, and nothing changes
 *                rejects the connection             REJECT      the initiator gets the event
 *                disconnects at any time            DISCONNECT  earlier requests succeed
 *                its process is killed              KILL        its memory stays as it is
 *                its process stops for some time,   PAUSE       no loss, no error
 *                or for ever; its kernel runs       STOP        LOST in time (consenting ends)
 *   application  destroys its queue pair            DESTROY     its memory is not touched later
 *                deregisters a region               DEREG       its memory is not touched later
 *                its completion queue is too small  OVERRUN     an error; no completion is lost
 *                                                               silently
 *                changes a source while sending     every run   the stream stays intact
 *                posts receives late                every run   no deadlock
 *                relies on a completed Write being  50 %        with Acks, it is placed
 *                placed
 *   memory       a page is gone (EFAULT)            UNMAP       only its connection fails
 *   medium       a write-back fails                 WRITEBACK   the flush fails
 *                takes pieces early, in any order   every run   flushed bytes are on the medium
 *                one write-back serves flushes of   every run   flushed bytes of each stream are
 *                several streams                                on the medium
 *                is missing                         STRICT      a strict flush fails
 *   power        both hosts lose it at any time     POWER, -p   bytes acknowledged as persistent
 *                                                               are on the medium
 *
 * Runs of another kind (-r, reconnect.h) have one connection after the other between the same two
 * nodes, with the same memory. Bytes of an ended connection must not overwrite bytes of a later
 * connection.
 *
 * Runs of a third kind (-w, windows.h) have memory windows, over reliable and unreliable queue
 * pairs.
 *
 * Runs of a fourth kind (-d, datagram.h) have no connections: their queue pairs exchange datagrams.
 *
 * Not simulated: sockets, wake-ups, threads and locks (tests/system, TSan), and several faults in
 * one run.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "link.h"
#include "node.h"
#include "prng.h"
#include "scenario.h"
#include "sched.h"

/* every run without a fault must have ended by this time */
#define SIM_IMPATIENT_NS (3 * NSEC_PER_SEC)
/* every run with a fault must have ended by this time */
#define SIM_GIVE_UP_NS (12 * NSEC_PER_SEC)
#define SIM_CONNECT_NS (2 * NSEC_PER_SEC)
#define SIM_DRAIN_NS   (2 * NSEC_PER_SEC)
/* much more than the delays of the link and the medium */
#define SIM_LIVENESS_NS (600 * NSEC_PER_MS)
#define SIM_CONNS       4
#define WORLD_CONNS     8 /* maximum for connections in a row */

struct world;
struct reconnect;
struct windows;

/* One connection: two ends and the link between them. */
struct sim {
	struct world *world;
	unsigned index;
	struct scenario sc;
	struct link link;
	struct node node[2];
	bool fault_hit; /* the fault has occurred */
	unsigned redials;
	bool disconnecting; /* a user has disconnected */
};

struct world {
	uint64_t seed, now, events;
	struct prng rng;
	struct sched sched;
	struct sim conn[WORLD_CONNS];
	unsigned conns;
	struct host host[2];
	/* check the medium at every boundary of every write-back, as after a power cut */
	bool cut_often;
	unsigned long long cuts;
	bool powered_off; /* the power of both hosts has failed */
	/* connections in a row; NULL: all connections begin at the same time */
	struct reconnect *reconnect;
	struct windows *windows; /* NULL: the run has no memory windows */
	bool violated;
	char violation[256];
};

struct coverage;

/* Options of a run; all zeros are the defaults. */
struct sim_options {
	enum sim_mode mode;
	bool cut_often;
	bool reconnects; /* connections in a row: reconnect.h */
	bool datagrams;  /* datagram.h */
	bool windows;    /* windows.h */
};

/* Returns true if no rule was violated. */
bool world_run(struct world *w, uint64_t seed, const struct sim_options *opt,
	       struct coverage *coverage);
void world_fini(struct world *w);
/* world_start_hosts() starts the hosts that all connections share. world_stop() stops the first
 * w->conns connections and the hosts. */
void world_start_hosts(struct world *w);
void world_stop(struct world *w);

/* Record a violation. Only the first violation of a run is recorded. */
void world_violate(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_violate(struct sim *sim, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Schedule an event at an end of this connection. */
void sim_at(struct sim *sim, uint64_t at, enum event_kind kind, int node, uint64_t arg);
void sim_on_event(struct sim *sim, const struct event *e);
/* Handle the event, even if the node is paused or stuck. */
void sim_do_event(struct sim *sim, const struct event *e);
/* Returns true if each node was killed, or has shut down and has nothing left to collect. */
bool sim_is_over(struct sim *sim);
/* verdict.c, at any time: check that the memory of n is a state that the peer's operations can
 * produce. */
void sim_check_memory(struct node *n);
/* Check the rules for the end of the run. */
void sim_verdict(struct sim *sim);
/* Returns true if no fault has hit this connection yet, so an operation that has failed is a
 * violation. */
bool sim_is_clean(const struct sim *sim);

#endif
