/* SPDX-License-Identifier: BSD-3-Clause */
/* ready.h -- what a descriptor, or a link, is ready for. */
#ifndef IO_READY_H
#define IO_READY_H

enum {
	READY_READ = 1,     /* bytes may be there, or the end of them, or an error */
	READY_WRITE = 2,    /* bytes may be taken, or there is an error */
	READY_HANGUP = 4,   /* no more bytes will come than are there: read until the end */
	READY_RECEIVED = 8, /* a receive that went on by itself has ended (links only) */
};

#endif
