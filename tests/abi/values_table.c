/* SPDX-License-Identifier: BSD-3-Clause */
/* values_table.c -- the numbers as one header gives them; TABLE names the result. */
#include <librpma.h>

#include "values.h"

extern const struct abi_value TABLE[];

#define ROW(expression, expected) {#expression, (long)(expression), expected},
const struct abi_value TABLE[] = {ABI_VALUES(ROW){NULL, 0, 0}};
