/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks the files that a configuration names: two copies must not share a file, even under
 * different names. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "mirrord/conf.h"

#define CONF_FILES 2 /* number of files of a set */

struct conf_file {
	char path[CONF_PATH_SIZE];
	const char *key;
	struct stat st;
	bool exists;
};

void conf_meta_path(const struct conf_set *set, char *path, size_t size)
{
	if (set->meta[0])
		snprintf(path, size, "%s", set->meta);
	else
		snprintf(path, size, "%s.rpmirror", set->data);
}

static void conf_find_files(const struct conf_set *set, struct conf_file files[CONF_FILES])
{
	static const char *const keys[CONF_FILES] = {"data", "meta"};

	snprintf(files[0].path, sizeof(files[0].path), "%s", set->data);
	conf_meta_path(set, files[1].path, sizeof(files[1].path));
	for (unsigned i = 0; i < CONF_FILES; i++) {
		files[i].key = keys[i];
		files[i].exists = !stat(files[i].path, &files[i].st);
	}
}

/* Files that do not exist yet are compared by name only. */
static bool conf_is_same_file(const struct conf_file *a, const struct conf_file *b)
{
	if (a->exists && b->exists)
		return a->st.st_dev == b->st.st_dev && a->st.st_ino == b->st.st_ino;
	return !strcmp(a->path, b->path);
}

static int conf_compare_files(const struct conf_set *set, const struct conf_set *other,
			      struct error *err)
{
	struct conf_file own[CONF_FILES], others[CONF_FILES];

	conf_find_files(set, own);
	conf_find_files(other, others);
	for (unsigned i = 0; i < CONF_FILES; i++)
		for (unsigned j = 0; j < CONF_FILES; j++)
			if ((set != other || i < j) && conf_is_same_file(&own[i], &others[j]))
				return error_set(
					err, ERROR_ARGUMENT, EEXIST,
					"set '%s', %s = %s, and set '%s', %s = %s, are the same "
					"file: each copy needs two files of its own",
					set->name, own[i].key, own[i].path, other->name,
					others[j].key, others[j].path);
	return 0;
}

int conf_check_files(const struct conf *c, const struct conf_set *set, struct error *err)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < c->set_count; i++)
		rc = conf_compare_files(set, &c->sets[i], err);
	return rc;
}
