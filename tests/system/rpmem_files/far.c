/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/rpmem_files/far.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void far_ssh(const char *script)
{
	char path[600];
	FILE *f;

	snprintf(path, sizeof(path), "%s/ssh", place_dir);
	if (script) {
		snprintf(path, sizeof(path), "%s/pools/far.ssh", place_dir);
		f = fopen(path, "w");
		assert_non_null(f);
		fprintf(f,
			"#!/bin/sh\nfor far; do :; done\ncd %s/pools\n"
			"export SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22'\n"
			"rpmemd='%s --poolset-dir %s/pools --log-file /dev/null'\n%s\n",
			place_dir, RPMEMD_PROGRAM, place_dir, script);
		assert_int_equal(fclose(f), 0);
		assert_int_equal(chmod(path, 0755), 0);
	}
	setenv("RPMEM_SSH", path, 1);
}

void far_write(const char *name, const char *text)
{
	FILE *f = fopen(place_path(name), "w");

	assert_non_null(f);
	for (; *text; text++) {
		if (*text == '@')
			fprintf(f, "%s/pools", place_dir);
		else
			fputc(*text, f);
	}
	assert_int_equal(fclose(f), 0);
}

void far_write_bytes(const char *name, size_t at, const void *bytes, size_t len)
{
	int fd = open(place_path(name), O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, len, (off_t)at), len);
	close(fd);
}

void far_read_bytes(const char *name, size_t at, void *bytes, size_t len)
{
	int fd = open(place_path(name), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, bytes, len, (off_t)at), len);
	close(fd);
}

bool far_exists(const char *name)
{
	return !access(place_path(name), F_OK);
}

static void far_expect(const RPMEMpool *rpp, int error, const char *words)
{
	int was = errno;

	if (rpp)
		fail_msg("it succeeded; expected %s", strerror(error));
	if (was != error || !strstr(rpmem_errormsg(), words))
		fail_msg("errno %d (%s), \"%s\"; expected %d (%s), \"%s\"", was, strerror(was),
			 rpmem_errormsg(), error, strerror(error), words);
}

void far_no_create(const char *set, size_t size, const struct rpmem_pool_attr *attr, int error,
		   const char *words)
{
	unsigned lanes = 3;

	errno = 0;
	far_expect(rpmem_create("localhost", set, place_local, size, &lanes, attr), error, words);
	assert_int_equal(lanes, 3);
}

void far_no_open(const char *set, size_t size, int error, const char *words)
{
	struct rpmem_pool_attr attr;
	unsigned lanes = 3;

	errno = 0;
	far_expect(rpmem_open("localhost", set, place_local, size, &lanes, &attr), error, words);
	assert_int_equal(lanes, 3);
}
