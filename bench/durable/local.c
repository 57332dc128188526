/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * local -- measures durable writes to a file of this machine, the lower bound for all other
 * clients. Each write under way has its own thread; all threads use one file. See ../README.md.
 */
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/die.h"
#include "lib/file.h"
#include "workers.h"

struct local {
	int fd;
	char *mem;
	/* Group commit: one thread calls fdatasync() for all waiting writes. */
	_Atomic uint64_t written, durable; /* number of writes made; number of durable writes */
	_Atomic bool is_syncing;
	/* fdatasync() calls that have returned; waiting threads sleep on this futex */
	_Atomic uint32_t rounds;
};

/* Returns the size of the file: the parts of all threads. */
static size_t local_size(const struct workers *all)
{
	return span_of_conn(all->c, all->count).base;
}

static void local_start(struct workers *all)
{
	static struct local l;
	size_t size = local_size(all);

	if (strcmp(all->c->where, "server") == 0)
		die("where=FOLDER names where the file is");
	l.fd = file_open(all->c->where, size);
	l.mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, l.fd, 0);
	if (l.mem == MAP_FAILED)
		die_errno("map the file");
	all->own = &l;
}

static void local_stop(struct workers *all)
{
	struct local *l = all->own;

	munmap(l->mem, local_size(all));
	close(l->fd);
}

static void local_pwrite(const struct worker *w, uint64_t at)
{
	const struct local *l = w->all->own;
	size_t size = w->all->c->size;

	if (pwrite(l->fd, w->all->payload, size, (off_t)at) != (ssize_t)size)
		die_errno("write the file");
}

static void local_fdatasync(struct worker *w, unsigned slot, uint64_t at)
{
	const struct local *l = w->all->own;

	(void)slot;
	local_pwrite(w, at);
	if (fdatasync(l->fd))
		die_errno("fdatasync");
}

static void local_dsync(struct worker *w, unsigned slot, uint64_t at)
{
	const struct local *l = w->all->own;
	struct iovec data = {w->all->payload, w->all->c->size};

	(void)slot;
	if (pwritev2(l->fd, &data, 1, (off_t)at, RWF_DSYNC) != (ssize_t)data.iov_len)
		die_errno("write the file through");
}

static void local_msync(struct worker *w, unsigned slot, uint64_t at)
{
	const struct local *l = w->all->own;

	(void)slot;
	memcpy(l->mem + at, w->all->payload, w->all->c->size);
	if (msync(l->mem + at, w->all->c->size, MS_SYNC))
		die_errno("msync");
}

static void local_sync_all(struct local *l)
{
	uint64_t written = atomic_load(&l->written);

	if (fdatasync(l->fd))
		die_errno("fdatasync");
	atomic_store(&l->durable, written);
	atomic_store(&l->is_syncing, false);
	atomic_fetch_add(&l->rounds, 1);
	syscall(SYS_futex, &l->rounds, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void local_group(struct worker *w, unsigned slot, uint64_t at)
{
	struct local *l = w->all->own;
	uint64_t mine;

	(void)slot;
	local_pwrite(w, at);
	mine = atomic_fetch_add(&l->written, 1) + 1;
	for (;;) {
		uint32_t rounds = atomic_load(&l->rounds);

		if (atomic_load(&l->durable) >= mine)
			return;
		if (!atomic_exchange(&l->is_syncing, true))
			local_sync_all(l);
		else
			syscall(SYS_futex, &l->rounds, FUTEX_WAIT_PRIVATE, rounds, NULL, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *work;
		void (*begin)(struct worker *w, unsigned slot, uint64_t at);
	} works[] = {{"work=fdatasync", local_fdatasync},
		     {"work=dsync", local_dsync},
		     {"work=msync", local_msync},
		     {"work=group", local_group}};
	struct workers_client client = {
		.who = "local", .depth_is_threads = true, .start = local_start, .stop = local_stop};

	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
		for (int arg = 1; arg < argc; arg++)
			if (strcmp(argv[arg], works[i].work) == 0)
				client.begin = works[i].begin;
	if (!client.begin)
		die("work=NAME: there are fdatasync, dsync, msync, group");
	return workers_main(&client, argc, argv);
}
