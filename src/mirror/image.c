/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/image.h"

#include <sodium.h>
#include <sys/auxv.h>

/*
 * The kernel makes these random bytes at each execve(2). If this library made a random number
 * itself, a second copy of the library in the same process would make another number and look like
 * another program. The bytes protect stacks, so only a digest of them leaves the process.
 */
#define IMAGE_BYTES 16

uint64_t image_number(void)
{
	const uint8_t *bytes = (const uint8_t *)(uintptr_t)getauxval(AT_RANDOM);
	uint64_t number = 0;

	if (bytes)
		crypto_generichash((uint8_t *)&number, sizeof(number), bytes, IMAGE_BYTES, NULL, 0);
	return number;
}
