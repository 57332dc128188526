/* SPDX-License-Identifier: BSD-3-Clause */
/* create.c -- creates a copy: first the data file, then the metadata file, without which the data
 * file is no copy. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/newfile.h"
#include "mirror/file/metafile.h"

/* Does nothing: the file has no name yet, and becomes durable as a whole when it gets its name. */
static int create_persist(void *arg, uint64_t offset, uint64_t len)
{
	return 0;
}

static int create_keep_data(const struct metafile_new *opts, int *fd, struct error *err)
{
	struct newfile_opts reserved = {.path = opts->data, .size = opts->super->size};
	struct stat st;
	int rc;

	*fd = open(opts->data, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (*fd < 0 || fstat(*fd, &st))
		return error_set(err, ERROR_LOCAL, errno, "cannot open %s: %s", opts->data,
				 strerror(errno));
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != opts->super->size)
		return error_set(err, ERROR_LOCAL, EINVAL,
				 "%s must be a file of %llu bytes, but it has %llu", opts->data,
				 (unsigned long long)opts->super->size,
				 (unsigned long long)st.st_size);
	rc = newfile_reserve(*fd, &reserved, err);
	return rc ? rc : newfile_settle(*fd, opts->data, err);
}

static int create_fill(const struct metafile_new *opts, const struct newfile *nf, uint64_t len)
{
	struct meta_store store = {.len = len, .persist = create_persist};
	struct meta_super super = *opts->super;
	int rc = metafile_identify(opts->data, nf->fd, &super.files);

	if (rc)
		return rc;
	super.files.data_time_ns = 0; /* zero, as a running daemon stores it */
	store.base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, nf->fd, 0);
	if (store.base == MAP_FAILED)
		return -errno;
	rc = meta_create(&store, &super, opts->members);
	munmap(store.base, len);
	return rc;
}

static int create_meta(const struct metafile_new *opts, struct error *err)
{
	uint64_t len = meta_size_for(opts->super->size);
	struct newfile_opts made = {
		.path = opts->meta, .size = len, .is_private = opts->is_private};
	struct newfile nf;
	int rc = newfile_open(&nf, &made, err);

	if (rc)
		return rc;
	rc = create_fill(opts, &nf, len);
	if (rc)
		rc = error_set(err, ERROR_LOCAL, -rc, "cannot write the metadata in %s: %s",
			       opts->meta, strerror(-rc));
	else
		rc = newfile_commit(&nf, false, err);
	if (rc)
		newfile_abort(&nf);
	else
		close(nf.fd);
	return rc;
}

int metafile_create(const struct metafile_new *opts, struct error *err)
{
	struct newfile_opts made = {
		.path = opts->data, .size = opts->super->size, .is_private = opts->is_private};
	int fd = -1, rc;

	if (!access(opts->meta, F_OK))
		return error_set(err, ERROR_LOCAL, EEXIST, "%s exists already: %s is a copy",
				 opts->meta, opts->data);
	rc = opts->keep ? create_keep_data(opts, &fd, err) : newfile_make(&made, &fd, err);
	if (!rc) {
		rc = create_meta(opts, err);
		if (rc && !opts->keep)
			unlink(opts->data);
	}
	if (fd >= 0)
		close(fd);
	return rc;
}
