/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * values_table.c -- the numbers of the list VALUES, as one header defines them; TABLE is the name
 * of the table.
 */
#include <librpma.h>

#include "values.h"

extern const struct abi_value TABLE[];

#define ROW(expression, expected) {#expression, (long)(expression), expected},
const struct abi_value TABLE[] = {VALUES(ROW){NULL, 0, 0}};
