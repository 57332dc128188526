/* SPDX-License-Identifier: BSD-3-Clause */
#include "uses.h"

#include <dirent.h>
#include <unistd.h>

#include "system/lib/check.h"
#include "system/lib/gauge.h"

/* permitted change of a count: descriptors, threads, files that replace others */
#define USES_SLACK     8
#define USES_SETTLE_MS 1000
/* time for processes and threads to end, wide enough for a busy machine */
#define USES_END_MS 30000

void uses_prepare(void)
{
	/* With several arenas a new thread can use another arena, so that memory that was freed in
	 * the first arena is not reused. */
	setenv("MALLOC_ARENA_MAX", "1", 1);
	/* By default, freeing a large block raises this threshold, and the heap then keeps later
	 * large blocks. */
	setenv("MALLOC_MMAP_THRESHOLD_", "131072", 1);
}

static int uses_count_threads(pid_t pid)
{
	char path[64], line[256];
	int threads = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		sscanf(line, "Threads: %d", &threads);
	fclose(file);
	return threads;
}

static unsigned uses_count_folder(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static unsigned uses_count_files(const struct uses *u)
{
	unsigned count = uses_count_folder(u->hosts->folder);

	for (unsigned i = 0; i < u->hosts->opts.count; i++)
		count += uses_count_folder(u->hosts->hosts[i].folder);
	return count;
}

static void use_measure(struct use *use)
{
	use->fds = gauge_fds(use->pid);
	use->threads = uses_count_threads(use->pid);
	use->rss_kib = gauge_rss_anon_kib(use->pid);
	if (use->fds < 0 || use->rss_kib < 0)
		fail_msg("the %s of host %c has ended", use->what, 'a' + (char)use->host);
}

void uses_add(struct uses *u, const char *what, unsigned host, pid_t pid)
{
	assert_in_range(u->count, 0, USES_MAX - 1);
	u->all[u->count++] = (struct use){.what = what, .host = host, .pid = pid};
}

static void use_take_most(struct use *use)
{
	struct use now = *use;

	use_measure(&now);
	if (now.fds > use->fds)
		use->fds = now.fds;
	if (now.threads > use->threads)
		use->threads = now.threads;
	if (now.rss_kib > use->rss_kib)
		use->rss_kib = now.rss_kib;
}

void uses_remember(struct uses *u)
{
	for (int waited = 0; waited < USES_SETTLE_MS; waited += 10) {
		unsigned files = uses_count_files(u);

		for (unsigned i = 0; i < u->count; i++)
			use_take_most(&u->all[i]);
		if (files > u->files)
			u->files = files;
		usleep(10000);
	}
}

static bool use_is_as_before(const struct use *before, const struct use *now, long growth_kib)
{
	return now->fds <= before->fds + USES_SLACK &&
	       now->threads <= before->threads + USES_SLACK &&
	       now->rss_kib <= before->rss_kib + growth_kib;
}

static bool use_compare(const struct use *before, long growth_kib)
{
	struct use now = *before;
	bool is_equal = false;

	for (int waited = 0; waited < USES_END_MS && !is_equal; waited += 10) {
		if (waited)
			usleep(10000);
		use_measure(&now);
		is_equal = use_is_as_before(before, &now, growth_kib);
	}
	printf("%s of host %c: descriptors %d -> %d, threads %d -> %d, memory %ld -> %ld KiB\n",
	       now.what, 'a' + (char)now.host, before->fds, now.fds, before->threads, now.threads,
	       before->rss_kib, now.rss_kib);
	return is_equal;
}

void uses_compare(struct uses *u, long growth_kib)
{
	unsigned files;
	bool are_equal = true;

	for (unsigned i = 0; i < u->count; i++)
		are_equal &= use_compare(&u->all[i], growth_kib);
	files = uses_count_files(u);
	printf("files %u -> %u\n", u->files, files);
	assert_true(are_equal);
	assert_true(files <= u->files + USES_SLACK);
}
