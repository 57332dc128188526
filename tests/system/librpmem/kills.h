/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kills.h -- kill the other end of a program that persists, and check the records that it
 * acknowledged.
 */
#ifndef LIBRPMEM_TEST_KILLS_H
#define LIBRPMEM_TEST_KILLS_H

/*
 * That many kills at moments from a seed: of rpmemd, or alternately of it and the process that runs
 * as ssh. SEED repeats an earlier run.
 */
void kills_lose_nothing(const char *target, unsigned rounds, bool ssh_too);

#endif
