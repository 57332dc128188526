/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz.h -- declarations for fuzz targets; each target runs one input, and a failed expectation
 * crashes the process. */
#ifndef TEST_FUZZ_H
#define TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition))                                                                  \
			__builtin_trap();                                                          \
	} while (0)

#endif
