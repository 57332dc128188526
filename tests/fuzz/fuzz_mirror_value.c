/* SPDX-License-Identifier: BSD-3-Clause */
/* Input: a set's record as the register returns it, or the alive key's text. An accepted text has
 * only one form. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "mirror/register/alive.h"
#include "mirror/register/value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct mirror_record record;
	static char again[VALUE_MAX];
	struct mirror_epoch epoch;
	struct error err;
	uint64_t counter;
	int rc;

	rc = value_decode((const char *)data, len, &record, &err);
	EXPECT(rc == 0 || rc == ERROR_ARGUMENT);
	if (!rc) {
		EXPECT(!value_encode(&record, again, &err));
		EXPECT(strlen(again) == len && !memcmp(again, data, len));
		EXPECT(record.view.insync);
		EXPECT(!(record.view.insync & ~mirror_config_members(&record.config)));
	}
	if (!alive_decode((const char *)data, len, &epoch, &counter)) {
		alive_encode(epoch, counter, again);
		EXPECT(strlen(again) == len && !memcmp(again, data, len));
	}
	return 0;
}
