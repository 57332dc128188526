/* SPDX-License-Identifier: BSD-3-Clause */
#include "end_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/medium.h"

void end_file_open(struct end_file *f, struct end *e)
{
	end_file_open_as(f, e->pd,
			 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
}

void end_file_open_as(struct end_file *f, struct ibv_pd *pd, int access)
{
	static int number;

	snprintf(f->name, sizeof(f->name), "end_file.%ld.%d", (long)getpid(), number++);
	f->fd = open(f->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(f->fd >= 0);
	assert_int_equal(posix_fallocate(f->fd, 0, END_FILE), 0);
	assert_int_equal(fsync(f->fd), 0);
	f->map = mmap(NULL, END_FILE, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	assert_ptr_not_equal(f->map, MAP_FAILED);
	f->mr = softrnic_reg_mr(pd, f->map, END_FILE, access);
	assert_non_null(f->mr);
}

void end_file_close(struct end_file *f)
{
	if (f->mr)
		assert_int_equal(softrnic_dereg_mr(f->mr), 0);
	munmap(f->map, END_FILE);
	close(f->fd);
	unlink(f->name);
}

bool end_file_is_possible(void)
{
	char name[] = "end_file.XXXXXX";
	int fd = mkstemp(name);
	bool yes = fd >= 0 && write(fd, name, sizeof(name)) > 0 && medium_is_behind(fd);

	close(fd);
	unlink(name);
	return yes;
}
