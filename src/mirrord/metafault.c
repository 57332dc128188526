/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metafault.c -- handles the loss of a page of a copy's metadata, because the file was truncated or
 * its medium cannot read the page. The fault must not end the daemon, because the daemon serves
 * other sets, too.
 *
 * The handler replaces the page by zeros that only this process sees, the access is repeated, and
 * the set is marked. From then on nothing of that copy becomes durable (copy_persist()), and the
 * copy has failed (place.c).
 */
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mirrord/copies.h"

static struct daemon *metafault_daemon;
static uintptr_t metafault_page;

static struct set *metafault_find(uintptr_t at)
{
	struct daemon *d = metafault_daemon;

	for (unsigned i = 0; d && d->sets && i < d->conf->set_count; i++) {
		const struct mapfile *file = &d->sets[i].meta_file;
		uintptr_t begin = (uintptr_t)file->addr;

		if (begin && at >= begin && at - begin < file->size)
			return &d->sets[i];
	}
	return NULL;
}

/* The signal handler for a load or a store of the interrupted thread. Only the loop's thread
 * accesses the metadata. */
static void metafault_on_signal(int sig, siginfo_t *info, void *context)
{
	uintptr_t page = (uintptr_t)info->si_addr & ~(metafault_page - 1);
	struct set *s = info->si_code > 0 ? metafault_find((uintptr_t)info->si_addr) : NULL;
	void *zeros = MAP_FAILED;

	(void)context;
	if (s)
		zeros = mmap((void *)page, metafault_page, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (zeros == MAP_FAILED)
		signal(sig, SIG_DFL); /* the repeated access then ends the process */
	else
		__atomic_store_n(&s->has_meta_fault, true, __ATOMIC_RELEASE);
}

/*
 * Call this before the provider starts: the provider's handler passes faults that are not its own
 * to this handler.
 */
int metafault_open(struct daemon *d)
{
	struct sigaction action = {.sa_sigaction = metafault_on_signal,
				   .sa_flags = SA_SIGINFO | SA_NODEFER};

	metafault_daemon = d;
	metafault_page = (uintptr_t)sysconf(_SC_PAGESIZE);
	sigemptyset(&action.sa_mask);
	return sigaction(SIGBUS, &action, NULL);
}
