/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_states.c -- the permitted moves between states: one row for each move, one column for each
 * type of queue pair. */
#include "softrnic/verbs/qp_states.h"

#define STATES 7 /* number of states, RESET to ERR */

enum states_type { TYPE_RC, TYPE_UC, TYPE_UD, TYPES };

struct states_masks {
	int required, optional;
};

struct states_move {
	bool exists[TYPES];
	struct states_masks masks[TYPES];
};

#define PLACE (IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define PATH  (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RETRY (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY)

#define EACH(r, o)                                                                                 \
	{                                                                                          \
		{true, true, true},                                                                \
		{                                                                                  \
			{r, o}, {r, o},                                                            \
			{                                                                          \
				r, o                                                               \
			}                                                                          \
		}                                                                                  \
	}
#define BARE EACH(0, 0)
#define ROW(...)                                                                                   \
	{                                                                                          \
		{true, true, true},                                                                \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define RC(r, o) [TYPE_RC] = {r, o}
#define UC(r, o) [TYPE_UC] = {r, o}
#define UD(r, o) [TYPE_UD] = {r, o}

/* clang-format off */
#define TO_RTS(required_rc, required)                                                              \
	ROW(RC(required_rc, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER),        \
	    UC(required, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS),                                  \
	    UD(required, IBV_QP_CUR_STATE | IBV_QP_QKEY))

static const struct states_move states_moves[STATES][STATES] = {
	[IBV_QPS_RESET] = {
		[IBV_QPS_RESET] = BARE,
		[IBV_QPS_INIT] = ROW(RC(PLACE | IBV_QP_ACCESS_FLAGS, 0),
				     UC(PLACE | IBV_QP_ACCESS_FLAGS, 0),
				     UD(PLACE | IBV_QP_QKEY, 0)),
		[IBV_QPS_ERR] = BARE,
	},
	[IBV_QPS_INIT] = {
		[IBV_QPS_RESET] = BARE,
		[IBV_QPS_INIT] = ROW(RC(0, PLACE | IBV_QP_ACCESS_FLAGS),
				     UC(0, PLACE | IBV_QP_ACCESS_FLAGS),
				     UD(0, PLACE | IBV_QP_QKEY)),
		[IBV_QPS_RTR] = ROW(RC(PATH | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
				       IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX),
				    UC(PATH, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX),
				    UD(0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY)),
		[IBV_QPS_ERR] = BARE,
	},
	[IBV_QPS_RTR] = {
		[IBV_QPS_RESET] = BARE,
		[IBV_QPS_RTS] = TO_RTS(RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
				       IBV_QP_SQ_PSN),
		[IBV_QPS_ERR] = BARE,
	},
	[IBV_QPS_RTS] = {
		[IBV_QPS_RESET] = BARE,
		[IBV_QPS_RTS] = TO_RTS(0, 0),
		[IBV_QPS_SQD] = EACH(0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
		[IBV_QPS_ERR] = BARE,
	},
	[IBV_QPS_SQD] = {
		[IBV_QPS_RESET] = BARE,
		[IBV_QPS_RTS] = TO_RTS(0, 0),
		[IBV_QPS_SQD] = ROW(RC(0, IBV_QP_PORT | IBV_QP_AV | RETRY |
					  IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC |
					  IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
					  IBV_QP_MIN_RNR_TIMER),
				    UC(0, IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX),
				    UD(0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY)),
		[IBV_QPS_ERR] = BARE,
	},
	[IBV_QPS_SQE] = {
		[IBV_QPS_RESET] = BARE,
		[IBV_QPS_RTS] = { /* a reliable queue pair never enters this state */
			.exists = {[TYPE_UC] = true, [TYPE_UD] = true},
			.masks = {UC(0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS),
				  UD(0, IBV_QP_CUR_STATE | IBV_QP_QKEY)},
		},
		[IBV_QPS_ERR] = BARE,
	},
	[IBV_QPS_ERR] = {
		[IBV_QPS_RESET] = BARE,
		[IBV_QPS_ERR] = BARE,
	},
};
/* clang-format on */

static int states_type_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return TYPE_RC;
	case IBV_QPT_UC:
		return TYPE_UC;
	case IBV_QPT_UD:
		return TYPE_UD;
	default:
		return -1;
	}
}

bool qp_states_permit(enum ibv_qp_type qp_type, enum ibv_qp_state from, enum ibv_qp_state to,
		      int mask)
{
	int type = states_type_of(qp_type);
	int given = mask & ~IBV_QP_STATE;
	const struct states_move *move;

	if (type < 0 || (unsigned)from >= STATES || (unsigned)to >= STATES)
		return false;
	if (!(mask & IBV_QP_STATE) && from != to)
		return false;
	move = &states_moves[from][to];
	return move->exists[type] && !(move->masks[type].required & ~given) &&
	       !(given & ~(move->masks[type].required | move->masks[type].optional));
}
