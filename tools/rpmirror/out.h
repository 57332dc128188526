/* SPDX-License-Identifier: BSD-3-Clause */
/* out.h -- how rpmirror ends: exit codes, the error line, errors as JSON. */
#ifndef RPMIRROR_OUT_H
#define RPMIRROR_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"
#include "mirror/core/code.h"

struct failure {
	enum code code;
	char text[ERROR_TEXT], hint[ERROR_TEXT]; /* hint: "" or what to do */
};

/* The name in front of error lines, and whether they are printed as JSON, too. */
void out_begin(const char *name);
void out_set_json(bool json);
/* Fill *f and return its code. */
int failure_set(struct failure *f, enum code code, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Print it: one line on stderr; with JSON also {"error":{...}} on stdout. Its code. */
int out_failure(const struct failure *f);
/* Both at once. */
int out_fail(enum code code, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int out_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* An object on stdout, on one line; it is freed. */
void out_json(json_t *object);

/* What an answer has; dflt where it is absent or of another kind. */
const char *json_text(const json_t *object, const char *key, const char *dflt);
double json_figure(const json_t *object, const char *key, double dflt);
/* A number from 0 to max; dflt for all that is none. */
uint64_t json_count(const json_t *object, const char *key, uint64_t max, uint64_t dflt);
bool json_flag(const json_t *object, const char *key);

#endif
