/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kills.h -- kill the other end of a program that persists records, and check that the acknowledged
 * records exist.
 */
#ifndef LIBRPMEM_TEST_KILLS_H
#define LIBRPMEM_TEST_KILLS_H

/* Kill a process `rounds` times, at times that a seed determines: always rpmemd, or (ssh_too) in
 * turn rpmemd and the process that runs as ssh. SEED repeats an earlier run. */
void kills_lose_nothing(const char *target, unsigned rounds, bool ssh_too);

#endif
