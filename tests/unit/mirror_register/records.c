/* SPDX-License-Identifier: BSD-3-Clause */
#include "records.h"

#include <stdio.h>
#include <string.h>

#include "base/rand.h"

static uint64_t record_random(void)
{
	uint64_t number;

	rand_bytes(&number, sizeof(number));
	return number | 1;
}

void record_init(struct mirror_record *record, const char *set)
{
	struct mirror_config *c = &record->config;

	memset(record, 0, sizeof(*record));
	*c = (struct mirror_config){.number = 1,
				    .size = 1 << 20,
				    .format = 1,
				    .min_copies = 1,
				    .lease_ms = 5000,
				    .replica_timeout_ms = 2000,
				    .slow_ms = 20,
				    .holdoff_ms = 5000,
				    .blocked_ms = 30000};
	snprintf(c->set, sizeof(c->set), "%s", set);
	rand_bytes(&c->uuid, sizeof(c->uuid));
	for (unsigned slot = 0; slot < 2; slot++) {
		struct mirror_member *m = &c->members[slot];

		*m = (struct mirror_member){.id = record_random(), .port = 7640};
		snprintf(m->name, sizeof(m->name), "%c", 'a' + slot);
		snprintf(m->host, sizeof(m->host), "127.0.0.%u", slot + 1);
		snprintf(m->path, sizeof(m->path), "/pm/%c/file", 'a' + slot);
	}
	record->view.primary = MIRROR_NO_SLOT;
	record->view.insync = 3;
	record->nonce = record_random();
}

void record_next(struct mirror_record *record)
{
	record->view.seq++;
	record->nonce = record_random();
}

void record_promote(struct mirror_record *record, uint8_t slot)
{
	struct mirror_view *v = &record->view;

	v->epoch.number++;
	v->epoch.nonce = record_random();
	v->seq = 0;
	v->phase = MIRROR_PHASE_RECOVERING;
	v->primary = slot;
	record->nonce = record_random();
}
