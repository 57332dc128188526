/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * advice.h -- advice at the end of an error text after a lost connection, for a program that
 * continues. The command-line tool removes the advice, because its user cannot call a function.
 */
#ifndef REGIONS_ADVICE_H
#define REGIONS_ADVICE_H

#define ADVICE_READER "; see rpma_file_reopen(3)"
#define ADVICE_WRITER "; what was written since the last sync is undecided: see rpma_file_reopen(3)"

#endif
