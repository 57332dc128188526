/* SPDX-License-Identifier: BSD-3-Clause */
#include "disk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char top[] = "persist-disk-XXXXXX";
static char mounted[32][64];
static size_t n_mounted;

static int disk_run(const char *const argv[])
{
	int status;
	pid_t pid;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ))
		return -1;
	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

static void disk_skip(const char *what)
{
	printf("skipped: %s: %s\n", what, strerror(errno));
	exit(77);
}

void disk_begin(void)
{
	if (geteuid() != 0) {
		errno = EPERM;
		disk_skip("mounting file systems");
	}
	if (access("/dev/loop-control", R_OK | W_OK))
		disk_skip("/dev/loop-control");
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		disk_skip("a mount namespace of our own");
	/* not every user's PATH has mke2fs */
	setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
	assert_non_null(mkdtemp(top));
	assert_int_equal(chdir(top), 0);
}

void disk_end(void)
{
	while (n_mounted > 0) {
		const char *dir = mounted[--n_mounted];

		umount2(dir, MNT_DETACH);
		rmdir(dir);
	}
	assert_int_equal(chdir(".."), 0);
	disk_run((const char *[]){"rm", "-rf", top, NULL});
}

static void disk_remember_mount(const char *dir)
{
	assert_true(n_mounted < sizeof(mounted) / sizeof(mounted[0]));
	snprintf(mounted[n_mounted++], sizeof(mounted[0]), "%s", dir);
}

void disk_mount_tmpfs(const char *dir, size_t size)
{
	char options[64];

	snprintf(options, sizeof(options), "size=%zu", size);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(mount("none", dir, "tmpfs", 0, options), 0);
	disk_remember_mount(dir);
}

void disk_mount_image(const char *fs, const char *image, size_t size, const char *dir)
{
	disk_mount_image_with(fs, image, size, dir, "loop");
}

static void disk_make_fs(const char *fs, const char *image)
{
	if (!strcmp(fs, "btrfs"))
		assert_int_equal(disk_run((const char *[]){"mkfs.btrfs", "-q", "-f", image, NULL}),
				 0);
	else
		assert_int_equal(
			disk_run((const char *[]){"mke2fs", "-q", "-F", "-t", fs, image, NULL}), 0);
}

/* Mount in a namespace that ends with the test, so that no other process sees the mounts. */
void disk_bind(const char *what, const char *where)
{
	assert_int_equal(mount(what, where, NULL, MS_BIND, NULL), 0);
}

static bool disk_kernel_has(const char *fs)
{
	FILE *list = fopen("/proc/filesystems", "re");
	char line[64], *name;
	bool has = false;

	assert_non_null(list);
	while (!has && fgets(line, sizeof(line), list)) {
		line[strcspn(line, "\n")] = '\0';
		name = strrchr(line, '\t');
		has = name && !strcmp(name + 1, fs);
	}
	fclose(list);
	return has;
}

void disk_need(const char *fs, const char *maker)
{
	char tool[64];

	snprintf(tool, sizeof(tool), "/usr/sbin/%s", maker);
	errno = EPROTONOSUPPORT;
	if (!disk_kernel_has(fs) &&
	    (disk_run((const char *[]){"modprobe", "-q", fs, NULL}) || !disk_kernel_has(fs)))
		disk_skip(fs);
	if (access(tool, X_OK))
		disk_skip(tool);
}

void disk_mount_image_with(const char *fs, const char *image, size_t size, const char *dir,
			   const char *options)
{
	int fd = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	close(fd);
	disk_make_fs(fs, image);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(disk_run((const char *[]){"mount", "-o", options, image, dir, NULL}), 0);
	disk_remember_mount(dir);
}

void disk_mount_overlay(const char *dir, const char *where)
{
	disk_mount_overlay_with(dir, where, "metacopy=off");
}

void disk_mount_overlay_with(const char *dir, const char *where, const char *option)
{
	static const char *const layers[] = {"lower", "upper", "work"};
	char options[256], path[64];

	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, layers[i]);
		assert_true(!mkdir(path, 0755) || errno == EEXIST);
	}
	snprintf(options, sizeof(options), "lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work,%s",
		 dir, dir, dir, option);
	assert_int_equal(mkdir(where, 0700), 0);
	if (mount("none", where, "overlay", 0, options)) {
		assert_true(errno == ENODEV || errno == EINVAL);
		printf("skipped: overlay: %s\n", strerror(errno));
		skip();
	}
	disk_remember_mount(where);
}

/* A separate process that unfreezes file systems, so that they do not stay frozen after the test
 * fails or crashes. */
static pid_t thawer;
static int thaw_pipe[2];

static void disk_thaw_child(int dir_fd)
{
	struct pollfd p = {.fd = thaw_pipe[0], .events = POLLIN};

	close(thaw_pipe[1]);
	poll(&p, 1, 30000);
	_exit(ioctl(dir_fd, FITHAW, 0) ? 1 : 0);
}

void disk_make_file(const char *name, size_t size)
{
	int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(posix_fallocate(fd, 0, (off_t)size), 0);
	close(fd);
}

void disk_freeze(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pipe2(thaw_pipe, O_CLOEXEC), 0);
	assert_int_equal(ioctl(fd, FIFREEZE, 0), 0);
	thawer = fork();
	if (thawer == 0)
		disk_thaw_child(fd);
	if (thawer < 0)
		ioctl(fd, FITHAW, 0);
	assert_true(thawer > 0);
	close(thaw_pipe[0]);
	close(fd);
}

void disk_thaw(void)
{
	int status;

	if (!thawer)
		return;
	close(thaw_pipe[1]);
	assert_int_equal(waitpid(thawer, &status, 0), thawer);
	thawer = 0;
	assert_int_equal(status, 0);
}
