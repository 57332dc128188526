/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * values_table.c -- a table of the numbers in the list VALUES, as one header defines them; the
 * macro TABLE names the table.
 */
#include <librpma.h>

#include "values.h"

extern const struct abi_value TABLE[];

#define ROW(expression, expected) {#expression, (long)(expression), expected},
const struct abi_value TABLE[] = {VALUES(ROW){NULL, 0, 0}};
