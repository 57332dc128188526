/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.h -- two byte streams between two ends, with the properties of TCP: in order, delayed, in
 * pieces of any size, and with a bounded window. A FIN or a RST ends a stream, and a bit can flip.
 *
 * Two more streams model rings in shared memory; each direction can move to its ring. Bytes in a
 * ring arrive without delay. The end of the connection still arrives over TCP, and takes effect
 * after the bytes in the ring.
 */
#ifndef SIM_LINK_H
#define SIM_LINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct sim;

#define PIPE_NEVER UINT64_MAX

struct pipe { /* one direction from end to end; positions count its bytes since the start */
	uint8_t *ring;
	size_t room, window;
	uint64_t written, arrived, taken;
	uint64_t last_arrival_ns;
	uint64_t end; /* the FIN's position, or PIPE_NEVER */
	bool end_arrived;
	uint64_t cut_at; /* position of the FIN or RST that the scenario plans */
	bool cut_is_reset;
	uint64_t flip_at;
	uint8_t flip_mask;
};

struct link {
	struct pipe pipe[2]; /* [i]: written by node i */
	struct pipe ring[2]; /* positions in the rings continue the positions of TCP */
	bool sends_ring[2], reads_ring[2];
	bool up;
	bool silent;             /* no byte crosses the link any more */
	bool closed[2];          /* node i has closed its socket */
	bool resets[2];          /* closing node i's socket sends a RST */
	atomic_uint given_up[2]; /* the word "given up" of node i in the rings */
	int error[2];            /* errno of node i's next call, or 0 */
};

void link_open(struct link *l, size_t window);
void link_fini(struct link *l);
/* Return how many bytes the node can read, or write, now. */
size_t link_readable(const struct link *l, int node);
size_t link_writable(const struct link *l, int node);
bool link_at_end(const struct link *l, int node);
void link_read(struct link *l, int node, const struct iovec *iov, int n, size_t len);
/* link_peek() reads bytes and leaves them in the link; link_drop() removes bytes. */
void link_peek(const struct link *l, int node, uint8_t *to, size_t len);
void link_drop(struct link *l, int node, size_t len);
void link_write(struct sim *sim, int node, const struct iovec *iov, int n, size_t len);
void link_shutdown(struct sim *sim, int node);
void link_close(struct sim *sim, int node);
void link_reset(struct sim *sim); /* send a RST to both ends */
/* Close the node's socket; only bytes already in flight still reach the peer. */
void link_abort(struct sim *sim, int node);
/* Let this end send, or receive, through the ring from now on. */
void link_switch_tx(struct link *l, int node);
void link_switch_rx(struct link *l, int node);
/* Handle the arrival at `node` of the bytes up to `pos`, or of the FIN. */
void link_on_arrival(struct link *l, int node, uint64_t pos);

#endif
