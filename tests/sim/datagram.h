/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * datagram.h -- queue pairs of datagrams on two hosts, and a network that loses, duplicates, delays
 * and reorders packets. An attacker adds forged packets to the network.
 *
 * The product's queue pair, its flow control and its header run unchanged. The simulation replaces
 * the two ports of each host (the work of src/softrnic/io/ud_port*.c), the network, the time and
 * the application. These rules must hold after every packet:
 *
 * whole: a message either fills one receive with its 40 bytes of addresses and all of its payload,
 * or it changes no byte and completes no receive.
 *
 * key: a message changes nothing if its key differs from the queue pair's key. The same holds for a
 * message to a queue pair in RESET, INIT or ERR.
 *
 * sent: a Send completes with success only after its packet was sent. The packet has the bytes and
 * fields of the request, even if the application changes the source after the completion.
 *
 * window: if credits arrive in time, no more packets are in flight to a port than its socket can
 * hold. So a network without loss loses no packet if only one port sends to each port.
 *
 * end: every request completes, even if the receiving port sends no credits.
 *
 * Datagrams have no Flush, so the memory has one layer.
 */
#ifndef SIM_DATAGRAM_H
#define SIM_DATAGRAM_H

#include "sim.h"
#include "softrnic/rnic/ud_qp.h"

#define DG_PORTS      2 /* number of ports of a host */
#define DG_QPS        3 /* number of queue pairs of a host */
#define DG_ALL        (2 * DG_QPS)
#define DG_SLOTS      8 /* receive buffers of a queue pair, or of a host's SRQ */
#define DG_PIECES     3
#define DG_DEPTH      8  /* slots of a send queue */
#define DG_MSGS       64 /* messages that a queue pair sends at most in a run */
#define DG_FLIGHTS    768
#define DG_SOCKET_MAX 64

struct dg_msg {
	struct dg_qp *to;
	const uint8_t *bytes;
	uint32_t len, qkey, imm;
	bool has_imm, is_inline, signalled, solicited;
	bool left; /* its packet has been sent */
};

struct dg_slot {
	unsigned pieces;
	uint64_t off[DG_PIECES]; /* offsets in the host's arena */
	uint32_t len[DG_PIECES];
	bool busy;
};

/* Receives in the order of their posts. */
struct dg_box {
	struct dg_slot slot[DG_SLOTS];
	unsigned fifo[DG_SLOTS], count;
	struct srq srq;
	bool has_srq;
};

struct dg_qp {
	struct dg_host *host;
	struct dg_port *port;
	unsigned index;
	struct ud_qp *qp;
	uint32_t qpn, qkey;
	struct cq send_cq, recv_cq;
	struct dg_box own_box, *box;
	int taken; /* the slot that is taken from the box for the next message; -1: none */
	struct dg_msg msg[DG_MSGS];
	unsigned planned, posted, left, done;
	unsigned idle;   /* successive turns in which no Send could be posted */
	uint64_t source; /* offset of DG_DEPTH sources in the host's arena */
	bool held, waits;
	uint64_t held_order;
};

struct dg_flight {
	bool used;
	struct ud_packet packet;    /* `port` is the sender's port */
	const struct dg_port *from; /* NULL: forged */
	struct dg_port *to;
	bool counted; /* the sender's window counts this packet, which is not read yet */
	uint8_t bytes[UD_DATAGRAM_MAX + 1];
};

struct dg_port {
	struct dg_host *host;
	unsigned index; /* number among all ports of both hosts */
	uint16_t number;
	struct ud_flows flows;
	struct dg_flight *socket[DG_SOCKET_MAX];
	unsigned waiting; /* packets in the socket */
	bool read_due;
	uint64_t patience_at; /* time of the next EV_TIME; 0: none is due */
	uint64_t paused_until;
	unsigned under_way[2 * DG_PORTS]; /* counted packets in flight to each port */
};

struct dg_host {
	unsigned index;
	uint8_t gid[UD_GID_LEN];
	struct ibv_pd pd;
	struct mr_table *mrs;
	struct mr *send_mr, *recv_mr; /* NULL: deregistered */
	uint32_t send_key, recv_key;
	struct dg_port port[DG_PORTS];
	struct dg_qp qp[DG_QPS];
	struct dg_box box;       /* shared by the host's queue pairs, if it has an SRQ */
	uint8_t *arena, *shadow; /* the memory, and its expected content */
	uint64_t size, recv_from, recv_to, send_from, send_to;
};

/* The properties of a run. */
struct dg_plan {
	enum sim_mode mode;
	unsigned ports, loss, doubles, forged; /* loss, doubles and forged are in percent */
	bool restarts;                         /* queue pairs are reset and set up again */
	bool pauses;                           /* ports read nothing for up to 2.5 s */
	bool deregisters;
	bool other_host_only; /* no queue pair sends to its own host */
	uint32_t len_max, socket;
	uint64_t latency_ns, jitter_ns, read_ns, tick_ns;
};

struct datagrams {
	struct world *world;
	struct dg_plan plan;
	struct dg_host host[2];
	struct dg_flight flight[DG_FLIGHTS];
	uint64_t holds; /* counter that orders the queue pairs that wait for a credit */
};

/* Cases that the runs together have reached; each count must be positive. */
#define DATAGRAM_COVERAGE(X)                                                                       \
	X(posted)                                                                                  \
	X(sent)                                                                                    \
	X(received)                                                                                \
	X(empty_messages)                                                                          \
	X(immediates)                                                                              \
	X(inlines)                                                                                 \
	X(shared_receives)                                                                         \
	X(bad_keys)                                                                                \
	X(not_ready)                                                                               \
	X(no_receive)                                                                              \
	X(too_long)                                                                                \
	X(lost)                                                                                    \
	X(doubled)                                                                                 \
	X(forged)                                                                                  \
	X(forged_received)                                                                         \
	X(malformed)                                                                               \
	X(wrong_ports)                                                                             \
	X(overflows)                                                                               \
	X(credits)                                                                                 \
	X(held)                                                                                    \
	X(socket_full)                                                                             \
	X(silences)                                                                                \
	X(flushed)                                                                                 \
	X(dropped)                                                                                 \
	X(lossless_runs)                                                                           \
	X(bad_sources)                                                                             \
	X(bad_receives)
struct datagram_coverage {
	unsigned long long runs, events;
#define X(name) unsigned long long name;
	DATAGRAM_COVERAGE(X)
#undef X
};
extern struct datagram_coverage datagram_seen;

/* Returns true if no rule was violated. */
bool datagram_run(struct world *w, uint64_t seed, const struct sim_options *opt);
void datagram_fini(void);
void datagram_print(FILE *to);
/* Returns true if every case happened at least once. Prints the cases that did not. */
bool datagram_is_complete(FILE *to);
/* Report a run with a violation. */
void datagram_report(FILE *to);

/* Returns true if all credits are correct and in time, and only one port sends to each port. */
static inline bool dg_is_lossless(const struct datagrams *d)
{
	const struct dg_plan *p = &d->plan;

	return p->ports == 1 && p->other_host_only && !p->loss && !p->doubles && !p->forged &&
	       !p->jitter_ns && !p->pauses && !p->restarts && !p->deregisters;
}

/* --- between the files -------------------------------------------------------------------- */

struct prng *dg_rng(struct datagrams *d);
void dg_at(struct datagrams *d, uint64_t delay, enum event_kind kind, unsigned node, uint64_t arg);
void dg_violate(struct datagrams *d, const struct dg_qp *q, const char *what);
enum ibv_qp_state dg_state(const struct dg_qp *q);
/* datagram_plan.c */
void dg_start(struct datagrams *d, const struct sim_options *opt);
void dg_stop(struct datagrams *d);
/* datagram_net.c: send the packets of posted requests, as far as possible. */
void dg_send(struct datagrams *d, struct dg_qp *q);
void dg_on_arrival(struct datagrams *d, struct dg_flight *f);
void dg_on_read(struct datagrams *d, struct dg_port *p);
void dg_on_time(struct datagrams *d, struct dg_port *p, bool writable);
void dg_forge(struct datagrams *d);
/* datagram_check.c: deliver a message to the queue pair, and check all its effects. */
void dg_receive(struct datagrams *d, struct dg_qp *q, const struct ud_header *h,
		const struct ud_packet *p, bool forged);
/* Check that the packet has the request's bytes and fields. */
void dg_check_packet(struct datagrams *d, struct dg_qp *q, const struct dg_msg *m,
		     const struct ud_packet *p);
void dg_check_memory(struct datagrams *d, struct dg_host *h);
/* Check that all posted receives of a queue pair in ERR were flushed. */
void dg_check_flushed(struct datagrams *d, struct dg_qp *q);
/* datagram_app.c */
void dg_tick(struct datagrams *d, struct dg_qp *q);
void dg_poll_sends(struct datagrams *d, struct dg_qp *q);
void dg_deregister(struct datagrams *d, struct dg_host *h);

#endif
