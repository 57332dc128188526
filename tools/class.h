/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * class.h -- what a flush to persistence can mean for a file and for the device that serves it.
 */
#ifndef TOOL_CLASS_H
#define TOOL_CLASS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "hello.h"

/* dax: the file could be mapped with MAP_SYNC. */
enum hello_class class_of_file(int fd, bool dax);
/* Hardware writes past the CPU and persists DAX memory at best; the software RNIC calls
 * msync() and can persist any file. */
bool class_device_persists(const struct ibv_context *context, enum hello_class durability);

#endif
