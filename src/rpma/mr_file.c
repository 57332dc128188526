/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_file.c -- registers a file as a memory region. The file is opened in such a way that flushed
 * bytes really reach its medium. */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/filemap.h"
#include "base/newfile.h"
#include "base/pagecache.h"
#include "rpma/err.h"
#include "rpma/mr.h"

/* Check the file's size, and reserve its blocks now, so that a flush cannot fail later because the
 * disk is full. */
static int mr_file_check(const char *path, int fd, size_t *size, struct error *err)
{
	struct newfile_opts opts = {.path = path};
	struct stat st;
	int rc;

	if (fstat(fd, &st))
		return error_set(err, ERROR_LOCAL, errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(err, ERROR_LOCAL, EINVAL, "%s is no regular file", path);
	if (!*size)
		*size = (size_t)st.st_size;
	if (!*size)
		return error_set(err, ERROR_LOCAL, ENODATA, "%s is empty, and no size is given",
				 path);
	opts.size = *size;
	rc = newfile_reserve(fd, &opts, err);
	/*
	 * Make the file's name and size durable. If a crash undid them, the flushed bytes would be
	 * lost as well.
	 */
	return rc ? rc : newfile_settle(fd, path, err);
}

/*
 * Drop the file from the page cache before it is mapped. The kernel may have cached pages that an
 * earlier process could not write back, and which it counts as clean.
 */
static int mr_file_reopen(const char *path, int fd, size_t *size, struct error *err)
{
	uint64_t stay = 0;
	int rc = mr_file_check(path, fd, size, err);

	if (!rc)
		rc = pagecache_evict(fd, path, &stay, err);
	if (!rc && stay)
		LOG_WARNING(
			"%s: %" PRIu64
			" bytes stay in the page cache, because another process has mapped them: "
			"bytes whose write-back has failed cannot be told from bytes that are on "
			"the disk",
			path, stay);
	return rc;
}

static int mr_file_open(const char *path, size_t *size, int *fd, struct error *err)
{
	struct newfile_opts made = {.path = path, .size = *size};

	/*
	 * With O_NONBLOCK, opening a pipe does not wait for its other end. A later check refuses
	 * pipes.
	 */
	*fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (*fd >= 0)
		return mr_file_reopen(path, *fd, size, err);
	if (errno == ENOENT && *size)
		return newfile_make(&made, fd, err);
	return error_set(err, ERROR_LOCAL, errno, "cannot open %s: %s", path, strerror(errno));
}

static int mr_file_map(const char *path, size_t *size, void **ptr, struct error *err)
{
	int fd = -1, rc = mr_file_open(path, size, &fd, err);

	if (!rc) {
		*ptr = filemap(fd, *size, PROT_READ | PROT_WRITE);
		if (*ptr == MAP_FAILED)
			rc = error_set(err, ERROR_LOCAL, errno, "cannot map %zu bytes of %s: %s",
				       *size, path, strerror(errno));
	}
	if (fd >= 0)
		close(fd); /* the mapping keeps the file open */
	return rc;
}

int rpma_mr_reg_file(struct rpma_peer *peer, const char *path, size_t size, int usage,
		     struct rpma_mr_local **mr_ptr)
{
	struct rpma_mr_local *mr;
	struct error err;
	void *ptr;
	int ret;

	if (!peer || !path || !usage || usage & ~MR_USAGE_ALL || !mr_ptr)
		return INVALID();
	if (mr_file_map(path, &size, &ptr, &err)) {
		LOG_ERROR("rpma_mr_reg_file(): %s", err.text);
		return RPMA_E_PROVIDER;
	}
	ret = rpma_mr_reg(peer, ptr, size, usage, &mr);
	if (ret) {
		munmap(ptr, size);
		return ret;
	}
	mr->mapping = ptr;
	mr->mapping_size = size;
	*mr_ptr = mr;
	return 0;
}
