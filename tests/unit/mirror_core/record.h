/* SPDX-License-Identifier: BSD-3-Clause */
/* record.h -- a record of a set for tests. */
#ifndef TEST_MIRROR_RECORD_H
#define TEST_MIRROR_RECORD_H

#include <stdio.h>
#include <string.h>

#include "mirror/core/view.h"

/* Returns a record with members "a", "b", ... whose ids are 1, 2, ...; all are in-sync. */
static inline struct mirror_record test_record(unsigned members, unsigned min_copies)
{
	struct mirror_config config = {.size = 1 << 20,
				       .format = 1,
				       .min_copies = min_copies,
				       .lease_ms = 5000,
				       .replica_timeout_ms = 2000,
				       .slow_ms = 20,
				       .holdoff_ms = 5000,
				       .blocked_ms = 30000};
	struct mirror_record rec;

	strcpy(config.set, "orders");
	for (unsigned i = 0; i < members; i++) {
		config.members[i].id = i + 1;
		snprintf(config.members[i].name, sizeof(config.members[i].name), "%c",
			 'a' + (int)i);
	}
	if (view_create(&rec, &config, (mirror_mask)((1u << members) - 1), 77, NULL))
		memset(&rec, 0, sizeof(rec));
	return rec;
}

#endif
