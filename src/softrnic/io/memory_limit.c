/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/memory_limit.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/*
 * The files of both versions of cgroups. `droppable` is the line of the file `stat` that contains
 * the number of bytes that the kernel can drop.
 */
static const struct memory_files {
	const char *folder, *limit, *usage, *droppable;
} memory_v1 = {"/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
  memory_v2 = {"", "memory.max", "memory.current", "inactive_file"};

/* --- one cgroup --------------------------------------------------------------------------- */

static FILE *memory_open(const char *folder, const char *name)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return NULL;
	return fopen(path, "re");
}

/*
 * Read a number from a file. Returns false if the file contains no number; "max" is not a number.
 */
static bool memory_read_number(const char *folder, const char *name, uint64_t *value)
{
	FILE *f = memory_open(folder, name);
	bool ok;

	if (!f)
		return false;
	ok = fscanf(f, "%" SCNu64, value) == 1;
	fclose(f);
	return ok;
}

static uint64_t memory_read_droppable(const char *folder, const char *line)
{
	FILE *f = memory_open(folder, "memory.stat");
	uint64_t value = 0;
	char name[64];
	bool found = false;

	if (!f)
		return 0;
	while (!found && fscanf(f, "%63s %" SCNu64, name, &value) == 2)
		found = !strcmp(name, line);
	fclose(f);
	return found ? value : 0;
}

static bool memory_fits(uint64_t limit, uint64_t usage, uint64_t len)
{
	uint64_t room = limit - limit / 8;

	return usage <= room && len <= room - usage;
}

static bool memory_cgroup_permits(const char *folder, const struct memory_files *files,
				  uint64_t len)
{
	uint64_t limit, usage, droppable;

	if (!memory_read_number(folder, files->limit, &limit) ||
	    !memory_read_number(folder, files->usage, &usage) || memory_fits(limit, usage, len))
		return true;
	droppable = memory_read_droppable(folder, files->droppable);
	return memory_fits(limit, usage > droppable ? usage - droppable : 0, len);
}

/* --- all cgroups of the process -------------------------------------------------------------- */

/* Check the process's own cgroup and all its parents up to the root. Inside a container some
 * parents may be invisible. */
static bool memory_cgroups_permit(const char *root, const struct memory_files *files, char *path,
				  uint64_t len)
{
	char folder[PATH_MAX];
	char *end;

	for (;;) {
		if (snprintf(folder, sizeof(folder), "%s%s%s", root, files->folder, path) >=
		    (int)sizeof(folder))
			return true;
		if (!memory_cgroup_permits(folder, files, len))
			return false;
		end = strrchr(path, '/');
		if (!end)
			return true;
		*end = '\0';
	}
}

static bool memory_is_listed(const char *controllers)
{
	size_t len = strcspn(controllers, ",");

	while (len != strlen("memory") || strncmp(controllers, "memory", len)) {
		controllers += len;
		if (!*controllers)
			return false;
		controllers++;
		len = strcspn(controllers, ",");
	}
	return true;
}

/* Check the cgroup in a line "number:controllers:path". In version 2 the list of controllers is
 * empty. */
static bool memory_line_permits(char *line, const char *root, uint64_t len)
{
	char *controllers = strchr(line, ':'), *path;

	path = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!path)
		return true;
	*controllers++ = *path++ = '\0';
	path[strcspn(path, "\n")] = '\0';
	if (!*controllers)
		return memory_cgroups_permit(root, &memory_v2, path, len);
	return !memory_is_listed(controllers) || memory_cgroups_permit(root, &memory_v1, path, len);
}

bool memory_limit_permits(uint64_t len, const char *proc_cgroup, const char *sys_cgroup)
{
	FILE *f = fopen(proc_cgroup, "re");
	bool permits = true;
	char *line = NULL;
	size_t size = 0;

	if (!f)
		return true;
	while (permits && getline(&line, &size, f) > 0)
		permits = memory_line_permits(line, sys_cgroup, len);
	free(line);
	fclose(f);
	return permits;
}

bool memory_limit_permits_file(uint64_t len)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	       len <= limit.rlim_cur;
}
