/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * directories.c -- a pool set of directories. The parts are the files 000000.pmem, 000001.pmem ...,
 * each in the next directory. The sizes in the text are upper limits.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "poolset/parts.h"

/* The paths of the files, indexed by their number. */
struct directories_found {
	char *paths[SETTEXT_PARTS_MAX];
	unsigned count, end; /* end: the highest number, plus one */
};

static int directories_failed(const char *path, struct error *err)
{
	return error_set(err, ERROR_LOCAL, errno, "%s: %s", path, strerror(errno));
}

/* "000012.pmem" has the number 12. Returns false for any other form of name, which belongs to no
 * part. */
static bool directories_number(const char *name, unsigned *number)
{
	size_t digits = strspn(name, "0123456789");

	if (digits < 1 || digits > 9 || strcmp(name + digits, ".pmem"))
		return false;
	*number = (unsigned)strtoul(name, NULL, 10);
	return true;
}

static int directories_note(struct directories_found *found, const char *directory,
			    const char *name, unsigned number, struct error *err)
{
	char *path;

	if (number >= SETTEXT_PARTS_MAX)
		return error_set(err, ERROR_LOCAL, EINVAL, "%s/%s: too many parts", directory,
				 name);
	if (found->paths[number])
		return error_set(err, ERROR_LOCAL, EINVAL, "%s/%s: %s has the same number",
				 directory, name, found->paths[number]);
	if (asprintf(&path, "%s/%s", directory, name) < 0)
		return error_set(err, ERROR_LOCAL, ENOMEM, "not enough memory");
	found->paths[number] = path;
	found->count++;
	if (found->end <= number)
		found->end = number + 1;
	return 0;
}

static int directories_scan(struct directories_found *found, const char *directory,
			    struct error *err)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	unsigned number;
	int rc = 0;

	if (!dir)
		return directories_failed(directory, err);
	while (!rc && (entry = readdir(dir)))
		if (directories_number(entry->d_name, &number))
			rc = directories_note(found, directory, entry->d_name, number, err);
	closedir(dir);
	return rc;
}

static int directories_add_file(struct parts *parts, const char *path, struct error *err)
{
	struct stat st;

	if (stat(path, &st))
		return directories_failed(path, err);
	if (!S_ISREG(st.st_mode))
		return error_set(err, ERROR_LOCAL, EINVAL, "%s is not a regular file", path);
	return parts_add(parts, path, (uint64_t)st.st_size, 0, err);
}

static int directories_add_files(struct parts *parts, const struct directories_found *found,
				 struct error *err)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < found->end; i++) {
		if (found->paths[i])
			rc = directories_add_file(parts, found->paths[i], err);
		else
			rc = error_set(err, ERROR_LOCAL, ENOENT, "%s: part %06u.pmem is missing",
				       parts->name, i);
	}
	return rc;
}

/* Compare directories by device and inode, because one directory can have several names. */
static int directories_check_twice(const struct parts *parts, struct error *err)
{
	struct stat a, b;

	for (unsigned i = 0; i < parts->ndirectories; i++) {
		for (unsigned j = 0; j < i; j++) {
			if (stat(parts->directories[i], &a) || stat(parts->directories[j], &b))
				return directories_failed(parts->directories[i], err);
			if (a.st_dev == b.st_dev && a.st_ino == b.st_ino)
				return error_set(err, ERROR_LOCAL, EEXIST,
						 "%s: the directory %s is named twice", parts->name,
						 parts->directories[i]);
		}
	}
	return 0;
}

static int directories_copy(struct parts *parts, const struct settext *set, struct error *err)
{
	parts->directories = calloc(set->nparts, sizeof(*parts->directories));
	for (unsigned i = 0; parts->directories && i < set->nparts; i++) {
		if (!set->parts[i].size)
			return error_set(err, ERROR_LOCAL, EINVAL,
					 "%s:%u: AUTO is for a device DAX, not for a directory",
					 parts->name, set->parts[i].line);
		if (__builtin_add_overflow(parts->reserved, set->parts[i].size, &parts->reserved))
			return error_set(err, ERROR_LOCAL, EINVAL,
					 "%s: the sizes are too large together", parts->name);
		parts->directories[i] = strdup(set->parts[i].path);
		if (!parts->directories[i])
			break;
		parts->ndirectories++;
	}
	if (parts->ndirectories < set->nparts)
		return error_set(err, ERROR_LOCAL, ENOMEM, "%s: not enough memory", parts->name);
	return directories_check_twice(parts, err);
}

int parts_from_directories(struct parts *parts, const struct settext *set, struct error *err)
{
	struct directories_found *found;
	int rc;

	if (!(set->options & SETTEXT_SINGLEHDR))
		return error_set(err, ERROR_LOCAL, EINVAL,
				 "%s: directories need the option SINGLEHDR", parts->name);
	/* There is only one replica, so the replica of a file does not matter. */
	rc = parts_check_replicas(parts->name, set->nreplicas, set->replica_line, err);
	if (!rc)
		rc = directories_copy(parts, set, err);
	if (rc)
		return rc;
	found = calloc(1, sizeof(*found));
	if (!found)
		return error_set(err, ERROR_LOCAL, ENOMEM, "%s: not enough memory", parts->name);
	for (unsigned i = 0; !rc && i < parts->ndirectories; i++)
		rc = directories_scan(found, parts->directories[i], err);
	if (!rc)
		rc = directories_add_files(parts, found, err);
	for (unsigned i = 0; i < found->end; i++)
		free(found->paths[i]);
	free(found);
	return rc;
}

int parts_extend_directories(struct parts *parts, uint64_t size, struct error *err)
{
	const char *directory;
	uint64_t more;
	char *path;
	int rc;

	if (!parts->ndirectories || size <= parts->pool_size)
		return 0;
	more = (size - parts->pool_size + HEADER_BYTES - 1) / HEADER_BYTES * HEADER_BYTES;
	if (more < POOLSET_MIN_PART)
		more = POOLSET_MIN_PART;
	if (more > parts->reserved || parts->pool_size > parts->reserved - more)
		return error_set(err, ERROR_LOCAL, EFBIG, "%s reserves %s, but %s are needed",
				 parts->name, text_bytes(parts->reserved).text,
				 text_bytes(size).text);
	directory = parts->directories[parts->count % parts->ndirectories];
	if (asprintf(&path, "%s/%06u.pmem", directory, parts->count) < 0)
		return error_set(err, ERROR_LOCAL, ENOMEM, "%s: not enough memory", parts->name);
	rc = parts_add(parts, path, more, 0, err);
	free(path);
	if (!rc)
		parts->pool_size += more;
	return rc;
}
