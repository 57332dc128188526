/* SPDX-License-Identifier: BSD-3-Clause */
#include "copyfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/newfile.h"
#include "place.h"

#define COPYFILE_PATH (MIRROR_PATH_MAX + 16)

static const struct mirror_member *copyfile_member(const struct copyfile_opts *opts)
{
	return &opts->record->config.members[opts->slot];
}

static int copyfile_persist(void *arg, uint64_t offset, uint64_t len)
{
	const struct meta_store *store = arg;

	/* A new file is small: all of it at once. */
	return msync(store->base, store->len, MS_SYNC) ? -errno : 0;
}

/* The data file's inode, so that metadata of another file are noticed. */
static int copyfile_make_data(const struct copyfile_opts *opts, uint64_t *inode, struct error *err)
{
	const char *path = copyfile_member(opts)->path;
	struct newfile_opts file = {.path = path, .size = opts->record->config.size};
	struct newfile data;
	struct stat st;
	int rc = newfile_open(&data, &file, err);

	if (rc)
		return rc;
	rc = newfile_commit(&data, false, err);
	if (!rc && fstat(data.fd, &st))
		rc = error_set(err, ERROR_LOCAL, errno, "%s: %s", path, strerror(errno));
	if (rc) {
		newfile_abort(&data);
		return rc;
	}
	*inode = st.st_ino;
	close(data.fd);
	return 0;
}

static int copyfile_keep_data(const struct copyfile_opts *opts, uint64_t *inode, struct error *err)
{
	const char *path = copyfile_member(opts)->path;
	uint64_t size = opts->record->config.size;
	struct stat st;

	if (stat(path, &st))
		return error_set(err, ERROR_LOCAL, errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != size)
		return error_set(err, ERROR_LOCAL, EINVAL,
				 "%s is no file of %llu bytes, which the set's size is", path,
				 (unsigned long long)size);
	*inode = st.st_ino;
	return 0;
}

static void copyfile_fill_super(const struct copyfile_opts *opts, struct meta_super *super)
{
	const struct mirror_config *config = &opts->record->config;

	*super = (struct meta_super){.uuid = config->uuid,
				     .member_id = copyfile_member(opts)->id,
				     .slot = opts->slot,
				     .size = config->size,
				     .address = config->address,
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

static int copyfile_fill_meta(const struct copyfile_opts *opts, const struct newfile *file,
			      uint64_t data_inode, struct error *err)
{
	struct meta_store store = {.len = meta_size_for(opts->record->config.size),
				   .persist = copyfile_persist,
				   .arg = &store};
	struct meta_members members;
	struct meta_super super;
	struct stat st;
	int rc;

	if (fstat(file->fd, &st))
		return error_set(err, ERROR_LOCAL, errno, "%s: %s", file->path, strerror(errno));
	store.base = mmap(NULL, store.len, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
	if (store.base == MAP_FAILED)
		return error_set(err, ERROR_LOCAL, errno, "cannot map %s: %s", file->path,
				 strerror(errno));
	copyfile_fill_super(opts, &super);
	super.files = (struct meta_files){data_inode, st.st_ino};
	copyfile_fill_members(&opts->record->config, &members);
	rc = meta_create(&store, &super, &members);
	munmap(store.base, store.len);
	return rc ? error_set(err, ERROR_LOCAL, -rc, "cannot write %s: %s", file->path,
			      strerror(-rc))
		  : 0;
}

static int copyfile_make_meta(const struct copyfile_opts *opts, uint64_t data_inode,
			      struct error *err)
{
	char path[COPYFILE_PATH];
	struct newfile_opts file = {.path = path, .size = meta_size_for(opts->record->config.size)};
	struct newfile meta;
	int rc;

	place_meta_path(copyfile_member(opts)->path, path, sizeof(path));
	rc = newfile_open(&meta, &file, err);
	if (rc)
		return rc;
	rc = copyfile_fill_meta(opts, &meta, data_inode, err);
	if (!rc)
		rc = newfile_commit(&meta, false, err);
	if (rc)
		newfile_abort(&meta);
	else
		close(meta.fd);
	return rc;
}

int copyfile_create(const struct copyfile_opts *opts, struct error *err)
{
	uint64_t inode = 0;
	int rc;

	if (opts->keeps_data)
		rc = copyfile_keep_data(opts, &inode, err);
	else
		rc = copyfile_make_data(opts, &inode, err);
	if (rc)
		return rc;
	rc = copyfile_make_meta(opts, inode, err);
	if (rc && !opts->keeps_data)
		unlink(copyfile_member(opts)->path);
	return rc;
}

void copyfile_remove(const struct copyfile_opts *opts)
{
	const char *data = copyfile_member(opts)->path;
	char meta[COPYFILE_PATH];

	place_meta_path(data, meta, sizeof(meta));
	unlink(meta);
	if (!opts->keeps_data)
		unlink(data);
}

static int copyfile_refuse_write(void *arg, uint64_t offset, uint64_t len)
{
	return -EROFS;
}

/* A private mapping: what the codec may try to write stays here. */
static int copyfile_map(struct copyfile *f, int fd, const char *path, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size == 0)
		return error_set(err, ERROR_LOCAL, ENODATA, "%s is no file with metadata", path);
	f->len = (uint64_t)st.st_size;
	f->base = mmap(NULL, f->len, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (f->base == MAP_FAILED)
		return error_set(err, ERROR_LOCAL, errno, "cannot map %s: %s", path,
				 strerror(errno));
	return 0;
}

int copyfile_open(struct copyfile *f, const char *path, struct error *err)
{
	struct meta_store store = {.persist = copyfile_refuse_write};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return error_set(err, ERROR_LOCAL, errno, "cannot open %s: %s", path,
				 strerror(errno));
	rc = copyfile_map(f, fd, path, err);
	close(fd);
	if (rc)
		return rc;
	store.base = f->base;
	store.len = f->len;
	rc = meta_load(&f->meta, &store, err);
	if (rc)
		munmap(f->base, f->len);
	return rc;
}

void copyfile_close(struct copyfile *f)
{
	meta_fini(&f->meta);
	munmap(f->base, f->len);
}
