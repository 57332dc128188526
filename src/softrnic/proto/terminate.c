/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/proto/terminate.h"

#include <errno.h>

#include "base/cursor.h"

/* Positions of the header control bits (RFC 5040 s4.8). siw places them mirrored in the low three
 * bits. */
struct hdrct {
	uint8_t m, d, r;
};
static const struct hdrct rfc_bits = {0x80, 0x40, 0x20};
static const struct hdrct siw_bits = {0x01, 0x02, 0x04};

static const struct {
	unsigned error;
	const char *text;
} known[] = {
#define X(name, layer, etype, code, text) {TERM_##name, text},
	TERM_ERRORS(X)
#undef X
};

/* Two error types allow any code: RDMAP defines no codes for its local errors, and the codes of
 * DDP's LLP type are defined by the LLP. */
#define ERROR_TYPE(error) ((error) >> 8)
#define TYPE_RDMAP_LOCAL  ERROR_TYPE(TERM_RDMAP_LOCAL_CATASTROPHIC)
#define TYPE_DDP_LLP      ERROR_TYPE(TERM_CODE(TERM_DDP, TERM_DDP_LLP, 0))

static const char *terminate_find(unsigned error)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].error == error)
			return known[i].text;
	if (ERROR_TYPE(error) == TYPE_RDMAP_LOCAL)
		return known[0].text;
	return ERROR_TYPE(error) == TYPE_DDP_LLP ? "DDP: error of the LLP" : NULL;
}

const char *term_str(unsigned error)
{
	const char *text = terminate_find(error);

	return text ? text : "unknown error";
}

struct terminate terminate_of(unsigned error)
{
	return (struct terminate){
		.layer = error >> 12 & 0xf,
		.etype = error >> 8 & 0xf,
		.code = error & 0xff,
	};
}

void terminate_echo(struct terminate *t, const struct ddp_hdr *ddp, uint16_t segment_len,
		    const struct rdmap_read_req *read_req)
{
	bool rdmap_remote = t->layer == TERM_RDMAP && t->etype != TERM_RDMAP_LOCAL;
	bool protection = t->layer == TERM_RDMAP && t->etype == TERM_RDMAP_PROTECTION;

	t->has_ddp = ddp && (rdmap_remote || t->layer == TERM_DDP);
	t->has_segment_len = t->has_ddp;
	t->has_read_req = t->has_ddp && read_req && protection;
	if (t->has_ddp) {
		t->segment_len = segment_len;
		t->ddp = *ddp;
	}
	if (t->has_read_req)
		t->read_req = *read_req;
}

int terminate_encode(void *buf, size_t size, const struct terminate *t)
{
	struct wcursor c = wcursor_init(buf, size);
	const struct hdrct *bits = t->siw_layout ? &siw_bits : &rfc_bits;
	unsigned hi = t->siw_layout ? t->etype : t->layer;
	unsigned lo = t->siw_layout ? t->layer : t->etype;

	wcursor_u8(&c, (uint8_t)(hi << 4 | (lo & 0xf)));
	wcursor_u8(&c, t->code);
	wcursor_u8(&c, (uint8_t)((t->has_segment_len ? bits->m : 0) | (t->has_ddp ? bits->d : 0) |
				 (t->has_ddp && t->has_read_req ? bits->r : 0)));
	wcursor_u8(&c, 0);
	/* The length field is present if either bit is set, because a DDP header always follows a
	 * length. */
	if (t->has_segment_len || t->has_ddp)
		wcursor_be16(&c, t->segment_len);
	if (t->has_ddp)
		ddp_put(&c, &t->ddp);
	if (t->has_ddp && t->has_read_req)
		rdmap_read_req_put(&c, &t->read_req);
	return c.bad ? -ENOSPC : (int)wcursor_len(&c);
}

/* Does the control word have siw's layout? Usually only one of the two layouts gives a known error.
 * If both give one, the control bits decide. If these bits are 0, the RFC's layout is assumed. */
static bool terminate_is_siw_layout(uint8_t types, uint8_t code, uint8_t flags)
{
	bool flags_low = !(flags & 0xe0) && flags & 0x07;
	bool as_rfc = terminate_find(TERM_CODE(types >> 4, types & 0xf, code));
	bool as_siw = terminate_find(TERM_CODE(types & 0xf, types >> 4, code));

	return as_siw && (flags_low || !as_rfc);
}

static void terminate_decode_echo(struct rcursor *c, uint8_t flags, const struct hdrct *bits,
				  struct terminate *t)
{
	if (flags & (bits->m | bits->d)) {
		t->segment_len = rcursor_be16(c);
		t->has_segment_len = flags & bits->m && !c->bad;
	}
	if (flags & bits->d) {
		ddp_get(c, &t->ddp);
		t->has_ddp = !c->bad;
	}
	/* An RDMAP header that is not a Read Request's, for instance an atomic's (RFC 7306 s8), is
	 * not decoded. */
	if (flags & bits->r && rdmap_ctrl_opcode(t->ddp.ulp) == RDMAP_READ_REQ) {
		rdmap_read_req_get(c, &t->read_req);
		t->has_read_req = t->has_ddp && !c->bad;
	}
}

int terminate_decode(const void *buf, size_t len, struct terminate *t)
{
	struct rcursor c = rcursor_init(buf, len);
	uint8_t types = rcursor_u8(&c), code = rcursor_u8(&c), flags = rcursor_u8(&c);

	rcursor_u8(&c);
	if (c.bad)
		return -EBADMSG;
	*t = (struct terminate){.siw_layout = terminate_is_siw_layout(types, code, flags),
				.code = code};
	t->layer = t->siw_layout ? types & 0xf : types >> 4;
	t->etype = t->siw_layout ? types >> 4 : types & 0xf;
	terminate_decode_echo(&c, flags, t->siw_layout ? &siw_bits : &rfc_bits, t);
	return 0;
}
