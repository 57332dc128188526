/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reader.h -- reads of files, past the page cache where that is possible.
 *
 * A reader opens and closes the file in a thread with a descriptor table of its own
 * (base/thread.h), which has nothing open between two reads.
 *
 * A reader is used by one thread. It does not exist in the child of a fork().
 */
#ifndef PERSIST_READER_H
#define PERSIST_READER_H

#include <stddef.h>
#include <stdint.h>

#include "softrnic/persist/file.h"
#include "softrnic/persist/persist.h"

#define READER_BYTES  ((size_t)1 << 20) /* the most that one read takes */
#define READER_NO_WAY 1

struct reader;

/* NULL: no memory. Its thread is started by the first read. */
struct reader *reader_new(void);
void reader_delete(struct reader *reader); /* accepts NULL */
/* READER_BYTES, free for the caller's use until the next read. */
void *reader_buffer(struct reader *reader);
/*
 * *bytes are those of the file from that offset on, valid until the next read. 0; -EFAULT: the
 * file ends before; another -errno: they cannot be read; READER_NO_WAY: no descriptor leads to
 * the file, or none that may be read from, and *bytes and *source are as before.
 */
int reader_read(struct reader *reader, const struct file *file, uint64_t offset, size_t len,
		const void **bytes, enum vext_digest_source *source);

/*
 * Write back all of the file through a descriptor that is opened for reading only, for a mapping
 * whose msync() does nothing. 0, -errno or READER_NO_WAY.
 */
int reader_sync(struct reader *reader, const struct file *file);

#endif
