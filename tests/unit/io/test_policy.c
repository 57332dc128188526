/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of doc/policy.md, one by one: a sequence of events, and the expected decisions. */
#include "lib/unit.h"

#include "base/clock.h"
#include "softrnic/io/policy.h"

#define US NSEC_PER_US
#define MS NSEC_PER_MS

/* --- when a Write leaves -------------------------------------------------------------------- */

/*
 * `happens` has the events of a connection, a letter each. w: a Write is posted; f: another request
 * is posted immediately; F: another request is posted 50 us later; W: a Write is posted 50 us
 * later; m: a Send without a completion is posted; l: the program polls the CQ; a: the alarm fires.
 * `answers` has a letter for each event. For a post, s: the request is sent; w: it waits; j: it
 * joins a waiting one. The letter for a poll is l, and for an alarm a.
 */
struct story {
	const char *happens, *answers;
};

static const struct story stories[] = {
	/* The first two Writes of a connection are sent immediately. */
	{"wfwfwf", "ssssws"},
	{"wwww", "sswj"},
	/* If no post follows a Write within 20 us, the count of pairs begins again. */
	{"wFwFwFwF", "ssssssss"},
	{"wfwFwfwf", "ssssssss"},
	{"wfwFwfwfw", "ssssssssw"},
	/* Single Writes with pauses between them never wait. */
	{"wWWWWW", "ssssss"},
	/* After two pairs of a Write and a flush, Writes wait for the next flush, and are sent
	 * together with it. */
	{"wfwfwwwwf", "sssswjjjs"},
	/* The alarm fired before the flush, because the thread was held up: two Writes with a flush
	 * after them are still enough to let the next Write wait. */
	{"wfwfwaf", "sssswas"},
	{"wfwfwafwfwfw", "sssswasssssw"},
	/* The alarm fired while several Writes waited: two Writes with a flush after them are still
	 * enough to let the next Write wait. */
	{"wfwfwwaw", "sssswjas"},
	{"wfwfwwawfwfw", "sssswjassssw"},
	/* After eight Sends in a row, further Sends wait until a request with a completion is
	 * posted. */
	{"mmmmmmmmmmmf", "sssssssswjjs"},
	{"mmmmmmmmmmmfmm", "sssssssswjjsss"},
	/* In an exchange of messages no Send waits, because the thread polls for the answer. */
	{"mlmlmlmlmlmlmlmlmlml", "slslslslslslslslslsl"},
	/* One message waited alone: from now on eight messages in a row are not enough to let one
	 * wait. */
	{"mmmmmmmmmlmmmmmmmmmmmmmmmmmm", "sssssssswlsssssssssssssssswj"},
	{"mmmmmmmmmammmmmmmmmmmmmmmmmm", "sssssssswasssssssssssssssswj"},
	/* No message waited at the time of the second poll. */
	{"mmmmmmmmmlmmmmmmmmlmmmmmmmmmmmmmmmmmm", "sssssssswlsssssssslsssssssssssssssswj"},
	/* Other messages joined a waiting one: eight messages in a row are enough again. */
	{"mmmmmmmmmlmmmmmmmmmmmmmmmmmmlmmmmmmmmmm", "sssssssswlsssssssssssssssswjlsssssssswj"},
	/* A single Write waited alone: from now on two pairs are not enough to let a Write wait. */
	{"wfwfwawfwfwfwf", "sssswassssssss"},
};

static enum policy_posted posted(char what)
{
	return what == 'w' || what == 'W' ? POLICY_A_WRITE
	       : what == 'm'              ? POLICY_A_SEND
					  : POLICY_OTHER;
}

static char post(struct policy_send *s, enum policy_posted what, bool *waiting, uint64_t now)
{
	static const char names[] = {
		[POLICY_SEND] = 's', [POLICY_WAIT] = 'w', [POLICY_JOINS] = 'j'};
	enum policy_write todo = policy_on_post(s, what, *waiting, now);

	*waiting = todo != POLICY_SEND;
	if (todo == POLICY_SEND && what != POLICY_OTHER)
		policy_sent(s, now);
	return names[todo];
}

static char happen(struct policy_send *s, char what, bool *waiting, uint64_t *now)
{
	*now += what == 'F' || what == 'W' ? 50 * US : US;
	if (what != 'a' && what != 'l')
		return post(s, posted(what), waiting, *now);
	if (what == 'a')
		policy_sent_by_alarm(s);
	else
		policy_looked(s);
	*waiting = false;
	return what;
}

static void a_write_leaves_as_the_story_requires(void **state)
{
	for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]); i++) {
		uint64_t now = 1000 * US;
		struct policy_send s;
		bool waiting = false;
		char answers[64] = "";

		policy_send_init(&s);
		for (size_t k = 0; stories[i].happens[k]; k++)
			answers[k] = happen(&s, stories[i].happens[k], &waiting, &now);
		assert_string_equal(answers, stories[i].answers);
	}
}

/* Returns the number of pairs of a Write and a flush after which a Write waits. */
static unsigned pairs_until_one_waits(struct policy_send *s, uint64_t *now)
{
	bool waiting = false;
	unsigned n = 0;

	while (happen(s, 'w', &waiting, now) != 'w') {
		happen(s, 'f', &waiting, now);
		n++;
	}
	return n;
}

/* No other message joins the one that waits. */
static void end_lone(struct policy_send *s, uint64_t *now)
{
	bool waiting = true;

	happen(s, 'a', &waiting, now);
	happen(s, 'W', &waiting, now);
	happen(s, 'F', &waiting, now);
}

static void each_lone_write_that_waited_makes_more_pairs_necessary(void **state)
{
	static const unsigned pairs[] = {2, 32, 512, 4096, 4096};
	uint64_t now = 1000 * US;
	struct policy_send s;

	policy_send_init(&s);
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		assert_int_equal(pairs_until_one_waits(&s, &now), pairs[i]);
		end_lone(&s, &now);
	}
}

static void a_long_row_makes_two_enough_again(void **state)
{
	uint64_t now = 1000 * US;
	bool waiting = true;
	struct policy_send s;

	policy_send_init(&s);
	pairs_until_one_waits(&s, &now);
	end_lone(&s, &now);
	assert_int_equal(pairs_until_one_waits(&s, &now), 32);
	for (unsigned i = 0; i < 4096; i++)
		happen(&s, 'w', &waiting, &now);
	happen(&s, 'F', &waiting, &now);
	happen(&s, 'w', &waiting, &now);
	happen(&s, 'a', &waiting, &now);
	happen(&s, 'F', &waiting, &now);
	assert_int_equal(pairs_until_one_waits(&s, &now), 2);
}

/* A program arms its queue or waits before it posts. The deferring gained nothing, although the next
 * post is another request. */
static void each_arming_before_the_post_makes_more_pairs_necessary(void **state)
{
	static const unsigned pairs[] = {2, 32, 512, 4096, 4096};
	uint64_t now = 1000 * US;
	struct policy_send s;
	bool waiting = false;

	policy_send_init(&s);
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		assert_int_equal(pairs_until_one_waits(&s, &now), pairs[i]);
		policy_in_vain(&s);
		happen(&s, 'f', &waiting, &now);
	}
}

/* --- the alarm ------------------------------------------------------------------------------ */

static void the_alarm_takes_a_bounded_part_of_the_time(void **state)
{
	static const struct {
		enum policy_use use;
		uint64_t cost, pace;
	} table[] = {
		{POLICY_WRITE, 0, 40 * US},       {POLICY_WRITE, 1 * US, 40 * US},
		{POLICY_WRITE, 2 * US, 64 * US},  {POLICY_WRITE, 16 * US, 512 * US},
		{POLICY_POLLS, 2 * US, 150 * US}, {POLICY_POLLS, 16 * US, 512 * US},
		{POLICY_WAITS, 2 * US, 150 * US}, {POLICY_WAITS, 16 * US, 160 * US},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(policy_pace(table[i].use, table[i].cost), table[i].pace);
}

static uint64_t cost_after(uint64_t average, unsigned times, uint64_t ns, uint64_t ahead)
{
	while (times-- > 0)
		average = policy_cost(average, ns, ahead);
	return average;
}

static void what_an_alarm_takes_is_an_average(void **state)
{
	assert_in_range(cost_after(0, 50, 15 * US, 80 * US), 14 * US, 15 * US);
	/* A large measured cost may come from the scheduler, so it counts only up to a bound. */
	assert_in_range(cost_after(0, 50, 5000 * US, 80 * US), 15 * US, 16 * US);
	/* A few cheap settings change the average little; many cheap settings change it much. */
	assert_in_range(cost_after(15 * US, 8, 1 * US, 80 * US), 12 * US, 15 * US);
	assert_in_range(cost_after(15 * US, 500, 1 * US, 80 * US), 1 * US, 1200);
	/* Setting an alarm far in the future does not count. */
	assert_int_equal(cost_after(15 * US, 50, 1 * US, 2000 * US), 15 * US);
}

static void an_alarm_fits_a_write_between_once_and_twice_the_pace(void **state)
{
	static const struct {
		uint64_t due_in;
		bool others, fits;
	} table[] = {
		{0, false, false},       {0, true, false},       {39 * US, false, false},
		{39 * US, true, true},   {40 * US, false, true}, {80 * US, false, true},
		{81 * US, false, false}, {81 * US, true, false},
	};
	uint64_t now = 1000 * US;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(policy_alarm_fits(table[i].due_in ? now + table[i].due_in : 0, now,
						   40 * US, table[i].others),
				 table[i].fits);
}

static void the_alarm_is_put_off_with_the_look_that_it_was_set_for(void **state)
{
	static const struct {
		uint64_t due, before, at;
		bool write_waits, keeps;
	} table[] = {
		{0, 0, 300, false, false},     {100, 100, 300, false, false},
		{100, 100, 300, true, true},   {80, 100, 300, false, true},
		{400, 100, 300, false, false}, {400, 100, 300, true, false},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(policy_keeps_alarm(table[i].due, table[i].before, table[i].at,
						    table[i].write_waits),
				 table[i].keeps);
}

static void a_write_is_overdue_after_its_pace(void **state)
{
	assert_false(policy_is_overdue(1000 * US, 1030 * US, 40 * US));
	assert_true(policy_is_overdue(1000 * US, 1036 * US,
				      /* setting another alarm costs more than it saves */
				      40 * US));
	assert_true(policy_is_overdue(1000 * US, 1200 * US, 40 * US));
}

static void threads_look_at_leases_before_the_engine_does(void **state)
{
	assert_false(policy_is_look_due(0, 1000 * US, 150 * US)); /* 0: the program does not poll */
	assert_false(policy_is_look_due(1300 * US, 1000 * US, 150 * US));
	assert_true(policy_is_look_due(1140 * US, 1000 * US, 150 * US));
	assert_true(policy_is_look_due(900 * US, 1000 * US, 150 * US));
}

/* --- which thread receives ------------------------------------------------------------------ */

static void sixteen_quick_polls_make_a_loop(void **state)
{
	assert_false(policy_is_loop(16, 0, 1000 * US)); /* 0: the program has not polled before */
	assert_true(policy_is_loop(32, 1000 * US, 1010 * US));
	assert_true(policy_is_loop(32, 1000 * US, 1799 * US));
	assert_false(policy_is_loop(32, 1000 * US, 1800 * US));
}

static void waits_within_150_us_follow_each_other(void **state)
{
	assert_true(policy_waits_again(1000 * US, 1149 * US));
	assert_false(policy_waits_again(1000 * US, 1150 * US));
}

static void the_link_reports_bytes_while_no_other_thread_looks(void **state)
{
	static const struct {
		struct policy_lookers l;
		bool reports, polled;
	} table[] = {
		{{0}, true, false},
		{{.leased = true}, false, true},
		{{.leased = true, .waits = true}, false, false},
		{{.waiting = 1}, false, false},
		{{.waiting = 2, .leased = true, .waits = true}, false, false},
		{{.spun = true}, false, true},
		{{.spun = true, .waiting = 1}, false, true},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(policy_link_reports(&table[i].l), table[i].reports);
		assert_int_equal(policy_is_polled(&table[i].l), table[i].polled);
	}
}

static void arming_ends_a_lease_unless_it_comes_once_between_waits(void **state)
{
	static const struct policy_lookers none = {0}, polls = {.leased = true},
					   waits = {.leased = true, .waits = true};

	assert_false(policy_arm_ends_lease(&none, false));
	assert_true(policy_arm_ends_lease(&polls, false));
	assert_false(policy_arm_ends_lease(&waits, false));
	assert_true(policy_arm_ends_lease(&waits, true));
}

/*
 * `happens` has the events of a thread that polls, a letter each. e: a poll finds nothing; c: a
 * poll finds a completion; C: the engine makes a completion between two polls; w: the engine places
 * a Write between two polls; v: a lease ends in which the thread did not poll, and a Write has
 * arrived; V: like v, but a completion has arrived as well.
 */
struct looks {
	const char *happens;
	bool may_lease;
};

static void look(struct policy_lease *l, struct policy_news *news, bool completes)
{
	policy_look_begins(l, news);
	news->completed += completes;
	policy_look_ends(l, news);
}

static void end_unused(struct policy_lease *l, struct policy_news *news, bool completes)
{
	struct policy_news before = *news;

	news->written++;
	news->completed += completes;
	policy_lease_unused(l, &before, news);
}

static void happen_to_lease(struct policy_lease *l, struct policy_news *news, char what)
{
	switch (what) {
	case 'e':
	case 'c':
		look(l, news, what == 'c');
		break;
	case 'C':
		news->completed++;
		break;
	case 'w':
		news->written++;
		break;
	default:
		end_unused(l, news, what == 'V');
	}
}

static void a_thread_that_looks_at_its_memory_gets_no_lease(void **state)
{
	static const struct looks table[] = {
		{"", true},
		{"eeecec", true},
		/* Writes arrive while the program polls for something else. */
		{"wewewewewewe", true},
		/* A Write arrives between a completion and the next poll: the program probably
		 * waits for the Write in its memory. */
		{"cwe", true},
		{"cwecwe", false},
		{"CweCwe", false},
		/* The engine made the completion just before the poll that returned it. The Write
		 * after that poll counts, too. */
		{"CeweCewe", false},
		{"cwcwe", false},
		/* No lease begins if Writes arrive after more than one of three completions. */
		{"cwececwecece", true},
		{"cwecececwecececwe", true},
		{"cwececwecwe", false},
		/* The program stops reading its memory, and only polls: leases begin again. */
		{"cwecwece", true},
		{"cwecwecwecwecwecwecececececececece", false},
		{"cwecwecwecwecwecwecececececececececece", true},
		/* The thread did not poll during a lease: the lease was useless, or the thread was
		 * only held up. */
		{"v", false},
		{"vcecececece", false},
		{"V", true},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct policy_news news = {.written = 7, .completed = 9};
		struct policy_lease l = {.seen = news};

		for (const char *s = table[i].happens; *s; s++)
			happen_to_lease(&l, &news, *s);
		assert_int_equal(policy_may_lease(&l), table[i].may_lease);
	}
}

static void a_lease_in_vain_counts_for_sixty_completions(void **state)
{
	struct policy_news news = {0};
	struct policy_lease l = {0};

	happen_to_lease(&l, &news, 'v');
	for (int i = 0; i < 60; i++) {
		look(&l, &news, true);
		look(&l, &news, false);
	}
	assert_false(policy_may_lease(&l));
	look(&l, &news, true);
	look(&l, &news, false);
	assert_true(policy_may_lease(&l));
}

static void long_polling_without_a_completion_brings_the_lease_back(void **state)
{
	struct policy_news news = {0};
	struct policy_lease l = {0};
	unsigned loops = 1;

	happen_to_lease(&l, &news, 'v');
	while (!policy_may_lease(&l))
		loops++;
	assert_int_equal(loops, 61 * 64);
	/* A completion restarts the count of loops. */
	happen_to_lease(&l, &news, 'v');
	for (unsigned i = 0; i < 1000; i++) {
		assert_false(policy_may_lease(&l));
		if (i % 60 == 0)
			for (const char *s = "cwe"; *s; s++)
				happen_to_lease(&l, &news, *s);
	}
}

/* --- how long a thread of the engine spins -------------------------------------------------- */

static void a_leader_spins_where_arrivals_are_near(void **state)
{
	static const struct {
		uint64_t gap, ago, spin;
		bool spins;
	} table[] = {
		{0, 0, 0, false}, /* a limit of 0 forbids spinning */
		{5 * US, 10 * US, 20 * US, true},
		{5 * US, 20 * US, 20 * US, false},
		{20 * US, 10 * US, 20 * US, true},
		{21 * US, 10 * US, 20 * US, false},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(policy_spins(table[i].gap, 1000 * US, 1000 * US + table[i].ago,
					      table[i].spin),
				 table[i].spins);
}

static void the_gap_is_an_average_that_a_long_one_changes_little(void **state)
{
	uint64_t gap = 0;

	gap = policy_gap(gap, 1000000 * US, 20 * US); /* a gap longer than 80 us counts as 80 us */
	assert_int_equal(gap, 20 * US);
	gap = policy_gap(gap, 1000000 * US, 20 * US);
	assert_int_equal(gap, 35 * US);
	gap = policy_gap(gap, 0, 20 * US);
	assert_true(policy_gap(gap, 0, 20 * US) <= 20 * US);
}

static void a_cpu_is_spare_while_the_other_threads_sleep(void **state)
{
	static const struct {
		uint64_t now, others;
		bool due, spare;
	} table[] = {
		{1000 * MS, 50 * MS, true, false}, /* the first check has nothing to compare with */
		{1000 * MS + 999 * US, 50 * MS, false, false},
		{1001 * MS, 50 * MS, true, true},
		{1002 * MS, 50 * MS + 124 * US, true, true},
		{1003 * MS, 50 * MS + 249 * US, true, false}, /* an eighth of 1 ms */
		{1103 * MS, 62 * MS, true, true},             /* less than an eighth of 100 ms */
		{1104 * MS, 63 * MS, true, false},
		/* another thread leads, so `others` has decreased */
		{1105 * MS, 10 * MS, true, false},
		{1106 * MS, 10 * MS, true, true},
	};
	struct policy_spare s = {0};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(policy_spare_is_due(&s, table[i].now), table[i].due);
		if (table[i].due)
			policy_spare_check(&s, table[i].now, table[i].others);
		assert_int_equal(policy_is_spare(&s, table[i].now), table[i].spare);
	}
}

/* A spin that found nothing has ended at `now`. */
static void expect_pause(struct policy_spare *s, uint64_t *now, uint64_t ms)
{
	policy_spun(s, *now, false);
	assert_false(policy_is_spare(s, *now));
	*now += ms * MS - 1;
	assert_false(policy_is_spare(s, *now));
	assert_true(policy_is_spare(s, ++*now));
}

static void spins_in_vain_make_longer_pauses(void **state)
{
	static const uint64_t pauses_ms[] = {5, 10, 20, 40, 80, 160, 320, 320};
	struct policy_spare s = {.spare = true};
	uint64_t now = 1000 * MS;

	for (size_t i = 0; i < sizeof(pauses_ms) / sizeof(pauses_ms[0]); i++)
		expect_pause(&s, &now, pauses_ms[i]);
	for (unsigned i = 0; i < 63; i++)
		policy_spun(&s, now, true);
	expect_pause(&s, &now, 320);
	for (unsigned i = 0; i < 64; i++)
		policy_spun(&s, now, true);
	assert_true(policy_is_spare(&s, now));
	expect_pause(&s, &now, 5);
	expect_pause(&s, &now, 10);
}

static void a_write_back_begins_a_pause(void **state)
{
	struct policy_spare s = {.spare = true, .not_before = 100 * MS};

	policy_wrote_back(&s, 90 * MS); /* the longer pause stays */
	assert_false(policy_is_spare(&s, 100 * MS - 1));
	policy_wrote_back(&s, 100 * MS);
	assert_false(policy_is_spare(&s, 105 * MS - 1));
	assert_true(policy_is_spare(&s, 105 * MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_leaves_as_the_story_requires),
		cmocka_unit_test(each_lone_write_that_waited_makes_more_pairs_necessary),
		cmocka_unit_test(a_long_row_makes_two_enough_again),
		cmocka_unit_test(each_arming_before_the_post_makes_more_pairs_necessary),
		cmocka_unit_test(the_alarm_takes_a_bounded_part_of_the_time),
		cmocka_unit_test(what_an_alarm_takes_is_an_average),
		cmocka_unit_test(an_alarm_fits_a_write_between_once_and_twice_the_pace),
		cmocka_unit_test(the_alarm_is_put_off_with_the_look_that_it_was_set_for),
		cmocka_unit_test(a_write_is_overdue_after_its_pace),
		cmocka_unit_test(threads_look_at_leases_before_the_engine_does),
		cmocka_unit_test(sixteen_quick_polls_make_a_loop),
		cmocka_unit_test(waits_within_150_us_follow_each_other),
		cmocka_unit_test(the_link_reports_bytes_while_no_other_thread_looks),
		cmocka_unit_test(arming_ends_a_lease_unless_it_comes_once_between_waits),
		cmocka_unit_test(a_thread_that_looks_at_its_memory_gets_no_lease),
		cmocka_unit_test(a_lease_in_vain_counts_for_sixty_completions),
		cmocka_unit_test(long_polling_without_a_completion_brings_the_lease_back),
		cmocka_unit_test(a_leader_spins_where_arrivals_are_near),
		cmocka_unit_test(the_gap_is_an_average_that_a_long_one_changes_little),
		cmocka_unit_test(a_cpu_is_spare_while_the_other_threads_sleep),
		cmocka_unit_test(spins_in_vain_make_longer_pauses),
		cmocka_unit_test(a_write_back_begins_a_pause),
	};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
