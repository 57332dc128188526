/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork.c -- gives a forked child a consistent copy of the state, and closes the child's copies of
 * descriptors.
 *
 * The thread that forks takes the locks of all objects that outlive a call, outer locks before
 * inner ones, so that the child's copies are consistent. After the fork both processes release the
 * locks. Each folder has functions for its own locks.
 */
#include <pthread.h>

#include "base/rand.h"
#include "softrnic/io/conn.h"
#include "softrnic/io/engine.h"
#include "softrnic/persist/persist.h"
#include "softrnic/verbs/device.h"
#include "softrnic/verbs/id.h"

#define FORK_RING_MS 20u

/*
 * Deferred requests are sent before the fork, because the child cannot send them, and the parent
 * may exit with them unsent.
 */
static void fork_prepare(void)
{
	doorbells_ring(FORK_RING_MS);
	ids_atfork_prepare();
	device_atfork_prepare();
	persist_atfork_prepare();
	io_atfork_prepare();
	evq_atfork_prepare();
}

static void fork_parent(void)
{
	evq_atfork_parent();
	io_atfork_parent();
	persist_atfork_parent();
	device_atfork_parent();
	ids_atfork_release();
}

/*
 * Ids are handled last, because the removal of their connections is reported through event queues.
 */
static void fork_child(void)
{
	evq_atfork_child();
	io_atfork_child();
	persist_atfork_child();
	device_atfork_child();
	ids_atfork_child();
}

static int fork_result;

/* Our handlers must be registered after those of the random numbers: an STag is drawn under the MR
 * table's lock, so the lock of the random numbers must be taken last. Handlers that are registered
 * first prepare last. So draw a number before registering ours. */
static void fork_register(void)
{
	rand_u32();
	fork_result = -pthread_atfork(fork_prepare, fork_parent, fork_child);
}

int fork_hook(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, fork_register);
	return fork_result;
}

/* Register the handlers while the library is loaded. Later a fork() could come while a lock is
 * held. */
__attribute__((constructor)) static void fork_hook_early(void)
{
	(void)fork_hook();
}
