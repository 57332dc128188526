/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpa.h -- MPA: start-up frames (RFC 5044 s7.1, RFC 6581 s7) and FPDU framing (RFC 5044 s4).
 *
 *   FPDU = ULPDU_Length(2) | ULPDU | pad(0..3) | CRC32C(4, little-endian), a multiple of 4
 *
 * Markers are in mpa_marker.h.
 */
#ifndef PROTO_MPA_H
#define PROTO_MPA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define MPA_START_HDR    20  /* key, flags, revision, PD_Length */
#define MPA_ENHANCED_LEN 4   /* IRD/ORD block at the start of the private data (RFC 6581 s7) */
#define MPA_PD_MAX       512 /* PD_Length's limit; the enhanced block counts */
#define MPA_START_MAX    (MPA_START_HDR + MPA_PD_MAX)
#define MPA_REVISION_1   1
#define MPA_REVISION_2   2
#define MPA_DEPTH_MAX    0x3ffe
#define MPA_DEPTH_ULP    0x3fff /* IRD or ORD is left to the ULP (RFC 6581 s7) */

#define MPA_LENGTH_LEN 2 /* the ULPDU_Length field */
#define MPA_CRC_LEN    4
#define MPA_ULPDU_MAX  64768 /* the largest MULPDU (RFC 5044 s5) */
#define MPA_MULPDU_MIN 128   /* the smallest MULPDU */

/*
 * One start-up frame. The fields of RFC 6581 are valid only if `enhanced`. With p2p (A) clear, the
 * RFC gives the other three bits no meaning. They are kept all the same, because they carry our
 * consent to extensions.
 */
struct mpa_start {
	bool reply;
	bool markers;  /* M: the sender requests markers in its input */
	bool crc;      /* C */
	bool reject;   /* R, replies only */
	bool enhanced; /* S; from revision 2 on */
	uint8_t revision;
	uint16_t pd_len;   /* the ULP's private data, without the enhanced block */
	bool p2p;          /* A */
	bool rtr_send;     /* B */
	bool rtr_write;    /* C */
	bool rtr_read;     /* D */
	uint16_t ird, ord; /* 14 bits each, from the sender's view */
};

/* Returns the length written, -EINVAL (a value does not fit its field), or -ENOSPC. */
int mpa_start_encode(void *buf, size_t size, const struct mpa_start *start, const void *pdata);

/*
 * Decode the first MPA_START_HDR bytes. Returns the length of the whole frame, or -EBADMSG (not a
 * start-up key), -EMSGSIZE (PD_Length above the limit), -EPROTO (enhanced, without room for the
 * block).
 */
int mpa_start_decode_header(const void *hdr);
/* Can these bytes, fewer than MPA_START_HDR, be the first of a start-up frame? */
bool mpa_start_may_begin(const void *buf, size_t len);
bool mpa_start_wants_markers(const void *hdr); /* `markers` of struct mpa_start */

/*
 * Decode a whole frame. Returns its length, with *pdata pointing at start->pd_len bytes in buf; or
 * -EAGAIN (bytes are missing) or an error of mpa_start_decode_header(). Later bytes are ignored.
 * The caller checks `reply` and `revision`.
 */
int mpa_start_decode(const void *buf, size_t len, struct mpa_start *start, const uint8_t **pdata);

static inline unsigned mpa_pad(size_t ulpdu_len)
{
	return (unsigned)(2 - ulpdu_len) & 3;
}

/* Length of a whole FPDU, without markers. */
static inline size_t mpa_fpdu_len(size_t ulpdu_len)
{
	return MPA_LENGTH_LEN + ulpdu_len + mpa_pad(ulpdu_len) + MPA_CRC_LEN;
}

/* The largest ULPDU whose FPDU fits one segment of emss bytes (RFC 5044 s5): from MPA_MULPDU_MIN to
 * MPA_ULPDU_MAX. */
uint32_t mpa_mulpdu(uint32_t emss, bool markers);

/*
 * CRC32C of the first len bytes of a gather list: from ULPDU_Length to the pad, markers included.
 */
uint32_t mpa_crc(const struct iovec *iov, int n, size_t len);
void mpa_crc_encode(uint8_t field[MPA_CRC_LEN], uint32_t crc);
uint32_t mpa_crc_decode(const uint8_t field[MPA_CRC_LEN]);

/* Is the CRC of this FPDU correct? The FPDU is contiguous and whole, without markers. */
bool mpa_fpdu_is_intact(const void *fpdu, size_t fpdu_len);

#endif
