/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * id_qp_num.h -- assigns the numbers of ids' queue pairs, which are below QP_NUM_PLAIN. A
 * completion queue drops the completions of a destroyed queue pair by its number, so no two live
 * queue pairs share a number. The table of used numbers is needed because a process that reconnects
 * often would otherwise give the number of an existing connection to a new one.
 */
#ifndef VERBS_ID_QP_NUM_H
#define VERBS_ID_QP_NUM_H

#include <stdint.h>

/* Take the next free number. Returns 0, or -ENOMEM if all numbers are in use. */
int id_qp_num_take(uint32_t *num);
void id_qp_num_give(uint32_t num);

#endif
