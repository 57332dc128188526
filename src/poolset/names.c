/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that the paths of a pool's parts still lead to the parts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "poolset/impl.h"

/*
 * The identity of a file: its device and inode numbers. A duplicate descriptor is no alternative,
 * because it would keep the part locked. No other file gets the inode number while the pool has
 * the file open.
 */
struct name {
	char *path;
	bool is_device;
	dev_t dev;
	ino_t ino;
	off_t size;
};

struct poolset_names {
	unsigned count;
	struct name list[];
};

static bool name_init(struct name *name, const struct part *part)
{
	struct stat st;

	if (fstat(part->fd, &st))
		return false;
	*name = (struct name){.path = strdup(part->path),
			      .is_device = part->is_device,
			      .dev = st.st_dev,
			      .ino = st.st_ino,
			      .size = st.st_size};
	return name->path;
}

struct poolset_names *poolset_names_new(const struct poolset_pool *pool)
{
	struct poolset_names *names =
		calloc(1, sizeof(*names) + pool->parts.count * sizeof(names->list[0]));

	for (unsigned i = 0; names && i < pool->parts.count; i++) {
		if (!name_init(&names->list[names->count++], &pool->parts.list[i])) {
			poolset_names_delete(names);
			return NULL;
		}
	}
	return names;
}

void poolset_names_delete(struct poolset_names *names)
{
	for (unsigned i = 0; names && i < names->count; i++)
		free(names->list[i].path);
	free(names);
}

static int name_lost(const struct name *name, const char *how, struct error *err)
{
	return error_set(err, ERROR_LOCAL, ENOENT,
			 "part %s %s while its pool was in use: bytes written to it would be lost",
			 name->path, how);
}

static int name_check(const struct name *name, struct error *err)
{
	struct stat st;

	if (stat(name->path, &st))
		return errno == ENOENT || errno == ENOTDIR
			       ? name_lost(name, "was removed or renamed", err)
			       : 0;
	if (st.st_dev != name->dev || st.st_ino != name->ino)
		return name_lost(name, "was replaced by another file", err);
	if (!name->is_device && st.st_size < name->size)
		return name_lost(name, "was truncated", err);
	return 0;
}

int poolset_names_check(const struct poolset_names *names, struct error *err)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < names->count; i++)
		rc = name_check(&names->list[i], err);
	return rc;
}
