/* SPDX-License-Identifier: BSD-3-Clause */
/* meta_print.h -- prints one tree of keys and values, as indented lines or as JSON. */
#ifndef MIRROR_CORE_META_PRINT_H
#define MIRROR_CORE_META_PRINT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct meta_printer {
	FILE *out;
	bool is_json;
	unsigned depth;
	bool has_more; /* the level already has an entry */
};

/* If key is NULL, the entry is an element of a list. bracket: '{' or '['. */
void meta_print_open(struct meta_printer *p, const char *key, char bracket);
/* bracket: '}' or ']' */
void meta_print_close(struct meta_printer *p, char bracket);
void meta_print_number(struct meta_printer *p, const char *key, uint64_t value);
void meta_print_hex(struct meta_printer *p, const char *key,
		    uint64_t value); /* prints a text of 16 digits */
void meta_print_bool(struct meta_printer *p, const char *key, bool value);
/* Print a text from a file: control characters become '?'. */
void meta_print_text(struct meta_printer *p, const char *key, const char *value);

#endif
