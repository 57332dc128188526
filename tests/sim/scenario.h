/* SPDX-License-Identifier: BSD-3-Clause */
/* scenario.h -- the run that a seed defines: the two ends, the link, the sizes, and the fault. */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "prng.h"

#define SIM_FAULTS(X)                                                                              \
	X(NONE)       /* everything must succeed */                                                \
	X(RST)        /* the connection is reset at a byte */                                      \
	X(FIN)        /* one direction ends at a chosen byte */                                    \
	X(FLIP)       /* one bit changes on the way */                                             \
	X(POWER)      /* both ends lose power: only the medium survives */                         \
	X(DEREG)      /* one end deregisters a region in full flight */                            \
	X(ACCESS)     /* one end requests an access without the right */                           \
	X(WRITEBACK)  /* the medium fails */                                                       \
	X(UNMAP)      /* a region's memory is gone (EFAULT) */                                     \
	X(KILL)       /* one end is killed; its memory stays */                                    \
	X(OVERRUN)    /* one end's completion queue is too small */                                \
	X(REJECT)     /* the responder rejects the connection */                                   \
	X(DISCONNECT) /* one end disconnects in the middle */                                      \
	X(STRICT)     /* a strict flush of memory that cannot persist */                           \
	X(DESTROY)    /* one end destroys its queue pair in full flight */                         \
	X(PAUSE)      /* one end does not run for a while, and everything goes on after that */    \
	X(STOP)       /* one end never runs again; its kernel still takes bytes */                 \
	X(BLACKHOLE)  /* no byte crosses the link any more, and no FIN or RST */
enum sim_fault {
#define X(name) FAULT_##name,
	SIM_FAULTS(X)
#undef X
		FAULT_COUNT
};

/* All modes but the first are broken on purpose, to show that the checks notice. */
enum sim_mode {
	SIM_HONEST,
	SIM_EARLY_ACK,      /* a write-back is acknowledged before it is made */
	SIM_NO_WRITEBACK,   /* the write-back is acknowledged and never made */
	SIM_PLAIN_READS,    /* no Read of a consenting peer is a flush */
	SIM_JOINS,          /* a flush ends with a write-back that began before the flush */
	SIM_EAGER_ATOMIC,   /* an atomic write does not wait for the flush before it */
	SIM_IGNORED_SWITCH, /* the peer's SWITCH to the ring is ignored */
	SIM_OLD_LINK,       /* bytes after the end's own SWITCH still go over TCP */
	SIM_READ_TWICE,     /* the header in a ring is read again after the check */
	SIM_HASTY_ACK,      /* messages are acknowledged before their placement */
	/* Connections in a row: one layer, or all of them, is missing. */
	SIM_GRACEFUL_CLOSE, /* an end that is given up goes on sending */
	SIM_NO_MARK,        /* rings have no word "given up" */
	SIM_NO_LOOK,        /* earlier bytes are placed although the end is known */
	SIM_NO_BARRIER,     /* the new connection does not name the former ones */
	SIM_BARRIER_EARLY,  /* the question is answered before the former connections are cut */
	SIM_LATE_ORIGIN,    /* a former connection that names itself after that is accepted */
	SIM_NO_LEAVE,       /* any FIN of the target counts as the end of its queue pair */
	SIM_NAMES_ALL,      /* a new connection also names the living ones */
	SIM_NO_OWNER,       /* a restarted process does not name its owner */
	SIM_UNPROTECTED,    /* all layers are missing */
	SIM_BARRIER_ALONE,  /* the only layer is the barrier, which is enough */
	/* Datagrams. */
	SIM_ANY_KEY,    /* a message with any key is received */
	SIM_TORN,       /* a message's last byte is not placed */
	SIM_NO_WINDOW,  /* no packet waits for a credit */
	SIM_EARLY_SENT, /* a Send completes although the socket did not take its packet */
	SIM_BLIND,      /* bits flip, no CRC is used, and contents are still trusted */
};

struct scenario {
	enum sim_mode mode;
	/* The ends; [0] is the initiator. */
	bool want_crc[2], offer_consent[2];
	bool rings;        /* both ends offer to move to rings in shared memory */
	bool acks[2];      /* the end asks for Acks */
	bool announces[2]; /* native flushes, as in librpma; otherwise also flushes by reading */
	bool p2p;
	uint8_t revision;
	uint16_t ird[2], ord[2];
	uint8_t pdata_len[2];
	bool use_srq[2], one_cq[2];
	uint32_t send_depth[2], recv_depth[2], send_sge, recv_sge, inline_max;
	bool late_receives;    /* "flush, wait, then post the next receive" */
	bool bulk_receives;    /* posts several at once, the next after these are used up */
	bool changing;         /* some sources change while they are being sent */
	bool mostly_sends;     /* mostly Sends, with few receives */
	bool commit_flags;     /* mostly data, flush, commit flag */
	bool assumes_7306;     /* both ends support RFC 7306 without an agreement */
	bool strict[2];        /* a persistent flush is strict even if the flush's type is not */
	bool half_volatile[2]; /* one of the end's targets has no medium */
	bool dax[2];           /* cache lines are written back, not files */
	bool evicts;           /* also evicts now and then without a request */
	/* The link and the medium. */
	uint32_t mss, chunk_max, window;
	unsigned reuse_percent; /* percent of sources that change after they are sent */
	uint64_t srq_notice_ns; /* delay of the notice that an SRQ has receives */
	uint64_t pool_busy_ns;  /* time until the pool takes a write-back */
	bool mostly_large;      /* mostly large operations */
	uint64_t latency_ns, writeback_ns, tick_ns;
	uint64_t liveness_ns[2], drain_ns; /* 0: the default */
	/* The work. */
	uint32_t ops[2], op_max, send_max, target_len, words_len;
	/* The fault. */
	enum sim_fault fault;
	int fault_node;     /* the faulty node, or (FLIP, FIN) the sender of the bytes */
	uint64_t fault_pos; /* stream position, or the number of operations before */
	uint64_t fault_ns, pause_ns;
	unsigned fault_bit;
	bool early_flip; /* the flip is in the start-up frame */
};

/* Length of the start-up frame of an end (RFC 5044 s7.1), at the first dial. */
static inline uint64_t scenario_frame_len(const struct scenario *sc, int i)
{
	return 20u + (sc->revision == 2 ? 4u : 0u) + sc->pdata_len[i];
}

/* Does the scenario lack the layer that this mode switches off? */
static inline bool scenario_lacks(const struct scenario *sc, enum sim_mode layer)
{
	bool timely = layer == SIM_GRACEFUL_CLOSE || layer == SIM_NO_MARK || layer == SIM_NO_LOOK;

	return sc->mode == layer || sc->mode == SIM_UNPROTECTED ||
	       (sc->mode == SIM_BARRIER_ALONE && timely);
}

void scenario_make(struct scenario *sc, struct prng *rng);
static inline bool scenario_has_crc(const struct scenario *sc)
{
	return sc->want_crc[0] || sc->want_crc[1];
}
/* RFC 6581's A bit and revision 1 leave no room for consent. */
static inline bool scenario_has_consent(const struct scenario *sc)
{
	return sc->offer_consent[0] && sc->offer_consent[1] && sc->revision == 2 && !sc->p2p;
}
/* May the contents of memory and messages be trusted? Bounds must hold in any case. */
static inline bool scenario_is_trusted(const struct scenario *sc)
{
	return sc->mode == SIM_BLIND || sc->fault != FAULT_FLIP ||
	       (scenario_has_crc(sc) && !sc->early_flip);
}
/* Does the scenario have immediate data and atomics? */
static inline bool scenario_has_7306(const struct scenario *sc)
{
	return scenario_has_consent(sc) || sc->assumes_7306;
}
/* Make one of several connections, without a fault, between two hosts that share receives. */
void scenario_make_beside(struct scenario *sc, struct prng *rng, const struct scenario *first);
/* Both hosts share receives between connections. */
void scenario_make_shared(struct scenario *sc, struct prng *rng);
/* Make a small scenario, mostly of flushes: for runs in which the power fails often. */
void scenario_make_cut(struct scenario *sc, struct prng *rng);
const char *scenario_fault_str(enum sim_fault fault);
void scenario_print(const struct scenario *sc, FILE *to);

#endif
