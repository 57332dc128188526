/* SPDX-License-Identifier: BSD-3-Clause */
#include "poolset/devdax.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

const char *devdax_sysfs = "/sys";

static void devdax_path(char path[PATH_MAX], dev_t device, const char *file)
{
	snprintf(path, PATH_MAX, "%s/dev/char/%u:%u/%s", devdax_sysfs, major(device), minor(device),
		 file);
}

/* Returns 0 if the number cannot be read. */
static uint64_t devdax_number(dev_t device, const char *file)
{
	char path[PATH_MAX];
	long long value = 0;
	FILE *f;

	devdax_path(path, device, file);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%lli", &value) != 1 || value < 0)
		value = 0;
	fclose(f);
	return (uint64_t)value;
}

static bool devdax_is_one(dev_t device)
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *leaf;
	ssize_t len;

	devdax_path(path, device, "subsystem");
	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return false;
	target[len] = '\0';
	leaf = strrchr(target, '/');
	return leaf && !strcmp(leaf, "/dax");
}

bool devdax_probe(dev_t device, struct devdax *dax)
{
	static const char *const aligns[] = {"align", "../dax_region/align", "device/align",
					     "device/dax_region/align"};

	if (!devdax_is_one(device))
		return false;
	dax->size = devdax_number(device, "size");
	dax->align = 0;
	/* Linux 5.1 and 5.10 moved the file. */
	for (unsigned i = 0; !dax->align && i < sizeof(aligns) / sizeof(aligns[0]); i++)
		dax->align = devdax_number(device, aligns[i]);
	return dax->size && dax->align >= 4096 && !(dax->align & (dax->align - 1));
}
