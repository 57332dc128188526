/* SPDX-License-Identifier: BSD-3-Clause */
/* fields.h -- reads and writes fields of the messages, packets and greetings. A value outside its
 * bounds sets `bad`, like a read past the end. */
#ifndef MIRROR_WIRE_FIELDS_H
#define MIRROR_WIRE_FIELDS_H

#include "base/cursor.h"
#include "mirror/core/epoch.h"
#include "mirror/core/types.h"

void fields_put_uuid(struct wcursor *c, const struct mirror_uuid *uuid);
void fields_put_view(struct wcursor *c, const struct mirror_view *view);
/* Writes a text: its length in two bytes, then at most size - 1 characters. */
void fields_put_text(struct wcursor *c, const char *text, size_t size);
/* Writes zeros up to the buffer's end. */
void fields_put_padding(struct wcursor *c);

void fields_get_bytes(struct rcursor *c, void *dst, size_t len);
void fields_get_uuid(struct rcursor *c, struct mirror_uuid *uuid);
void fields_get_view(struct rcursor *c, struct mirror_view *view);
/* Reads one byte, which must be below `end`; otherwise returns 0 and sets `bad`. */
uint8_t fields_get_below(struct rcursor *c, unsigned end);
/* Reads a member's slot, or MIRROR_NO_SLOT. */
uint8_t fields_get_slot(struct rcursor *c);
/* Reads one byte in which only bits of `known` may be set. */
uint8_t fields_get_flags(struct rcursor *c, uint8_t known);
/* Reads a text without a NUL inside, and ends it with a NUL. */
void fields_get_text(struct rcursor *c, char *text, size_t size);
/* Read the remaining bytes, which must be zeros. */
void fields_get_padding(struct rcursor *c);

#endif
