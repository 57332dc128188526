/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent.h -- makes calls of a set's register in a separate thread, because each call may last for
 * seconds.
 *
 * Jobs of one agent are done in order. The agent puts a finished job into the queue of answers,
 * whose descriptor the daemon's loop watches. The loop then calls the job's on_done, which frees
 * the job. When the agent is deleted, the remaining jobs are dropped.
 */
#ifndef MIRRORD_AGENT_H
#define MIRRORD_AGENT_H

#include "base/error.h"
#include "mirror/register/register.h"

enum agent_work {
	AGENT_GET,
	AGENT_SWAP,
	AGENT_ALIVE_GET,
	AGENT_ALIVE_PUT,
	AGENT_ALIVE_CLEAR,
	AGENT_WATCH, /* returns when the register may have changed, or after wait_ms */
	/* opens the register again by the uri in arg (allocated by malloc()); on failure the
	 * former handle stays */
	AGENT_REOPEN,
	AGENT_CALL, /* runs call(), which may take long, but does not access the register */
};

struct agent_job {
	enum agent_work work;
	/* the arguments of the job */
	struct register_entry expected; /* SWAP: the whole entry; WATCH: its revision */
	struct mirror_record next;      /* used by SWAP */
	bool promotes;                  /* SWAP: compare the alive key as well */
	/* SWAP: read the alive key first, so that a living primary is replaced as well */
	bool is_forced;
	bool is_ordered; /* SWAP: an operator's order permits the swap */
	/* the operator's order has ended: if the job has not been sent yet, it is never sent */
	bool is_withdrawn;
	struct mirror_epoch epoch; /* used by ALIVE_PUT and ALIVE_CLEAR */
	unsigned wait_ms;
	/* WATCH: first count the register's members that answer */
	bool counts;
	int (*call)(struct agent_job *job); /* CALL: sets rc and err */
	void *arg;                          /* argument of `call`, which the job owns */
	/* argument and result */
	struct register_alive alive;
	/* the results of the job */
	/* ALIVE_GET: the alive key as one of the register's members has it, read before the
	 * linearizable read */
	struct register_alive sight;
	uint64_t sight_ns; /* time at which `sight` was read */
	int rc;            /* result of GET, ALIVE_GET, REOPEN and CALL */
	enum register_result result;
	struct register_entry now;
	struct register_health health; /* with a WATCH that counts members */
	uint64_t sent_ns, done_ns;     /* time by CLOCK_BOOTTIME */
	struct error err;
	/* The code that posts the job sets the members below. */
	void (*on_done)(struct agent_job *job); /* frees the job */
	/* if not NULL, called when the job is dropped, instead of on_done; the job is freed
	 * afterwards */
	void (*on_drop)(struct agent_job *job);
	void *owner;
	/* serial number of the client that made the request; 0: no client */
	uint64_t client;
	uint32_t id;                /* number of the client's request */
	struct agent_job *next_job; /* the next job in its queue */
};

struct agent_answers;
struct agent;

/* Returns NULL with errno on failure. */
struct agent_answers *agent_answers_new(void);
void agent_answers_delete(struct agent_answers *answers);
int agent_answers_get_fd(const struct agent_answers *answers);
/* Call on_done of all finished jobs. */
void agent_answers_take(struct agent_answers *answers);

/* Make an agent and its thread; uri and set are copied. Returns 0 or an error kind of error.h. */
int agent_new(const char *uri, const char *set, unsigned limit_ms, struct agent_answers *answers,
	      struct agent **agent, struct error *err);
/* Waits for the job that runs, and drops the other jobs. Finished jobs stay in the queue of
 * answers. */
void agent_delete(struct agent **agent);
/*
 * Like agent_delete(), for an agent whose call may never return. Returns false if the call did not
 * return within limit_ms; the thread then continues, and its result is dropped.
 */
bool agent_delete_within(struct agent **agent, unsigned limit_ms);
/* Add a job to the agent's queue. The agent owns the job from now on. */
void agent_post(struct agent *agent, struct agent_job *job);

/* Never send the swaps that an operator's order permitted and that have not been sent yet. Call
 * this when the order has ended. */
void agent_withdraw(struct agent *agent);

/* Returns a job with all other members zero; NULL: out of memory. */
struct agent_job *agent_job_new(enum agent_work work, void (*on_done)(struct agent_job *job),
				void *owner);

#endif
