/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reader.h -- reads files, and bypasses the page cache if possible.
 *
 * A reader opens and closes the file in a thread with its own descriptor table (base/thread.h).
 * Between two reads this thread has no open descriptor.
 *
 * Only one thread uses a reader. A forked child has no readers.
 */
#ifndef PERSIST_READER_H
#define PERSIST_READER_H

#include <stddef.h>
#include <stdint.h>

#include "softrnic/persist/file.h"
#include "softrnic/persist/persist.h"

#define READER_BYTES  ((size_t)1 << 20) /* greatest length of one read */
#define READER_NO_WAY 1

struct reader;

/* Returns NULL if out of memory. The first read starts the reader's thread. */
struct reader *reader_new(void);
void reader_delete(struct reader *reader); /* accepts NULL */
/* A buffer of READER_BYTES, which the caller may use until the next read. */
void *reader_buffer(struct reader *reader);
/*
 * Read from the file at this offset. *bytes is valid until the next read. Returns 0; -EFAULT if the
 * file ends before the range; READER_NO_WAY if no descriptor permits reading the file (*bytes and
 * *source are then unchanged); or another -errno if the bytes cannot be read.
 */
int reader_read(struct reader *reader, const struct file *file, uint64_t offset, size_t len,
		const void **bytes, enum vext_digest_source *source);

/* Write back the whole file through a descriptor opened for reading only, for a mapping whose
 * msync() does nothing. Returns 0, -errno or READER_NO_WAY. */
int reader_sync(struct reader *reader, const struct file *file);

#endif
