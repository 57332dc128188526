/* SPDX-License-Identifier: BSD-3-Clause */
#include "duo14.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

void duo_file_open(struct duo_file *f, struct duo *d, size_t size)
{
	static int number;

	f->size = size;
	snprintf(f->name, sizeof(f->name), "contract14.%ld.%d", (long)getpid(), number++);
	f->fd = open(f->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(f->fd >= 0);
	assert_int_equal(posix_fallocate(f->fd, 0, (off_t)size), 0);
	f->map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	assert_ptr_not_equal(f->map, MAP_FAILED);
	f->mr = duo_reg(d, f->map, size);
	f->remote = duo_remote(f->mr);
}

static int open_direct(const struct duo_file *f)
{
	return open(f->name, O_RDONLY | O_DIRECT | O_CLOEXEC);
}

bool duo_file_is_direct(const struct duo_file *f)
{
	int fd = open_direct(f);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

void duo_file_read(const struct duo_file *f, void *dst, size_t len, size_t at)
{
	size_t begin = at & ~(size_t)4095, end = (at + len + 4095) & ~(size_t)4095;
	int fd = open_direct(f);
	void *copy = NULL;

	assert_int_equal(posix_memalign(&copy, 4096, end - begin), 0);
	assert_true(pread(fd >= 0 ? fd : f->fd, copy, end - begin, (off_t)begin) >=
		    (ssize_t)(at + len - begin));
	memcpy(dst, (uint8_t *)copy + (at - begin), len);
	free(copy);
	if (fd >= 0)
		close(fd);
}

void duo_file_close(struct duo_file *f)
{
	OK(rpma_mr_remote_delete(&f->remote));
	OK(rpma_mr_dereg(&f->mr));
	munmap(f->map, f->size);
	close(f->fd);
	unlink(f->name);
}
