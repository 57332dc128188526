/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state.h -- the words in which a mirror set's condition is reported: each has one meaning in
 * messages, in the library's answers and in what the tool prints.
 */
#ifndef MIRROR_CORE_STATE_H
#define MIRROR_CORE_STATE_H

/* Of a copy. */
enum mirror_copy {
	MIRROR_COPY_EMPTY,   /* created, holds nothing */
	MIRROR_COPY_SYNCING, /* being made equal by a resync: not usable */
	MIRROR_COPY_STALE,   /* consistent, but lacks acknowledged data */
	MIRROR_COPY_UNKNOWN, /* consistent, but neither register nor primary could be asked */
	MIRROR_COPY_INSYNC,  /* holds all that was acknowledged */
	MIRROR_COPY_FAILED,  /* its medium, or a write-back */
	MIRROR_COPY_COUNT
};

/* Of the connection between the primary and a member. */
enum mirror_link {
	MIRROR_LINK_DOWN,
	MIRROR_LINK_CONNECTING,
	MIRROR_LINK_CONNECTED,
	MIRROR_LINK_REFUSED,
	MIRROR_LINK_COUNT
};

/* The kind of bytes that move on it. */
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
	MIRROR_ROLE_FENCED, /* was primary, and lost the role while the file was mapped */
	MIRROR_ROLE_COUNT
};

/* Of the whole set. */
enum mirror_health {
	MIRROR_HEALTH_DOWN, /* no process serves it */
	MIRROR_HEALTH_HEALTHY,
	MIRROR_HEALTH_DEGRADED, /* served, with fewer copies than configured */
	MIRROR_HEALTH_BLOCKED,  /* flushes wait: too few copies, or no agreement */
	MIRROR_HEALTH_SPLIT,
	MIRROR_HEALTH_COUNT
};

/* "in-sync", "catching-up"; "?" for an invalid value. */
const char *mirror_copy_2str(unsigned copy);
const char *mirror_link_2str(unsigned link);
const char *mirror_flow_2str(unsigned flow);
const char *mirror_role_2str(unsigned role);
const char *mirror_health_2str(unsigned health);

#endif
