/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/proto/mpa.h"

#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/cursor.h"
#include "softrnic/proto/mpa_marker.h"

#define KEY_LEN 16
#define PD_AT   18 /* offset of the field PD_Length */
#define FLAG_M  0x80
#define FLAG_C  0x40
#define FLAG_R  0x20
#define FLAG_S  0x10
/* top bit of the word: flag A in the IRD's word, flag C in the ORD's word */
#define BLOCK_HI 0x8000
/* next bit of the word: flag B in the IRD's word, flag D in the ORD's word */
#define BLOCK_LO  0x4000
#define BLOCK_NUM 0x3fff

/* Keys have 16 characters each; the NUL is not sent. */
static const char request_key[] = "MPA ID Req Frame";
static const char reply_key[] = "MPA ID Rep Frame";

static void mpa_get_block(struct rcursor *c, struct mpa_start *s)
{
	uint16_t hi = rcursor_be16(c), lo = rcursor_be16(c);

	s->p2p = hi & BLOCK_HI;
	s->rtr_send = hi & BLOCK_LO;
	s->ird = hi & BLOCK_NUM;
	s->rtr_write = lo & BLOCK_HI;
	s->rtr_read = lo & BLOCK_LO;
	s->ord = lo & BLOCK_NUM;
}

int mpa_start_encode(void *buf, size_t size, const struct mpa_start *start, const void *pdata)
{
	struct wcursor c = wcursor_init(buf, size);
	unsigned block = start->enhanced ? MPA_ENHANCED_LEN : 0;

	if (start->pd_len + block > MPA_PD_MAX)
		return -EINVAL;
	if (block &&
	    (start->revision < MPA_REVISION_2 || start->ird > BLOCK_NUM || start->ord > BLOCK_NUM))
		return -EINVAL;
	wcursor_bytes(&c, start->reply ? reply_key : request_key, KEY_LEN);
	wcursor_u8(&c, (uint8_t)((start->markers ? FLAG_M : 0) | (start->crc ? FLAG_C : 0) |
				 (start->reply && start->reject ? FLAG_R : 0) |
				 (start->enhanced ? FLAG_S : 0)));
	wcursor_u8(&c, start->revision);
	wcursor_be16(&c, (uint16_t)(start->pd_len + block));
	if (block) {
		wcursor_be16(&c, (uint16_t)((start->p2p ? BLOCK_HI : 0) |
					    (start->rtr_send ? BLOCK_LO : 0) | start->ird));
		wcursor_be16(&c, (uint16_t)((start->rtr_write ? BLOCK_HI : 0) |
					    (start->rtr_read ? BLOCK_LO : 0) | start->ord));
	}
	wcursor_bytes(&c, pdata, start->pd_len);
	return c.bad ? -ENOSPC : (int)wcursor_len(&c);
}

static bool mpa_is_key(const uint8_t *p, const char *key)
{
	return memcmp(p, key, KEY_LEN) == 0;
}

bool mpa_start_may_begin(const void *buf, size_t len)
{
	size_t n = len < KEY_LEN ? len : KEY_LEN;

	return memcmp(buf, request_key, n) == 0 || memcmp(buf, reply_key, n) == 0;
}

/* The S bit has a meaning from revision 2 on. In frames of older revisions the bit is reserved, so
 * it is ignored. */
static bool mpa_is_enhanced(uint8_t flags, uint8_t revision)
{
	return revision >= MPA_REVISION_2 && flags & FLAG_S;
}

int mpa_start_decode_header(const void *hdr)
{
	const uint8_t *p = hdr;
	unsigned pd_len = (unsigned)(p[PD_AT] << 8 | p[PD_AT + 1]);

	if (!mpa_is_key(p, request_key) && !mpa_is_key(p, reply_key))
		return -EBADMSG;
	if (pd_len > MPA_PD_MAX)
		return -EMSGSIZE;
	if (mpa_is_enhanced(p[KEY_LEN], p[KEY_LEN + 1]) && pd_len < MPA_ENHANCED_LEN)
		return -EPROTO;
	return (int)(MPA_START_HDR + pd_len);
}

bool mpa_start_wants_markers(const void *hdr)
{
	return ((const uint8_t *)hdr)[KEY_LEN] & FLAG_M;
}

int mpa_start_decode(const void *buf, size_t len, struct mpa_start *start, const uint8_t **pdata)
{
	struct rcursor c = rcursor_init(buf, len);
	const uint8_t *key;
	uint8_t flags;
	int total;

	if (len < MPA_START_HDR)
		return -EAGAIN;
	total = mpa_start_decode_header(buf);
	if (total < 0)
		return total;
	if (len < (size_t)total)
		return -EAGAIN;
	key = rcursor_bytes(&c, KEY_LEN);
	flags = rcursor_u8(&c);
	*start = (struct mpa_start){
		.reply = mpa_is_key(key, reply_key),
		.markers = mpa_start_wants_markers(buf),
		.crc = flags & FLAG_C,
	};
	start->reject = start->reply && flags & FLAG_R;
	start->revision = rcursor_u8(&c);
	start->enhanced = mpa_is_enhanced(flags, start->revision);
	start->pd_len = rcursor_be16(&c);
	if (start->enhanced) {
		mpa_get_block(&c, start);
		start->pd_len = (uint16_t)(start->pd_len - MPA_ENHANCED_LEN);
	}
	*pdata = rcursor_bytes(&c, start->pd_len);
	return total;
}

uint32_t mpa_mulpdu(uint32_t emss, bool markers)
{
	uint32_t overhead = MPA_LENGTH_LEN + MPA_CRC_LEN + emss % 4;

	if (markers)
		overhead += MPA_MARKER_LEN *
			    (emss / MPA_MARKER_PERIOD + (emss % MPA_MARKER_PERIOD != 0));
	if (emss < overhead + MPA_MULPDU_MIN)
		return MPA_MULPDU_MIN;
	return emss - overhead < MPA_ULPDU_MAX ? emss - overhead : MPA_ULPDU_MAX;
}

uint32_t mpa_crc(const struct iovec *iov, int n, size_t len)
{
	uint32_t crc = CRC32C_INIT;

	for (int i = 0; i < n && len; i++) {
		size_t part = iov[i].iov_len < len ? iov[i].iov_len : len;

		crc = crc32c_update(crc, iov[i].iov_base, part);
		len -= part;
	}
	return crc32c_final(crc);
}

/* This is the only little-endian field: RFC 5044 s4.4 keeps iSCSI's bit order. */
void mpa_crc_encode(uint8_t field[MPA_CRC_LEN], uint32_t crc)
{
	for (int i = 0; i < MPA_CRC_LEN; i++)
		field[i] = (uint8_t)(crc >> (8 * i));
}

uint32_t mpa_crc_decode(const uint8_t field[MPA_CRC_LEN])
{
	return field[0] | (uint32_t)field[1] << 8 | (uint32_t)field[2] << 16 |
	       (uint32_t)field[3] << 24;
}

bool mpa_fpdu_is_intact(const void *fpdu, size_t fpdu_len)
{
	size_t covered = fpdu_len - MPA_CRC_LEN;

	return crc32c_final(crc32c_update(CRC32C_INIT, fpdu, covered)) ==
	       mpa_crc_decode((const uint8_t *)fpdu + covered);
}
