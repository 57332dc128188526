/* SPDX-License-Identifier: BSD-3-Clause */
/* scenario.h -- the properties of a connection that a seed determines: its two ends, the link, the
 * sizes, and the fault. */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "prng.h"

#define SIM_FAULTS(X)                                                                              \
	X(NONE)       /* no fault: every operation must succeed */                                 \
	X(RST)        /* the connection is reset at a chosen byte */                               \
	X(FIN)        /* a FIN closes one direction at a chosen byte */                            \
	X(FLIP)       /* one bit of a message changes on the link */                               \
	X(POWER)      /* both ends lose power, and only the medium survives */                     \
	X(DEREG)      /* one end deregisters a region while operations use it */                   \
	X(ACCESS)     /* one end requests an access without the right */                           \
	X(WRITEBACK)  /* a write-back to the medium fails */                                       \
	X(UNMAP)      /* a region's memory is unmapped (EFAULT) */                                 \
	X(KILL)       /* one end is killed; its memory stays */                                    \
	X(OVERRUN)    /* one end's completion queue is too small */                                \
	X(REJECT)     /* the responder rejects the connection */                                   \
	X(DISCONNECT) /* one end disconnects in the middle of the work */                          \
	X(STRICT)     /* one end requests a strict flush of volatile memory */                     \
	X(DESTROY)    /* one end destroys its queue pair during its work */                        \
	X(PAUSE)      /* one end stops for some time, and then continues */                        \
	X(STOP)       /* one end never runs again; its kernel accepts bytes */                     \
	X(BLACKHOLE)  /* from now on the link delivers no byte, no FIN and no RST */
enum sim_fault {
#define X(name) FAULT_##name,
	SIM_FAULTS(X)
#undef X
		FAULT_COUNT
};

/* Each mode but the first breaks the product on purpose, to show that the checks detect this. */
enum sim_mode {
	SIM_HONEST,
	SIM_EARLY_ACK,      /* the target acknowledges a write-back before it makes it */
	SIM_NO_WRITEBACK,   /* the target acknowledges a write-back and never makes it */
	SIM_PLAIN_READS,    /* a Read of a consenting peer is never a flush */
	SIM_JOINS,          /* a flush joins a write-back that began before the flush */
	SIM_EAGER_ATOMIC,   /* an atomic write does not wait for the flush before it */
	SIM_IGNORED_SWITCH, /* the peer's SWITCH to the ring is ignored */
	SIM_OLD_LINK,       /* bytes after the end's own SWITCH still go over TCP */
	SIM_READ_TWICE,     /* the header in a ring is read again after the check */
	SIM_HASTY_ACK,      /* messages are acknowledged before their placement */
	/* Connections in a row: one protection, or all of them, is missing. */
	SIM_GRACEFUL_CLOSE, /* an end whose peer has given up continues to send */
	SIM_NO_MARK,        /* rings have no word "given up" */
	SIM_NO_LOOK,        /* bytes are placed although the connection's end is known */
	SIM_NO_BARRIER,     /* the new connection does not name the former ones */
	SIM_BARRIER_EARLY,  /* the target answers before it cuts the former connections */
	SIM_LATE_ORIGIN,    /* a former connection whose Origin arrives after the cut is accepted */
	SIM_NO_LEAVE,       /* any FIN of the target counts as the end of its queue pair */
	SIM_NAMES_ALL,      /* a new connection also names connections that have not ended */
	SIM_NO_OWNER,       /* a restarted process does not name its owner */
	SIM_UNPROTECTED,    /* all protections are missing */
	SIM_BARRIER_ALONE,  /* the barrier is the only protection, which is sufficient */
	/* Datagrams. */
	SIM_ANY_KEY,    /* a message with any key is received */
	SIM_TORN,       /* a message's last byte is not placed */
	SIM_NO_WINDOW,  /* packets do not wait for credits */
	SIM_EARLY_SENT, /* a Send completes although the socket did not accept its packet */
	/* Memory windows. */
	SIM_LOOSE_WINDOW, /* a window is longer than its Bind requested */
	SIM_ANY_QP,       /* any queue pair can use a window of type 2 */
	SIM_KEPT_WINDOW,  /* an invalidated window still works */
	SIM_HALF,         /* sometimes only half of the bytes is placed */
	SIM_BLIND,        /* bits flip and no CRC is used, but contents are still trusted */
};

struct scenario {
	enum sim_mode mode;
	/* Properties of the two ends; [0] is the initiator. */
	bool want_crc[2], offer_consent[2];
	bool rings;      /* both ends offer to move to rings in shared memory */
	bool unreliable; /* the queue pairs are of type UC */
	bool acks[2];    /* the end asks for Acks */
	/* the end announces native flushes, as librpma does; otherwise its Reads flush, too */
	bool announces[2];
	bool p2p;
	uint8_t revision;
	uint16_t ird[2], ord[2];
	uint8_t pdata_len[2];
	bool use_srq[2], one_cq[2];
	uint32_t send_depth[2], recv_depth[2], send_sge, recv_sge, inline_max;
	/* the application flushes, waits, and then posts the next receive */
	bool late_receives;
	/* the application posts several receives in one call, and the next ones after these are
	 * used up */
	bool bulk_receives;
	bool changing;         /* some sources change while their bytes are sent */
	bool mostly_sends;     /* the work is mostly Sends, with few receives */
	bool commit_flags;     /* the work is mostly sequences of data, flush and commit flag */
	bool assumes_7306;     /* both ends are configured for RFC 7306 without negotiation */
	bool strict[2];        /* a persistent flush is strict even if its type does not say so */
	bool half_volatile[2]; /* one of the end's targets has no medium */
	bool dax[2];           /* write-backs write cache lines, not pages of a file */
	bool evicts;           /* the cache also evicts bytes that no request covers */
	/* Properties of the link and the medium. */
	uint32_t mss, chunk_max, window;
	unsigned reuse_percent; /* percentage of sources that change after they are sent */
	uint64_t srq_notice_ns; /* delay of the notification that an SRQ has receives */
	uint64_t pool_busy_ns;  /* time until the pool begins a write-back */
	bool mostly_large;      /* the work is mostly large operations */
	uint64_t latency_ns, writeback_ns, tick_ns;
	uint64_t liveness_ns[2], drain_ns; /* time limits of the two ends; 0: the default */
	/* The size of the work. */
	uint32_t ops[2], op_max, send_max, target_len, words_len;
	/* The fault: its kind, its node and its time. */
	enum sim_fault fault;
	int fault_node; /* the faulty node; for FLIP and FIN the sender of the bytes */
	/* stream position of the fault, or the number of operations before it */
	uint64_t fault_pos;
	uint64_t fault_ns, pause_ns;
	unsigned fault_bit;
	bool early_flip; /* the flipped bit is in the start-up frame */
};

/* Returns the length of an end's start-up frame (RFC 5044 s7.1) at the first dial. */
static inline uint64_t scenario_frame_len(const struct scenario *sc, int i)
{
	return 20u + (sc->revision == 2 ? 4u : 0u) + sc->pdata_len[i];
}

/* Returns true if the protection that mode `layer` switches off is missing in this scenario. */
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
/* A request with RFC 6581's A bit, or of revision 1, cannot carry the offer of consent. */
static inline bool scenario_has_consent(const struct scenario *sc)
{
	return sc->offer_consent[0] && sc->offer_consent[1] && sc->revision == 2 && !sc->p2p;
}
/* Returns true if the contents of memory and messages can be trusted. Bounds must hold in any
 * case. */
static inline bool scenario_is_trusted(const struct scenario *sc)
{
	return sc->mode == SIM_BLIND || sc->fault != FAULT_FLIP ||
	       (scenario_has_crc(sc) && !sc->early_flip);
}
/* Returns true if operations with immediate data and atomics are possible. */
static inline bool scenario_has_7306(const struct scenario *sc)
{
	return scenario_has_consent(sc) || sc->assumes_7306;
}
/* Make the scenario of a further connection between two hosts that share receives, without a
 * fault. */
void scenario_make_beside(struct scenario *sc, struct prng *rng, const struct scenario *first);
/* Change the scenario so that connections of a host share their receives. */
void scenario_make_shared(struct scenario *sc, struct prng *rng);
/*
 * Make a small scenario, mostly of flushes, for runs in which the power can fail at many moments.
 */
void scenario_make_cut(struct scenario *sc, struct prng *rng);
const char *scenario_fault_str(enum sim_fault fault);
void scenario_print(const struct scenario *sc, FILE *to);

#endif
