/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * id_qp_num.h -- numbers of the queue pairs of ids, below QP_NUM_PLAIN. A completion queue drops
 * the completions of a destroyed queue pair by its number, so no two live queue pairs share a
 * number. Without this table, a process that reconnects often would reuse the number of a
 * connection that it still has.
 */
#ifndef VERBS_ID_QP_NUM_H
#define VERBS_ID_QP_NUM_H

#include <stdint.h>

/* Take the next free number. Returns 0, or -ENOMEM if all are taken. */
int id_qp_num_take(uint32_t *num);
void id_qp_num_give(uint32_t num);

#endif
