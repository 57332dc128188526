/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/commit.h"

void commit_init(struct commit *c)
{
	*c = (struct commit){0};
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->ended[0], NULL);
	pthread_cond_init(&c->ended[1], NULL);
}

void commit_fini(struct commit *c)
{
	pthread_cond_destroy(&c->ended[0]);
	pthread_cond_destroy(&c->ended[1]);
	pthread_mutex_destroy(&c->lock);
}

/* Make the write-back of the next turn. The lock is held, except during the write-back. At the end
 * wake all threads of this turn, and one thread of the next turn, which makes that turn's
 * write-back. */
static void commit_run(struct commit *c, int (*write_back)(void *arg), void *arg)
{
	uint64_t turn = ++c->begun;
	int rc = c->error;

	pthread_mutex_unlock(&c->lock);
	if (!rc)
		rc = write_back(arg);
	pthread_mutex_lock(&c->lock);
	c->error = rc;
	c->done = turn;
	pthread_cond_broadcast(&c->ended[turn % 2]);
	pthread_cond_signal(&c->ended[(turn + 1) % 2]);
}

int commit_join(struct commit *c, int (*write_back)(void *arg), void *arg)
{
	uint64_t turn;
	int rc;

	pthread_mutex_lock(&c->lock);
	turn = c->begun + 1;
	while (c->done < turn) {
		if (c->begun == c->done)
			commit_run(c, write_back, arg);
		else
			pthread_cond_wait(&c->ended[turn % 2], &c->lock);
	}
	rc = c->error;
	pthread_mutex_unlock(&c->lock);
	return rc;
}
