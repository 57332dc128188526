/* SPDX-License-Identifier: BSD-3-Clause */
#include "copyfile.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPYFILE_PATH (MIRROR_PATH_MAX + sizeof(METAFILE_SUFFIX))

static const struct mirror_member *copyfile_member(const struct copyfile_opts *opts)
{
	return &opts->record->config.members[opts->slot];
}

static void copyfile_meta_path(const struct copyfile_opts *opts, char path[COPYFILE_PATH])
{
	snprintf(path, COPYFILE_PATH, "%s" METAFILE_SUFFIX, copyfile_member(opts)->path);
}

static void copyfile_fill_super(const struct copyfile_opts *opts, struct meta_super *super)
{
	const struct mirror_config *config = &opts->record->config;

	*super = (struct meta_super){.format = config->format,
				     .uuid = config->uuid,
				     .member_id = copyfile_member(opts)->id,
				     .slot = opts->slot,
				     .size = config->size,
				     .address = config->address,
				     .hot_slots = opts->hot_slots,
				     .flags = opts->is_empty ? META_EMPTY : META_CLEAN};
	memcpy(super->set, config->set, sizeof(super->set));
}

static void copyfile_fill_members(const struct mirror_config *config, struct meta_members *members)
{
	*members = (struct meta_members){.config_number = config->number};
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		const struct mirror_member *from = &config->members[slot];
		struct meta_member *to = &members->members[slot];

		to->id = from->id;
		to->port = from->port;
		memcpy(to->name, from->name, sizeof(to->name));
		memcpy(to->host, from->host, sizeof(to->host));
	}
}

int copyfile_create(const struct copyfile_opts *opts, struct error *err)
{
	char path[COPYFILE_PATH];
	struct meta_members members;
	struct meta_super super;
	struct metafile_new files = {.data = copyfile_member(opts)->path,
				     .meta = path,
				     .keep = opts->keeps_data,
				     .super = &super,
				     .members = &members};

	copyfile_meta_path(opts, path);
	copyfile_fill_super(opts, &super);
	copyfile_fill_members(&opts->record->config, &members);
	return metafile_create(&files, err);
}

void copyfile_remove(const struct copyfile_opts *opts)
{
	char path[COPYFILE_PATH];

	copyfile_meta_path(opts, path);
	unlink(path);
	if (!opts->keeps_data)
		unlink(copyfile_member(opts)->path);
}

int copyfile_open(struct copyfile *f, const char *path, struct error *err)
{
	char data[MIRROR_PATH_MAX], meta[COPYFILE_PATH];
	size_t len = strlen(path), suffix = strlen(METAFILE_SUFFIX);
	bool is_meta = len > suffix && !strcmp(path + len - suffix, METAFILE_SUFFIX);
	struct meta_store store;
	struct stat st;
	int rc;

	snprintf(data, sizeof(data), "%.*s", (int)(is_meta ? len - suffix : len), path);
	snprintf(meta, sizeof(meta), "%s" METAFILE_SUFFIX, data);
	rc = metafile_open(&f->file, meta, METAFILE_READ, err);
	if (rc)
		return rc;
	store = metafile_store(&f->file);
	rc = meta_load(&f->meta, &store, err);
	if (rc)
		metafile_close(&f->file);
	f->has_data = !stat(data, &st);
	f->data_size = f->has_data ? (uint64_t)st.st_size : 0;
	return rc;
}

void copyfile_close(struct copyfile *f)
{
	meta_fini(&f->meta);
	metafile_close(&f->file);
}
