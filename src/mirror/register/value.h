/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * value.h -- encodes a set's record as text: the content of the register.
 *
 * The text is JSON in one form only: no white space, members in a fixed order, 64-bit random
 * numbers as 16 hexadecimal digits. So encoding a decoded text gives the same text, and a record
 * that was read can be compared with the register's whole value. value_decode() refuses texts in
 * another form and formats that this program does not support (core/version.h): a program that
 * skipped an unknown member would drop that member with its next swap.
 */
#ifndef MIRROR_REGISTER_VALUE_H
#define MIRROR_REGISTER_VALUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "mirror/core/types.h"

#define VALUE_MAX (64u << 10) /* largest size of a text, with its NUL */

/* Returns true if this is a valid name of a set or member: letters, digits and ._- , the first a
 * letter or digit. */
bool value_is_name(const char *name, size_t max);

/* Check that the values of this record are possible for a set. Returns 0, or ERROR_ARGUMENT with
 * the defect. */
int value_check(const struct mirror_record *record, struct error *err);

/* text: an array of VALUE_MAX bytes. Returns 0, or ERROR_ARGUMENT of value_check(). */
int value_encode(const struct mirror_record *record, char *text, struct error *err);

/* Decode a text of len bytes, which is not trusted. Returns 0, ERROR_ARGUMENT with EPROTO (the
 * format is unknown or the text is no record) or ERROR_LOCAL with ENOMEM. Sets *record only on
 * success. */
int value_decode(const char *text, size_t len, struct mirror_record *record, struct error *err);

#endif
