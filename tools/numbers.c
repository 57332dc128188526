/* SPDX-License-Identifier: BSD-3-Clause */
#include "numbers.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	char *end;
	uint64_t value;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *end || value < min || value > max)
		return false;
	*out = value;
	return true;
}

static bool number_unit_shift(const char *unit, unsigned *shift)
{
	static const char letters[] = "KMGT";
	const char *letter;

	*shift = 0;
	if (!*unit || !strcasecmp(unit, "B"))
		return true;
	letter = strchr(letters, toupper((unsigned char)unit[0]));
	if (!letter)
		return false;
	*shift = 10 * (unsigned)(letter - letters + 1);
	return !unit[1] || !strcasecmp(unit + 1, "B") || !strcasecmp(unit + 1, "iB");
}

bool number_parse_size(const char *text, uint64_t *out)
{
	unsigned shift;
	char *unit;
	uint64_t value;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	value = strtoull(text, &unit, 10);
	if (errno || !number_unit_shift(unit, &shift) || value > (uint64_t)INT64_MAX >> shift)
		return false;
	*out = value << shift;
	return true;
}
