/* SPDX-License-Identifier: BSD-3-Clause */
#include "out.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static const char *out_name = "rpmirror";
static bool out_is_json;

void out_begin(const char *name)
{
	out_name = name;
}

void out_set_json(bool json)
{
	out_is_json = json;
}

static void failure_fill(struct failure *f, enum code code, const char *hint, const char *fmt,
			 va_list ap)
{
	char text[ERROR_TEXT];

	vsnprintf(text, sizeof(text), fmt, ap);
	f->code = code;
	memcpy(f->text, text, sizeof(text));
	snprintf(f->hint, sizeof(f->hint), "%s", hint ? hint : "");
	text_make_printable(f->text);
	text_make_printable(f->hint);
}

int failure_set(struct failure *f, enum code code, const char *hint, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	failure_fill(f, code, hint, fmt, ap);
	va_end(ap);
	return code;
}

static json_t *failure_json(const struct failure *f)
{
	json_t *error = json_pack("{s:i, s:s, s:s}", "code", f->code, "name", code_2str(f->code),
				  "message", f->text);

	if (f->hint[0])
		json_object_set_new(error, "hint", json_string(f->hint));
	return json_pack("{s:o}", "error", error);
}

int out_failure(const struct failure *f)
{
	fflush(stdout);
	fprintf(stderr, "%s: %s%s%s\n", out_name, f->text, f->hint[0] ? "; " : "", f->hint);
	if (out_is_json)
		out_json(failure_json(f));
	return f->code;
}

int out_fail(enum code code, const char *hint, const char *fmt, ...)
{
	struct failure f;
	va_list ap;

	va_start(ap, fmt);
	failure_fill(&f, code, hint, fmt, ap);
	va_end(ap);
	return out_failure(&f);
}

int out_usage(const char *fmt, ...)
{
	struct failure f;
	char hint[64];
	va_list ap;

	snprintf(hint, sizeof(hint), "see '%s --help'", out_name);
	va_start(ap, fmt);
	failure_fill(&f, CODE_USAGE, hint, fmt, ap);
	va_end(ap);
	return out_failure(&f);
}

void out_json(json_t *object)
{
	json_dumpf(object, stdout, JSON_COMPACT);
	putchar('\n');
	fflush(stdout);
	json_decref(object);
}

const char *json_text(const json_t *object, const char *key, const char *dflt)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : dflt;
}

double json_figure(const json_t *object, const char *key, double dflt)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : dflt;
}

uint64_t json_count(const json_t *object, const char *key, uint64_t max, uint64_t dflt)
{
	double value = json_figure(object, key, -1);

	return value >= 0 && value <= (double)max ? (uint64_t)value : dflt;
}

bool json_flag(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}
