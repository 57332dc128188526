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
/*
 * The software RNIC writes back what it was asked to flush. What hardware wrote may rest in
 * the CPU's caches (DDIO), on DAX as well: that nobody promises here.
 */
bool class_device_persists(const struct ibv_context *context, enum hello_class durability);

#endif
