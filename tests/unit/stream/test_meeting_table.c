/* SPDX-License-Identifier: BSD-3-Clause */
/* Each event in each state of a meeting: the next state, and the action. */
#include "lib/unit.h"

#include <stdio.h>

#include "meeting_rig.h"

#define SEC NSEC_PER_SEC

/* The rows: a state of the meeting, with the progress of its dial and with parked dials. */
enum row {
	NONE,
	NONE_PARKED, /* two dials are parked: the peer's and a stranger's */
	DIALS_LATER,
	DIALS,
	DIAL_SENT,
	DIAL_SENT_PARKED, /* a dial of the peer is parked while this end's dial is under way */
	AWAITS,
	FALLS_BACK,
	FALLBACK_SENT,
	GREETS_DIALED,
	GREETS_ACCEPTED,
	GREETS_PARKED,
	GREETS_SELF,
	MET,
	MET_PARKED,
	LOST,
	LOST_POSTED, /* requests wait for the retry clock */
	ROWS
};

enum event {
	RTR,
	RESET,
	ERR,
	DESTROY,
	POST,
	INBOUND_PEER,
	INBOUND_OTHER,
	PARKED_END, /* end of the first parked dial, or of a dial that is not parked */
	ESTABLISHED,
	REPLY,
	LIVE,
	END_UNUSED,
	END_USED,
	END_FAILED,
	TIME, /* the meeting's deadline; without a deadline, the present time */
	EVENTS
};

/* An entry has the next state (N D A G M L), and then the actions: close, reject, fail, self,
 * accept, dial. */
#define WHAT "crfsad"
static const char *const expected[ROWS][EVENTS] = {
	/* The columns: RTR RESET ERR DESTROY POST PEER OTHER PARKED_END ESTABLISHED REPLY LIVE
	 * UNUSED USED FAILED TIME */
	[NONE] = {"Dd", "N", "N", "N", "N", "N", "N", "N", "N", "N", "N", "N", "N", "N", "N"},
	[NONE_PARKED] = {"Ga", "N", "N", "Nr", "N", "Nr", "Nr", "N", "N", "N", "N", "N", "N", "N",
			 "N"},
	[DIALS_LATER] = {NULL, "N", "N", "N", "D", "Ga", "Dr", "D", "D", "D", "D", "D", "D", "D",
			 "Dd"},
	[DIALS] = {NULL, "Nc", "Nc", "Nc", "D", "Gca", "Dr", "D", "D", "D", "D", "D", "D", "D",
		   "Dc"},
	[DIAL_SENT] = {NULL, "Nc", "Nc", "Nc", "D", "D", "Dr", "D", "D", "G", "D", "D", "D", "D",
		       "D"},
	[DIAL_SENT_PARKED] = {NULL, "Nc", "Nc", "Ncr", "D", "Dr", "Dr", "D", "D", "G", "D", "Ga",
			      "Ga", "Ga", "Gca"},
	[AWAITS] = {NULL, "N", "N", "N", "A", "Ga", "Ar", "A", "A", "A", "A", "A", "A", "A", "Ad"},
	[FALLS_BACK] = {NULL, "Nc", "Nc", "Nc", "A", "Gca", "Ar", "A", "A", "A", "A", "A", "A", "A",
			"Ac"},
	[FALLBACK_SENT] = {NULL, "Nc", "Nc", "Nc", "A", "Gca", "Ar", "A", "A", "G", "A", "A", "A",
			   "A", "A"},
	[GREETS_DIALED] = {NULL, "Nc", "Nc", "Nc", "G", "G", "G", "G", "G", "G", "M", "D", "D", "D",
			   "G"},
	[GREETS_ACCEPTED] = {NULL, "Nc", "Nc", "Nc", "G", "G", "G", "G", "G", "G", "M", "D", "D",
			     "D", "G"},
	[GREETS_PARKED] = {NULL, "Nc", "Nc", "Ncr", "G", "Gr", "Gr", "G", "G", "G", "M", "Ga", "Ga",
			   "Ga", "G"},
	[GREETS_SELF] = {NULL, "Nc", "Nc", "Nc", "G", "G", "G", "G", "G", "G", "M", "A", "A", "A",
			 "G"},
	[MET] = {NULL, "Nc", "Nc", "Nc", "M", "M", "M", "M", "M", "M", "M", "D", "L", "Nf", "M"},
	[MET_PARKED] = {NULL, "Nc", "Nc", "Ncr", "M", "Mr", "Mr", "M", "M", "M", "M", "Ga", "L",
			"Nf", "M"},
	[LOST] = {NULL, "N", "N", "N", "L", "L", "L", "L", "L", "L", "L", "L", "L", "L", "L"},
	[LOST_POSTED] = {NULL, "N", "N", "N", "L", "L", "L", "L", "L", "L", "L", "L", "L", "L",
			 "Nf"},
};

static struct meeting m;
static struct meeting_todo todo;
static struct meeting_inbound parked, stranger, newer, other;
static struct meet_end low, high, third;
static uint64_t now;

static void to_rtr(struct meet_end own, struct meet_end peer)
{
	struct meeting_ends ends = {.own = own, .peer = peer};

	meeting_on_rtr(&m, &ends, now, &todo);
}

/* Let this end dial until its request is sent. */
static void send_request(void)
{
	if (!(todo.todo & MEETING_DO_DIAL))
		meeting_on_time(&m, now = todo.deadline, &todo);
	assert_true(todo.todo & MEETING_DO_DIAL);
	meeting_on_established(&m, m.attempt, &todo);
}

static void enter_greeting(bool dialed)
{
	to_rtr(high, low);
	if (dialed) {
		send_request();
		meeting_on_reply(&m, m.attempt, &todo);
	} else {
		meeting_on_inbound(&m, &parked, now, &todo);
	}
	assert_int_equal(m.state, MEETING_GREETING);
}

static void enter_met(void)
{
	enter_greeting(true);
	meeting_on_live(&m, m.attempt, &todo);
}

static void park_both(void)
{
	meeting_on_inbound(&m, &parked, now, &todo);
	meeting_on_inbound(&m, &stranger, now, &todo);
	assert_int_equal(todo.todo, 0);
}

static void enter_dialing(enum row row)
{
	to_rtr(high, low);
	if (row == DIALS_LATER)
		meeting_on_end(&m, m.attempt, MEETING_UNUSED, now, &todo);
	else if (row != DIALS)
		send_request();
	if (row == DIAL_SENT_PARKED)
		meeting_on_inbound(&m, &parked, now, &todo);
}

static void enter_awaiting(enum row row)
{
	to_rtr(low, high);
	if (row != AWAITS)
		meeting_on_time(&m, now = todo.deadline, &todo);
	if (row == FALLBACK_SENT)
		send_request();
}

static void start_retry_clock(void)
{
	meeting_on_retry_limits(&m, SEC, 0, now, &todo);
	meeting_on_post(&m, now, &todo);
	assert_true(todo.deadline == now + SEC);
}

static void enter_chosen(enum row row)
{
	if (row == GREETS_SELF)
		to_rtr(high, high);
	else if (row == GREETS_DIALED || row == GREETS_ACCEPTED || row == GREETS_PARKED)
		enter_greeting(row != GREETS_ACCEPTED);
	else
		enter_met();
	if (row == GREETS_PARKED || row == MET_PARKED)
		park_both();
	if (row == LOST || row == LOST_POSTED)
		meeting_on_end(&m, m.attempt, MEETING_USED, now, &todo);
	if (row == LOST_POSTED)
		start_retry_clock();
}

static void name_dials(enum row row)
{
	struct meet_end own = high, peer = low;

	if (row == AWAITS || row == FALLS_BACK || row == FALLBACK_SENT) {
		own = low;
		peer = high;
	}
	parked = newer = rig_inbound(peer, own);
	stranger = other = rig_inbound(third, own);
}

static void enter(enum row row)
{
	now = 1000 * SEC;
	low = rig_end(0x040001, 1);
	high = rig_end(0x040002, 2);
	third = rig_end(0x040003, 3);
	name_dials(row);
	meeting_init(&m);
	meeting_on_retry_limits(&m, CLOCK_NEVER, 0, now, &todo);
	if (row == NONE_PARKED)
		park_both();
	else if (row >= DIALS_LATER && row <= DIAL_SENT_PARKED)
		enter_dialing(row);
	else if (row >= AWAITS && row <= FALLBACK_SENT)
		enter_awaiting(row);
	else if (row != NONE)
		enter_chosen(row);
}

static void user_does(enum event event)
{
	if (event == RTR)
		to_rtr(high, low);
	else if (event == POST)
		meeting_on_post(&m, now, &todo);
	else
		meeting_on_leave(&m,
				 event == RESET ? MEETING_LEAVE_RESET
				 : event == ERR ? MEETING_LEAVE_ERR
						: MEETING_LEAVE_DESTROY,
				 &todo);
}

static void inbound_does(enum event event)
{
	if (event == PARKED_END)
		meeting_on_parked_end(&m, &parked, &todo);
	else
		meeting_on_inbound(&m, event == INBOUND_PEER ? &newer : &other, now, &todo);
}

static void happens(enum event event)
{
	if (event <= POST)
		user_does(event);
	else if (event <= PARKED_END)
		inbound_does(event);
	else if (event == ESTABLISHED)
		meeting_on_established(&m, m.attempt, &todo);
	else if (event == REPLY)
		meeting_on_reply(&m, m.attempt, &todo);
	else if (event == LIVE)
		meeting_on_live(&m, m.attempt, &todo);
	else if (event == TIME)
		meeting_on_time(&m, todo.deadline == CLOCK_NEVER ? now : todo.deadline, &todo);
	else
		meeting_on_end(&m, m.attempt,
			       event == END_UNUSED ? MEETING_UNUSED
			       : event == END_USED ? MEETING_USED
						   : MEETING_FAILED,
			       now, &todo);
}

static void describe(char *text)
{
	*text++ = meeting_state_str(m.state)[0];
	for (unsigned i = 0; WHAT[i]; i++)
		if (todo.todo & 1u << i)
			*text++ = WHAT[i];
	*text = '\0';
}

/* Check what must hold after every event. */
static void check_meeting(void)
{
	bool looks = m.state == MEETING_DIALING || m.state == MEETING_AWAITING;

	assert_true(m.n_parked <= MEETING_PARKED_MAX);
	assert_int_equal(!!(todo.todo & MEETING_DO_REJECT), todo.n_rejects > 0);
	assert_int_equal(!!(todo.todo & MEETING_DO_ACCEPT), todo.accept != NULL);
	if (todo.todo & (MEETING_DO_SELF | MEETING_DO_ACCEPT | MEETING_DO_DIAL))
		assert_int_equal(todo.attempt, m.attempt);
	if (m.state == MEETING_NONE)
		assert_true(todo.deadline == CLOCK_NEVER);
	/* An end that still looks for its peer has a deadline, unless its own dial has been
	 * sent. */
	if (looks && m.dial != MEETING_DIAL_SENT)
		assert_true(todo.deadline != CLOCK_NEVER);
	if (!looks)
		assert_true(m.dial == MEETING_DIAL_NONE && m.dial_at == CLOCK_NEVER &&
			    m.yield_at == CLOCK_NEVER);
}

static void test_each_event_in_each_state(void **state)
{
	char text[16], got[64], want[64];

	for (unsigned row = 0; row < ROWS; row++) {
		for (unsigned event = 0; event < EVENTS; event++) {
			/* an empty entry: the queue pair cannot move to RTR again */
			if (!expected[row][event])
				continue;
			enter(row);
			happens(event);
			describe(text);
			snprintf(got, sizeof(got), "row %u, event %u: %s", row, event, text);
			snprintf(want, sizeof(want), "row %u, event %u: %s", row, event,
				 expected[row][event]);
			assert_string_equal(got, want);
			check_meeting();
		}
	}
}

/* The event that an attempt has ended may arrive while another attempt is under way, or while none
 * is under way. */
static void test_late_events_change_nothing(void **state)
{
	char before[16], after[16];

	for (unsigned row = DIALS; row < ROWS; row++) {
		for (unsigned event = ESTABLISHED; event <= END_FAILED; event++) {
			enter(row);
			todo.todo = 0;
			describe(before);
			m.attempt++;
			event == ESTABLISHED ? meeting_on_established(&m, m.attempt - 1, &todo)
			: event == REPLY     ? meeting_on_reply(&m, m.attempt - 1, &todo)
			: event == LIVE      ? meeting_on_live(&m, m.attempt - 1, &todo)
			: event == END_UNUSED
				? meeting_on_end(&m, m.attempt - 1, MEETING_UNUSED, now, &todo)
			: event == END_USED
				? meeting_on_end(&m, m.attempt - 1, MEETING_USED, now, &todo)
				: meeting_on_end(&m, m.attempt - 1, MEETING_FAILED, now, &todo);
			describe(after);
			assert_string_equal(before, after);
			check_meeting();
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_event_in_each_state),
		cmocka_unit_test(test_late_events_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
