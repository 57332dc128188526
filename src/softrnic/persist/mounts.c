/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

struct mount {
	unsigned long long id;
	dev_t dev;
	char name[32];
	bool is_volatile; /* an overlay whose data are lost in a crash */
};

/* Do the superblock's options, for example "rw,lowerdir=a,volatile", include "volatile"? Later
 * kernels write "fsync=volatile". */
static bool mounts_option_is_volatile(const char *options)
{
	for (size_t len; *options && *options != '\n'; options += len + (options[len] == ',')) {
		len = strcspn(options, ",\n");
		if ((len == 8 && !memcmp(options, "volatile", 8)) ||
		    (len == 14 && !memcmp(options, "fsync=volatile", 14)))
			return true;
	}
	return false;
}

/* Parse a line such as "36 35 98:0 / /mnt rw,noatime shared:1 - ext4 /dev/root rw". */
static bool mounts_parse(const char *line, struct mount *m)
{
	unsigned major_nr, minor_nr;
	const char *dash = strstr(line, " - ");

	if (!dash || sscanf(line, "%llu %*u %u:%u", &m->id, &major_nr, &minor_nr) != 3 ||
	    sscanf(dash, " - %31s", m->name) != 1)
		return false;
	m->dev = makedev(major_nr, minor_nr);
	m->is_volatile =
		!strcmp(m->name, "overlay") && mounts_option_is_volatile(strrchr(dash, ' ') + 1);
	return true;
}

static bool mounts_has_dev(const struct mount *m, const struct mount *wanted)
{
	return m->dev == wanted->dev;
}

static bool mounts_has_id(const struct mount *m, const struct mount *wanted)
{
	return m->id == wanted->id;
}

/* Before the call *m is the mount to compare with; afterwards *m is the mount that was found. */
static int mounts_find(bool (*fits)(const struct mount *, const struct mount *), struct mount *m)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	struct mount seen;
	char *line = NULL;
	size_t size = 0;
	int ret = -ENOENT;

	if (!mounts)
		return -errno;
	while (ret && getline(&line, &size, mounts) > 0)
		if (mounts_parse(line, &seen) && fits(&seen, m))
			ret = 0;
	if (ret && !feof(mounts))
		ret = -errno;
	if (!ret)
		*m = seen;
	free(line);
	fclose(mounts);
	return ret;
}

int mounts_fs_name(dev_t dev, char name[32])
{
	struct mount m = {.dev = dev};
	int ret = mounts_find(mounts_has_dev, &m);

	if (!ret)
		memcpy(name, m.name, sizeof(m.name));
	return ret;
}

/* Find the mount through which a descriptor was opened. */
static int mounts_find_of(int fd, struct mount *m)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0)
		return -errno;
	if (!(st.stx_mask & STATX_MNT_ID))
		return -ENOTSUP;
	*m = (struct mount){.id = st.stx_mnt_id};
	return mounts_find(mounts_has_id, m);
}

int mounts_device_of(int fd, dev_t *dev)
{
	struct mount m;
	int ret = mounts_find_of(fd, &m);

	if (!ret)
		*dev = m.dev;
	return ret;
}

int mounts_is_volatile(int fd)
{
	struct mount m;
	int ret = mounts_find_of(fd, &m);

	return ret ? ret : m.is_volatile;
}
