/* SPDX-License-Identifier: BSD-3-Clause */
/* programs.h -- programs that the configuration names. The loop's thread only. */
#ifndef MIRRORD_PROGRAMS_H
#define MIRRORD_PROGRAMS_H

#include "mirrord/health.h"
#include "mirrord/impl.h"

/* program.c: programs of the configuration. */
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
 * The variables are the program's environment, beside PATH. argument may be NULL. 0, or -errno, and
 * then on_done is not called. A file that cannot be executed counts as a failure of the program.
 */
int program_start(struct program *p, const char *path, const char *argument,
		  struct program_vars *vars);
/*
 * May the program start? Not while it runs, nor while an earlier run of the same file is stuck: new
 * runs would get stuck as well, and pile up.
 */
bool program_may_start(const struct program *p, const char *last, const char *path);
/* End the program after its time limit. */
void program_tick(struct program *p, uint64_t now_ms);
/* Kill the program, and its children that are still in its process group. */
void program_kill(struct program *p);
/* Forget the program, which lives on. */
void program_forget(struct program *p);

/* promote.c: the program on-promote. */
void promote_run(struct set *s);
void promote_tick(struct set *s, uint64_t now_ms);

/* fence_agent.c: the program fence-agent. */
/* After the configuration was read: it may name another program, or one that does not exist. */
void fence_agent_on_conf(struct set *s);
/* The alive key of that epoch is not renewed: may another member be promoted? */
bool fence_agent_permits(const struct set *s, struct mirror_epoch epoch);
/* The alive key was read into s->seen. */
void fence_agent_on_alive(struct set *s);
void fence_agent_tick(struct set *s, uint64_t now_ms);
void fence_agent_end(struct set *s);
/* Does a promotion here wait only for the agent? If so, fills *words. */
bool fence_agent_obstacle(const struct set *s, struct fence_words *words);

#endif
