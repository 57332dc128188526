/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/shm_state.h"

const char *shm_state_str(uint64_t state)
{
	static const char *const texts[] = {
#define X(name, text) [SHM_##name] = (text),
		SHM_STATES(X)
#undef X
	};

	return state < sizeof(texts) / sizeof(texts[0]) ? texts[state] : "unknown";
}
