/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/openmetrics.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* 2^53: above this value a double cannot hold every integer */
#define OPENMETRICS_EXACT 9007199254740992.0

#ifndef NDEBUG /* only asserts use this function */
static bool openmetrics_is_name(const char *name)
{
	static const char letters[] =
		"_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

	return *name && !(*name >= '0' && *name <= '9') && !name[strspn(name, letters)];
}

static bool openmetrics_ends_with(const char *name, const char *end)
{
	size_t len = strlen(name), end_len = strlen(end);

	return len > end_len && name[len - end_len - 1] == '_' &&
	       !strcmp(name + len - end_len, end);
}
#endif

void openmetrics_init(struct openmetrics *om, enum openmetrics_form form)
{
	*om = (struct openmetrics){.form = form};
}

void openmetrics_fini(struct openmetrics *om)
{
	free(om->text);
	*om = (struct openmetrics){0};
}

/* Make room for `more` bytes and a NUL. */
static bool openmetrics_reserve(struct openmetrics *om, size_t more)
{
	size_t size = om->size ? om->size : 4096;
	char *text;

	while (size - om->len <= more)
		size *= 2;
	if (size == om->size)
		return true;
	text = om->has_failed ? NULL : realloc(om->text, size);
	if (!text) {
		om->has_failed = true;
		return false;
	}
	om->text = text;
	om->size = size;
	return true;
}

static void openmetrics_put(struct openmetrics *om, const char *text)
{
	size_t len = strlen(text);

	if (!openmetrics_reserve(om, len))
		return;
	memcpy(om->text + om->len, text, len + 1);
	om->len += len;
}

static void __attribute__((format(printf, 2, 3)))
openmetrics_print(struct openmetrics *om, const char *fmt, ...)
{
	char text[64];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	openmetrics_put(om, text);
}

/* Append one character of a quoted text. was_newline: the character was a newline, which
 * text_make_printable() has replaced. */
static void openmetrics_put_char(struct openmetrics *om, char c, bool was_newline)
{
	char out[3] = {c};

	if (was_newline || c == '\\' || c == '"')
		snprintf(out, sizeof(out), "\\%c", was_newline ? 'n' : c);
	openmetrics_put(om, out);
}

static void openmetrics_put_value(struct openmetrics *om, const char *value)
{
	char *printable = strdup(value);

	if (!printable) {
		om->has_failed = true;
		return;
	}
	text_make_printable(printable); /* replaces each byte separately */
	for (size_t i = 0; value[i]; i++)
		openmetrics_put_char(om, printable[i], value[i] == '\n');
	free(printable);
}

static void openmetrics_put_labels(struct openmetrics *om, const struct openmetrics_label *labels)
{
	const char *before = "{";

	for (; labels && labels->name; labels++) {
		assert(openmetrics_is_name(labels->name));
		if (!labels->value)
			continue;
		openmetrics_put(om, before);
		openmetrics_put(om, labels->name);
		openmetrics_put(om, "=\"");
		openmetrics_put_value(om, labels->value);
		openmetrics_put(om, "\"");
		before = ",";
	}
	if (*before == ',')
		openmetrics_put(om, "}");
}

/* Print integers without an exponent, because a counter of bytes must keep its last digits. The
 * comparison avoids libm, because libraries that contain this code would have to link it. */
static void openmetrics_put_number(struct openmetrics *om, double value)
{
	if (isnan(value))
		openmetrics_put(om, " NaN\n");
	else if (isinf(value))
		openmetrics_put(om, value > 0 ? " +Inf\n" : " -Inf\n");
	else if (fabs(value) <= OPENMETRICS_EXACT && value == (double)(int64_t)value)
		openmetrics_print(om, " %.0f\n", value);
	else
		openmetrics_print(om, " %.9g\n", value);
}

static const char *openmetrics_suffix(const struct openmetrics_family *family)
{
	return family->type == OPENMETRICS_COUNTER ? "_total" : "";
}

static void openmetrics_put_meta(struct openmetrics *om, const char *word, const char *text)
{
	const struct openmetrics_family *family = om->family;

	openmetrics_put(om, "# ");
	openmetrics_put(om, word);
	openmetrics_put(om, " ");
	openmetrics_put(om, family->name);
	if (om->form == OPENMETRICS_TEXT_0_0_4)
		openmetrics_put(om, openmetrics_suffix(family));
	openmetrics_put(om, " ");
	openmetrics_put(om, text);
	openmetrics_put(om, "\n");
}

static void openmetrics_put_head(struct openmetrics *om)
{
	static const char *const types[] = {
		[OPENMETRICS_GAUGE] = "gauge",
		[OPENMETRICS_COUNTER] = "counter",
		[OPENMETRICS_SUMMARY] = "summary",
	};
	const struct openmetrics_family *family = om->family;

	om->has_head = true;
	openmetrics_put_meta(om, "HELP", family->help);
	openmetrics_put_meta(om, "TYPE", types[family->type]);
	if (family->unit && om->form == OPENMETRICS_1_0)
		openmetrics_put_meta(om, "UNIT", family->unit);
}

void openmetrics_family(struct openmetrics *om, const struct openmetrics_family *family)
{
	assert(openmetrics_is_name(family->name) && !openmetrics_ends_with(family->name, "total"));
	assert(!family->unit || openmetrics_ends_with(family->name, family->unit));
	assert(!strpbrk(family->help, "\\\"\n"));
	om->family = family;
	om->has_head = false;
}

void openmetrics_sample(struct openmetrics *om, const struct openmetrics_label *labels,
			double value)
{
	assert(om->family);
	if (!om->has_head)
		openmetrics_put_head(om);
	openmetrics_put(om, om->family->name);
	openmetrics_put(om, openmetrics_suffix(om->family));
	openmetrics_put_labels(om, labels);
	openmetrics_put_number(om, value);
}

int openmetrics_end(struct openmetrics *om)
{
	openmetrics_put(om, om->form == OPENMETRICS_1_0 ? "# EOF\n" : "");
	return om->has_failed ? -ENOMEM : 0;
}
