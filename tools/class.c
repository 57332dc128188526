/* SPDX-License-Identifier: BSD-3-Clause */
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "class.h"

enum hello_class class_of_file(int fd, bool dax)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return HELLO_VOLATILE;
	switch ((unsigned long)fs.f_type) {
	case TMPFS_MAGIC:
	case RAMFS_MAGIC:
	case HUGETLBFS_MAGIC:
		return HELLO_VOLATILE;
	default:
		return dax ? HELLO_DAX : HELLO_FILE;
	}
}

bool class_device_persists(const struct ibv_context *context, enum hello_class durability)
{
	bool software = !strncmp(context->device->name, "softrnic", 8);

	return durability != HELLO_VOLATILE && software;
}
