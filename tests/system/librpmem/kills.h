/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kills.h -- kill the other end of a program that persists records, and check the acknowledged
 * records.
 */
#ifndef LIBRPMEM_TEST_KILLS_H
#define LIBRPMEM_TEST_KILLS_H

/*
 * Make that many kills at moments from a seed: of rpmemd, or alternately of rpmemd and the process
 * that runs as ssh. SEED repeats an earlier run.
 */
void kills_lose_nothing(const char *target, unsigned rounds, bool ssh_too);

#endif
