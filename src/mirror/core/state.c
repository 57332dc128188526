/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/state.h"

#define STATE_WORD(words, value)                                                                   \
	((value) < sizeof(words) / sizeof((words)[0]) ? (words)[value] : "?")

const char *mirror_copy_2str(unsigned copy)
{
	static const char *const words[MIRROR_COPY_COUNT] = {"empty",   "syncing", "stale",
							     "unknown", "in-sync", "failed"};

	return STATE_WORD(words, copy);
}

const char *mirror_link_2str(unsigned link)
{
	static const char *const words[MIRROR_LINK_COUNT] = {"down", "connecting", "connected",
							     "refused"};

	return STATE_WORD(words, link);
}

const char *mirror_flow_2str(unsigned flow)
{
	static const char *const words[MIRROR_FLOW_COUNT] = {
		"none", "replicating", "catching-up", "joining", "verifying", "paused"};

	return STATE_WORD(words, flow);
}

const char *mirror_role_2str(unsigned role)
{
	static const char *const words[MIRROR_ROLE_COUNT] = {"secondary", "primary", "fenced"};

	return STATE_WORD(words, role);
}

const char *mirror_health_2str(unsigned health)
{
	static const char *const words[MIRROR_HEALTH_COUNT] = {"down", "healthy", "degraded",
							       "blocked", "split"};

	return STATE_WORD(words, health);
}
