/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/ioctl.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Enough for the longest path, each byte written as \ooo, and for the numbers before it. */
#define LINE_SIZE (4 * PATH_MAX + 128)

/* Argument of PROCMAP_QUERY of Linux 6.11. Older system headers do not declare it. */
struct procmap_query_v1 {
	__u64 size;
	__u64 query_flags;
	__u64 query_addr;
	__u64 vma_start;
	__u64 vma_end;
	__u64 vma_flags;
	__u64 vma_page_size;
	__u64 vma_offset;
	__u64 inode;
	__u32 dev_major;
	__u32 dev_minor;
	__u32 vma_name_size;
	__u32 build_id_size;
	__u64 vma_name_addr;
	__u64 build_id_addr;
};
#define PROCMAP_QUERY_V1     _IOWR('f', 17, struct procmap_query_v1)
#define QUERY_WRITABLE       0x02
#define QUERY_SHARED         0x08
#define QUERY_COVERS_OR_NEXT 0x10

static int vma_query(int fd, uintptr_t addr, char *path, size_t size, struct procmap_query_v1 *q)
{
	*q = (struct procmap_query_v1){
		.size = sizeof(*q),
		.query_flags = QUERY_COVERS_OR_NEXT,
		.query_addr = addr,
		.vma_name_size = (__u32)size,
		.vma_name_addr = size ? (uintptr_t)path : 0,
	};
	return ioctl(fd, PROCMAP_QUERY_V1, q) < 0 ? -errno : 0;
}

/* Returns -ENOTTY, before any call of fn, if the kernel does not have this query. */
static int vma_query_each(int fd, uintptr_t start, uintptr_t end, vma_fn *fn, void *arg, char *path)
{
	struct procmap_query_v1 q;
	int r = 0;

	while (!r && start < end) {
		r = vma_query(fd, start, path, LINE_SIZE, &q);
		if (r == -ENAMETOOLONG)
			r = vma_query(fd, start, path, 0, &q);
		if (r)
			return r == -ENOENT ? 0 : r;
		if (q.vma_start >= end)
			break;
		r = fn(arg, &(struct vma){
				    .start = (uintptr_t)q.vma_start,
				    .end = (uintptr_t)q.vma_end,
				    .shared = q.vma_flags & QUERY_SHARED,
				    .writable = q.vma_flags & QUERY_WRITABLE,
				    .dev = makedev(q.dev_major, q.dev_minor),
				    .ino = (ino_t)q.inode,
				    .offset = q.vma_offset,
				    .path = q.vma_name_size ? path : "",
			    });
		start = (uintptr_t)q.vma_end;
	}
	return r;
}

/* Decode the path: in /proc/self/maps a newline in a path is written \012. */
static void vma_unescape(char *path)
{
	for (char *from; (from = strstr(path, "\\012")); path = from + 1) {
		*from = '\n';
		memmove(from + 1, from + 4, strlen(from + 4) + 1);
	}
}

static bool vma_line_parse(char *line, struct vma *vma)
{
	unsigned long start, end, offset, ino;
	unsigned major_nr, minor_nr;
	char perms[8];
	int path = 0;

	if (sscanf(line, "%lx-%lx %7s %lx %x:%x %lu %n", &start, &end, perms, &offset, &major_nr,
		   &minor_nr, &ino, &path) < 7)
		return false;
	line[strcspn(line, "\n")] = '\0';
	vma_unescape(line + path);
	*vma = (struct vma){
		.start = start,
		.end = end,
		.shared = perms[3] == 's',
		.writable = perms[1] == 'w',
		.dev = makedev(major_nr, minor_nr),
		.ino = ino,
		.offset = offset,
		.path = line + path,
	};
	return true;
}

/* If the line's range does not overlap [start, end), only the two addresses are parsed. */
static int vma_line_visit(char *line, uintptr_t start, uintptr_t end, vma_fn *fn, void *arg,
			  bool *past)
{
	char *dash;
	uintptr_t line_start = strtoul(line, &dash, 16);
	struct vma vma;

	*past = line_start >= end;
	if (*past || *dash != '-' || strtoul(dash + 1, NULL, 16) <= start)
		return 0;
	return vma_line_parse(line, &vma) ? fn(arg, &vma) : -EIO;
}

static int vma_text_each(int fd, uintptr_t start, uintptr_t end, vma_fn *fn, void *arg, char *buf)
{
	size_t have = 0;
	bool past = false;
	int r = 0;

	while (!r && !past) {
		ssize_t n = read(fd, buf + have, LINE_SIZE - 1 - have);
		char *line = buf, *newline;

		if (n <= 0)
			return n < 0 ? -errno : have ? -EIO : 0;
		have += (size_t)n;
		buf[have] = '\0';
		while (!r && !past && (newline = strchr(line, '\n'))) {
			char *next = newline + 1;

			*newline = '\0';
			r = vma_line_visit(line, start, end, fn, arg, &past);
			line = next;
		}
		have -= (size_t)(line - buf);
		memmove(buf, line, have);
	}
	return r;
}

typedef int vma_walk_fn(int fd, uintptr_t start, uintptr_t end, vma_fn *fn, void *arg, char *buf);

static int vma_walk(vma_walk_fn *walk, uintptr_t start, uintptr_t end, vma_fn *fn, void *arg)
{
	char *buf = malloc(LINE_SIZE);
	int fd, r;

	if (!buf)
		return -ENOMEM;
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	r = fd < 0 ? -errno : walk(fd, start, end, fn, arg, buf);
	if (fd >= 0)
		close(fd);
	free(buf);
	return r;
}

int vma_for_each_text(uintptr_t start, uintptr_t end, vma_fn *fn, void *arg)
{
	return vma_walk(vma_text_each, start, end, fn, arg);
}

int vma_for_each(uintptr_t start, uintptr_t end, vma_fn *fn, void *arg)
{
	int r = vma_walk(vma_query_each, start, end, fn, arg);

	return r == -ENOTTY ? vma_for_each_text(start, end, fn, arg) : r;
}

/* The mode of the link in map_files shows how the file was opened. Reading the mode needs no
 * privilege; only following the link does. */
bool vma_syncs(const struct vma *vma)
{
	char path[96];
	struct stat st;

	if (vma->writable)
		return true;
	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)vma->start,
		 (unsigned long)vma->end);
	return !lstat(path, &st) && (st.st_mode & S_IWUSR);
}

bool vma_is_sync(uintptr_t start)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	bool inside = false, sync = false;
	char *line = NULL;
	size_t size = 0;

	if (!smaps)
		return false;
	while (getline(&line, &size, smaps) > 0) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			inside = from == start;
		if (inside && !strncmp(line, "VmFlags:", 8)) {
			/* the line is like "VmFlags: rd wr sh mr mw me ms sf" */
			sync = strstr(line, " sf") != NULL;
			break;
		}
	}
	free(line);
	fclose(smaps);
	return sync;
}
