/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One end of each pair is ready long before the other end. In some pairs the early end dials, and
 * the late end's host parks this dial; in others the early end waits for the dial. PLAIN_LATE_MS:
 * the delay of the late end.
 */
#include "plain.h"

#include <stdlib.h>
#include <unistd.h>

struct late_pair {
	struct plain early, late;
	bool early_dials;
	bool late_is_in_init; /* true: the late end is in INIT meanwhile; false: in RESET */
	bool sends_early;     /* the early end posts a Send before the peer is ready */
};

#define LATE_PAIRS 8

static struct late_pair pairs[LATE_PAIRS];

static useconds_t late_us(void)
{
	const char *s = getenv("PLAIN_LATE_MS");

	return (s ? (useconds_t)atoi(s) : 300) * 1000;
}

static int open_pairs(void **state)
{
	for (int i = 0; i < LATE_PAIRS; i++) {
		struct late_pair *p = &pairs[i];

		p->early_dials = i & 1;
		p->late_is_in_init = i & 2;
		p->sends_early = i & 4;
		if (p->early_dials)
			plain_pair_open(&p->early, &p->late);
		else
			plain_pair_open(&p->late, &p->early);
	}
	return 0;
}

static int close_pairs(void **state)
{
	for (int i = 0; i < LATE_PAIRS; i++) {
		plain_close(&pairs[i].early);
		plain_close(&pairs[i].late);
	}
	return 0;
}

static void late_pair_begin(struct late_pair *p)
{
	plain_ready(&p->early, p->late.qp->qp_num);
	if (p->sends_early)
		plain_send(&p->early, 1, "early");
	if (p->late_is_in_init)
		plain_init(&p->late);
}

static void late_pair_meets(struct late_pair *p)
{
	if (!p->late_is_in_init)
		plain_init(&p->late);
	if (p->sends_early)
		plain_recv(&p->late, 2);
	plain_rtr(&p->late, p->early.qp->qp_num);
	if (p->sends_early) {
		assert_int_equal(plain_wait(&p->late).status, IBV_WC_SUCCESS);
		assert_string_equal(p->late.buf, "early");
		assert_int_equal(plain_wait(&p->early).status, IBV_WC_SUCCESS);
	}
	plain_rts(&p->late);
	plain_talk(&p->early, &p->late);
}

static void an_end_may_be_late(void **state)
{
	for (int i = 0; i < LATE_PAIRS; i++)
		late_pair_begin(&pairs[i]);
	usleep(late_us());
	for (int i = 0; i < LATE_PAIRS; i++)
		plain_expect_none(&pairs[i].early, 0);
	for (int i = 0; i < LATE_PAIRS; i++)
		late_pair_meets(&pairs[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_end_may_be_late, open_pairs, close_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
