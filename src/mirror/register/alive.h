/* SPDX-License-Identifier: BSD-3-Clause */
/* alive.h -- encodes the alive key's text: {"epoch":N,"nonce":"16 digits","counter":N}. */
#ifndef MIRROR_REGISTER_ALIVE_H
#define MIRROR_REGISTER_ALIVE_H

#include <stddef.h>
#include <stdint.h>

#include "mirror/core/types.h"

#define ALIVE_MAX 128 /* size of the text in bytes, with its NUL */

void alive_encode(struct mirror_epoch epoch, uint64_t counter, char text[ALIVE_MAX]);
/* Accepts only the form that alive_encode() makes. Returns 0 or -EPROTO. */
int alive_decode(const char *text, size_t len, struct mirror_epoch *epoch, uint64_t *counter);

#endif
