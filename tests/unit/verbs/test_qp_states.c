/* SPDX-License-Identifier: BSD-3-Clause */
/* Every pair of states, for every type, with every mask that differs from a valid one in one or two
 * bits. */
#include "lib/unit.h"

#include "softrnic/verbs/qp_states.h"

#define STATES 7
#define BITS   26 /* number of bits of enum ibv_qp_attr_mask, up to IBV_QP_RATE_LIMIT */

/* The changes of state as the standard lists them. A change that is in no row does not exist. */
static const struct move {
	enum ibv_qp_type type;
	enum ibv_qp_state from, to;
	int required, optional;
} moves[] = {
	{IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
	{IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
	{IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},

	{IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_INIT, 0,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_INIT, 0,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},

	{IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR,
	 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		 IBV_QP_MIN_RNR_TIMER,
	 IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR,
	 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	 IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},

	{IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS,
	 IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		 IBV_QP_MAX_QP_RD_ATOMIC,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
	{IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},

	{IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, 0,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
	{IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},

	{IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},

	{IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_RTS, 0,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
	{IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},

	{IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_SQD, 0,
	 IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ACCESS_FLAGS |
		 IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_SQD, 0,
	 IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},

	{IBV_QPT_UC, IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
	{IBV_QPT_UD, IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
};

/* Each state may change to RESET and to ERR, with no other attribute. */
static const struct move to_reset_or_error;

static const struct move *move_of(enum ibv_qp_type type, int from, int to)
{
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return &to_reset_or_error;
	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
		const struct move *m = &moves[i];

		if (m->type == type && (int)m->from == from && (int)m->to == to)
			return m;
	}
	return NULL;
}

static bool is_right(const struct move *m, int from, int to, int mask)
{
	int given = mask & ~IBV_QP_STATE;

	return m && (mask & IBV_QP_STATE || from == to) && (given & m->required) == m->required &&
	       (given | m->required | m->optional) == (m->required | m->optional);
}

static void check(enum ibv_qp_type type, int from, int to, int mask)
{
	bool right = is_right(move_of(type, from, to), from, to, mask);

	if (qp_states_permit(type, (enum ibv_qp_state)from, (enum ibv_qp_state)to, mask) != right)
		fail_msg("type %d, %d -> %d, mask %#x: %s expected", type, from, to, mask,
			 right ? "success" : "failure");
}

/* Check this mask, and all masks that differ from it in one or two bits. */
static void check_around(enum ibv_qp_type type, int from, int to, int mask)
{
	for (int i = 0; i <= BITS; i++) {
		for (int j = 0; j <= BITS; j++) {
			int flips = (i < BITS ? 1 << i : 0) ^ (j < BITS ? 1 << j : 0);

			check(type, from, to, mask ^ flips);
		}
	}
}

static void the_table_is_the_standards(void **state)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		for (int at = 0; at < STATES * STATES; at++) {
			int from = at / STATES, to = at % STATES;
			const struct move *m = move_of(types[t], from, to);

			check_around(types[t], from, to, IBV_QP_STATE);
			if (!m)
				m = &to_reset_or_error;
			check_around(types[t], from, to, IBV_QP_STATE | m->required);
			check_around(types[t], from, to, IBV_QP_STATE | m->required | m->optional);
		}
	}
}

static void other_types_and_states_are_refused(void **state)
{
	assert_false(qp_states_permit(IBV_QPT_RAW_PACKET, IBV_QPS_INIT, IBV_QPS_ERR, IBV_QP_STATE));
	assert_false(qp_states_permit(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_UNKNOWN, IBV_QP_STATE));
	assert_false(
		qp_states_permit(IBV_QPT_RC, IBV_QPS_INIT, (enum ibv_qp_state) - 1, IBV_QP_STATE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_the_standards),
		cmocka_unit_test(other_types_and_states_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
