/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp_states.h -- the states of a plain queue pair, and the attributes that each move takes (IBTA
 * s10.3.1, ibv_modify_qp(3)). Pure.
 */
#ifndef VERBS_QP_STATES_H
#define VERBS_QP_STATES_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/*
 * May a queue pair of this type move from the one state to the other, with the attributes of
 * `mask`? All that the move requires must be there, and nothing else but what it permits. Without
 * IBV_QP_STATE the two states are the same. There are no alternate paths, so no move permits any.
 */
bool qp_states_permit(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
		      int mask);

#endif
