/* SPDX-License-Identifier: BSD-3-Clause */
#include "gauge.h"

#include <dirent.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Returns the number in a line such as "Name: 123 kB" in a file below /proc/PID. */
static long gauge_proc_kib(pid_t pid, const char *file, const char *name)
{
	char path[64], line[256];
	long kib = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	f = fopen(path, "re");
	while (f && kib < 0 && fgets(line, sizeof(line), f)) {
		size_t len = strlen(name);

		if (!strncmp(line, name, len) && line[len] == ':')
			sscanf(line + len + 1, "%ld", &kib);
	}
	if (f)
		fclose(f);
	return kib;
}

long gauge_rss_anon_kib(pid_t pid)
{
	return gauge_proc_kib(pid, "status", "RssAnon");
}

long gauge_cpu_ticks(pid_t pid)
{
	char path[64], text[1024];
	long user = 0, sys = 0;
	size_t len;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	len = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[len] = '\0';
	/* The second field is the name in parentheses, which can contain any character. */
	char *rest = strrchr(text, ')');
	if (!rest || sscanf(rest + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user,
			    &sys) != 2)
		return -1;
	return user + sys;
}

static long gauge_waits_of(pid_t pid, const char *task)
{
	char path[64 + NAME_MAX], line[256];
	long n, waits = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)pid, task);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1)
			waits = n;
	if (f)
		fclose(f);
	return waits;
}

long gauge_waits(pid_t pid)
{
	struct dirent *e;
	long waits = 0;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -1;
	while ((e = readdir(dir)))
		if (e->d_name[0] != '.')
			waits += gauge_waits_of(pid, e->d_name);
	closedir(dir);
	return waits;
}

struct gauge gauge_self(void)
{
	pid_t me = getpid();
	struct mallinfo2 heap = mallinfo2();

	return (struct gauge){
		.rss_anon_kib = gauge_rss_anon_kib(me),
		.pss_kib = gauge_proc_kib(me, "smaps_rollup", "Pss"),
		.cpu_ticks = gauge_cpu_ticks(me),
		.allocated_kib = (long)((heap.uordblks + heap.hblkhd) / 1024),
	};
}

int gauge_fds(pid_t pid)
{
	char path[64];
	int n = -2; /* start at -2, because the entries "." and ".." do not count */
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -1;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

size_t gauge_raise_nofile(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl))
		return 0;
	rl.rlim_cur = rl.rlim_max;
	setrlimit(RLIMIT_NOFILE, &rl);
	getrlimit(RLIMIT_NOFILE, &rl);
	return rl.rlim_cur;
}
