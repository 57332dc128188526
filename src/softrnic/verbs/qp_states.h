/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp_states.h -- the states of a plain queue pair, and the attributes that each move between states
 * requires and permits (IBTA s10.3.1, ibv_modify_qp(3)). Pure.
 */
#ifndef VERBS_QP_STATES_H
#define VERBS_QP_STATES_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/*
 * Is a queue pair of this type allowed to move from one state to the other with the attributes in
 * `mask`? The mask must contain all attributes that the move requires, and only attributes that the
 * move permits. If the mask has no IBV_QP_STATE, `from` and `to` are the same state. The device has
 * no alternate paths, so no move permits their attributes.
 */
bool qp_states_permit(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
		      int mask);

#endif
