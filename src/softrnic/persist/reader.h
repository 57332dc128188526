/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reader.h -- reads of files, past the page cache where that is possible.
 *
 * To read needs a descriptor, and to close any descriptor of a file drops the POSIX locks
 * that the process holds on it: fcntl(2) locks belong to a descriptor table. Hence a reader
 * opens and closes in a thread which has a table of its own. That table is empty between two
 * reads, so it keeps nothing open that the application closes.
 *
 * A reader belongs to one thread. It is gone in the child of a fork().
 */
#ifndef PERSIST_READER_H
#define PERSIST_READER_H

#include <stddef.h>
#include <stdint.h>

#include "softrnic/persist/file.h"
#include "softrnic/persist/persist.h"

#define READER_BYTES  ((size_t)1 << 20) /* at most so many at once */
#define READER_NO_WAY 1

struct reader;

/* NULL: no memory. Its thread is started by the first read. */
struct reader *reader_new(void);
void reader_delete(struct reader *reader); /* accepts NULL */
/* READER_BYTES for whatever the caller likes, until the next read. */
void *reader_buffer(struct reader *reader);
/*
 * *bytes are those of the file from that offset on, valid until the next read. 0; -EFAULT: the
 * file ends before; another -errno: they cannot be read; READER_NO_WAY: no descriptor leads to
 * the file, or none that we may read from, and *bytes and *source are as before.
 */
int reader_read(struct reader *reader, const struct file *file, uint64_t offset, size_t len,
		const void **bytes, enum persist_source *source);

#endif
