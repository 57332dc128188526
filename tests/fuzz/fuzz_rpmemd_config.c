/* SPDX-License-Identifier: BSD-3-Clause */
/* Input: a configuration file of rpmemd. Each setting that is read must be a valid value of its
 * key. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "rpmemd/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct settings s;
	struct error err;
	int rc;

	settings_init(&s, "/home/u");
	rc = config_parse(&s, (const char *)data, len, "x", &err);
	EXPECT(rc == 0 || rc == ERROR_ARGUMENT);
	EXPECT(s.log_level >= LOG_LVL_ERROR && s.log_level <= LOG_LVL_DEBUG);
	EXPECT(s.ports.first <= s.ports.last);
	EXPECT(s.nthreads <= SETTINGS_LANES_MAX);
	EXPECT(s.max_lanes >= 1 && s.max_lanes <= SETTINGS_LANES_MAX);
	EXPECT(s.max_pools && s.max_per_address && s.max_pending);
	if (!settings_finish(&s, "/home/u", &err))
		EXPECT(s.poolset_dir[0] == '/' && strlen(s.poolset_dir) < PATH_MAX);
	return 0;
}
