/* SPDX-License-Identifier: BSD-3-Clause */
#include "bad_pages.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BAD_PAGE 4096u
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
/* this feature exists since Linux 6.6 */
#define BAD_FEATURE_POISON (1ull << 14)
struct bad_poison {
	struct uffdio_range range;
	uint64_t mode;
	int64_t updated;
};
#define BAD_POISON _IOWR(UFFDIO, 0x08, struct bad_poison)

int bad_pages_watch(void *base, size_t len)
{
	struct uffdio_api api = {.api = UFFD_API,
				 .features = UFFD_FEATURE_SIGBUS | BAD_FEATURE_POISON};
	struct uffdio_register reg = {.range = {(uintptr_t)base, len},
				      .mode = UFFDIO_REGISTER_MODE_MISSING};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);

	if (fd >= 0 && !ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &reg))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

bool bad_pages_lose(int fd, uint64_t offset, uint64_t len)
{
	return !fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
			  (off_t)len);
}

bool bad_pages_poison(int watch, void *page)
{
	struct bad_poison poison = {.range = {(uintptr_t)page, BAD_PAGE}};

	return !madvise(page, BAD_PAGE, MADV_DONTNEED) && !ioctl(watch, BAD_POISON, &poison);
}
