/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_origin.c -- the barrier: bytes of former connections must not be placed after bytes of later
 * connections. This process has two tables: the connections that it has initiated
 * (stream/former.h), and those that it has accepted (stream/fence.h).
 *
 * One leaf lock guards both tables; a connection's lock is taken before it. To close a connection,
 * a thread sets a bit of the connection's `want`, and the thread with the connection's lock closes
 * it. So no thread waits for a connection's lock in this file. A thread that is stuck while it
 * places bytes delays only the answer to the new connection.
 */
#include <sodium.h>
#include <string.h>

#include "base/log.h"
#include "base/rand.h"
#include "softrnic/io/conn_parts.h"

static pthread_mutex_t origin_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t origin_once = PTHREAD_ONCE_INIT;
static struct formers formers;
static struct fences fences;
static uint8_t origin_instance[EXT_ID_LEN]; /* the name that this process has as a target */

static void origin_ask(struct fence_member *m, unsigned bit)
{
	struct conn *c = container_of(m, struct conn, fenced);

	atomic_fetch_or(&c->want, bit);
	conn_again(c);
}

static void origin_cut(struct fence_member *m)
{
	origin_ask(m, CONN_CUT);
}

static void origin_wake(struct fence_member *m)
{
	origin_ask(m, CONN_FENCED);
}

static void origin_init(void)
{
	formers_init(&formers);
	fences_init(&fences, origin_cut, origin_wake);
	rand_bytes(origin_instance, sizeof(origin_instance));
}

void conn_origin_prepare(struct conn *c, struct stream_config *cfg)
{
	pthread_once(&origin_once, origin_init);
	cfg->takes_part = cfg->offer_consent;
	memset(&c->initiator, 0, sizeof(c->initiator));
	if (cfg->role == STREAM_INITIATOR)
		return;
	fence_member_init(&c->fenced);
	memcpy(cfg->instance, origin_instance, sizeof(cfg->instance));
}

/* --- initiator ------------------------------------------------------------------------------ */

void conn_set_owner(struct conn *c, const struct conn_owner *owner)
{
	c->initiator.owner = *owner;
}

void conn_owner_of(struct conn_owner *owner, const void *name, size_t len)
{
	owner->given = len > 0;
	crypto_generichash(owner->hash, sizeof(owner->hash), name, len, NULL, 0);
}

static int origin_join(struct conn *c, const uint8_t *instance)
{
	uint8_t fresh[EXT_ID_LEN];
	bool dropped;
	int ret;

	rand_bytes(fresh, sizeof(fresh));
	ret = former_join(&formers, &c->initiator.former, instance, fresh, &dropped);
	if (dropped)
		LOG_WARNING_LIMITED(
			"this process has given up connections to more than %u processes: those to "
			"the oldest one are forgotten, so the next connect to that process does "
			"not end them there",
			FORMER_TARGETS_MAX);
	return ret;
}

bool conn_origin(void *owner, const uint8_t instance[EXT_ID_LEN], struct ext_origin *origin)
{
	struct conn *c = owner;
	int ret = 0;

	pthread_mutex_lock(&origin_lock);
	if (!c->initiator.former.target)
		ret = origin_join(c, instance);
	if (!ret)
		former_name(&c->initiator.former, origin);
	pthread_mutex_unlock(&origin_lock);
	if (ret)
		return false;
	if (c->initiator.owner.given && !c->initiator.owner_is_named) {
		/* The same owner gets a different name for each target, so that no target can use
		 * its name at another target. */
		origin->has_owner = true;
		crypto_generichash(origin->owner, EXT_ID_LEN, instance, EXT_ID_LEN,
				   c->initiator.owner.hash, sizeof(c->initiator.owner.hash));
	}
	origin->asks = origin->n > 0 || origin->has_owner;
	return true;
}

void conn_origin_fenced(void *owner, const struct ext_origin *origin)
{
	struct conn *c = owner;

	c->initiator.owner_is_named |= origin->has_owner;
	pthread_mutex_lock(&origin_lock);
	former_fenced(&c->initiator.former, origin);
	pthread_mutex_unlock(&origin_lock);
}

/* Record that the connection is given up. Called when the queue pair fails, and again when the end
 * is reported. */
void conn_origin_give_up(struct conn *c)
{
	if (stream_role(c->stream) == STREAM_RESPONDER)
		return;
	pthread_mutex_lock(&origin_lock);
	former_give_up(&c->initiator.former);
	pthread_mutex_unlock(&origin_lock);
}

/* --- responder ------------------------------------------------------------------------------ */

void conn_origin_arrives(struct conn *c)
{
	if (stream_state(c->stream) != STREAM_REQ_RCVD || !list_empty(&c->fenced.link))
		return;
	pthread_mutex_lock(&origin_lock);
	fence_arrive(&fences, &c->fenced);
	pthread_mutex_unlock(&origin_lock);
}

enum stream_fence conn_origin_identify(void *owner, const struct ext_origin *origin)
{
	struct conn *c = owner;
	enum stream_fence fence;

	pthread_mutex_lock(&origin_lock);
	fence = fence_identify(&fences, &c->fenced, origin);
	pthread_mutex_unlock(&origin_lock);
	return fence;
}

/*
 * Called when the connection is established. If the connection sent no ORIGIN, its peer does not
 * take part in the barrier.
 */
void conn_origin_established(struct conn *c)
{
	if (stream_role(c->stream) == STREAM_INITIATOR)
		return;
	pthread_mutex_lock(&origin_lock);
	fence_pass(&fences, &c->fenced);
	pthread_mutex_unlock(&origin_lock);
}

/* --- both ----------------------------------------------------------------------------------- */

void conn_origin_closed(struct conn *c)
{
	pthread_mutex_lock(&origin_lock);
	if (stream_role(c->stream) == STREAM_INITIATOR)
		former_leave(&formers, &c->initiator.former, stream_is_over(c->stream));
	else
		fence_leave(&fences, &c->fenced);
	pthread_mutex_unlock(&origin_lock);
}

void conn_origin_atfork_prepare(void)
{
	pthread_once(&origin_once, origin_init);
	pthread_mutex_lock(&origin_lock);
}

void conn_origin_atfork_parent(void)
{
	pthread_mutex_unlock(&origin_lock);
}

/* In a forked child: empty the tables. The connections belong to the parent, and for peers the
 * child is another process. */
void conn_origin_atfork_child(void)
{
	formers_reset(&formers);
	fences_reset(&fences);
	rand_bytes(origin_instance, sizeof(origin_instance));
	pthread_mutex_unlock(&origin_lock);
}
