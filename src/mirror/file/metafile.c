/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/file/metafile.h"

#include <errno.h>
#include <fcntl.h>
#include <libpmem.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/filemap.h"

#define METAFILE_PAGE 4096u

int metafile_write_back(void *addr, enum rpma_durability durability, uint64_t offset, uint64_t len)
{
	uint64_t from = offset / METAFILE_PAGE * METAFILE_PAGE;

	switch (durability) {
	case RPMA_DURABILITY_VOLATILE:
		return 0;
	case RPMA_DURABILITY_DAX:
		pmem_persist((char *)addr + offset, len);
		return 0;
	default:
		return msync((char *)addr + from, offset + len - from, MS_SYNC) ? -errno : 0;
	}
}

static int metafile_persist(void *arg, uint64_t offset, uint64_t len)
{
	struct metafile *f = arg;

	/* atomic, because signal handlers count as well */
	__atomic_add_fetch(&f->persists, 1, __ATOMIC_RELAXED);
	return metafile_write_back(f->addr, f->durability, offset, len);
}

/* The mapping is read-only, so calling a setter is an error of the caller. */
static int metafile_refuse(void *arg, uint64_t offset, uint64_t len)
{
	return -EROFS;
}

struct meta_store metafile_store(struct metafile *f)
{
	bool is_owned = f->durability != RPMA_DURABILITY_UNKNOWN;

	return (struct meta_store){.base = f->addr,
				   .len = f->len,
				   .persist = is_owned ? metafile_persist : metafile_refuse,
				   .arg = f};
}

/* Read the file once: a load from a page that the disk cannot read raises SIGBUS, but a read
 * returns EIO. */
static int metafile_try_reading(const struct metafile *f, const char *name, struct error *err)
{
	char page[METAFILE_PAGE];

	for (uint64_t at = 0; at < f->len && at < META_RING_AT; at += sizeof(page))
		if (pread(f->fd, page, sizeof(page), (off_t)at) < 0)
			return error_set(err, ERROR_LOCAL, errno,
					 "the metadata in %s cannot be read: %s; replace the copy",
					 name, strerror(errno));
	return 0;
}

static int metafile_map(struct metafile *f, const char *name, int prot, struct error *err)
{
	struct stat st;
	int rc;

	if (fstat(f->fd, &st))
		return error_set(err, ERROR_LOCAL, errno, "%s: %s", name, strerror(errno));
	f->len = (uint64_t)st.st_size;
	if (!S_ISREG(st.st_mode) || !f->len)
		return error_set(err, ERROR_LOCAL, ENODATA,
				 "%s is no metadata file of a mirror's copy", name);
	rc = metafile_try_reading(f, name, err);
	if (rc)
		return rc;
	f->addr = filemap(f->fd, f->len, prot);
	if (f->addr == MAP_FAILED) {
		f->addr = NULL;
		return error_set(err, ERROR_LOCAL, errno, "cannot map %s: %s", name,
				 strerror(errno));
	}
	return 0;
}

static int metafile_map_to_write(struct metafile *f, const char *name, struct error *err)
{
	int rc = metafile_map(f, name, PROT_READ | PROT_WRITE, err);

	if (rc)
		return rc;
	madvise(f->addr, f->len, MADV_DONTFORK);
	rc = rpma_utils_get_durability(f->addr, f->len, &f->durability, NULL, 0);
	if (rc)
		return error_set(err, ERROR_LOCAL, rc, "cannot determine how durable %s is: %s",
				 name, rpma_err_last());
	return 0;
}

int metafile_open(struct metafile *f, const char *path, enum metafile_mode mode, struct error *err)
{
	bool is_read = mode == METAFILE_READ;
	int rc;

	*f = (struct metafile){.durability = RPMA_DURABILITY_UNKNOWN};
	f->fd = open(path, (is_read ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK);
	if (f->fd < 0)
		return error_set(err, ERROR_LOCAL, errno, "cannot open %s: %s", path,
				 strerror(errno));
	if (is_read)
		rc = metafile_map(f, path, PROT_READ, err);
	else if (flock(f->fd, LOCK_EX | LOCK_NB))
		rc = error_set(err, ERROR_LOCAL, errno, "%s is in use by another process", path);
	else
		rc = metafile_map_to_write(f, path, err);
	if (rc)
		metafile_close(f);
	return rc;
}

int metafile_attach(struct metafile *f, int fd, struct error *err)
{
	int rc;

	*f = (struct metafile){.fd = fd, .durability = RPMA_DURABILITY_UNKNOWN};
	rc = metafile_map_to_write(f, "the metadata file", err);
	if (rc)
		metafile_close(f);
	return rc;
}

void metafile_close(struct metafile *f)
{
	if (f->addr)
		munmap(f->addr, f->len);
	if (f->fd >= 0)
		close(f->fd);
	f->addr = NULL;
	f->fd = -1;
}

int metafile_identify(const char *data_path, int meta_fd, struct meta_files *files)
{
	struct stat data, meta;

	if (stat(data_path, &data) || fstat(meta_fd, &meta))
		return -errno;
	*files = (struct meta_files){.data_inode = data.st_ino,
				     .meta_inode = meta.st_ino,
				     .data_time_ns = (uint64_t)data.st_mtim.tv_sec * NSEC_PER_SEC +
						     (uint64_t)data.st_mtim.tv_nsec};
	return 0;
}
