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
#define MPA_PD_MAX       512 /* limit of PD_Length; the enhanced block is included in PD_Length */
#define MPA_START_MAX    (MPA_START_HDR + MPA_PD_MAX)
#define MPA_REVISION_1   1
#define MPA_REVISION_2   2
/* this IRD or ORD value leaves the depth to the ULP (RFC 6581 s7) */
#define MPA_DEPTH_ULP 0x3fff

#define MPA_LENGTH_LEN 2 /* the ULPDU_Length field */
#define MPA_CRC_LEN    4
#define MPA_ULPDU_MAX  64768 /* the largest MULPDU (RFC 5044 s5) */
#define MPA_MULPDU_MIN 128   /* the smallest MULPDU */

/*
 * One start-up frame. The fields of RFC 6581 are valid only if `enhanced` is true. When p2p (bit A)
 * is 0, the RFC gives no meaning to the bits B, C and D. They are kept nevertheless, because
 * softrnic ends use them to signal their consent to extensions.
 */
struct mpa_start {
	bool reply;
	bool markers;  /* M: the sender requests markers in its input */
	bool crc;      /* C: the sender uses CRCs */
	bool reject;   /* R: the connection is rejected; set in replies only */
	bool enhanced; /* S: the frame has the fields of RFC 6581; valid from revision 2 on */
	uint8_t revision;
	uint16_t pd_len;   /* the ULP's private data, without the enhanced block */
	bool p2p;          /* A: peer-to-peer connection */
	bool rtr_send;     /* B: the RTR message can be a Send */
	bool rtr_write;    /* C: the RTR message can be a Write */
	bool rtr_read;     /* D: the RTR message can be a Read */
	uint16_t ird, ord; /* depths as the sender sees them, 14 bits each */
};

/* Returns the length written, -EINVAL (a value does not fit its field), or -ENOSPC. */
int mpa_start_encode(void *buf, size_t size, const struct mpa_start *start, const void *pdata);

/*
 * Decode the first MPA_START_HDR bytes. Returns the length of the whole frame, or -EBADMSG (the key
 * is not that of a start-up frame), -EMSGSIZE (PD_Length above the limit), -EPROTO (the S bit is
 * set, but the private data are shorter than the enhanced block).
 */
int mpa_start_decode_header(const void *hdr);
/* Can these bytes, fewer than MPA_START_HDR, be the beginning of a start-up frame? */
bool mpa_start_may_begin(const void *buf, size_t len);
bool mpa_start_wants_markers(const void *hdr); /* reads the member `markers` of struct mpa_start */

/*
 * Decode a whole frame. Returns its length, with *pdata pointing at start->pd_len bytes in buf; or
 * -EAGAIN (bytes are missing) or an error of mpa_start_decode_header(). Bytes after the frame are
 * ignored. The caller checks `reply` and `revision`.
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

/* Returns the length of the largest ULPDU whose FPDU fits into one segment of emss bytes (RFC 5044
 * s5). The length is between MPA_MULPDU_MIN and MPA_ULPDU_MAX. */
uint32_t mpa_mulpdu(uint32_t emss, bool markers);

/*
 * CRC32C of the first `len` bytes of a gather list, which extend from ULPDU_Length to the pad and
 * include the markers.
 */
uint32_t mpa_crc(const struct iovec *iov, int n, size_t len);
void mpa_crc_encode(uint8_t field[MPA_CRC_LEN], uint32_t crc);
uint32_t mpa_crc_decode(const uint8_t field[MPA_CRC_LEN]);

/* Is the CRC of this FPDU correct? The FPDU is contiguous and whole, without markers. */
bool mpa_fpdu_is_intact(const void *fpdu, size_t fpdu_len);

#endif
