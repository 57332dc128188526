/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/link_shm_meet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/ownfd.h"
#include "base/rand.h"
#include "softrnic/io/link_shm.h"
#include "softrnic/io/link_shm_callers.h"
#include "softrnic/io/link_shm_close.h"
#include "softrnic/io/link_shm_socket.h"

enum meet_state {
	MEET_IDLE,
	/* responder: waits on the Unix socket for the peer and for the peer's nonce */
	MEET_LISTENS,
	/* responder: has returned a caller's nonce over the link, waits for its own nonce */
	MEET_ANSWERED,
	/* initiator: has sent its nonce, waits for the peer's nonce and for the return of its
	 * own */
	MEET_CALLS,
	/* initiator: has returned the peer's nonce over the link, waits for the memory */
	MEET_PROVED,
	MEET_ENDED,
};

struct meet {
	bool initiator;
	enum meet_state state;
	struct eng_source *src;
	uint64_t deadline;
	/* the Unix socket; at a responder: the socket of the caller whose nonce was returned; -1:
	 * none */
	int fd;
	struct shm_callers callers; /* responder */
	uint8_t name[EXT_LINK_TOKEN], ours[EXT_LINK_TOKEN], theirs[EXT_LINK_TOKEN];
	bool has_theirs;   /* initiator: the peer's nonce has arrived over the Unix socket */
	bool has_ours;     /* initiator: its own nonce has come back over the link */
	uint64_t ring_max; /* responder: greatest ring size that the peer permits; 0: not stated */
	/* initiator: number of returned nonces that the initiator did not send */
	unsigned denied;
	enum ext_link_step step; /* the step to send to the peer, together with `token` */
	const uint8_t *token;
	struct shm_memory memory;
	struct link *link; /* link that is allocated for the memory; NULL after meet_take() */
	enum shm_state why;
};

/* --- creation and end ----------------------------------------------------------------------- */

struct meet *meet_new(bool initiator, struct eng_source *src, uint64_t deadline)
{
	struct meet *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->link = link_shm_alloc();
	if (!m->link) {
		free(m);
		return NULL;
	}
	m->initiator = initiator;
	m->src = src;
	m->deadline = deadline;
	m->fd = -1;
	shm_callers_init(&m->callers, src);
	rand_bytes(m->ours, sizeof(m->ours));
	return m;
}

/* A forked child closes m->fd, so the member is cleared before the close: the number must not
 * belong to another file then. */
static void meet_close(struct meet *m)
{
	int fd = m->fd;

	m->fd = -1;
	shm_callers_close(m->src, fd);
}

void meet_delete(struct meet *m)
{
	if (!m)
		return;
	shm_callers_fini(&m->callers);
	meet_close(m);
	shm_memory_free(&m->memory);
	link_shm_free(m->link);
	free(m);
}

void meet_forked(struct meet *m)
{
	if (!m)
		return;
	ownfd_close_marked(m->fd);
	shm_callers_forked(&m->callers);
	shm_memory_forked(&m->memory);
	link_shm_free(m->link);
	free(m);
}

static enum meet_next meet_fail(struct meet *m, enum shm_state why)
{
	m->state = MEET_ENDED;
	m->why = why;
	return MEET_FAILED;
}

static enum meet_next meet_say(struct meet *m, enum ext_link_step step, const uint8_t *token,
			       enum meet_state then)
{
	m->step = step;
	m->token = token;
	m->state = then;
	return MEET_SAY;
}

enum ext_link_step meet_said(const struct meet *m, uint8_t token[EXT_LINK_TOKEN])
{
	memcpy(token, m->token, EXT_LINK_TOKEN);
	return m->step;
}

enum shm_state meet_why(const struct meet *m)
{
	return m->why;
}

bool meet_is_over_at(const struct meet *m, uint64_t now)
{
	return now >= m->deadline;
}

struct link *meet_take(struct meet *m, struct shm_memory *memory, int *fd)
{
	struct link *l = m->link;

	*memory = m->memory;
	*fd = m->fd;
	m->memory.base = NULL;
	m->fd = -1;
	m->link = NULL;
	return l;
}

/* --- the responder -------------------------------------------------------------------------- */

enum meet_next meet_begin(struct meet *m)
{
	enum shm_state why;

	if (shm_closing_is_slow())
		return meet_fail(m, SHM_WHY_CLOSING);
	rand_bytes(m->name, sizeof(m->name));
	why = shm_callers_listen(&m->callers, m->name);
	if (why)
		return meet_fail(m, why);
	return meet_say(m, EXT_LINK_MEET, m->name, MEET_LISTENS);
}

/* Return the nonce of the next caller to the peer over the link. The peer replies whether the nonce
 * is its own. Until then no other caller is handled. */
static enum meet_next meet_look_for_call(struct meet *m)
{
	struct shm_packet call;
	enum shm_state why = shm_callers_next(&m->callers, &m->fd, m->ours, &call);

	if (why)
		return meet_fail(m, why);
	if (m->fd < 0)
		return MEET_WAIT;
	memcpy(m->theirs, call.nonce, sizeof(m->theirs));
	m->ring_max = call.ring_size;
	return meet_say(m, EXT_LINK_MET, m->theirs, MEET_ANSWERED);
}

/* Called when the caller has proved to be the peer: pass the memory to it. */
static enum meet_next meet_pass_memory(struct meet *m)
{
	struct shm_packet packet = shm_packet_of(SHM_PACKET_MEMORY, NULL);
	int fd, ret;

	shm_callers_fini(&m->callers);
	ret = shm_memory_new(shm_memory_ring_size(m->ring_max), &m->memory, &fd);
	if (ret)
		return meet_fail(m, shm_memory_why(ret));
	packet.ring_size = m->memory.ring_size;
	ret = shm_socket_send(m->fd, &packet, fd);
	close(fd);
	if (ret)
		return meet_fail(m, SHM_WHY_SEND);
	m->state = MEET_ENDED;
	return MEET_DONE;
}

static bool meet_is_ours(const struct meet *m, const uint8_t *token)
{
	return !memcmp(m->ours, token, sizeof(m->ours));
}

static enum meet_next meet_get_proof(struct meet *m, const uint8_t *token)
{
	if (meet_is_ours(m, token))
		return meet_pass_memory(m);
	meet_close(m);
	m->state = MEET_LISTENS;
	return meet_look_for_call(m);
}

/* --- the initiator -------------------------------------------------------------------------- */

static enum meet_next meet_call(struct meet *m, const uint8_t *name)
{
	struct shm_packet call = shm_packet_of(SHM_PACKET_NONCE, m->ours);
	int fd = shm_socket_connect(name);
	enum shm_state why;

	call.ring_size = shm_memory_ring_size(0);
	if (fd < 0)
		return meet_fail(m, SHM_WHY_NAME_SPACE);
	if (!shm_socket_is_permitted(fd)) {
		shm_socket_close(fd);
		return meet_fail(m, SHM_WHY_USER);
	}
	why = shm_callers_watch(m->src, fd);
	if (why)
		return meet_fail(m, why);
	m->fd = fd;
	if (shm_socket_send(m->fd, &call, -1))
		return meet_fail(m, SHM_WHY_SEND);
	m->state = MEET_CALLS;
	return MEET_WAIT;
}

static enum meet_next meet_failed_packet(struct meet *m, int ret)
{
	return ret == -EAGAIN ? MEET_WAIT
			      : meet_fail(m, ret == -ECONNRESET ? SHM_WHY_CLOSED : SHM_WHY_PACKET);
}

static enum meet_next meet_prove(struct meet *m)
{
	if (!m->has_ours || !m->has_theirs)
		return MEET_WAIT;
	return meet_say(m, EXT_LINK_PROOF, m->theirs, MEET_PROVED);
}

static enum meet_next meet_get_met(struct meet *m, const uint8_t *token)
{
	static const uint8_t nobody[EXT_LINK_TOKEN];

	if (meet_is_ours(m, token)) {
		m->has_ours = true;
		return meet_prove(m);
	}
	/* The responder has returned a nonce that another process sent: deny this nonce. */
	if (m->denied++ == SHM_CALLS_MAX)
		return meet_fail(m, SHM_WHY_UNPROVEN);
	return meet_say(m, EXT_LINK_PROOF, nobody, MEET_CALLS);
}

static enum meet_next meet_get_greeting(struct meet *m)
{
	struct shm_packet packet;
	int ret;

	/* the peer's nonce has arrived, so no packet is expected on the socket now */
	if (m->has_theirs)
		return MEET_WAIT;
	ret = shm_socket_recv(m->fd, SHM_PACKET_NONCE, &packet, NULL);
	if (ret)
		return meet_failed_packet(m, ret);
	memcpy(m->theirs, packet.nonce, sizeof(m->theirs));
	m->has_theirs = true;
	return meet_prove(m);
}

static enum meet_next meet_get_memory(struct meet *m)
{
	struct shm_packet packet;
	int fd, ret = shm_socket_recv(m->fd, SHM_PACKET_MEMORY, &packet, &fd);

	if (ret)
		return meet_failed_packet(m, ret);
	shm_socket_take_none(m->fd);
	ret = shm_memory_take(fd, packet.ring_size, &m->memory);
	if (ret) { /* the descriptor may be of any file */
		shm_close_passed(&fd, 1);
		return meet_fail(m, shm_memory_why(ret));
	}
	close(fd);
	m->state = MEET_ENDED;
	return MEET_DONE;
}

/* --- both ----------------------------------------------------------------------------------- */

enum meet_next meet_look(struct meet *m)
{
	switch (m->state) {
	case MEET_LISTENS:
		return meet_look_for_call(m);
	case MEET_CALLS:
		return meet_get_greeting(m);
	case MEET_PROVED:
		return meet_get_memory(m);
	case MEET_IDLE:
	case MEET_ANSWERED:
	case MEET_ENDED:
		break;
	}
	return MEET_WAIT;
}

enum meet_next meet_on_step(struct meet *m, unsigned step, const uint8_t *token)
{
	if (m->initiator && m->state == MEET_IDLE && step == EXT_LINK_MEET)
		return shm_closing_is_slow() ? meet_fail(m, SHM_WHY_CLOSING) : meet_call(m, token);
	if (m->state == MEET_CALLS && step == EXT_LINK_MET && !m->has_ours)
		return meet_get_met(m, token);
	if (m->state == MEET_ANSWERED && step == EXT_LINK_PROOF)
		return meet_get_proof(m, token);
	return meet_fail(m, step == EXT_LINK_STOP ? SHM_WHY_PEER : SHM_WHY_STEP);
}
