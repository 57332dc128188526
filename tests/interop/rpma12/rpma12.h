/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rpma12.h -- a server and a client that use every operation of librpma 1.2 and no newer operation,
 * so that both run on the distribution's library. The server declares direct write to persistent
 * memory. Without this declaration the distribution's client cannot flush to persistence.
 */
#ifndef INTEROP_RPMA12_H
#define INTEROP_RPMA12_H

#include <librpma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REGION = 1 << 20, SLOT = 4096, SLOTS = 4, PDATA_LEN = 100 };

/* The server's private data. */
struct offer {
	uint8_t mr_size, pcfg_size;
	uint8_t mr[40], pcfg[8];
};

/*
 * Questions to the server. ASK_CHECK asks whether the bytes [at, +len) of the server's file are
 * filled with seed. ASK_DURABLE also asks whether none of their pages is dirty. Each other message
 * is filled with the value of its immediate data.
 */
enum { ASK_CHECK = 0x43484b21, ASK_DURABLE = 0x44555221 };
struct ask {
	uint32_t what, seed;
	uint64_t at, len;
};

/* The server's answer: the message that it received, and whether the message was right. */
struct answer {
	uint32_t opcode, imm, len, right;
};

struct end {
	struct rpma_peer *peer;
	struct rpma_conn_cfg *cfg;
	struct rpma_conn *conn;
	struct rpma_cq *cq, *rcq;
	uint8_t *region, *slots; /* slots: the last slot is for sending */
	struct rpma_mr_local *mr, *slots_mr;
};

/* Each function ends the program with a message if a check fails. */
void must(int ret, const char *what);
void end_open(struct end *e, const char *addr, bool is_server, uint8_t *region, int usage);
void end_close(struct end *e);
void end_expect(struct end *e, enum rpma_conn_event want);
void end_wait(struct rpma_cq *cq, struct ibv_wc *wc);
void fill(uint8_t *p, size_t len, uint32_t seed);
bool is_filled(const uint8_t *p, size_t len, uint32_t seed);

#endif
