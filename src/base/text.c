/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct text_size text_size(uint64_t bytes)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	unsigned unit = 0;
	struct text_size shown;

	while (unit < 4 && bytes && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	snprintf(shown.text, sizeof(shown.text), "%" PRIu64 " %s", bytes, units[unit]);
	return shown;
}

struct text_size text_bytes(uint64_t bytes)
{
	struct text_size shown;

	snprintf(shown.text, sizeof(shown.text), "%" PRIu64 " bytes", bytes);
	return shown;
}

/* Returns the length of the character at the start of text, or 0 if the bytes are not valid
 * UTF-8. */
static unsigned text_utf8_length(const unsigned char *text, uint32_t *value)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned len = 0;

	if (text[0] < 0x80)
		len = 1;
	else if (text[0] >= 0xc2 && text[0] < 0xf5)
		len = text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
	*value = len < 2 ? text[0] : text[0] & (0x7fu >> len);
	for (unsigned i = 1; i < len; i++) {
		if ((text[i] & 0xc0) != 0x80) /* true also for the NUL at the end */
			return 0;
		*value = *value << 6 | (text[i] & 0x3f);
	}
	if (len > 1 && *value < smallest[len])
		return 0;
	return *value > 0x10ffff || (*value >= 0xd800 && *value < 0xe000) ? 0 : len;
}

void text_make_printable(char *text)
{
	uint32_t value;

	while (*text) {
		unsigned len = text_utf8_length((const unsigned char *)text, &value);

		/* Replace C0, DEL and C1, too. An 8-bit terminal executes C1 like C0. */
		if (!len || value < 0x20 || (value >= 0x7f && value < 0xa0)) {
			len = len ? len : 1;
			memset(text, '?', len);
		}
		text += len;
	}
}

char *text_trim(char *text)
{
	size_t len;

	while (isspace((unsigned char)*text))
		text++;
	len = strlen(text);
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	text[len] = '\0';
	return text;
}

#define TEXT_MORE " ..."

void text_cut(char *out, size_t size, const char *text)
{
	size_t len;

	if ((size_t)snprintf(out, size, "%s", text) < size || size <= sizeof(TEXT_MORE))
		return;
	len = size - sizeof(TEXT_MORE);
	while (len > 0 && out[len] != ' ')
		len--;
	if (len > 0)
		memcpy(out + len, TEXT_MORE, sizeof(TEXT_MORE));
}
