/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pair.h -- two programs that try every operation between two different implementations. Neither
 * program depends on the implementation that the other program uses. Both use only features of
 * librpma 1.2, so they also run on Debian's librpma.
 *
 * The client requests each step by a message; the server carries it out and answers.
 */
#ifndef VM_PAIR_H
#define VM_PAIR_H

#include <librpma.h>
#include <stddef.h>
#include <stdint.h>

#define PAIR_REGION  (2u << 20)
#define PAIR_MSG_MAX 40000
#define PAIR_DESC    32 /* at least the size of a descriptor */
/* Longer than any answer takes in a guest that gets enough processor time. */
#define PAIR_QUIET_MS 2000

enum ask {
	/* check that [at, at + len) of the server's region is filled with the pattern of seed */
	ASK_CHECK = 1,
	ASK_FILL,        /* fill [at, at + len) of the server's region with the pattern of seed */
	ASK_WRITE,       /* write len bytes into the client's region, and flush */
	ASK_READ,        /* read len bytes of the client's region, and check them */
	ASK_ECHO,        /* send this message back, with the pattern after its header */
	ASK_ERROR,       /* make the mistake whose number is in `at` */
	ASK_EXPECT_LOSS, /* expect that the client makes a mistake, which ends the connection */
	ASK_LEAVE,       /* disconnect */
	ASK_STAY,        /* wait for the client's disconnect, not for messages */
	ASK_DONE,        /* the answer to each request that succeeded */
};

enum mistake {
	MISTAKE_BOUNDS, /* write beyond the end of the region */
	MISTAKE_KEY,    /* write with an unknown key */
	/*
	 * write to a read-only region; a forbidden read is no use, because siw permits every read
	 */
	MISTAKE_RIGHT,
	MISTAKE_LENGTH, /* send more bytes than the receive takes */
	MISTAKES
};

struct ask_msg {
	uint32_t what, seed;
	uint64_t at, len;
	uint8_t region[PAIR_DESC], read_only[PAIR_DESC];
};

/* One end, server or client: its memory, its connection, and the descriptors of the other end's
 * memory. */
struct end {
	struct rpma_peer *peer;
	struct rpma_conn_cfg *cfg;
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	uint8_t *region, *sink, *msg_in, *msg_out;
	struct rpma_mr_local *mr, *read_only_mr, *sink_mr, *in_mr, *out_mr;
	struct ask_msg self; /* descriptors of this end's memory */
	size_t desc_size;
	const char *addr, *port;
	int is_server;
};

/* Each function ends the program with a message if a check fails. */
void must(int ret, const char *what);
void end_open(struct end *e, const char *addr, const char *port, int is_server);
void end_close(struct end *e);
void end_connected(struct end *e);
/* Wait for this connection event. If another event arrives, the program ends. */
void end_expect(struct end *e, enum rpma_conn_event event);
void end_expect_left(struct end *e); /* after the peer was asked to disconnect: wait for CLOSED */
/* Wait for the next completion, which must have this opcode and length. */
void end_expect_wc(struct end *e, enum ibv_wc_opcode opcode, size_t len);
void end_next_wc(struct end *e, struct ibv_wc *wc);
void end_receive(struct end *e); /* posts the receive for the next message */
void end_send(struct end *e, const struct ask_msg *m, size_t len);

void fill(uint8_t *p, size_t len, uint32_t seed);
int is_filled(const uint8_t *p, size_t len, uint32_t seed);

/* These operations access the other end's region, which desc describes. */
void do_write(struct end *e, const uint8_t *desc, uint64_t at, uint64_t len, uint32_t seed);
void do_read(struct end *e, const uint8_t *desc, uint64_t at, uint64_t len, uint32_t seed);
void make_mistake(struct end *e, const struct ask_msg *other, enum mistake m);
/* Wait for the connection's end: the other end makes a mistake, or ends by itself. */
void expect_loss(struct end *e);

#endif
