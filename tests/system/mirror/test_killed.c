/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon is killed before and after each of its durable steps, and before each answer. Each
 * answer must still hold after the daemon's restart.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "player.h"
#include "system/lib/cases.h"
#include "system/lib/check.h"

/* The answers so far, and the question that has no answer yet. */
struct answered {
	uint64_t promised;
	bool recorded, syncing;
	enum message_type open; /* 0: no question is open */
};

static bool ask(struct talk *t, struct message *m, struct answered *done)
{
	uint8_t buf[MESSAGE_SIZE];

	m->id = 5;
	m->uuid = t->greeting.uuid;
	m->epoch = t->greeting.epoch;
	message_encode(m, version_newest(), buf);
	done->open = m->type;
	if (!talk_send(t, buf, sizeof(buf)) || !talk_receive(t))
		return false;
	done->open = 0;
	if (t->in.type == MESSAGE_DONE && t->in.done.status != GREETING_OK)
		fail_msg("%s: %s", message_type_2str(m->type),
			 greeting_status_2str(t->in.done.status));
	return true;
}

static bool connect_to(struct talk *t, enum greeting_kind kind, struct mirror_epoch epoch)
{
	struct greeting g = {.uuid = hosts.first.config.uuid,
			     .epoch = epoch,
			     .from = 0,
			     .to = 1,
			     .kind = (uint8_t)kind};
	struct message m = {.type = MESSAGE_PROVE};
	struct answered none;
	uint8_t bytes[GREETING_SIZE];

	greeting_encode(&g, version_newest(), bytes);
	if (talk_dial(t, &hosts, 1, bytes, sizeof(bytes)) != RPMA_CONN_ESTABLISHED ||
	    t->reply.status != GREETING_OK)
		return false;
	t->greeting = g;
	return ask(t, &m, &none) && t->in.grant.status == GREETING_OK;
}

static bool promise(struct talk *t, struct mirror_epoch epoch, struct answered *done)
{
	struct message m = {.type = MESSAGE_PROMISE};

	if (!connect_to(t, GREETING_CONTROL, epoch) || !ask(t, &m, done))
		return false;
	done->promised = epoch.number;
	return true;
}

/* The life of a copy: two primaries, a lane, an equalisation and its end, and a resync. */
static bool live(struct answered *done)
{
	struct message record = {.type = MESSAGE_RECORD_RANGES,
				 .ranges = {.count = 1, .ranges = {{4096, 4096}}}};
	struct message retire = {.type = MESSAGE_RETIRE};
	struct message begin = {.type = MESSAGE_RESYNC_BEGIN, .resync = {.source = 0}};
	struct message end = {.type = MESSAGE_RESYNC_END};
	struct talk first = {0}, second = {0}, lane = {0};
	struct mirror_epoch epoch = hosts_promote(&hosts, 0);
	bool alive = promise(&first, epoch, done);

	if (alive && (alive = ask(&first, &record, done)))
		done->recorded = true;
	alive = alive && connect_to(&lane, GREETING_LANE, epoch);
	if (alive && (alive = promise(&second, hosts_promote(&hosts, 0), done)))
		if ((alive = ask(&second, &retire, done)))
			done->recorded = false;
	if (alive && (alive = ask(&second, &begin, done)))
		done->syncing = true;
	if (alive && (alive = ask(&second, &end, done)))
		done->syncing = false;
	if (lane.conn)
		talk_close(&lane);
	if (first.conn)
		talk_close(&first);
	if (second.conn)
		talk_close(&second);
	return alive;
}

static void check(const struct answered *done)
{
	struct message m = {.type = MESSAGE_PROMISE};
	struct answered again = {0};
	struct talk t;
	bool is_syncing;

	assert_true(connect_to(&t, GREETING_CONTROL, hosts_promote(&hosts, 0)));
	assert_true(t.reply.known.number >= done->promised);
	assert_true(ask(&t, &m, &again));
	assert_int_equal(t.in.type, MESSAGE_PROMISED);
	if (done->recorded && done->open != MESSAGE_RETIRE)
		assert_true(t.in.promised.ranges > 0 ||
			    t.in.promised.flags & MESSAGE_REPORT_UNCERTAIN);
	is_syncing = t.in.promised.copy == MIRROR_COPY_SYNCING;
	if (done->syncing && done->open != MESSAGE_RESYNC_END)
		assert_true(is_syncing);
	talk_close(&t);
}

/* Kill the daemon at every second pass of this point in a life. Returns the number of kills. This
 * process plays the daemon of the first member. */
static unsigned kill_at(const char *point, unsigned first)
{
	static const struct hosts_opts opts = {.count = 2, .absent = 1};
	unsigned kills = 0;

	for (unsigned n = first;; n += 2) {
		struct answered done = {0};
		char env[64];
		const char *const envs[] = {env, NULL};
		bool alive;

		hosts_start(&hosts, &opts);
		snprintf(env, sizeof(env), "MIRROR_KILL_AT=%s:%u", point, n);
		host_kill(&hosts, 1);
		if (!host_try_start(&hosts, 1, envs)) {
			kills++; /* the daemon was killed before it listened */
			host_start(&hosts, 1, NULL);
			check(&done);
			hosts_stop(&hosts);
			continue;
		}
		alive = live(&done);
		if (!alive) {
			kills++;
			assert_int_equal(proc_wait(&hosts.hosts[1].daemon, PLAYER_WAIT_MS),
					 SIGKILL);
			host_start(&hosts, 1, NULL);
			check(&done);
		}
		hosts_stop(&hosts);
		if (alive)
			return kills;
	}
}

/* One case kills at the odd passes of the point, and another case at the even passes, so that both
 * can run at the same time. */
static void is_killed_often(void **state, const char *point)
{
	const unsigned *first = *state;

	assert_true(kill_at(point, *first) >= 4);
}

static void before_each_durable_step(void **state)
{
	is_killed_often(state, "persist_before");
}

static void after_each_durable_step(void **state)
{
	is_killed_often(state, "persist_after");
}

static void before_each_answer(void **state)
{
	is_killed_often(state, "answer_before");
}

int main(void)
{
	static unsigned odd = 1, even = 2;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(before_each_durable_step, &odd),
		cmocka_unit_test_prestate(before_each_durable_step, &even),
		cmocka_unit_test_prestate(after_each_durable_step, &odd),
		cmocka_unit_test_prestate(after_each_durable_step, &even),
		cmocka_unit_test_prestate(before_each_answer, &odd),
		cmocka_unit_test_prestate(before_each_answer, &even),
	};

	return cases_run(tests, CASES_OF_HOSTS);
}
