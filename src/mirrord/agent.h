/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent.h -- calls of a set's register on a thread of their own, since each may last for seconds.
 *
 * Jobs of one agent are done in order. A finished job comes back through the queue of answers,
 * whose descriptor the daemon's loop watches; there its on_done runs, and frees it. One that is
 * left at the end is dropped.
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
	AGENT_WATCH,  /* returns when the register may have changed, or after wait_ms */
	AGENT_REOPEN, /* the register, by the uri in arg, from malloc(); if that fails the handle
			 stays */
	AGENT_CALL,   /* no call of the register, but one that may last as long: call() */
};

struct agent_job {
	enum agent_work work;
	/* in */
	struct register_entry expected; /* SWAP; WATCH: its revision */
	struct mirror_record next;      /* SWAP */
	bool promotes;                  /* SWAP: compare `alive` */
	bool is_forced;                 /* and read it before: whoever lives is overtaken */
	bool is_ordered;                /* SWAP: an operator's order permits it */
	bool is_withdrawn;              /* that order has ended: what was not sent never is */
	struct mirror_epoch epoch;      /* ALIVE_PUT, ALIVE_CLEAR */
	unsigned wait_ms;
	bool counts;                        /* WATCH: first ask who of the register answers */
	int (*call)(struct agent_job *job); /* CALL: gives rc, and err */
	void *arg;                          /* its own */
	/* in and out */
	struct register_alive alive;
	/* out */
	struct register_alive sight; /* ALIVE_GET: one member's word, before that of all */
	uint64_t sight_ns;           /* when that was there */
	int rc;                      /* GET, ALIVE_GET, REOPEN, CALL */
	enum register_result result;
	struct register_entry now;
	struct register_health health; /* WATCH that counts */
	uint64_t sent_ns, done_ns;     /* CLOCK_BOOTTIME */
	struct error err;
	/* Of whoever posts it. */
	void (*on_done)(struct agent_job *job); /* frees the job */
	void (*on_drop)(struct agent_job *job); /* or NULL: instead, the job is freed thereafter */
	void *owner;
	uint64_t client;            /* on whose behalf: its serial number, 0: nobody's */
	uint32_t id;                /* of its request */
	struct agent_job *next_job; /* the queues' */
};

struct agent_answers;
struct agent;

/* NULL with errno set. */
struct agent_answers *agent_answers_new(void);
void agent_answers_delete(struct agent_answers *answers);
int agent_answers_get_fd(const struct agent_answers *answers);
/* Call on_done of all that are there. */
void agent_answers_take(struct agent_answers *answers);

/* The uri and the set's name are copied into the handle. Kinds of error.h. */
int agent_new(const char *uri, const char *set, unsigned limit_ms, struct agent_answers *answers,
	      struct agent **agent, struct error *err);
/* Waits for a call that has begun; what has not is dropped. Answers stay in their queue. */
void agent_delete(struct agent **agent);
/* The same where a call may never end. False: it has not in that time; its thread goes on, and
 * gives no answer any more. */
bool agent_delete_within(struct agent **agent, unsigned limit_ms);
/* The agent's from now on. */
void agent_post(struct agent *agent, struct agent_job *job);

/* The operator's order has ended that permitted swaps of this agent. */
void agent_withdraw(struct agent *agent);

/* Zeroed but for these. NULL: out of memory. */
struct agent_job *agent_job_new(enum agent_work work, void (*on_done)(struct agent_job *job),
				void *owner);

#endif
