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
 * Returns whether a queue pair of this type may move from one state to the other with the
 * attributes of `mask`. The mask must contain all attributes that the move requires, and no other
 * than those that it permits. Without IBV_QP_STATE the two states are the same. The device has no
 * alternate paths, so no move permits them.
 */
bool qp_states_permit(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
		      int mask);

#endif
