/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers at the daemon's ports break the protocol. Each of them is refused or disconnected, and
 * other peers are still served. */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "player.h"
#include "service/secret.h"
#include "system/lib/check.h"

static struct mirror_epoch epoch;

static int set_up(void **state)
{
	struct hosts_opts opts = {.count = 1, .has_secret = true};

	hosts_start(&hosts, &opts);
	epoch = hosts_promote(&hosts, 0);
	return 0;
}

static int tear_down(void **state)
{
	hosts_stop(&hosts);
	return 0;
}

/* Check that the daemon still serves a correct peer after an attack. */
static void still_serves(void)
{
	struct talk control, lane;

	assert_int_equal(talk_open(&control, &hosts, 0, 1, GREETING_CONTROL, epoch), GREETING_OK);
	assert_int_equal(talk_ask(&control, MESSAGE_PROMISE)->type, MESSAGE_PROMISED);
	assert_int_equal(talk_open(&lane, &hosts, 0, 1, GREETING_LANE, epoch), GREETING_OK);
	assert_int_equal(talk_flush(&lane, 0, 1), IBV_WC_SUCCESS);
	talk_close(&lane);
	talk_close(&control);
}

static void private_data_that_is_no_greeting(void **state)
{
	uint8_t bytes[200];
	uint64_t seed = 7;
	struct talk t;

	for (unsigned round = 0; round < 40; round++) {
		size_t len = round < 20 ? round * 10 : GREETING_SIZE;

		for (size_t i = 0; i < sizeof(bytes); i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			bytes[i] = (uint8_t)(seed >> 56);
		}
		if (talk_dial(&t, &hosts, 0, bytes, len) == RPMA_CONN_ESTABLISHED)
			assert_int_equal(t.reply.status, GREETING_BAD_REQUEST);
		talk_close(&t);
	}
	still_serves();
}

static void greetings_for_others(void **state)
{
	struct greeting g = {.uuid = hosts.first.config.uuid,
			     .epoch = epoch,
			     .from = 1,
			     .to = 0,
			     .kind = GREETING_CONTROL};
	uint8_t bytes[GREETING_SIZE];
	static const struct {
		uint8_t newest, lowest, status;
	} versions[] = {{0, 0, GREETING_BAD_REQUEST}, {1, 0, GREETING_BAD_REQUEST},
			{1, 2, GREETING_BAD_REQUEST}, {0, 255, GREETING_BAD_REQUEST},
			{3, 3, GREETING_BAD_VERSION}, {255, 255, GREETING_BAD_VERSION},
			{255, 1, GREETING_OK},        {1, 1, GREETING_OK}};
	struct greeting other = g;
	struct talk t;

	other.uuid.bytes[0] ^= 1;
	greeting_encode(&other, version_newest(), bytes);
	assert_int_equal(talk_dial(&t, &hosts, 0, bytes, sizeof(bytes)), RPMA_CONN_ESTABLISHED);
	assert_int_equal(t.reply.status, GREETING_NO_SET);
	talk_close(&t);
	other = g;
	other.to = 5;
	greeting_encode(&other, version_newest(), bytes);
	talk_dial(&t, &hosts, 0, bytes, sizeof(bytes));
	assert_int_equal(t.reply.status, GREETING_NOT_MEMBER);
	talk_close(&t);
	other = g;
	other.copy_id = 1;
	greeting_encode(&other, version_newest(), bytes);
	talk_dial(&t, &hosts, 0, bytes, sizeof(bytes));
	assert_int_equal(t.reply.status, GREETING_WRONG_COPY);
	talk_close(&t);
	for (unsigned i = 0; i < ARRAY_LEN(versions); i++) {
		greeting_encode(&g, version_newest(), bytes);
		bytes[4] = versions[i].newest;
		bytes[5] = versions[i].lowest;
		talk_dial(&t, &hosts, 0, bytes, sizeof(bytes));
		assert_int_equal(t.reply.status, versions[i].status);
		assert_int_equal(t.reply.versions.newest, version_newest());
		talk_close(&t);
	}
	still_serves();
}

static void a_wrong_secret_gets_nothing(void **state)
{
	uint8_t key[PROOF_KEY] = {1};
	struct message_grant none = {.status = GREETING_SECRET_WRONG};
	struct talk t;

	for (enum greeting_kind kind = GREETING_CONTROL; kind < GREETING_KIND_END; kind++) {
		struct mirror_epoch own =
			kind == GREETING_OBSERVE ? (struct mirror_epoch){0} : epoch;

		assert_int_equal(talk_connect(&t, &hosts, 0, 1, kind, own), GREETING_OK);
		assert_int_equal(talk_prove(&t, key), GREETING_SECRET_WRONG);
		assert_memory_equal(&t.grant.grant, &none, sizeof(none));
		assert_false(talk_receive(&t)); /* the daemon has disconnected this peer */
		talk_close(&t);
	}
	still_serves();
}

/* A proof is valid for one connection. On another connection the same bytes are refused. */
static void a_proof_that_was_overheard_is_refused(void **state)
{
	struct talk t;
	struct secret secret;
	struct error err;
	uint8_t overheard[MESSAGE_SIZE];

	assert_int_equal(secret_load(&secret, hosts.secret, &err), 0);
	assert_int_equal(talk_connect(&t, &hosts, 0, 1, GREETING_CONTROL, epoch), GREETING_OK);
	assert_int_equal(talk_prove(&t, secret.key), GREETING_OK);
	memcpy(overheard, t.buf[MESSAGE_OUTSTANDING], sizeof(overheard));
	talk_close(&t);
	assert_int_equal(talk_connect(&t, &hosts, 0, 1, GREETING_CONTROL, epoch), GREETING_OK);
	assert_true(talk_send(&t, overheard, sizeof(overheard)));
	assert_true(talk_receive(&t));
	assert_int_equal(t.in.grant.status, GREETING_SECRET_WRONG);
	talk_close(&t);
	still_serves();
}

static void fill(const struct talk *t, enum message_type type, uint8_t *buf)
{
	struct message m = {.type = type, .uuid = t->greeting.uuid, .epoch = t->greeting.epoch};

	message_encode(&m, version_newest(), buf);
}

static void expect_cut(struct talk *t, const uint8_t *buf, size_t len)
{
	assert_true(talk_send(t, buf, len));
	assert_false(talk_receive(t));
	talk_close(t);
}

static void messages_before_the_proof_end_the_connection(void **state)
{
	uint8_t buf[MESSAGE_SIZE];
	struct talk t;

	for (unsigned type = MESSAGE_GRANT; type < MESSAGE_TYPE_END; type++) {
		assert_int_equal(talk_connect(&t, &hosts, 0, 1, GREETING_CONTROL, epoch),
				 GREETING_OK);
		fill(&t, (enum message_type)type, buf);
		expect_cut(&t, buf, sizeof(buf));
	}
	still_serves();
}

static void messages_that_may_not_come_end_the_connection(void **state)
{
	static const enum message_type types[] = {MESSAGE_PROVE, MESSAGE_GRANT, MESSAGE_PROMISED,
						  MESSAGE_DONE, MESSAGE_STATUS, MESSAGE_PONG,
						  /* messages that must have a body are sent without
						   * one */
						  MESSAGE_RESERVE, MESSAGE_RESERVED,
						  MESSAGE_CLEAR_ERRORS, MESSAGE_ERRORS_CLEARED};
	uint8_t buf[MESSAGE_SIZE];
	struct talk t;

	for (unsigned i = 0; i < ARRAY_LEN(types); i++) {
		assert_int_equal(talk_open(&t, &hosts, 0, 1, GREETING_CONTROL, epoch), GREETING_OK);
		fill(&t, types[i], buf);
		expect_cut(&t, buf, sizeof(buf));
	}
	/* A lane carries no messages, and an observer is not allowed to request a promise. */
	still_serves();
	assert_int_equal(talk_open(&t, &hosts, 0, 1, GREETING_LANE, epoch), GREETING_OK);
	fill(&t, MESSAGE_PROMISE, buf);
	expect_cut(&t, buf, sizeof(buf));
	assert_int_equal(talk_open(&t, &hosts, 0, 1, GREETING_OBSERVE, (struct mirror_epoch){0}),
			 GREETING_OK);
	fill(&t, MESSAGE_PROMISE, buf);
	expect_cut(&t, buf, sizeof(buf));
	still_serves();
}

static void messages_of_another_shape_end_the_connection(void **state)
{
	uint8_t buf[MESSAGE_SIZE];
	struct talk t;

	for (unsigned i = 0; i < 5; i++) {
		size_t len = MESSAGE_SIZE;

		assert_int_equal(talk_open(&t, &hosts, 0, 1, GREETING_CONTROL, epoch), GREETING_OK);
		fill(&t, MESSAGE_PING, buf);
		if (i == 0)
			len--;
		else if (i == 1)
			len = 0;
		else if (i == 2)
			buf[5] = MESSAGE_TYPE_END;
		else if (i == 3)
			buf[255] = 1;
		else
			t.greeting.epoch.number++, fill(&t, MESSAGE_PROMISE, buf);
		expect_cut(&t, buf, len);
	}
	still_serves();
}

/* ---- requests to clear blocks ---- */

static struct message *ask_to_clear(struct talk *t, uint64_t offset, uint32_t len)
{
	struct message m = {.type = MESSAGE_CLEAR_ERRORS,
			    .uuid = t->greeting.uuid,
			    .epoch = t->greeting.epoch,
			    .clear = {offset, len}};
	uint8_t buf[MESSAGE_SIZE];

	message_encode(&m, version_newest(), buf);
	assert_true(talk_send(t, buf, sizeof(buf)));
	return talk_receive(t) ? &t->in : NULL;
}

static void expect_not_cleared(struct talk *t, uint64_t offset, enum greeting_status status)
{
	const struct message *answer = ask_to_clear(t, offset, 4096);

	assert_non_null(answer);
	assert_int_equal(answer->type, MESSAGE_DONE);
	assert_int_equal(answer->done.to, MESSAGE_CLEAR_ERRORS);
	assert_int_equal(answer->done.status, status);
}

static void expect_cleared(struct talk *t, uint64_t offset, uint32_t len)
{
	const struct message *answer;

	do {
		usleep(1000);
		answer = ask_to_clear(t, offset, len);
		assert_non_null(answer);
		assert_int_equal(answer->type, MESSAGE_ERRORS_CLEARED);
	} while (answer->cleared.is_under_way);
	assert_int_equal(answer->cleared.blocks, 0);
	assert_int_equal(answer->cleared.error, 0);
}

static void expect_word(uint64_t word)
{
	uint64_t is = 0;
	int fd = open(hosts.hosts[0].data, O_RDONLY | O_CLOEXEC);

	assert_int_equal(pread(fd, &is, sizeof(is), 0), sizeof(is));
	assert_int_equal(is, word);
	close(fd);
}

static void open_and_promise(struct talk *t, struct mirror_epoch of)
{
	assert_int_equal(talk_open(t, &hosts, 0, 1, GREETING_CONTROL, of), GREETING_OK);
	assert_int_equal(talk_ask(t, MESSAGE_PROMISE)->type, MESSAGE_PROMISED);
}

/* Only the source of a resync is allowed to clear blocks, and only inside the copy. Readable blocks
 * must not change. */
static void nothing_that_can_be_read_is_cleared(void **state)
{
	static const struct {
		uint64_t offset;
		uint32_t len;
	} shapes[] = {{1, 4096},
		      {4095, 4096},
		      {0, 0},
		      {0, 4095},
		      {0, MESSAGE_CLEAR_MAX + 4096},
		      {MIRROR_SIZE_MAX + 4096, 4096}};
	const uint64_t word = 0x1122334455667788;
	struct mirror_epoch former = epoch;
	struct talk t, lane, next;

	assert_int_equal(talk_open(&lane, &hosts, 0, 1, GREETING_LANE, epoch), GREETING_OK);
	assert_int_equal(talk_flush(&lane, 0, word), IBV_WC_SUCCESS);
	talk_close(&lane);
	open_and_promise(&t, epoch);
	expect_not_cleared(&t, 0, GREETING_BAD_REQUEST); /* no resync has begun */
	assert_int_equal(talk_ask(&t, MESSAGE_RESYNC_BEGIN)->done.status, GREETING_OK);
	expect_cleared(&t, 0, MESSAGE_CLEAR_MAX);
	expect_cleared(&t, MESSAGE_CLEAR_MAX, 4096);
	expect_not_cleared(&t, hosts.first.config.size, GREETING_WRONG_COPY);
	expect_not_cleared(&t, MIRROR_SIZE_MAX, GREETING_WRONG_COPY);
	/* First send the request in an epoch that is not promised, and then in a promised epoch
	 * that has no resync yet. */
	epoch = hosts_promote(&hosts, 0);
	assert_int_equal(talk_open(&next, &hosts, 0, 1, GREETING_CONTROL, epoch), GREETING_OK);
	expect_not_cleared(&next, 0, GREETING_EPOCH);
	assert_int_equal(talk_ask(&next, MESSAGE_PROMISE)->type, MESSAGE_PROMISED);
	expect_not_cleared(&next, 0, GREETING_BAD_REQUEST);
	assert_null(ask_to_clear(&t, 0, 4096)); /* the epoch of this connection has ended */
	talk_close(&t);
	if (talk_open(&t, &hosts, 0, 1, GREETING_CONTROL, former) == GREETING_OK)
		expect_not_cleared(&t, 0, GREETING_EPOCH);
	talk_close(&t);
	assert_int_equal(talk_ask(&next, MESSAGE_RESYNC_BEGIN)->done.status, GREETING_OK);
	for (unsigned i = 0; i < ARRAY_LEN(shapes); i++) {
		open_and_promise(&t, epoch);
		assert_null(ask_to_clear(&t, shapes[i].offset, shapes[i].len));
		talk_close(&t);
	}
	talk_close(&next);
	open_and_promise(&t, epoch);
	assert_int_equal(talk_ask(&t, MESSAGE_RESYNC_END)->done.status, GREETING_OK);
	talk_close(&t);
	expect_word(word);
	still_serves();
}

static void many_connections_without_a_proof_keep_no_other_out(void **state)
{
	enum { MANY = 150 };
	static struct talk many[MANY];
	unsigned count = SYSTEM_SANITIZED ? MANY / 3 : MANY;

	for (unsigned i = 0; i < count; i++)
		talk_connect(&many[i], &hosts, 0, 1, GREETING_CONTROL, epoch);
	still_serves();
	for (unsigned i = 0; i < count; i++)
		talk_close(&many[i]);
	still_serves();
}

/* ---- the UNIX socket ---- */

static bool is_cut(struct player *p)
{
	struct pollfd pfd = {.fd = p->fd, .events = POLLIN};
	char byte;

	if (poll(&pfd, 1, PLAYER_WAIT_MS) != 1)
		fail_msg("the daemon neither answers nor cuts off");
	return recv(p->fd, &byte, 1, 0) <= 0;
}

static void packets_that_make_no_sense_end_the_connection(void **state)
{
	static const char *const texts[] = {"x", "RMMP", "RMMP\1\1\0\0aaaa", "RMMP\1\377\0\0aaaa"};
	static struct packet out;
	static char large[100000];
	struct player p;

	for (unsigned i = 0; i < ARRAY_LEN(texts); i++) {
		player_open(&p, &hosts, 0);
		assert_true(send(p.fd, texts[i], 12 < strlen(texts[i]) ? 12 : strlen(texts[i]), 0) >
			    0);
		assert_true(is_cut(&p));
		player_close(&p);
	}
	/* Send more bytes than the longest packet has. */
	player_open(&p, &hosts, 0);
	if (send(p.fd, large, sizeof(large), 0) > 0)
		assert_true(is_cut(&p));
	player_close(&p);
	/* Send packets that are allowed only for the process that maps the set, and packets that no
	 * library sends. */
	for (unsigned type = 1; type < PACKET_TYPE_END; type++) {
		if (type == PACKET_MAP)
			continue;
		memset(&out, 0, sizeof(out));
		out.type = (enum packet_type)type;
		out.member.type = type == PACKET_MEMBER ? MESSAGE_PROMISE : out.member.type;
		if (type == PACKET_ORDER)
			out.order.order = PACKET_ORDER_DEMOTE;
		player_open(&p, &hosts, 0);
		player_send(&p, &out);
		assert_true(is_cut(&p));
		player_close(&p);
	}
	still_serves();
}

static void one_user_may_not_take_all_places(void **state)
{
	enum { MANY = 300 };
	static struct player many[MANY];
	struct talk t;

	for (unsigned i = 0; i < MANY; i++)
		player_open(&many[i], &hosts, 0);
	/* The connections of other hosts do not depend on the UNIX socket. */
	assert_int_equal(talk_open(&t, &hosts, 0, 1, GREETING_CONTROL, epoch), GREETING_OK);
	talk_close(&t);
	for (unsigned i = 0; i < MANY; i++)
		player_close(&many[i]);
	still_serves();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(private_data_that_is_no_greeting),
		cmocka_unit_test(greetings_for_others),
		cmocka_unit_test(a_wrong_secret_gets_nothing),
		cmocka_unit_test(a_proof_that_was_overheard_is_refused),
		cmocka_unit_test(messages_before_the_proof_end_the_connection),
		cmocka_unit_test(messages_that_may_not_come_end_the_connection),
		cmocka_unit_test(messages_of_another_shape_end_the_connection),
		cmocka_unit_test(nothing_that_can_be_read_is_cleared),
		cmocka_unit_test(many_connections_without_a_proof_keep_no_other_out),
		cmocka_unit_test(packets_that_make_no_sense_end_the_connection),
		cmocka_unit_test(one_user_may_not_take_all_places),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
