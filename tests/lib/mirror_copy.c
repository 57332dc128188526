/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/mirror_copy.h"

#include <stdio.h>
#include <string.h>

#include "lib/unit.h"

struct mirror_uuid copy_uuid(uint8_t first)
{
	struct mirror_uuid uuid;

	for (unsigned i = 0; i < sizeof(uuid.bytes); i++)
		uuid.bytes[i] = (uint8_t)(first + i);
	return uuid;
}

struct mirror_epoch copy_epoch(uint64_t number)
{
	return (struct mirror_epoch){.number = number, .nonce = number ? 0x1000 + number : 0};
}

void copy_record(struct mirror_record *rec)
{
	memset(rec, 0, sizeof(*rec));
	rec->config = (struct mirror_config){.number = 1,
					     .uuid = copy_uuid(0x10),
					     .set = "orders",
					     .size = COPY_SIZE,
					     .format = 1,
					     .min_copies = 1,
					     .lease_ms = 5000,
					     .replica_timeout_ms = 2000,
					     .slow_ms = 20,
					     .holdoff_ms = 5000,
					     .blocked_ms = 30000};
	for (unsigned slot = 0; slot < 3; slot++) {
		struct mirror_member *member = &rec->config.members[slot];

		member->id = 0xa0 + slot;
		member->port = (uint16_t)(7000 + slot);
		snprintf(member->name, sizeof(member->name), "%c", 'a' + (int)slot);
		snprintf(member->host, sizeof(member->host), "192.0.2.%u", slot + 1);
		snprintf(member->path, sizeof(member->path), "/pm/orders");
	}
	rec->view = (struct mirror_view){.primary = MIRROR_NO_SLOT, .insync = 7};
}

void copy_super(struct meta_super *super)
{
	*super = (struct meta_super){.uuid = copy_uuid(0x10),
				     .set = "orders",
				     .member_id = 0xa0 + COPY_SLOT,
				     .slot = COPY_SLOT,
				     .size = COPY_SIZE,
				     .hot_slots = 8,
				     .flags = META_CLEAN};
}

void copy_members(struct meta_members *members)
{
	struct mirror_record rec;

	copy_record(&rec);
	*members = (struct meta_members){.config_number = rec.config.number};
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		struct meta_member *to = &members->members[slot];

		to->id = rec.config.members[slot].id;
		to->port = rec.config.members[slot].port;
		memcpy(to->name, rec.config.members[slot].name, sizeof(to->name));
		memcpy(to->host, rec.config.members[slot].host, sizeof(to->host));
	}
}

void copy_create(struct two_layers *t, uint64_t seed)
{
	struct meta_members members;
	struct meta_super super;
	struct meta_store store;

	two_layers_init(t, meta_size_for(COPY_SIZE), seed);
	copy_super(&super);
	copy_members(&members);
	store = two_layers_store(t);
	assert_int_equal(meta_create(&store, &super, &members), 0);
}

void copy_load(struct meta *m, struct two_layers *t)
{
	struct meta_store store = two_layers_store(t);
	struct error err = {0};

	if (meta_load(m, &store, &err))
		fail_msg("%s", err.text);
}
