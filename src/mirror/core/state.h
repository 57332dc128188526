/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state.h -- the words for the condition of a mirror set. A word has the same meaning in messages,
 * in the library's answers and in the tool's output.
 */
#ifndef MIRROR_CORE_STATE_H
#define MIRROR_CORE_STATE_H

/* Condition of a copy. */
enum mirror_copy {
	MIRROR_COPY_EMPTY,   /* the copy was created and has no data yet */
	MIRROR_COPY_SYNCING, /* a resync is making the copy equal, so the copy cannot be used */
	MIRROR_COPY_STALE,   /* the copy is consistent, but lacks acknowledged data */
	/* the copy is consistent, but neither the register nor the primary has answered */
	MIRROR_COPY_UNKNOWN,
	MIRROR_COPY_INSYNC, /* the copy holds all acknowledged data */
	MIRROR_COPY_FAILED, /* the copy's medium or a write-back has failed */
	MIRROR_COPY_COUNT
};

/* Condition of the connection between the primary and a member. */
enum mirror_link {
	MIRROR_LINK_DOWN,
	MIRROR_LINK_CONNECTING,
	MIRROR_LINK_CONNECTED,
	MIRROR_LINK_REFUSED,
	MIRROR_LINK_COUNT
};

/* The kind of bytes that the connection carries. */
enum mirror_flow {
	MIRROR_FLOW_NONE,
	MIRROR_FLOW_REPLICATING,
	MIRROR_FLOW_CATCHING_UP,
	MIRROR_FLOW_JOINING,
	MIRROR_FLOW_VERIFYING,
	MIRROR_FLOW_PAUSED,
	MIRROR_FLOW_COUNT
};

enum mirror_role {
	MIRROR_ROLE_SECONDARY,
	MIRROR_ROLE_PRIMARY,
	MIRROR_ROLE_FENCED, /* the former primary, which lost the role while the file was mapped */
	MIRROR_ROLE_COUNT
};

/* Condition of the whole set. */
enum mirror_health {
	MIRROR_HEALTH_DOWN, /* no process serves the set */
	MIRROR_HEALTH_HEALTHY,
	MIRROR_HEALTH_DEGRADED, /* the set is served, with fewer copies than configured */
	MIRROR_HEALTH_BLOCKED,  /* flushes wait: there are too few copies, or no majority */
	MIRROR_HEALTH_SPLIT,
	MIRROR_HEALTH_COUNT
};

/* Return words such as "in-sync" and "catching-up"; "?" for an invalid value. */
const char *mirror_copy_2str(unsigned copy);
const char *mirror_link_2str(unsigned link);
const char *mirror_flow_2str(unsigned flow);
const char *mirror_role_2str(unsigned role);
const char *mirror_health_2str(unsigned health);

#endif
