/* SPDX-License-Identifier: BSD-3-Clause */
/* relay.h -- a TCP relay that records all bytes that it passes. The bytes that one recv() returns
 * become one packet of the capture. */
#ifndef DECODE_RELAY_H
#define DECODE_RELAY_H

#include <pthread.h>
#include <stdint.h>

#include "capture.h"

struct relay {
	char port[8];
	uint16_t to_port;
	int listen_fd;
	struct capture capture;
	pthread_t thread;
};

/* Listen on a free port, and relay one connection after another. Returns 0 or -errno. */
int relay_start(struct relay *r, const char *to_port, const char *file);
/* Stop the relay, and complete the file. Returns 0 or -errno. */
int relay_stop(struct relay *r);

#endif
