/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit/poolset/disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char disk_folder[64];
struct error disk_err;

int disk_setup(void **state)
{
	char here[32] = "/tmp/poolset-XXXXXX";

	if (!mkdtemp(here) || chdir(here))
		return -1;
	strcpy(disk_folder, here);
	disk_err = (struct error){0};
	return 0;
}

static int disk_remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

int disk_teardown(void **state)
{
	if (chdir("/"))
		return -1;
	return nftw(disk_folder, disk_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

void disk_write_set(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	for (; *text; text++) {
		if (*text == '@')
			fputs(disk_folder, f);
		else
			fputc(*text, f);
	}
	assert_int_equal(fclose(f), 0);
}

void disk_write_bytes(const char *name, uint64_t at, const void *bytes, size_t len)
{
	int fd = open(name, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, len, (off_t)at), len);
	close(fd);
}

void disk_read_bytes(const char *name, uint64_t at, void *bytes, size_t len)
{
	int fd = open(name, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, bytes, len, (off_t)at), len);
	close(fd);
}

void disk_make_file(const char *name, uint64_t size)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	assert_int_equal(posix_fallocate(fd, 0, (off_t)size), 0);
	close(fd);
}

bool disk_exists(const char *name)
{
	return !access(name, F_OK);
}

unsigned disk_count_files(void)
{
	DIR *dir = opendir(".");
	struct dirent *entry;
	unsigned count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

struct poolset_attr disk_attr(void)
{
	struct poolset_attr attr = {.signature = "PMEMOBJ", .major = 6, .compat = 1, .incompat = 6};

	for (unsigned i = 0; i < HEADER_UUID; i++) {
		attr.poolset_uuid[i] = (uint8_t)(0x10 + i);
		attr.uuid[i] = (uint8_t)(0x20 + i);
		attr.next_uuid[i] = (uint8_t)(0x30 + i);
		attr.prev_uuid[i] = (uint8_t)(0x40 + i);
		attr.user_flags[i] = (uint8_t)(0x50 + i);
	}
	return attr;
}

struct poolset_place disk_place(const char *name)
{
	return (struct poolset_place){disk_folder, name};
}

struct poolset_pool *disk_create(const char *name, const struct poolset_attr *attr)
{
	struct poolset_place place = disk_place(name);
	struct poolset_pool *pool = NULL;

	if (poolset_create(&place, POOLSET_MIN_POOL, attr, &pool, &disk_err))
		fail_msg("%s", disk_err.text);
	return pool;
}

struct poolset_pool *disk_open(const char *name, struct poolset_attr *attr)
{
	struct poolset_place place = disk_place(name);
	struct poolset_pool *pool = NULL;

	if (poolset_open(&place, POOLSET_MIN_POOL, attr, &pool, &disk_err))
		fail_msg("%s", disk_err.text);
	return pool;
}

void disk_close(struct poolset_pool *pool)
{
	if (poolset_close(pool, &disk_err))
		fail_msg("%s", disk_err.text);
}

static void disk_expect(int rc, int cause, const char *words)
{
	if (!rc || rc != (int)disk_err.kind || disk_err.cause != cause ||
	    !strstr(disk_err.text, words))
		fail_msg("rc %d, cause %d (%s): \"%s\"; expected cause %d, \"%s\"", rc,
			 disk_err.cause, strerror(disk_err.cause), disk_err.text, cause, words);
}

void disk_no_create(const char *name, uint64_t size, const struct poolset_attr *attr, int cause,
		    const char *words)
{
	struct poolset_place place = disk_place(name);
	struct poolset_pool *pool = NULL;

	disk_err = (struct error){0};
	disk_expect(poolset_create(&place, size, attr, &pool, &disk_err), cause, words);
	assert_null(pool);
}

void disk_no_open(const char *name, uint64_t size, int cause, const char *words)
{
	struct poolset_place place = disk_place(name);
	struct poolset_pool *pool = NULL;

	disk_err = (struct error){0};
	disk_expect(poolset_open(&place, size, NULL, &pool, &disk_err), cause, words);
	assert_null(pool);
}

void disk_no_remove(const char *name, unsigned flags, int cause, const char *words)
{
	struct poolset_place place = disk_place(name);

	disk_err = (struct error){0};
	disk_expect(poolset_remove(&place, flags, &disk_err), cause, words);
}
