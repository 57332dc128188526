/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packets of the UNIX socket: each packet is decoded as it was encoded, and no other bytes are
 * accepted.
 */
#include "lib/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mirror/wire/packet.h"

static void sample_fill_record(struct mirror_record *rec)
{
	*rec = (struct mirror_record){.config = {.number = 1,
						 .set = "orders",
						 .size = 16 << 20,
						 .format = 1,
						 .min_copies = 1,
						 .lease_ms = 5000,
						 .replica_timeout_ms = 2000,
						 .slow_ms = 20,
						 .holdoff_ms = 5000,
						 .blocked_ms = 30000},
				      .view = {.epoch = {2, 3},
					       .seq = 4,
					       .phase = MIRROR_PHASE_SERVING,
					       .primary = 0,
					       .insync = 3},
				      .nonce = 77,
				      .history_count = 1,
				      .history = {{.epoch = {1, 9}, .seq = 5}}};
	rec->config.uuid.bytes[0] = 1;
	rec->config.members[0] = (struct mirror_member){
		.id = 11, .name = "a", .host = "h1", .port = 7650, .path = "/pm/orders"};
	rec->config.members[1] = (struct mirror_member){
		.id = 12, .name = "b", .host = "h2", .port = 7650, .path = "/pm/orders"};
}

static void sample_fill_mapped(struct packet_mapped *mapped)
{
	mapped->slot = 1;
	mapped->has_secret = true;
	mapped->is_forced = true;
	mapped->is_silent = true;
	mapped->uuid.bytes[0] = 1;
	mapped->copy_id = 12;
	mapped->size = 16 << 20;
	memset(mapped->key, 0x42, sizeof(mapped->key));
	snprintf(mapped->data_path, sizeof(mapped->data_path), "/pm/orders");
	snprintf(mapped->meta_path, sizeof(mapped->meta_path), "/pm/orders.rpmirror");
	mapped->revision = 9;
	sample_fill_record(&mapped->record);
}

static void sample_fill_swap(struct packet_swap_request *swap)
{
	swap->promotes = true;
	swap->revision = 9;
	sample_fill_record(&swap->before);
	sample_fill_record(&swap->after);
	swap->after.view.seq++;
}

static void sample_fill_some(struct packet *p)
{
	switch (p->type) {
	case PACKET_MAP:
		p->map.flags = PACKET_MAP_WAIT | PACKET_MAP_RESUME;
		snprintf(p->map.set, sizeof(p->map.set), "orders");
		p->map.epoch = (struct mirror_epoch){1, 2};
		p->map.image = 0x1122334455667788;
		break;
	case PACKET_UNMAP:
		p->unmap.clean = true;
		break;
	case PACKET_MEMBER:
		p->member.type = MESSAGE_PROMISE;
		p->member.epoch.number = 3;
		break;
	case PACKET_SERVE:
		p->serve = (struct packet_serve){.epoch = {3, 4}, .forced = true};
		break;
	case PACKET_LOST:
		p->lost.error = 5;
		break;
	case PACKET_STATUS:
		p->report.status.health = MIRROR_HEALTH_BLOCKED;
		p->report.retry_ms[2] = 1ull << 33;
		p->report.deadline_ms[2] = 1ull << 34;
		p->report.verify_total = 1 << 20;
		snprintf(p->report.reasons[7], sizeof(p->report.reasons[7]), "cut off");
		break;
	case PACKET_EVENT:
		p->event.what = PACKET_EVENT_STUCK;
		p->event.member = MIRROR_NO_SLOT;
		snprintf(p->event.text, sizeof(p->event.text), "b has left");
		break;
	case PACKET_AGE:
		p->age = (struct packet_age){1, 2, 3, 4};
		break;
	case PACKET_LEASE:
		p->lease = (struct packet_lease){5, 6};
		break;
	case PACKET_FENCED:
		p->fenced.known = (struct mirror_epoch){7, 8};
		break;
	case PACKET_ORDER:
		p->order = (struct packet_order_request){.order = PACKET_ORDER_RESYNC,
							 .member = 1,
							 .flag = true,
							 .is_automatic = true,
							 .timeout_ms = 7};
		break;
	default:
		break;
	}
}

static struct packet *sample(enum packet_type type)
{
	static struct packet p;

	memset(&p, 0, sizeof(p));
	p.type = type;
	p.id = 0x01020304;
	switch (type) {
	case PACKET_MAPPED:
		sample_fill_mapped(&p.mapped);
		break;
	case PACKET_RECORD:
	case PACKET_CHANGED:
		p.record.revision = 9;
		sample_fill_record(&p.record.record);
		break;
	case PACKET_SWAP:
		sample_fill_swap(&p.swap);
		break;
	case PACKET_SWAPPED:
		p.swapped.result = PACKET_SWAP_CHANGED;
		p.swapped.revision = 9;
		sample_fill_record(&p.swapped.record);
		break;
	case PACKET_ORDERED:
		p.ordered.status = PACKET_TIMEOUT;
		p.ordered.verified.compared = 8192;
		p.ordered.verified.members = 6;
		p.ordered.verified.left = 4096;
		p.ordered.verified.left_members = 4;
		p.ordered.verified.count = PACKET_DIFFERENCES;
		for (unsigned i = 0; i < PACKET_DIFFERENCES; i++)
			p.ordered.verified.differences[i] =
				(struct packet_difference){i % 8,
							   i % FINDING_WRONG_END,
							   i % PACKET_MENDED_END,
							   {i * 4096, 4096}};
		break;
	case PACKET_DONE:
		p.done.status = PACKET_BUSY;
		memset(p.done.text, 'x', sizeof(p.done.text) - 1);
		break;
	default:
		sample_fill_some(&p);
		break;
	}
	return &p;
}

static uint8_t bytes[PACKET_MAX], again[PACKET_MAX];
static struct packet got;

static void every_packet_comes_back_as_it_went(void **state)
{
	for (unsigned type = 1; type < PACKET_TYPE_END; type++) {
		struct packet *p = sample((enum packet_type)type);
		size_t len = packet_encode(p, version_newest(), bytes);

		assert_int_equal(packet_decode(bytes, len, &got), 0);
		assert_memory_equal(&got, p, sizeof(got));
		assert_string_not_equal(packet_type_2str(type), "?");
	}
}

static void a_packet_has_its_documented_bytes(void **state)
{
	static const uint8_t want[] = {'R', 'M', 'M', 'P', 2, PACKET_LEASE,
				       1,   0,   4,   3,   2, 1,
				       5,   0,   0,   0,   0, 0,
				       0,   0,   6,   0,   0, 0,
				       0,   0,   0,   0};

	assert_int_equal(packet_encode(sample(PACKET_LEASE), version_newest(), bytes),
			 sizeof(want));
	assert_memory_equal(bytes, want, sizeof(want));
}

/* The previous release refuses unknown bytes, so packets for it lack the fields of this release. */
static void version_1_has_its_former_bytes(void **state)
{
	static const uint8_t map[] = {'R', 'M', 'M', 'P', 1,   PACKET_MAP, 1,   0,   4, 3, 2, 1, 9,
				      6,   0,   'o', 'r', 'd', 'e',        'r', 's', 1, 0, 0, 0, 0,
				      0,   0,   0,   2,   0,   0,          0,   0,   0, 0, 0};
	static const uint8_t order[] = {'R',
					'M',
					'M',
					'P',
					1,
					PACKET_ORDER,
					1,
					0,
					4,
					3,
					2,
					1,
					PACKET_ORDER_RESYNC,
					1,
					1,
					7,
					0,
					0,
					0,
					0,
					0,
					0,
					0,
					0,
					0,
					0,
					0};
	struct packet *p = sample(PACKET_ORDERED);

	p->ordered.verified.count = 1;
	assert_int_equal(packet_encode(p, 1, bytes), 12 + 1 + 2 + 8 + 8 + 1 + 17);
	assert_int_equal(packet_decode(bytes, 12 + 1 + 2 + 8 + 8 + 1 + 17, &got), 0);
	assert_int_equal(got.ordered.verified.compared, 8192);
	assert_int_equal(got.ordered.verified.members, 0);
	assert_int_equal(packet_encode(sample(PACKET_ORDER), 1, bytes), sizeof(order));
	assert_memory_equal(bytes, order, sizeof(order));
	assert_int_equal(packet_encode(sample(PACKET_MAP), 1, bytes), sizeof(map));
	assert_memory_equal(bytes, map, sizeof(map));
	assert_int_equal(packet_decode(map, sizeof(map), &got), 0);
	assert_int_equal(got.map.image, 0);
}

/* In version 1 a scrub is sent as the order to repair. */
static void a_scrub_of_version_1_is_automatic(void **state)
{
	struct packet *p = sample(PACKET_ORDER);
	size_t len;

	p->order.is_automatic = false;
	len = packet_encode(p, 1, bytes);
	assert_int_equal(packet_decode(bytes, len, &got), 0);
	assert_false(got.order.is_automatic);
	p->id = PACKET_SCRUB_ID;
	len = packet_encode(p, 1, bytes);
	assert_int_equal(packet_decode(bytes, len, &got), 0);
	assert_true(got.order.is_automatic);
}

/* Decode a copy on the heap, so that AddressSanitizer reports a read past its end. */
static int decode_exactly(const uint8_t *from, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	int rc;

	memcpy(copy, from, len);
	rc = packet_decode(copy, len, &got);
	free(copy);
	return rc;
}

static void no_other_length_is_taken(void **state)
{
	for (unsigned type = 1; type < PACKET_TYPE_END; type++) {
		size_t len = packet_encode(sample((enum packet_type)type), version_newest(), bytes);

		for (size_t shorter = 0; shorter < len; shorter++)
			assert_int_not_equal(decode_exactly(bytes, shorter), 0);
		bytes[len] = 0;
		assert_int_equal(decode_exactly(bytes, len + 1), -EPROTO);
	}
}

static void a_changed_byte_is_refused_or_changes_the_packet(void **state)
{
	for (unsigned type = 1; type < PACKET_TYPE_END; type++) {
		size_t len = packet_encode(sample((enum packet_type)type), version_newest(), bytes);

		for (size_t at = 0; at < len; at++)
			for (unsigned bit = 0; bit < 8; bit++) {
				bytes[at] ^= (uint8_t)(1u << bit);
				/* The packet may come from a newer program, and have bytes that
				 * this version does not define. */
				if (!packet_decode(bytes, len, &got) &&
				    version_is_known(got.versions.newest)) {
					assert_int_equal(
						packet_encode(&got, version_newest(), again), len);
					assert_memory_equal(again, bytes, len);
				}
				bytes[at] ^= (uint8_t)(1u << bit);
			}
	}
}

static void a_record_that_cannot_be_is_refused(void **state)
{
	size_t len = packet_encode(sample(PACKET_RECORD), version_newest(), bytes);

	/* a byte of the record, so that the record's checksum is wrong */
	bytes[12 + 1 + 8 + 4 + 20] ^= 1;
	assert_int_equal(packet_decode(bytes, len, &got), -EPROTO);
}

/* A newer library asks in its own version, and accepts an answer in this version. */
static void a_longer_question_of_a_newer_library_is_read_as_far_as_it_is_known(void **state)
{
	struct packet *p = sample(PACKET_MAP);
	size_t len = packet_encode(p, version_newest() + 1, bytes);

	memset(bytes + len, 0x5a, 8);
	assert_int_equal(decode_exactly(bytes, len + 8), 0);
	assert_string_equal(got.map.set, p->map.set);
	assert_int_equal(version_agree(got.versions, version_ours()), version_newest());
	bytes[4] = (uint8_t)version_newest();
	assert_int_equal(decode_exactly(bytes, len + 8), -EPROTO);
	/* All later packets have a version that both programs support. */
	len = packet_encode(sample(PACKET_HEARTBEAT), version_newest() + 1, bytes);
	assert_int_equal(decode_exactly(bytes, len), -EPROTONOSUPPORT);
}

static void versions_that_cannot_be_are_refused(void **state)
{
	static const struct mirror_versions bad[] = {{0, 0}, {0, 1}, {1, 0}, {1, 2}, {3, 255}},
					    other[] = {{3, 3}, {255, 255}};
	size_t len = packet_encode(sample(PACKET_MAP), version_newest(), bytes);

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		bytes[4] = bad[i].newest;
		bytes[6] = bad[i].lowest;
		assert_int_equal(decode_exactly(bytes, len), -EPROTO);
	}
	for (unsigned i = 0; i < ARRAY_LEN(other); i++) {
		bytes[4] = other[i].newest;
		bytes[6] = other[i].lowest;
		assert_int_equal(decode_exactly(bytes, len), -EPROTONOSUPPORT);
		assert_int_equal(got.type, PACKET_MAP);
		assert_memory_equal(&got.versions, &other[i], sizeof(other[i]));
	}
}

/* A refusal can be read in any version. Other packets of another version are refused. */
static void a_refusal_of_any_version_is_read(void **state)
{
	struct packet *p = sample(PACKET_DONE);
	size_t len;

	p->done.status = PACKET_VERSION;
	len = packet_encode(p, version_newest(), bytes);
	bytes[4] = bytes[6] = 200;
	assert_int_equal(decode_exactly(bytes, len), 0);
	assert_string_equal(got.done.text, p->done.text);
	p->done.status = PACKET_OK;
	packet_encode(p, version_newest(), bytes);
	bytes[4] = bytes[6] = 200;
	assert_int_equal(decode_exactly(bytes, len), -EPROTO);
}

static void a_text_that_is_too_long_is_cut(void **state)
{
	struct packet *p = sample(PACKET_DONE);
	size_t len;

	memset(p->done.text, 'y', sizeof(p->done.text));
	len = packet_encode(p, version_newest(), bytes);
	assert_int_equal(packet_decode(bytes, len, &got), 0);
	assert_int_equal(strlen(got.done.text), PACKET_TEXT - 1);
}

static void every_status_has_a_text_of_its_own(void **state)
{
	for (unsigned i = 0; i <= PACKET_STATUS_END; i++)
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(packet_status_2str(i), packet_status_2str(j));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_packet_comes_back_as_it_went),
		cmocka_unit_test(a_packet_has_its_documented_bytes),
		cmocka_unit_test(version_1_has_its_former_bytes),
		cmocka_unit_test(a_scrub_of_version_1_is_automatic),
		cmocka_unit_test(no_other_length_is_taken),
		cmocka_unit_test(a_changed_byte_is_refused_or_changes_the_packet),
		cmocka_unit_test(a_record_that_cannot_be_is_refused),
		cmocka_unit_test(
			a_longer_question_of_a_newer_library_is_read_as_far_as_it_is_known),
		cmocka_unit_test(versions_that_cannot_be_are_refused),
		cmocka_unit_test(a_refusal_of_any_version_is_read),
		cmocka_unit_test(a_text_that_is_too_long_is_cut),
		cmocka_unit_test(every_status_has_a_text_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
