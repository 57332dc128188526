/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "attributes.h"

/* the kernel's limit for the size of a value and of a list of names */
#define VALUE_MAX (64u << 10)

struct attribute_space {
	char names[VALUE_MAX], value[VALUE_MAX], other[VALUE_MAX];
};

static bool attribute_copy(int from, int to, const char *name, struct attribute_space *space)
{
	ssize_t len = fgetxattr(from, name, space->value, sizeof(space->value)), other;

	if (!strcmp(name, "security.capability"))
		return true; /* skip: every write removes this attribute */
	if (len < 0)
		return false;
	other = fgetxattr(to, name, space->other, sizeof(space->other));
	if (other == len && !memcmp(space->value, space->other, (size_t)len))
		return true;
	return !fsetxattr(to, name, space->value, (size_t)len, 0);
}

static bool attributes_copy_extended(int from, int to)
{
	struct attribute_space *space = malloc(sizeof(*space));
	ssize_t len = space ? flistxattr(from, space->names, sizeof(space->names)) : -1;
	bool ok = space && (len >= 0 || errno == ENOTSUP);

	for (ssize_t at = 0; ok && at < len; at += (ssize_t)strlen(space->names + at) + 1)
		ok = attribute_copy(from, to, space->names + at, space);
	free(space);
	return ok;
}

/* Set the owner first, because a change of the owner clears some mode bits. */
bool attributes_copy(int from, const struct stat *st, int to)
{
	struct stat now;

	if (fstat(to, &now))
		return false;
	if ((now.st_uid != st->st_uid || now.st_gid != st->st_gid) &&
	    fchown(to, st->st_uid, st->st_gid))
		return false;
	return !fchmod(to, st->st_mode & 07777) && attributes_copy_extended(from, to);
}
