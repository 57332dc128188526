/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * life_impl.h -- declarations that the parts of a life share: its objects, and the macros that make
 * calls.
 */
#ifndef FAULT_LIFE_IMPL_H
#define FAULT_LIFE_IMPL_H

#include <stdint.h>

#include "fault/life.h"
#include "lib/unit.h"

#define LIFE_ADDR      "127.0.0.1"
#define LIFE_UNTOUCHED 0xa5

enum { LIFE_MEMORY = 16384, LIFE_MSG = 64, LIFE_DESC = 21 };

struct life {
	const struct life_judge *judge;
	bool over;
	int ret; /* result of the last call */

	struct ibv_context *ctx;
	struct rpma_peer *peer;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote;
	uint8_t desc[LIFE_DESC];
	struct rpma_peer_cfg *pcfg;
	struct rpma_srq_cfg *srq_cfg;
	struct rpma_srq *srq;
	struct rpma_conn_cfg *active_cfg, *passive_cfg, *refused_cfg, *limited_cfg;
	/* the queue of the passive side and of the connections with limits */
	struct rpma_cq *common;
	struct rpma_ep *ep;
	struct rpma_conn_req *out, *in;
	struct rpma_conn *active, *passive;
};

/* Make a call unless the life is over. Repeat the call if the judge requests it. */
#define STEP(l, fn, ...)                                                                           \
	do {                                                                                       \
	} while (!(l)->over && life_judged(l, #fn, fn(__VA_ARGS__)))

/* Make a call whose last argument is an output, which a failure must not change. */
#define MAKE(l, out, fn, ...)                                                                      \
	do {                                                                                       \
	} while (life_expects(l, out, sizeof(*(out))) &&                                           \
		 life_got(l, #fn, fn(__VA_ARGS__, out), out, sizeof(*(out))))

/* Release the object, even if the life is over. */
#define RELEASE(l, fn, ptr)                                                                        \
	do {                                                                                       \
		life_judged(l, #fn, fn(ptr));                                                      \
		assert_null(*(ptr));                                                               \
	} while (0)

/* Returns true if the caller has to repeat the call. */
bool life_judged(struct life *l, const char *function, int ret);
bool life_got(struct life *l, const char *function, int ret, void *out, size_t len);
/* Fill the output with a mark, which a failed call must not change. Returns false if the life is
 * over. */
bool life_expects(const struct life *l, void *out, size_t len);

/* Wait until the descriptor is readable, or the time limit has passed. */
void life_await(struct life *l, int fd, const char *what);
/* Returns false if another event arrived, which ends the life. */
bool life_await_either(struct life *l, int fd, int failed, const char *what);
void life_await_event(struct life *l, struct rpma_conn *conn, enum rpma_conn_event wanted);
/* Returns false if the life is over. */
bool life_await_request(struct life *l);
/* Wait for a completion of the active or the passive side. If `received`, it must belong to a
 * receive, otherwise to another operation. */
void life_await_active(struct life *l, bool received);
void life_await_passive(struct life *l, bool received);
void life_transfer(struct life *l);
/* functions of life_ops.c */
void life_use_more(struct life *l);

/* functions of life_more.c */
void life_look_around(struct life *l);
void life_make_common_queue(struct life *l);
void life_refuse_with_a_word(struct life *l, const char *port);
void life_give_up(struct life *l, const char *port);

#endif
