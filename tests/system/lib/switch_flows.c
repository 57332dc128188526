/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch_flows.h"

#include <arpa/inet.h>
#include <err.h>
#include <string.h>

#include "mirror/wire/greeting.h"

#define FLOWS_MAX      65536u
#define FLOWS_ETHERNET 14u /* length of a frame's header */
#define FLOWS_SYN      0x02
#define FLOWS_REQUEST  "MPA ID Req Frame"
#define FLOWS_GREETING "RMIM" /* magic bytes before the versions, the length and the kind */
#define FLOWS_SEARCHED 128u   /* a greeting begins within this many bytes of a request */

struct flow {
	uint32_t addrs[2];
	uint16_t ports[2];
	uint8_t kind;
	bool is_used;
};

static struct flow flows[FLOWS_MAX];

bool segment_find(const uint8_t *frame, size_t len, struct segment *s)
{
	size_t ip = FLOWS_ETHERNET, tcp, data, end;

	if (len < ip + 20 || frame[12] != 8 || frame[13] || frame[ip + 9] != 6)
		return false;
	tcp = ip + (frame[ip] & 15) * 4u;
	end = ip + (size_t)(frame[ip + 2] << 8 | frame[ip + 3]);
	if (end > len || end < tcp + 20)
		return false;
	data = tcp + (frame[tcp + 12] >> 4) * 4u;
	memcpy(s->addrs, frame + ip + 12, sizeof(s->addrs));
	memcpy(s->ports, frame + tcp, sizeof(s->ports));
	for (unsigned i = 0; i < 2; i++)
		s->ports[i] = ntohs(s->ports[i]);
	s->begins = frame[tcp + 13] & FLOWS_SYN;
	s->payload = frame + data;
	s->len = data < end ? end - data : 0;
	return true;
}

static bool flow_is_between(const struct flow *f, const struct segment *s, unsigned from)
{
	unsigned to = 1 - from;

	return f->addrs[0] == s->addrs[from] && f->addrs[1] == s->addrs[to] &&
	       f->ports[0] == s->ports[from] && f->ports[1] == s->ports[to];
}

/* Find the flow of a segment; both directions of a connection have the same flow. */
static struct flow *flow_find(const struct segment *s)
{
	uint32_t hash = (s->addrs[0] ^ s->addrs[1]) * 2654435761u ^
			(uint32_t)(s->ports[0] + s->ports[1]) * 40503u ^
			(uint32_t)(s->ports[0] ^ s->ports[1]) * 2246822519u;

	for (uint32_t i = 0; i < FLOWS_MAX; i++) {
		struct flow *f = &flows[(hash + i) % FLOWS_MAX];

		if (!f->is_used) {
			*f = (struct flow){.is_used = true};
			memcpy(f->addrs, s->addrs, sizeof(f->addrs));
			memcpy(f->ports, s->ports, sizeof(f->ports));
			return f;
		}
		if (flow_is_between(f, s, 0) || flow_is_between(f, s, 1))
			return f;
	}
	errx(1, "more than %u connections", FLOWS_MAX);
}

static uint8_t flow_read_kind(const struct segment *s)
{
	const size_t key = strlen(FLOWS_REQUEST), magic = strlen(FLOWS_GREETING);
	size_t searched = s->len < FLOWS_SEARCHED ? s->len : FLOWS_SEARCHED;

	if (s->len < key || memcmp(s->payload, FLOWS_REQUEST, key) != 0)
		return 0;
	for (size_t i = key; i + magic + 4 <= searched; i++)
		if (!memcmp(s->payload + i, FLOWS_GREETING, magic))
			/* the kind is after the versions and the length */
			return s->payload[i + magic + 3];
	return 0;
}

unsigned flows_kind(const struct segment *s)
{
	struct flow *f = flow_find(s);

	if (s->begins)
		f->kind = 0; /* the ports were used by an earlier connection */
	else if (!f->kind)
		f->kind = flow_read_kind(s);
	return f->kind;
}

unsigned flows_kind_named(const char *name)
{
	static const char *const names[GREETING_KIND_END] = {
		[GREETING_CONTROL] = "control", [GREETING_LANE] = "lane",
		[GREETING_BULK] = "bulk",       [GREETING_OBSERVE] = "observe",
		[GREETING_RESTORE] = "restore",
	};

	for (unsigned kind = 1; kind < GREETING_KIND_END; kind++)
		if (!strcmp(names[kind], name))
			return kind;
	return 0;
}
