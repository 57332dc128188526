/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork.c -- keep what parent and child share consistent, and the child's hands off the rest.
 *
 * The forking thread takes the locks of everything that outlives a call, outer before
 * inner, so that the child's copies are in order; both sides release them again.
 */
#include "softrnic/verbs/fork.h"

#include <pthread.h>

#include "base/rand.h"
#include "softrnic/io/bufs.h"
#include "softrnic/io/conn.h"
#include "softrnic/verbs/device.h"
#include "softrnic/io/door.h"
#include "softrnic/io/engine.h"
#include "softrnic/verbs/evq.h"
#include "softrnic/verbs/id.h"
#include "softrnic/io/trace.h"
#include "softrnic/persist/persist.h"

static void prepare(void)
{
	conns_atfork_prepare();
	ids_atfork_prepare();
	device_atfork_prepare();
	persist_atfork_prepare();
	engine_atfork_prepare();
	evq_atfork_prepare();
	bufs_atfork_prepare();
	doors_atfork_prepare();
	trace_atfork_prepare();
}

static void parent(void)
{
	trace_atfork_parent();
	doors_atfork_release();
	bufs_atfork_release();
	evq_atfork_parent();
	engine_atfork_parent();
	persist_atfork_parent();
	device_atfork_parent();
	ids_atfork_release();
	conns_atfork_release();
}

/* The list of connections first: closing a socket may be the end of its connection. */
static void child(void)
{
	trace_atfork_child();
	doors_atfork_release();
	conns_atfork_release();
	bufs_atfork_release();
	evq_atfork_child();
	engine_atfork_child();
	persist_atfork_child();
	device_atfork_child();
	ids_atfork_child();
}

static int result;

/*
 * The random numbers' lock is inner to ours (an STag is drawn under the MR table's), and what is
 * registered first is prepared last: so draw one before.
 */
static void hook(void)
{
	rand_u32();
	result = -pthread_atfork(prepare, parent, child);
}

int fork_hook(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, hook);
	return result;
}

/* While the library is loaded: later a fork() could come when a lock is taken and nobody knows. */
__attribute__((constructor)) static void hook_early(void)
{
	(void)fork_hook();
}
