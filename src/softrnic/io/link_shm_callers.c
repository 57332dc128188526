/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/link_shm_callers.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/ownfd.h"
#include "base/rand.h"
#include "softrnic/io/link_shm_close.h"

enum shm_state shm_callers_watch(struct eng_source *src, int fd)
{
	enum shm_state why = SHM_NONE;

	if (!shm_socket_is_spare(fd))
		why = SHM_WHY_DESCRIPTORS;
	else if (engine_add_more(src, fd))
		why = SHM_WHY_ENGINE;
	if (why)
		shm_socket_close(fd);
	return why;
}

void shm_callers_close(struct eng_source *src, int fd)
{
	if (fd < 0)
		return;
	engine_remove_more(src, fd);
	shm_socket_close(fd);
}

void shm_callers_init(struct shm_callers *c, struct eng_source *src)
{
	*c = (struct shm_callers){.src = src, .listener = -1};
}

void shm_callers_fini(struct shm_callers *c)
{
	int listener = c->listener;

	/* clear the member before the close: a forked child closes the stored number, which must
	 * not belong to another file then */
	c->listener = -1;
	if (listener >= 0) {
		engine_remove_more(c->src, listener);
		shm_socket_close_listener(listener);
	}
	while (c->n_silent > 0)
		shm_callers_close(c->src, c->silent[--c->n_silent].fd);
}

void shm_callers_forked(struct shm_callers *c)
{
	ownfd_close_marked(c->listener);
	for (unsigned i = 0; i < c->n_silent; i++)
		ownfd_close_marked(c->silent[i].fd);
}

enum shm_state shm_callers_listen(struct shm_callers *c, const uint8_t name[EXT_LINK_TOKEN])
{
	int fd = shm_socket_listen(name, SHM_CALLS_MAX);
	enum shm_state why;

	if (fd < 0)
		return SHM_WHY_SOCKET;
	why = shm_callers_watch(c->src, fd);
	if (!why)
		c->listener = fd;
	return why;
}

static struct shm_caller callers_remove(struct shm_callers *c, unsigned i)
{
	struct shm_caller caller = c->silent[i];

	c->n_silent--;
	memmove(&c->silent[i], &c->silent[i + 1], (c->n_silent - i) * sizeof(caller));
	return caller;
}

static void callers_dismiss(struct shm_callers *c, unsigned i)
{
	shm_callers_close(c->src, callers_remove(c, i).fd);
}

/*
 * Add a caller that has not sent its nonce yet. The real peer sends its nonce directly after its
 * call, so if there are too many silent callers, the oldest is closed. A failed send is ignored:
 * the caller is gone then, and never sends its nonce.
 */
static enum shm_state callers_add(struct shm_callers *c, int fd)
{
	struct shm_caller caller = {.fd = fd};
	struct shm_packet packet;
	enum shm_state why = shm_callers_watch(c->src, fd);

	if (why)
		return why;
	if (c->n_silent == SHM_CALLERS_MAX)
		callers_dismiss(c, 0);
	rand_bytes(caller.nonce, sizeof(caller.nonce));
	packet = shm_packet_of(SHM_PACKET_NONCE, caller.nonce);
	shm_socket_send(fd, &packet, -1);
	c->silent[c->n_silent++] = caller;
	return SHM_NONE;
}

/* Accept one more caller. Returns false if no caller waits, or after an error. */
static bool callers_accept(struct shm_callers *c, enum shm_state *why)
{
	int fd = ownfd_mark(accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));

	if (fd < 0) {
		if (errno != EAGAIN && errno != ECONNABORTED)
			*why = SHM_WHY_SOCKET;
		return false;
	}
	/* Too many calls by other processes than the peer can be an attempt to keep this process
	 * busy. */
	*why = c->calls++ == SHM_CALLS_MAX ? SHM_WHY_STRANGERS : SHM_NONE;
	if (!*why && shm_socket_is_permitted(fd))
		*why = callers_add(c, fd);
	else
		shm_socket_close(fd);
	return !*why;
}

/* Returns the index of the first caller, from `from` on, that has sent its nonce, or n_silent if
 * none has. A caller that sends other data is closed. */
static unsigned callers_find(struct shm_callers *c, unsigned from, struct shm_packet *call)
{
	unsigned i = from;

	while (i < c->n_silent) {
		int ret = shm_socket_recv(c->silent[i].fd, SHM_PACKET_NONCE, call, NULL);

		if (!ret)
			break;
		if (ret == -EAGAIN)
			i++;
		else
			callers_dismiss(c, i);
	}
	return i;
}

/*
 * Accept only as many callers as needed. Otherwise a caller whose nonce has already arrived might
 * be closed.
 */
enum shm_state shm_callers_next(struct shm_callers *c, int *fd, uint8_t nonce[EXT_LINK_TOKEN],
				struct shm_packet *call)
{
	unsigned i = callers_find(c, 0, call);
	enum shm_state why = SHM_NONE;
	struct shm_caller caller;

	while (i == c->n_silent && callers_accept(c, &why))
		i = callers_find(c, c->n_silent ? c->n_silent - 1 : 0, call);
	*fd = -1;
	if (i == c->n_silent)
		return why;
	caller = callers_remove(c, i);
	*fd = caller.fd;
	memcpy(nonce, caller.nonce, sizeof(caller.nonce));
	return SHM_NONE;
}
