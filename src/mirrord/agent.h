/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent.h -- calls of a set's register on a thread of their own, since each may last for seconds.
 *
 * Jobs of one agent are done in order. A finished job comes back through the queue of answers,
 * whose descriptor the daemon's loop watches; there the job's on_done runs, and frees the job. Jobs
 * left at the end are dropped.
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
	/* opens the register anew by the uri in arg (from malloc()); on failure the former
	 * handle stays */
	AGENT_REOPEN,
	AGENT_CALL, /* runs call(), which is not a call of the register and may last as long */
};

struct agent_job {
	enum agent_work work;
	/* arguments */
	struct register_entry expected; /* SWAP: the whole entry; WATCH: its revision */
	struct mirror_record next;      /* SWAP */
	bool promotes;                  /* SWAP: compare the alive key, too */
	/* SWAP: read the alive key first, so that a living primary is replaced as well */
	bool is_forced;
	bool is_ordered; /* SWAP: an operator's order permits the swap */
	/* the operator's order has ended: a job that was not sent is never sent */
	bool is_withdrawn;
	struct mirror_epoch epoch; /* ALIVE_PUT, ALIVE_CLEAR */
	unsigned wait_ms;
	/* WATCH: first count the register's members that answer */
	bool counts;
	int (*call)(struct agent_job *job); /* CALL: sets rc and err */
	void *arg;                          /* argument of `call`, which the job owns */
	/* argument and result */
	struct register_alive alive;
	/* results */
	/* ALIVE_GET: the key from one member, read before the linearizable read */
	struct register_alive sight;
	uint64_t sight_ns; /* time at which `sight` was read */
	int rc;            /* GET, ALIVE_GET, REOPEN, CALL */
	enum register_result result;
	struct register_entry now;
	struct register_health health; /* with a WATCH that counts members */
	uint64_t sent_ns, done_ns;     /* CLOCK_BOOTTIME */
	struct error err;
	/* Set by the code that posts the job. */
	void (*on_done)(struct agent_job *job); /* frees the job */
	/* runs instead of on_done, then the job is freed; or NULL */
	void (*on_drop)(struct agent_job *job);
	void *owner;
	/* serial number of the client that made the request; 0: no client */
	uint64_t client;
	uint32_t id;                /* number of the client's request */
	struct agent_job *next_job; /* for the queues */
};

struct agent_answers;
struct agent;

/* Returns NULL with errno set on failure. */
struct agent_answers *agent_answers_new(void);
void agent_answers_delete(struct agent_answers *answers);
int agent_answers_get_fd(const struct agent_answers *answers);
/* Call on_done of all finished jobs. */
void agent_answers_take(struct agent_answers *answers);

/* Copies the uri and the set's name. Returns kinds of error.h. */
int agent_new(const char *uri, const char *set, unsigned limit_ms, struct agent_answers *answers,
	      struct agent **agent, struct error *err);
/* Waits for the job that has begun, and drops the others. Finished jobs stay in the queue of
 * answers. */
void agent_delete(struct agent **agent);
/*
 * The same for an agent whose call may never end. Returns false if the call did not end in that
 * time; the thread then goes on, and gives no answer any more.
 */
bool agent_delete_within(struct agent **agent, unsigned limit_ms);
/* The agent owns the job from now on. */
void agent_post(struct agent *agent, struct agent_job *job);

/* End an operator's order, which permitted swaps of this agent. */
void agent_withdraw(struct agent *agent);

/* Returns a job with all other members zero; NULL: out of memory. */
struct agent_job *agent_job_new(enum agent_work work, void (*on_done)(struct agent_job *job),
				void *owner);

#endif
