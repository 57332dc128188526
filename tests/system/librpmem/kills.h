/* SPDX-License-Identifier: BSD-3-Clause */
/* kills.h -- kill the other end under a program that
 * persists, and look for what it acknowledged. */
#ifndef LIBRPMEM_TEST_KILLS_H
#define LIBRPMEM_TEST_KILLS_H

/* So many times, at seeded points in time: rpmemd, or in turn with it what runs as ssh. SEED
 * repeats an earlier run. */
void kills_lose_nothing(const char *target, unsigned rounds, bool ssh_too);

#endif
