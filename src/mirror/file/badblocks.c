/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/file/badblocks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

struct badblocks_file {
	int fd;
	/* descriptor that bypasses the page cache; equal to fd if the file system has no
	 * O_DIRECT */
	int direct;
	enum rpma_durability durability;
};

typedef uint8_t badblocks_block[MIRROR_BLOCK];

static const _Alignas(MIRROR_BLOCK) badblocks_block badblocks_zeros;

/* Errors that the block layer and file systems return for bad media (block/blk-core.c) and wrong
 * checksums. EFAULT: persistent memory has poison that its driver has not found yet; the reader's
 * buffer is good. */
bool badblocks_is_of_medium(int error)
{
	return error == EIO || error == ENODATA || error == EILSEQ || error == EBADMSG ||
	       error == EHWPOISON || error == EFAULT;
}

/* Find out whether a block is bad. Returns 0 or a positive errno. A read stops before the first
 * unreadable byte; the next read returns the cause. */
static int badblocks_read(int fd, uint64_t offset, bool *is_bad)
{
	_Alignas(MIRROR_BLOCK) badblocks_block block;
	size_t have = 0;

	*is_bad = false;
	while (have < sizeof(block)) {
		ssize_t n = pread(fd, block + have, sizeof(block) - have, (off_t)(offset + have));

		*is_bad = n < 0 && badblocks_is_of_medium(errno);
		if (n <= 0)
			return n ? errno : ENODATA;
		have += (size_t)n;
	}
	return 0;
}

/* Read the block both through the page cache (like a fault of the mapping) and from the medium
 * (like a digest), because the cached block may be the only good one left. */
static int badblocks_look(const struct badblocks_file *f, uint64_t offset, bool *is_bad)
{
	int rc = badblocks_read(f->fd, offset, is_bad);

	if (!rc && f->direct != f->fd) {
		rc = badblocks_read(f->direct, offset, is_bad);
		if (rc == EINVAL) /* the disk's sectors are larger than a block */
			rc = 0;
	}
	return rc;
}

static int badblocks_write(const struct badblocks_file *f, uint64_t offset)
{
	ssize_t n = pwrite(f->direct, badblocks_zeros, MIRROR_BLOCK, (off_t)offset);

	if (n < 0 && errno == EINVAL)
		n = pwrite(f->fd, badblocks_zeros, MIRROR_BLOCK, (off_t)offset);
	if (n < 0)
		return errno;
	return n == MIRROR_BLOCK ? 0 : EIO;
}

/* Give the block another location on the medium: before Linux 6.0 a write to poisoned persistent
 * memory fails. */
static int badblocks_move(const struct badblocks_file *f, uint64_t offset)
{
	if (fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
		      MIRROR_BLOCK) ||
	    fallocate(f->fd, 0, (off_t)offset, MIRROR_BLOCK))
		return errno;
	return badblocks_write(f, offset);
}

static int badblocks_zero(const struct badblocks_file *f, uint64_t offset)
{
	int rc = badblocks_write(f, offset);

	if (rc == EIO && f->durability == RPMA_DURABILITY_DAX)
		rc = badblocks_move(f, offset);
	if (!rc && fdatasync(f->fd))
		rc = errno;
	if (!rc) /* drop the cached block, so that the next read comes from the medium */
		posix_fadvise(f->fd, (off_t)offset, MIRROR_BLOCK, POSIX_FADV_DONTNEED);
	return rc;
}

static int badblocks_clear_one(const struct badblocks_file *f, uint64_t offset,
			       struct badblocks *found)
{
	bool is_bad;
	int rc = badblocks_look(f, offset, &is_bad);

	if (!rc || !is_bad)
		return rc;
	rc = badblocks_zero(f, offset);
	if (!rc)
		rc = badblocks_look(f, offset, &is_bad);
	if (!rc)
		found->cleared++;
	return rc;
}

int badblocks_clear(int fd, enum rpma_durability durability, struct mirror_range range,
		    struct badblocks *found)
{
	struct badblocks_file f = {.fd = fd, .durability = durability};
	char path[64];
	int rc = 0;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	f.direct = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (f.direct < 0)
		f.direct = fd;
	*found = (struct badblocks){.offset = range.offset};
	while (!rc && found->offset < range.offset + range.len) {
		rc = badblocks_clear_one(&f, found->offset, found);
		if (!rc)
			found->offset += MIRROR_BLOCK;
	}
	if (f.direct != fd)
		close(f.direct);
	return -rc;
}
