/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * datagram.h -- queue pairs of datagrams on two hosts, and a network that loses, doubles, delays
 * and reorders packets, and to which a stranger adds forged ones.
 *
 * The product's queue pair, its flow control and its header run unchanged. Simulated are the two
 * ports of each host (the work of src/softrnic/io/ud_port*.c), the network, the time and the
 * application. What must hold, after every packet:
 *
 * whole: a message fills one receive with its 40 bytes of addresses and all of its payload, or it
 * changes no byte and completes nothing.
 *
 * key: a message with another key than the queue pair's changes nothing. So does a message that
 * comes to a queue pair in RESET, INIT or ERR.
 *
 * sent: a Send completes with success after its packet left, and its packet has the bytes and the
 * fields of the request, whatever the application does to the source later.
 *
 * window: as long as credits come in time, no more packets are under way to a port than its socket
 * holds. So a network without loss loses nothing, if one port sends to each.
 *
 * end: every request completes, also if the receiving port is silent.
 *
 * Datagrams have no Flush, so the memory has one layer.
 */
#ifndef SIM_DATAGRAM_H
#define SIM_DATAGRAM_H

#include "sim.h"
#include "softrnic/rnic/ud_qp.h"

#define DG_PORTS      2 /* of a host */
#define DG_QPS        3 /* of a host */
#define DG_ALL        (2 * DG_QPS)
#define DG_SLOTS      8 /* buffers for receives, of a queue pair or of a host's SRQ */
#define DG_PIECES     3
#define DG_DEPTH      8  /* of a send queue */
#define DG_MSGS       64 /* messages of a queue pair */
#define DG_FLIGHTS    768
#define DG_SOCKET_MAX 64

struct dg_msg {
	struct dg_qp *to;
	const uint8_t *bytes;
	uint32_t len, qkey, imm;
	bool has_imm, is_inline, signalled, solicited;
	bool left; /* its packet is sent */
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
	int taken; /* the slot that the next message fills, taken from the box; -1: none */
	struct dg_msg msg[DG_MSGS];
	unsigned planned, posted, left, done;
	unsigned idle;   /* turns without room for a post */
	uint64_t source; /* offset of DG_DEPTH sources in the host's arena */
	bool held, waits;
	uint64_t held_order;
};

struct dg_flight {
	bool used;
	struct ud_packet packet;    /* `port` is that of the sender, as the receiver sees it */
	const struct dg_port *from; /* NULL: forged */
	struct dg_port *to;
	bool counted; /* by the sender's window, and not read yet */
	uint8_t bytes[UD_DATAGRAM_MAX + 1];
};

struct dg_port {
	struct dg_host *host;
	unsigned index; /* of all ports */
	uint16_t number;
	struct ud_flows flows;
	struct dg_flight *socket[DG_SOCKET_MAX];
	unsigned waiting; /* packets in the socket */
	bool read_due;
	uint64_t patience_at; /* time of the next EV_TIME; 0: none is due */
	uint64_t paused_until;
	unsigned under_way[2 * DG_PORTS]; /* counted packets to each port */
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
	uint8_t *arena, *shadow; /* the memory, and what it must be */
	uint64_t size, recv_from, recv_to, send_from, send_to;
};

/* The properties of a run. */
struct dg_plan {
	enum sim_mode mode;
	unsigned ports, loss, doubles, forged; /* the latter three in percent */
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
	uint64_t holds; /* orders the queue pairs that wait for a credit */
};

/* Cases that the runs together have reached; each must be positive. */
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
/* Did every case happen at least once? Prints the cases that did not. */
bool datagram_is_complete(FILE *to);
/* Report a run with a violation. */
void datagram_report(FILE *to);

/* Is every credit true and in time, and does one port send to each? */
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
/* datagram_check.c: give a message to the queue pair, and check all that it did. */
void dg_receive(struct datagrams *d, struct dg_qp *q, const struct ud_header *h,
		const struct ud_packet *p, bool forged);
/* The packet must have the request's bytes and fields. */
void dg_check_packet(struct datagrams *d, struct dg_qp *q, const struct dg_msg *m,
		     const struct ud_packet *p);
void dg_check_memory(struct datagrams *d, struct dg_host *h);
/* The posted receives of a queue pair that is in ERR have come back. */
void dg_check_flushed(struct datagrams *d, struct dg_qp *q);
/* datagram_app.c */
void dg_tick(struct datagrams *d, struct dg_qp *q);
void dg_poll_sends(struct datagrams *d, struct dg_qp *q);
void dg_deregister(struct datagrams *d, struct dg_host *h);

#endif
