/* SPDX-License-Identifier: BSD-3-Clause */
/* file -- measures pwrite and sync of librpmafile, on the region `bench` of `rpma serve`. See
 * ../README.md. */
#include <librpmafile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/die.h"
#include "lib/environment.h"
#include "workers.h"

struct file {
	struct rpma_file *f;
	uint64_t tickets[]; /* one ticket a slot */
};

static void file_must(int ret, const char *what)
{
	if (ret)
		die("%s: %s", what, rpma_file_errormsg());
}

static void file_start(struct workers *all)
{
	environment_softrnic(all->c, false);
}

/* Send some messages first, because a connection moves to shared memory only after some
 * messages. */
static void file_check_link(const struct worker *w, struct rpma_file *f)
{
	struct rpma_file_info info = {.size = sizeof(info)};

	file_must(rpma_file_get_info(f, &info), "ask for the link");
	if (strcmp(w->all->c->link, "shm") == 0 && strcmp(info.link, "shm") != 0)
		skip("link=shm: the connection went over %s", info.link);
}

static void file_open_part(struct worker *w)
{
	struct rpma_file_options options = {.size = sizeof(options),
					    .write_offset = w->span.base,
					    .write_length = w->span.size};
	struct file *f = calloc(1, sizeof(*f) + w->all->depth * sizeof(f->tickets[0]));
	char target[64];

	if (!f)
		die_errno("memory");
	snprintf(target, sizeof(target), "%s:%u:bench", w->all->c->addr, w->all->c->port);
	file_must(rpma_file_open(target, &options, &f->f), target);
	w->own = f;
}

static void file_begin(struct worker *w, unsigned slot, uint64_t at)
{
	struct file *f = w->own;
	const struct rpma_file_range range = {at, w->all->c->size};

	file_must(rpma_file_pwrite(f->f, w->all->payload, range.length, at), "write");
	file_must(rpma_file_sync_start(f->f, &range, 1, &f->tickets[slot]), "sync");
}

static void file_finish(struct worker *w, unsigned slot)
{
	struct file *f = w->own;

	file_must(rpma_file_sync_wait(f->f, f->tickets[slot], -1), "wait for the sync");
}

static void file_close_part(struct worker *w)
{
	struct file *f = w->own;

	file_check_link(w, f->f);
	file_must(rpma_file_close(&f->f), "close");
	free(f);
}

int main(int argc, char **argv)
{
	static const struct workers_client client = {.who = "file",
						     .start = file_start,
						     .open = file_open_part,
						     .begin = file_begin,
						     .finish = file_finish,
						     .close = file_close_part};

	return workers_main(&client, argc, argv);
}
