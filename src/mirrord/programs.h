/* SPDX-License-Identifier: BSD-3-Clause */
/* programs.h -- programs that the configuration names. Only the loop's thread calls these
 * functions. */
#ifndef MIRRORD_PROGRAMS_H
#define MIRRORD_PROGRAMS_H

#include "mirrord/health.h"
#include "mirrord/impl.h"

/* program.c: starts and ends programs. */
#define PROGRAM_VARS 6
#define PROGRAM_VAR  320
struct program_vars {
	unsigned count;
	char text[PROGRAM_VARS][PROGRAM_VAR]; /* NAME=value */
};
void program_set_var(struct program_vars *vars, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Prepare a run for that set, with the variables that every program gets. */
void program_prepare(struct program *p, struct set *s, struct program_vars *vars);
/*
 * Start the program. The variables and PATH are its environment. argument may be NULL. Returns 0,
 * or -errno; after an error on_done is not called. A file that cannot be executed counts as a
 * failure of the program.
 */
int program_start(struct program *p, const char *path, const char *argument,
		  struct program_vars *vars);
/*
 * Returns true if the program may start. The program must not start while it runs, nor while an
 * earlier run of the same file hangs: new runs would hang as well, and accumulate.
 */
bool program_may_start(const struct program *p, const char *last, const char *path);
/* Kill the program if its time limit has passed. */
void program_tick(struct program *p, uint64_t now_ms);
/* Kill the program, and its children that are still in its process group. */
void program_kill(struct program *p);
/* Stop watching the program, which continues to run. */
void program_forget(struct program *p);

/* promote.c: runs the program on-promote. */
void promote_run(struct set *s);
void promote_tick(struct set *s, uint64_t now_ms);

/* fence_agent.c: runs the program fence-agent. */
/* Check that the program can be executed, by a run of it as a probe. Call this after the
 * configuration was read, which may name another program, or a program that does not exist. */
void fence_agent_on_conf(struct set *s);
/* Returns true if another member may be promoted: the agent has proved that the host is off, or
 * there is no agent and the expired lease is sufficient. Call this if the alive key of that epoch
 * is not renewed. */
bool fence_agent_permits(const struct set *s, struct mirror_epoch epoch);
/* If the primary renews its alive key again, drop the agent's proof and stop the agent. Call this
 * after the alive key was read into s->seen. */
void fence_agent_on_alive(struct set *s);
void fence_agent_tick(struct set *s, uint64_t now_ms);
void fence_agent_end(struct set *s);
/* Returns true if a promotion on this host waits only for the agent. Then *words is filled. */
bool fence_agent_obstacle(const struct set *s, struct fence_words *words);

#endif
