/* SPDX-License-Identifier: BSD-3-Clause */
/* async.h -- asynchronous events of the device (device_async() and friends live here too). */
#ifndef ENGINE_ASYNC_H
#define ENGINE_ASYNC_H

/* Open the queue; *fd is what users poll. 0 or -errno. */
int async_init(int *fd);

#endif
