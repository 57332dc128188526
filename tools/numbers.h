/* SPDX-License-Identifier: BSD-3-Clause */
/* numbers.h -- parses numbers and sizes of a command line. */
#ifndef TOOL_NUMBERS_H
#define TOOL_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

/* Parse "4096", "64K", "16M", "2G" or "1T" (powers of 1024; "KiB" and "kb" are valid, too). */
bool number_parse_size(const char *text, uint64_t *out);
bool number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *out);

#endif
