/* SPDX-License-Identifier: BSD-3-Clause */
/* out.h -- the output of rpmirror: exit codes, the error line, errors as JSON. */
#ifndef RPMIRROR_OUT_H
#define RPMIRROR_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"
#include "mirror/core/code.h"

struct failure {
	enum code code;
	char text[ERROR_TEXT], hint[ERROR_TEXT]; /* hint: advice, or "" */
};

/* Set the name that begins error lines, and whether errors are also printed as JSON. */
void out_begin(const char *name);
void out_set_json(bool json);
/* Fill *f and return its code. */
int failure_set(struct failure *f, enum code code, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Print the failure: one line on stderr and, with JSON, also {"error":{...}} on stdout. Returns
 * the failure's code. */
int out_failure(const struct failure *f);
/* Combines failure_set() and out_failure(). */
int out_fail(enum code code, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int out_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Print an object on one line of stdout, and free it. */
void out_json(json_t *object);

/* Returns the text of a key in an answer, or dflt if the key is absent or has no text. */
const char *json_text(const json_t *object, const char *key, const char *dflt);
double json_figure(const json_t *object, const char *key, double dflt);
/* Returns the number of a key, from 0 to max, or dflt for other values. */
uint64_t json_count(const json_t *object, const char *key, uint64_t max, uint64_t dflt);
bool json_flag(const json_t *object, const char *key);

#endif
