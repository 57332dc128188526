/* SPDX-License-Identifier: BSD-3-Clause */
#include "scenario.h"

#include "base/clock.h"

#define MEDIUM 80 /* limits of the size, in percent of the largest size */

const char *scenario_fault_str(enum sim_fault fault)
{
	static const char *const names[] = {
#define X(name) #name,
		SIM_FAULTS(X)
#undef X
	};

	return names[fault];
}

static void scenario_make_end(struct scenario *sc, struct prng *rng, int i)
{
	sc->ird[i] = (uint16_t)prng_between(rng, 1, prng_chance(rng, 50) ? 2 : 16);
	sc->ord[i] = (uint16_t)prng_between(rng, 1, prng_chance(rng, 50) ? 2 : 16);
	sc->use_srq[i] = prng_chance(rng, 25);
	sc->one_cq[i] = prng_chance(rng, 30);
	sc->send_depth[i] = (uint32_t)prng_between(rng, 1, prng_chance(rng, 30) ? 3 : 32);
	sc->recv_depth[i] = (uint32_t)prng_between(rng, 1, 8);
	sc->pdata_len[i] = (uint8_t)(prng_chance(rng, 50) ? 0 : prng_below(rng, 256));
	sc->announces[i] = prng_chance(rng, 50);
}

static void scenario_make_consent(struct scenario *sc, struct prng *rng)
{
	bool crc = prng_chance(rng, 65), consent = prng_chance(rng, 70);

	sc->want_crc[0] = crc && prng_chance(rng, 70);
	sc->want_crc[1] = crc && (!sc->want_crc[0] || prng_chance(rng, 50));
	sc->offer_consent[0] = consent || prng_chance(rng, 50);
	sc->offer_consent[1] = consent || !sc->offer_consent[0];
	sc->revision = prng_chance(rng, 92) ? 2 : 1;
	sc->p2p = sc->revision == 2 && !consent && prng_chance(rng, 50);
	sc->assumes_7306 = prng_chance(rng, 40);
}

/* The work of a run consists of many small operations, some operations of one or a few FPDUs each,
 * or a few operations of many FPDUs each. */
static void scenario_make_work(struct scenario *sc, struct prng *rng, unsigned dice)
{
	if (dice < 65) {
		sc->op_max = (uint32_t)prng_between(rng, 16, 600);
		sc->chunk_max = (uint32_t)(prng_chance(rng, 20) ? 1 : prng_between(rng, 2, 700));
		sc->window = (uint32_t)prng_between(rng, 64, 20000);
		sc->ops[0] = (uint32_t)prng_between(rng, 1, 40);
		sc->ops[1] = (uint32_t)prng_between(rng, 0, 40);
	} else if (dice < 93) {
		sc->op_max = (uint32_t)prng_between(rng, 2000, 20000);
		sc->chunk_max = (uint32_t)prng_between(rng, 100, 20000);
		sc->window = (uint32_t)prng_between(rng, 3000, 100000);
		sc->ops[0] = (uint32_t)prng_between(rng, 1, 16);
		sc->ops[1] = (uint32_t)prng_between(rng, 0, 16);
	} else {
		sc->op_max = (uint32_t)prng_between(rng, 70000, 200000);
		sc->chunk_max = (uint32_t)prng_between(rng, 2000, 200000);
		sc->window = (uint32_t)prng_between(rng, 20000, 400000);
		sc->ops[0] = (uint32_t)prng_between(rng, 1, 6);
		sc->ops[1] = (uint32_t)prng_between(rng, 0, 6);
	}
	sc->target_len = sc->op_max + (uint32_t)prng_below(rng, sc->op_max);
	sc->words_len = 64 + (uint32_t)prng_below(rng, prng_chance(rng, 50) ? 1 : 4000);
	sc->send_max = sc->op_max < 70000 ? sc->op_max : 70000;
	sc->mss = (uint32_t)prng_between(rng, 536, prng_chance(rng, 50) ? 1460 : 65483);
	sc->latency_ns = prng_between(rng, 1, prng_chance(rng, 50) ? 1000 : 100000);
	sc->writeback_ns = prng_between(rng, 1, prng_chance(rng, 50) ? 10000 : 2000000);
	sc->tick_ns = prng_between(rng, 1000, 50000);
	sc->send_sge = (uint32_t)prng_between(rng, 1, 4);
	sc->recv_sge = (uint32_t)prng_between(rng, 1, 4);
	sc->inline_max = prng_chance(rng, 50) ? 0 : (uint32_t)prng_between(rng, 8, 512);
}

/*
 * Use messages so large that often one part is sent while the rest is still in the user's memory.
 */
static void scenario_make_half_sent(struct scenario *sc, struct prng *rng)
{
	if (prng_chance(rng, 40))
		return;
	scenario_make_work(sc, rng, MEDIUM);
	sc->reuse_percent = 95;
	sc->mostly_large = true;
	sc->want_crc[0] = sc->want_crc[1] = false;
	sc->window = sc->op_max / 2 + 64;
}

/* Use messages of several FPDUs, so that a connection often ends in the middle of a message. */
static void scenario_make_many_fpdus(struct scenario *sc, struct prng *rng)
{
	if (prng_chance(rng, 60))
		return;
	scenario_make_work(sc, rng, MEDIUM);
	sc->mostly_large = true;
	sc->mss = (uint32_t)prng_between(rng, 536, 1460);
	sc->offer_consent[prng_below(rng, 2)] = false;
	sc->fault_pos = prng_below(rng, (sc->ops[sc->fault_node] + 1) * (sc->op_max / 3 + 60ull));
}

/* Choose a position among the bytes that the run will probably send, including the first one. */
static void scenario_make_fault(struct scenario *sc, struct prng *rng)
{
	uint64_t volume;

	sc->fault = FAULT_NONE;
	if (prng_chance(rng, 65))
		sc->fault = (enum sim_fault)prng_between(rng, FAULT_NONE + 1, FAULT_COUNT - 1);
	sc->fault_node = (int)prng_below(rng, 2);
	volume = (uint64_t)(sc->ops[sc->fault_node] + 1) * (sc->op_max / 3 + 60);
	sc->fault_pos = prng_below(rng, volume);
	sc->fault_bit = (unsigned)prng_below(rng, 8);
	sc->fault_ns = prng_between(rng, 1, 1 + (sc->ops[0] + sc->ops[1]) * 2ull * sc->tick_ns);
	sc->pause_ns = prng_between(rng, 1, 200 * NSEC_PER_MS);
	switch (sc->fault) {
	case FAULT_FLIP: /* no checksum protects start-up frames (RFC 5044 s7.1, RFC 6581 s7) */
		sc->early_flip = prng_chance(rng, 10);
		if (sc->early_flip)
			sc->fault_pos = prng_below(rng, 24);
		else
			sc->fault_pos += scenario_frame_len(sc, sc->fault_node);
		break;
	case FAULT_ACCESS:
		sc->fault_pos = prng_below(rng, sc->ops[sc->fault_node] + 1);
		break;
	case FAULT_STRICT: /* fault_node is the end that requests the flush */
		scenario_make_half_sent(sc, rng);
		sc->fault_pos = prng_below(rng, sc->ops[sc->fault_node] + 1);
		sc->half_volatile[1 - sc->fault_node] = true;
		break;
	case FAULT_WRITEBACK:
		scenario_make_half_sent(sc, rng);
		sc->fault_pos = prng_below(rng, sc->ops[1 - sc->fault_node] / 6 + 1);
		break;
	case FAULT_OVERRUN:
		scenario_make_half_sent(sc, rng);
		break;
	/* usually while a message is half sent, sometimes before the connection is established */
	case FAULT_DEREG:
		sc->window = prng_chance(rng, 50) ? sc->window : sc->op_max / 2 + 64;
		if (prng_chance(rng, 85))
			sc->fault_pos += scenario_frame_len(sc, sc->fault_node);
		else
			sc->fault_pos = prng_below(rng, 24);
		/* fall through */
	/*
	 * with a CRC a message is copied early, so the user's memory is rarely referenced for long
	 */
	case FAULT_UNMAP:
		sc->want_crc[0] = sc->want_crc[1] = sc->want_crc[0] && prng_chance(rng, 30);
		break;
	case FAULT_KILL:
	case FAULT_DISCONNECT:
		scenario_make_many_fpdus(sc, rng);
		break;
	case FAULT_RST:
	case FAULT_FIN: /* sometimes before the connection is established */
		scenario_make_many_fpdus(sc, rng);
		if (prng_chance(rng, 20))
			sc->fault_pos = prng_below(rng, prng_chance(rng, 50) ? 1 : 80);
		break;
	default:
		break;
	}
}

static void scenario_make_medium(struct scenario *sc, struct prng *rng)
{
	bool all_persist = prng_chance(rng, 70);

	/* If an end is strict, it also matters whether the other end's memory has a medium. */
	for (int i = 0; i < 2; i++) {
		sc->half_volatile[i] = !all_persist && prng_chance(rng, 50);
		sc->strict[i] = all_persist && prng_chance(rng, 25);
		sc->dax[i] = prng_chance(rng, 40);
	}
	sc->reuse_percent = 40;
	sc->evicts = prng_chance(rng, 30);
	sc->srq_notice_ns = prng_chance(rng, 70) ? 0 : 300000;
	sc->pool_busy_ns = prng_chance(rng, 60) ? 0 : prng_between(rng, 1000, 2000000);
}

static void scenario_make_habits(struct scenario *sc, struct prng *rng)
{
	sc->late_receives = prng_chance(rng, 30);
	sc->bulk_receives = !sc->late_receives && prng_chance(rng, 25);
	sc->changing = prng_chance(rng, 20);
	sc->mostly_sends = prng_chance(rng, 8);
	sc->commit_flags = !sc->mostly_sends && prng_chance(rng, 15);
	if (sc->mostly_sends) {
		sc->late_receives = false;
		sc->ops[0] += 6;
		sc->ops[1] += 6;
	}
}

static void scenario_make_all(struct scenario *sc, struct prng *rng)
{
	*sc = (struct scenario){0};
	scenario_make_consent(sc, rng);
	scenario_make_end(sc, rng, 0);
	scenario_make_end(sc, rng, 1);
	/* Revision 1 negotiates no depths, so both users configure them (RFC 5044 s7.1). */
	for (int i = 0; i < 2 && sc->revision == 1; i++)
		sc->ord[i] = sc->ird[1 - i];
	scenario_make_work(sc, rng, (unsigned)prng_below(rng, 100));
	scenario_make_medium(sc, rng);
}

/*
 * In most runs both ends ask for Acks, or neither end does, because the request of one end alone
 * has no effect. If both ask, receives are posted early. Otherwise two users could wait for each
 * other, as on RoCE: each posts its receive only after the completion of its own Send.
 */
static void scenario_make_acks(struct scenario *sc, struct prng *rng)
{
	sc->acks[0] = prng_chance(rng, 50);
	sc->acks[1] = sc->acks[0] != prng_chance(rng, 10);
	sc->late_receives &= !(sc->acks[0] && sc->acks[1]);
}

void scenario_make(struct scenario *sc, struct prng *rng)
{
	scenario_make_all(sc, rng);
	scenario_make_fault(sc, rng);
	scenario_make_habits(sc, rng);
	/* A blackhole loses bytes in the network, which two ends on one host do not use. */
	sc->rings = prng_chance(rng, 50) && sc->fault != FAULT_BLACKHOLE;
	scenario_make_acks(sc, rng);
}

void scenario_make_beside(struct scenario *sc, struct prng *rng, const struct scenario *first)
{
	scenario_make_all(sc, rng);
	scenario_make_habits(sc, rng);
	sc->rings = prng_chance(rng, 50);
	scenario_make_acks(sc, rng);
	sc->mode = first->mode;
	for (int i = 0; i < 2; i++) {
		sc->dax[i] = first->dax[i];
		sc->ops[i] = (sc->ops[i] + 1) / 2;
	}
}

void scenario_make_shared(struct scenario *sc, struct prng *rng)
{
	sc->use_srq[0] = prng_chance(rng, 60);
	sc->use_srq[1] = prng_chance(rng, 60);
	/* A silent connection can take a receive that then never completes. The other connections
	 * would wait for this receive. */
	sc->bulk_receives = prng_chance(rng, 60) && sc->fault != FAULT_BLACKHOLE;
}

void scenario_make_cut(struct scenario *sc, struct prng *rng)
{
	do
		scenario_make(sc, rng);
	while (sc->op_max > 600 || sc->fault == FAULT_STRICT);
	sc->fault = prng_chance(rng, 25) ? FAULT_WRITEBACK : FAULT_NONE;
	sc->fault_pos = prng_below(rng, sc->ops[1 - sc->fault_node] / 6 + 1);
	sc->mostly_sends = sc->changing = false;
	sc->commit_flags = prng_chance(rng, 60);
	sc->evicts = prng_chance(rng, 60);
}

void scenario_print(const struct scenario *sc, FILE *to)
{
	fprintf(to,
		"crc %d/%d consent %d/%d announces %d/%d p2p %d rev %u ird %u/%u ord %u/%u srq %d/%d "
		"sq %u/%u rq %u/%u rings %d acks %d/%d\n",
		sc->want_crc[0], sc->want_crc[1], sc->offer_consent[0], sc->offer_consent[1],
		sc->announces[0], sc->announces[1], sc->p2p, sc->revision, sc->ird[0], sc->ird[1],
		sc->ord[0], sc->ord[1], sc->use_srq[0], sc->use_srq[1], sc->send_depth[0],
		sc->send_depth[1], sc->recv_depth[0], sc->recv_depth[1], sc->rings, sc->acks[0],
		sc->acks[1]);
	fprintf(to,
		"ops %u/%u of at most %u bytes, mss %u, chunks of at most %u, window %u, late "
		"receives %d\n",
		sc->ops[0], sc->ops[1], sc->op_max, sc->mss, sc->chunk_max, sc->window,
		sc->late_receives);
	fprintf(to,
		"dax %d/%d half volatile %d/%d strict %d/%d evicts %d commit_flags %d changing %d "
		"mostly_sends %d rfc7306 %d\n",
		sc->dax[0], sc->dax[1], sc->half_volatile[0], sc->half_volatile[1], sc->strict[0],
		sc->strict[1], sc->evicts, sc->commit_flags, sc->changing, sc->mostly_sends,
		sc->assumes_7306);
	fprintf(to, "fault %s at node %d, position %llu, time %llu ns, bit %u\n",
		scenario_fault_str(sc->fault), sc->fault_node, (unsigned long long)sc->fault_pos,
		(unsigned long long)sc->fault_ns, sc->fault_bit);
}
