/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/meta_print.h"

#include <inttypes.h>

/* Prints the separator before an entry, and the entry's key. */
static void meta_print_key(struct meta_printer *p, const char *key)
{
	if (p->is_json) {
		fputs(p->has_more ? "," : "", p->out);
		if (key)
			fprintf(p->out, "\"%s\":", key);
	} else {
		fprintf(p->out, "%*s%s%s", (int)(2 * p->depth), "", key ? key : "-",
			key ? ": " : " ");
	}
	p->has_more = true;
}

static void meta_print_end(const struct meta_printer *p)
{
	if (!p->is_json)
		fputc('\n', p->out);
}

void meta_print_open(struct meta_printer *p, const char *key, char bracket)
{
	if (p->is_json) {
		meta_print_key(p, key);
		fputc(bracket, p->out);
	} else if (key || p->depth) {
		fprintf(p->out, "%*s%s\n", (int)(2 * p->depth), "", key ? key : "-");
	}
	p->depth++;
	p->has_more = false;
}

void meta_print_close(struct meta_printer *p, char bracket)
{
	p->depth--;
	p->has_more = true;
	if (p->is_json)
		fputc(bracket, p->out);
}

void meta_print_number(struct meta_printer *p, const char *key, uint64_t value)
{
	meta_print_key(p, key);
	fprintf(p->out, "%" PRIu64, value);
	meta_print_end(p);
}

void meta_print_hex(struct meta_printer *p, const char *key, uint64_t value)
{
	meta_print_key(p, key);
	fprintf(p->out, p->is_json ? "\"%016" PRIx64 "\"" : "%016" PRIx64, value);
	meta_print_end(p);
}

void meta_print_bool(struct meta_printer *p, const char *key, bool value)
{
	meta_print_key(p, key);
	fputs(value ? "true" : "false", p->out);
	meta_print_end(p);
}

void meta_print_text(struct meta_printer *p, const char *key, const char *value)
{
	meta_print_key(p, key);
	if (p->is_json)
		fputc('"', p->out);
	for (; *value; value++) {
		unsigned char c = (unsigned char)*value;

		if (p->is_json && (c == '"' || c == '\\'))
			fputc('\\', p->out);
		fputc(c < 0x20 || c >= 0x7f ? '?' : c, p->out);
	}
	if (p->is_json)
		fputc('"', p->out);
	meta_print_end(p);
}
