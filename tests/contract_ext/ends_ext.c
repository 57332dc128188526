/* SPDX-License-Identifier: BSD-3-Clause */
#include "ends_ext.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/medium.h"

void ends_file_open(struct ends_file *f, struct ends *d, size_t size)
{
	static int number;

	f->size = size;
	snprintf(f->name, sizeof(f->name), "contract_ext.%ld.%d", (long)getpid(), number++);
	f->fd = open(f->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(f->fd >= 0);
	assert_int_equal(posix_fallocate(f->fd, 0, (off_t)size), 0);
	f->is_on_medium = medium_is_behind(f->fd);
	f->map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	assert_ptr_not_equal(f->map, MAP_FAILED);
	f->mr = ends_reg(d, f->map, size);
	f->remote = ends_remote(f->mr);
}

bool ends_file_is_direct(const struct ends_file *f)
{
	int fd = open(f->name, O_RDONLY | O_DIRECT | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Do not use a direct read: before it the kernel would write dirty pages back, and the test could
 * not detect them. */
void ends_file_expect(const struct ends_file *f, const void *bytes, size_t len, size_t at)
{
	uint8_t *copy = malloc(len);

	assert_non_null(copy);
	if (f->is_on_medium)
		assert_int_equal(medium_dirty(f->fd, (off_t)at, len), 0);
	assert_int_equal(pread(f->fd, copy, len, (off_t)at), len);
	assert_memory_equal(copy, bytes, len);
	free(copy);
}

void ends_file_close(struct ends_file *f)
{
	OK(rpma_mr_remote_delete(&f->remote));
	OK(rpma_mr_dereg(&f->mr));
	munmap(f->map, f->size);
	close(f->fd);
	unlink(f->name);
}
