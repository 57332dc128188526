/* SPDX-License-Identifier: BSD-3-Clause */
#include "rings.h"

#include <string.h>

#include "sim.h"
#include "softrnic/proto/ddp.h"
#include "softrnic/proto/ext.h"
#include "softrnic/proto/mpa.h"
#include "softrnic/proto/rdmap.h"
#include "softrnic/rnic/qp_impl.h"

/*
 * a move to rings can fail at each of its steps; this is the probability at each step, in percent
 */
#define STOP_PERCENT 15

static bool rings_can(const struct node *n)
{
	return !n->killed && !n->ended && !n->destroyed && stream_offers_rings(n->stream);
}

static bool rings_give_up(struct node *n)
{
	return prng_chance(&n->sim->world->rng, STOP_PERCENT);
}

static void rings_send_packet(struct node *to)
{
	struct sim *sim = to->sim;
	uint64_t delay = 1 + prng_below(&sim->world->rng, 100000);

	sim_at(sim, sim->world->now + delay, EV_MEET, to->index, 0);
}

static void rings_say(struct node *n, enum ext_link_step step, struct stream_update *u)
{
	stream_link_post(n->stream, step, NULL, u);
}

void rings_begin(struct node *n, struct stream_update *u)
{
	if (n->index == 0 || n->meets || !n->sim->sc.rings || !rings_can(n) ||
	    !prng_chance(&n->sim->world->rng, 20))
		return;
	n->meets = true;
	rings_say(n, EXT_LINK_MEET, u);
}

void rings_on_packet(struct node *n)
{
	struct stream_update u;

	if (!rings_can(n))
		return;
	n->has_memory = n->index == 0 && !rings_give_up(n);
	if (n->index == 1)
		rings_say(n, EXT_LINK_MET, &u);
	else
		rings_say(n, n->has_memory ? EXT_LINK_SWITCH : EXT_LINK_STOP, &u);
	node_perform(n, &u);
}

static void rings_switch_tx(struct node *n, struct stream_update *u)
{
	if (n->sim->sc.mode != SIM_OLD_LINK)
		link_switch_tx(&n->sim->link, n->index);
	stream_link_tx_switched(n->stream, u);
}

static void rings_switch_rx(struct node *n, struct stream_update *u)
{
	struct link *l = &n->sim->link;

	if (!n->has_memory || l->reads_ring[n->index]) {
		stream_link_refuse(n->stream, u);
		return;
	}
	if (link_readable(l, n->index) > 0)
		sim_violate(n->sim, "node %d: bytes behind a SWITCH on TCP", n->index);
	if (n->sim->sc.mode != SIM_IGNORED_SWITCH)
		link_switch_rx(l, n->index);
	stream_watch_given_up(n->stream, &l->given_up[n->peer->index]);
	stream_link_rx_switched(n->stream, u);
	if (n->index == 1)
		rings_say(n, EXT_LINK_SWITCH, u);
}

static void rings_on_proof(struct node *n, struct stream_update *u)
{
	n->has_memory = !rings_give_up(n);
	if (n->has_memory)
		rings_send_packet(n->peer);
	else
		rings_say(n, EXT_LINK_STOP, u);
}

void rings_on_step(void *owner, const struct qp_link_msg *msg, struct stream_update *u)
{
	struct node *n = owner;

	stream_look(n->stream, u);
	switch (msg->step) {
	case QP_LINK_SENT:
		rings_switch_tx(n, u);
		break;
	case EXT_LINK_SWITCH:
		rings_switch_rx(n, u);
		break;
	case EXT_LINK_MEET:
		if (rings_give_up(n))
			rings_say(n, EXT_LINK_STOP, u);
		else
			rings_send_packet(n->peer);
		break;
	case EXT_LINK_MET:
		rings_say(n, EXT_LINK_PROOF, u);
		break;
	case EXT_LINK_PROOF:
		rings_on_proof(n, u);
		break;
	case EXT_LINK_STOP:
		n->has_memory = false;
		break;
	}
}

/* --- memory that the peer can change -------------------------------------------------------- */

static struct node *rings_shown; /* the node that is parsing bytes */
/* The bytes after the FPDU header that was read last, if the whole FPDU has arrived. */
static uint8_t *rings_rest;
static size_t rings_rest_len;

/* Returns the offset of the next FPDU, after the rest of the FPDU that has begun. */
static size_t rings_next_fpdu(const struct node *n)
{
	const struct rx_seg *seg = &n->qp->rx.seg;

	return seg->active ? seg->payload - seg->done + seg->trailer : 0;
}

void rings_show(struct node *n, uint8_t *bytes, size_t len)
{
	rings_shown = bytes ? n : NULL;
	n->shown.bytes = bytes;
	n->shown.len = len;
	n->shown.next = bytes ? rings_next_fpdu(n) : 0;
}

/* Change the header of an FPDU and the FPDU's length field, after both were read. Returns the
 * header's address. */
static const uint8_t *rings_scramble(const void *header, size_t len)
{
	struct node *n = rings_shown;
	uint8_t *at = n->shown.bytes + n->shown.next;
	uint32_t ulpdu;

	if (n->shown.next + MPA_LENGTH_LEN + len > n->shown.len)
		return NULL;
	if (memcmp(at + MPA_LENGTH_LEN, header, len)) {
		sim_violate(n->sim, "node %d: what is parsed is not the ring's", n->index);
		return NULL;
	}
	ulpdu = (uint32_t)at[0] << 8 | at[1];
	rings_rest = at + MPA_LENGTH_LEN + len;
	n->shown.next += mpa_fpdu_len(ulpdu);
	rings_rest_len = n->shown.next <= n->shown.len ? ulpdu - len : 0;
	for (size_t i = 0; i < MPA_LENGTH_LEN + len; i++)
		at[i] ^= 0x5a;
	n->scrambled++;
	return at + MPA_LENGTH_LEN;
}

int __real_ddp_decode(const void *buf, size_t len, struct ddp_hdr *hdr);
int __wrap_ddp_decode(const void *buf, size_t len, struct ddp_hdr *hdr);
int __wrap_ddp_decode(const void *buf, size_t len, struct ddp_hdr *hdr)
{
	int ret = __real_ddp_decode(buf, len, hdr);
	const uint8_t *lies;

	if (!rings_shown || ret <= 0)
		return ret;
	lies = rings_scramble(buf, (size_t)ret);
	if (lies && rings_shown->sim->sc.mode == SIM_READ_TWICE)
		__real_ddp_decode(lies, len, hdr);
	return ret;
}

/* Change the rest of the FPDU once, if it has this length. */
static void rings_scramble_rest(size_t len)
{
	size_t n = rings_rest_len;

	rings_rest_len = 0;
	if (!rings_shown || n != len)
		return;
	for (size_t i = 0; i < n; i++)
		rings_rest[i] ^= 0x5a;
}

/*
 * After the check of a request, change its header in the ring. Messages are not changed, because
 * their bytes are read only later, when they are placed. Bytes that have not arrived are not
 * changed, either.
 */
unsigned __real_rdmap_check(const struct rdmap_op *op, const struct ddp_hdr *hdr,
			    const uint8_t *bytes, size_t len, enum rdmap_level level);
unsigned __wrap_rdmap_check(const struct rdmap_op *op, const struct ddp_hdr *hdr,
			    const uint8_t *bytes, size_t len, enum rdmap_level level);
unsigned __wrap_rdmap_check(const struct rdmap_op *op, const struct ddp_hdr *hdr,
			    const uint8_t *bytes, size_t len, enum rdmap_level level)
{
	unsigned error = __real_rdmap_check(op, hdr, bytes, len, level);
	bool leave = error || hdr->tagged || hdr->qn == DDP_QN_SEND;

	rings_scramble_rest(leave ? SIZE_MAX : len);
	return error;
}
