/* SPDX-License-Identifier: BSD-3-Clause */
#include "device.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/major.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "die.h"

#define DEVICE_SECTOR 512

static uint64_t device_sectors(dev_t dev)
{
	char path[64];
	uint64_t sectors;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/stat", major(dev), minor(dev));
	f = fopen(path, "re");
	/* The seventh number is the count of written sectors. */
	if (!f || fscanf(f, "%*u %*u %*u %*u %*u %*u %" SCNu64, &sectors) != 1)
		die_errno(path);
	fclose(f);
	return sectors;
}

uint64_t device_written(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	uint64_t bytes = 0;

	if (fd < 0)
		return 0; /* there is no such folder, because the data are in memory */
	if (fstat(fd, &st))
		die_errno(folder);
	if (major(st.st_dev) == LOOP_MAJOR) {
		if (syncfs(fd))
			die_errno("write all back");
		bytes = device_sectors(st.st_dev) * DEVICE_SECTOR;
	}
	close(fd);
	return bytes;
}
