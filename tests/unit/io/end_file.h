/* SPDX-License-Identifier: BSD-3-Clause */
/* end_file.h -- a file in the current directory, registered at one end for the peer's Writes and
 * Reads. */
#ifndef UNIT_IO_END_FILE_H
#define UNIT_IO_END_FILE_H

#include "ends.h"

#define END_FILE 16384

struct end_file {
	char name[64];
	int fd;
	void *map;
	struct ibv_mr *mr;
};

void end_file_open(struct end_file *f, struct end *e);
void end_file_open_as(struct end_file *f, struct ibv_pd *pd, int access);
void end_file_close(struct end_file *f); /* deregisters the memory if mr is not NULL */
/* Returns true if the current directory is on a medium, so that write-backs have an effect. */
bool end_file_is_possible(void);

#endif
