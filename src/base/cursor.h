/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cursor.h -- bounded reader and writer of big-endian and little-endian fields.
 *
 * A read past the end returns zero, a write past the end is dropped, and both set `bad`. So a
 * codec reads or writes all its fields, and checks `bad` once at the end.
 */
#ifndef BASE_CURSOR_H
#define BASE_CURSOR_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct rcursor {
	const uint8_t *p, *end;
	bool bad;
};

struct wcursor {
	uint8_t *start, *p, *end;
	bool bad;
};

static inline struct rcursor rcursor_init(const void *buf, size_t len)
{
	return (struct rcursor){.p = buf, .end = (const uint8_t *)buf + len};
}

static inline size_t rcursor_left(const struct rcursor *c)
{
	return (size_t)(c->end - c->p);
}

/* Returns the next n bytes. If fewer bytes are left, sets `bad` and returns NULL. */
static inline const uint8_t *rcursor_bytes(struct rcursor *c, size_t n)
{
	const uint8_t *p = c->p;

	if (rcursor_left(c) < n) {
		c->bad = true;
		c->p = c->end;
		return NULL;
	}
	c->p += n;
	return p;
}

static inline uint8_t rcursor_u8(struct rcursor *c)
{
	const uint8_t *p = rcursor_bytes(c, 1);

	return p ? p[0] : 0;
}

/* One check and one load for each value. A value that reaches past the end reads as zero. */
#define RCURSOR_BE(bits)                                                                           \
	static inline uint##bits##_t rcursor_be##bits(struct rcursor *c)                           \
	{                                                                                          \
		const uint8_t *p = rcursor_bytes(c, bits / 8);                                     \
		uint##bits##_t v = 0;                                                              \
                                                                                                   \
		if (p)                                                                             \
			memcpy(&v, p, sizeof(v));                                                  \
		return be##bits##toh(v);                                                           \
	}
RCURSOR_BE(16)
RCURSOR_BE(32)
RCURSOR_BE(64)
#undef RCURSOR_BE

/* Read a little-endian number of 1 to 8 bytes. */
static inline uint64_t rcursor_le(struct rcursor *c, size_t width)
{
	const uint8_t *p = rcursor_bytes(c, width);
	uint64_t v = 0;

	for (size_t i = 0; p && i < width; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

/* Read a boolean of 1 to 8 bytes. Values other than 0 and 1 set `bad`, so that each value has only
 * one encoding. */
static inline bool rcursor_bool(struct rcursor *c, size_t width)
{
	uint64_t v = rcursor_le(c, width);

	c->bad |= v > 1;
	return v == 1;
}

static inline struct wcursor wcursor_init(void *buf, size_t len)
{
	return (struct wcursor){.start = buf, .p = buf, .end = (uint8_t *)buf + len};
}

/* Returns the number of bytes written so far. */
static inline size_t wcursor_len(const struct wcursor *c)
{
	return (size_t)(c->p - c->start);
}

static inline void wcursor_bytes(struct wcursor *c, const void *src, size_t n)
{
	if ((size_t)(c->end - c->p) < n) {
		c->bad = true;
		return;
	}
	if (n)
		memcpy(c->p, src, n);
	c->p += n;
}

static inline void wcursor_u8(struct wcursor *c, uint8_t v)
{
	wcursor_bytes(c, &v, 1);
}

#define WCURSOR_BE(bits)                                                                           \
	static inline void wcursor_be##bits(struct wcursor *c, uint##bits##_t v)                   \
	{                                                                                          \
		v = htobe##bits(v);                                                                \
		wcursor_bytes(c, &v, sizeof(v));                                                   \
	}
WCURSOR_BE(16)
WCURSOR_BE(32)
WCURSOR_BE(64)
#undef WCURSOR_BE

static inline void wcursor_le(struct wcursor *c, uint64_t v, size_t width)
{
	uint8_t b[8];

	for (size_t i = 0; i < width; i++)
		b[i] = (uint8_t)(v >> (8 * i));
	wcursor_bytes(c, b, width);
}

#endif
