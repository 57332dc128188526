/* SPDX-License-Identifier: BSD-3-Clause */
#include "rawpeer.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cursor.h"
#include "rawrings.h"

#define DESC_SIZE 21

int raw_dial_to(struct raw *r, const char *from, const char *addr, const char *port)
{
	struct sockaddr_in src = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(from)};
	struct sockaddr_in sin = {.sin_family = AF_INET,
				  .sin_addr.s_addr = inet_addr(addr),
				  .sin_port = htons((uint16_t)atoi(port))};
	int one = 1;

	r->rings = NULL;
	r->at = r->have = r->taken = 0;
	r->n_regions = 0;
	for (int i = 0; i < DDP_QN_COUNT; i++)
		r->msn[i] = DDP_FIRST_MSN;
	r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (r->fd < 0 || bind(r->fd, (struct sockaddr *)&src, sizeof(src)) ||
	    connect(r->fd, (struct sockaddr *)&sin, sizeof(sin)))
		return -errno;
	setsockopt(r->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return 0;
}

int raw_dial_from(struct raw *r, const char *from, const char *port)
{
	return raw_dial_to(r, from, "127.0.0.1", port);
}

int raw_dial(struct raw *r, const char *port)
{
	return raw_dial_from(r, "0.0.0.0", port);
}

void raw_close(struct raw *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

int raw_send(struct raw *r, const void *bytes, size_t len)
{
	if (r->rings)
		return rawrings_send(r, bytes, len);
	while (len) {
		ssize_t n = send(r->fd, bytes, len, MSG_NOSIGNAL);

		if (n < 0)
			return errno == EPIPE || errno == ECONNRESET ? -ESHUTDOWN : -errno;
		bytes = (const uint8_t *)bytes + n;
		len -= (size_t)n;
	}
	return 0;
}

int raw_recv(struct raw *r, void *bytes, size_t len, int timeout_ms)
{
	struct pollfd p = {.fd = r->fd, .events = POLLIN};
	ssize_t n;

	if (r->rings)
		return rawrings_recv(r, bytes, len, timeout_ms);
	if (poll(&p, 1, timeout_ms) <= 0)
		return -ETIMEDOUT;
	n = recv(r->fd, bytes, len, 0);
	if (n < 0)
		return errno == ECONNRESET ? -ESHUTDOWN : -errno;
	return (int)n;
}

int raw_expect_end(struct raw *r, int timeout_ms)
{
	uint8_t byte;
	int n = r->have > r->taken ? 1 : raw_recv(r, &byte, 1, timeout_ms);

	if (n == -ESHUTDOWN)
		return 0;
	return n > 0 ? -EPROTO : n;
}

/* Receive until at least `want` bytes are at r->in + r->at. */
static int raw_fill_to(struct raw *r, size_t want, int timeout_ms)
{
	uint64_t end = clock_now_ns() + (uint64_t)timeout_ms * NSEC_PER_MS;

	if (r->have < want && r->at + want > sizeof(r->in)) {
		memmove(r->in, r->in + r->at, r->have);
		r->at = 0;
	}
	while (r->have < want) {
		uint64_t now = clock_now_ns();
		int left = now < end ? (int)((end - now) / NSEC_PER_MS) + 1 : 0;
		size_t used = r->at + r->have;
		int n = raw_recv(r, r->in + used, sizeof(r->in) - used, left);

		if (n <= 0)
			return n ? n : -ESHUTDOWN;
		r->have += (size_t)n;
	}
	return 0;
}

static void raw_drop(struct raw *r, size_t len)
{
	r->have -= len;
	r->at = r->have ? r->at + len : 0;
}

void raw_request(struct mpa_start *request, unsigned options)
{
	*request = (struct mpa_start){
		.crc = options & RAW_CRC,
		.enhanced = true,
		.revision = MPA_REVISION_2,
		.rtr_send = options & RAW_EXTENSIONS, /* doc/wire.md, section 3: 0111 */
		.rtr_write = options & RAW_EXTENSIONS,
		.rtr_read = options & RAW_EXTENSIONS,
		.ird = 16,
		.ord = 16,
	};
}

static void raw_take_regions(struct raw *r)
{
	const uint8_t *pdata = r->pdata;

	for (size_t at = 0; at + DESC_SIZE <= r->reply.pd_len; at += DESC_SIZE) {
		struct raw_region *region = &r->region[r->n_regions];

		memcpy(&region->addr, pdata + at, 8);
		memcpy(&region->len, pdata + at + 8, 8);
		memcpy(&region->stag, pdata + at + 16, 4);
		region->addr = le64toh(region->addr);
		region->len = le64toh(region->len);
		region->stag = le32toh(region->stag);
		region->usage = pdata[at + 20];
		if (++r->n_regions == RAW_REGIONS_MAX)
			break;
	}
}

static int raw_take_start(struct raw *r)
{
	const uint8_t *pdata;
	int ret = raw_fill_to(r, MPA_START_HDR, RAW_WAIT_MS), len;

	if (ret)
		return ret;
	len = mpa_start_decode_header(r->in + r->at);
	if (len < 0)
		return len;
	ret = raw_fill_to(r, (size_t)len, RAW_WAIT_MS);
	if (ret)
		return ret;
	len = mpa_start_decode(r->in + r->at, r->have, &r->reply, &pdata);
	if (len < 0)
		return len;
	if (!r->reply.reply)
		return -EPROTO;
	if (r->reply.reject)
		return -ECONNREFUSED;
	r->crc = r->reply.crc;
	memcpy(r->pdata, pdata, r->reply.pd_len);
	raw_drop(r, (size_t)len);
	return 0;
}

int raw_take_reply(struct raw *r)
{
	int ret = raw_take_start(r);

	if (!ret)
		raw_take_regions(r);
	return ret;
}

static int raw_send_start(struct raw *r, unsigned options, const void *pdata, size_t pd_len)
{
	uint8_t frame[MPA_START_MAX];
	struct mpa_start request;
	int len;

	raw_request(&request, options);
	request.pd_len = (uint16_t)pd_len;
	len = mpa_start_encode(frame, sizeof(frame), &request, pdata);
	return len < 0 ? len : raw_send(r, frame, (size_t)len);
}

int raw_send_request(struct raw *r, unsigned options)
{
	return raw_send_start(r, options, NULL, 0);
}

int raw_connect_with(struct raw *r, const char *port, const void *pdata, size_t len)
{
	int ret = raw_dial(r, port);

	if (!ret)
		ret = raw_send_start(r, RAW_PLAIN, pdata, len);
	return ret ? ret : raw_take_start(r);
}

int raw_connect_mute(struct raw *r, const char *port, unsigned options)
{
	int ret = raw_dial(r, port);

	if (!ret)
		ret = raw_send_request(r, options);
	return ret ? ret : raw_take_reply(r);
}

int raw_connect(struct raw *r, const char *port, unsigned options)
{
	int ret = raw_connect_mute(r, port, options);

	if (!ret && options & RAW_EXTENSIONS)
		ret = raw_hello(r);
	return ret;
}

int raw_fpdu(struct raw *r, const void *ulpdu, size_t len, bool bad_crc)
{
	static const uint8_t zeros[4];
	uint8_t *fpdu = malloc(mpa_fpdu_len(len)), crc[MPA_CRC_LEN];
	struct wcursor c = wcursor_init(fpdu, mpa_fpdu_len(len));
	struct iovec iov = {.iov_base = fpdu};
	int ret;

	if (!fpdu)
		return -ENOMEM;
	wcursor_be16(&c, (uint16_t)len);
	wcursor_bytes(&c, ulpdu, len);
	wcursor_bytes(&c, zeros, mpa_pad(len));
	iov.iov_len = wcursor_len(&c);
	mpa_crc_encode(crc, mpa_crc(&iov, 1, iov.iov_len) ^ (bad_crc ? 1u : 0u));
	wcursor_bytes(&c, crc, sizeof(crc));
	ret = raw_send(r, fpdu, wcursor_len(&c));
	free(fpdu);
	return ret;
}

int raw_segment(struct raw *r, const struct ddp_hdr *hdr, const void *payload, size_t len)
{
	uint8_t *ulpdu = malloc(DDP_HDR_MAX + len);
	struct ddp_hdr h = *hdr;
	int ret;

	if (!ulpdu)
		return -ENOMEM;
	if (!h.tagged && !h.msn && h.qn < DDP_QN_COUNT)
		h.msn = h.last ? r->msn[h.qn]++ : r->msn[h.qn];
	ret = ddp_encode(ulpdu, DDP_HDR_MAX, &h);
	if (ret > 0) {
		if (len)
			memcpy(ulpdu + ret, payload, len);
		ret = raw_fpdu(r, ulpdu, (size_t)ret + len, false);
	}
	free(ulpdu);
	return ret;
}

int raw_write(struct raw *r, uint32_t stag, uint64_t to, const void *bytes, size_t len)
{
	struct ddp_hdr hdr = {.tagged = true,
			      .last = true,
			      .version = DDP_VERSION,
			      .ulp = rdmap_ctrl(RDMAP_WRITE),
			      .stag = stag,
			      .to = to};

	return raw_segment(r, &hdr, bytes, len);
}

static int raw_untagged(struct raw *r, enum rdmap_opcode op, const void *bytes, size_t len)
{
	struct ddp_hdr hdr = {.last = true,
			      .version = DDP_VERSION,
			      .ulp = rdmap_ctrl(op),
			      .qn = rdmap_ops[op].qn};

	return raw_segment(r, &hdr, bytes, len);
}

int raw_read(struct raw *r, uint32_t stag, uint64_t to, uint32_t len)
{
	struct rdmap_read_req req = {.sink_stag = 0x1234,
				     .sink_to = 0x1000,
				     .size = len,
				     .src_stag = stag,
				     .src_to = to};
	uint8_t bytes[RDMAP_READ_REQ_LEN];

	rdmap_read_req_encode(bytes, sizeof(bytes), &req);
	return raw_untagged(r, RDMAP_READ_REQ, bytes, sizeof(bytes));
}

int raw_flush(struct raw *r, uint32_t stag, uint64_t to, uint64_t len, uint32_t flags)
{
	struct ext_range req = {{EXT_FLUSH, flags}, stag, to, len};
	uint8_t bytes[EXT_RANGE_LEN];

	ext_range_encode(bytes, sizeof(bytes), &req);
	return raw_untagged(r, RDMAP_EXT_REQ, bytes, sizeof(bytes));
}

int raw_control(struct raw *r, enum rdmap_opcode op, const void *bytes, size_t len)
{
	struct ddp_hdr hdr = {
		.last = true, .version = DDP_VERSION, .ulp = rdmap_ctrl(op), .qn = DDP_QN_CONTROL};

	return raw_segment(r, &hdr, bytes, len);
}

int raw_hello_with(struct raw *r, uint32_t rings)
{
	struct ext_hello hello = {
		.major = EXT_HELLO_MAJOR, .max_ulpdu = MPA_ULPDU_MAX, .rings = rings};
	uint8_t bytes[EXT_HELLO_MAX];
	int len = ext_hello_encode(bytes, sizeof(bytes), &hello);

	return len < 0 ? len : raw_control(r, RDMAP_EXT_REQ, bytes, (size_t)len);
}

int raw_hello(struct raw *r)
{
	return raw_hello_with(r, 0);
}

int raw_message(struct raw *r, const void *bytes, size_t len)
{
	return raw_untagged(r, RDMAP_SEND, bytes, len);
}

int raw_invalidate(struct raw *r, uint32_t stag)
{
	struct ddp_hdr hdr = {.last = true,
			      .version = DDP_VERSION,
			      .ulp = rdmap_ctrl(RDMAP_SEND_INV),
			      .ulp_word = stag,
			      .qn = DDP_QN_SEND};

	return raw_segment(r, &hdr, NULL, 0);
}

int raw_take_fpdu(struct raw *r, const uint8_t **ulpdu, int timeout_ms)
{
	size_t len, total;
	int ret;

	raw_drop(r, r->taken);
	r->taken = 0;
	ret = raw_fill_to(r, MPA_LENGTH_LEN, timeout_ms);
	if (ret)
		return ret;
	len = (size_t)(r->in[r->at] << 8 | r->in[r->at + 1]);
	total = mpa_fpdu_len(len);
	ret = raw_fill_to(r, total, timeout_ms);
	if (ret)
		return ret;
	if (r->crc && !mpa_fpdu_is_intact(r->in + r->at, total))
		return -EBADMSG;
	*ulpdu = r->in + r->at + MPA_LENGTH_LEN;
	r->taken = total;
	return (int)len;
}

int raw_expect(struct raw *r, enum rdmap_opcode op, struct ddp_hdr *hdr, const uint8_t **payload)
{
	/* for gcc -O3, which does not see that the function returns if len < 0 */
	const uint8_t *ulpdu = NULL;

	for (;;) {
		int len = raw_take_fpdu(r, &ulpdu, RAW_WAIT_MS), at;

		if (len < 0)
			return len;
		at = ddp_decode(ulpdu, (size_t)len, hdr);
		if (at < 0)
			return at;
		if (rdmap_ctrl_opcode(hdr->ulp) != op)
			continue;
		*payload = ulpdu + at;
		return len - at;
	}
}

int raw_expect_terminate(struct raw *r, struct terminate *t)
{
	const uint8_t *payload;
	struct terminate own;
	struct ddp_hdr hdr;
	int len = raw_expect(r, RDMAP_TERMINATE, &hdr, &payload), ret;

	if (len < 0)
		return len;
	if (hdr.tagged || hdr.qn != DDP_QN_TERMINATE || hdr.msn != DDP_FIRST_MSN || hdr.mo != 0)
		return -EPROTO;
	ret = terminate_decode(payload, (size_t)len, t ? t : &own);
	return ret ? ret : (int)terminate_error(t ? t : &own);
}
