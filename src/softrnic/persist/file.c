/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list files = LIST_INIT(files);
static struct file files_memory = {
	.medium = {.fd = -1},
	.writes = {.jobs = LIST_INIT(files_memory.writes.jobs),
		   .ready = LIST_INIT(files_memory.writes.ready)},
	.reads = {.jobs = LIST_INIT(files_memory.reads.jobs),
		  .ready = LIST_INIT(files_memory.reads.ready)},
	.slot = {{.unconfirmed = LIST_INIT(files_memory.slot[0].unconfirmed)},
		 {.unconfirmed = LIST_INIT(files_memory.slot[1].unconfirmed)}},
};

/* `m` is the medium of the mapping's file, or NULL if it is not determined yet. */
static bool file_is_entry_of(const struct file *f, const struct vma *vma, const struct medium *m)
{
	if (f->dev != vma->dev || f->ino != vma->ino)
		return false;
	if (f->medium.unique)
		return true;
	return m && (f->medium.fd >= 0) == (m->fd >= 0) && f->medium.st_dev == m->st_dev &&
	       f->medium.st_ino == m->st_ino;
}

/* Called under files_lock. */
static struct file *files_find(const struct vma *vma, const struct medium *m)
{
	struct list *it;

	list_for_each (it, &files) {
		struct file *f = container_of(it, struct file, node);

		if (file_is_entry_of(f, vma, m)) {
			f->refs++;
			return f;
		}
	}
	return NULL;
}

/* Two entries can only be compared if both have a descriptor. Without one, assume that they may be
 * the same file. */
static bool file_may_be(const struct file *a, const struct file *b)
{
	return a->dev == b->dev && a->ino == b->ino && (a->medium.fd < 0 || b->medium.fd < 0);
}

/* Called under files_lock. If any entry that may be the same file has failed, this file has failed,
 * too. */
static void file_inherit_error(struct file *f)
{
	struct list *it;

	list_for_each (it, &files) {
		struct file *other = container_of(it, struct file, node);

		if (file_may_be(f, other) && !atomic_load(&f->error))
			atomic_store(&f->error, atomic_load(&other->error));
	}
}

static void file_set_error(struct file *f, int error)
{
	int none = 0;

	atomic_compare_exchange_strong(&f->error, &none, error);
}

void file_fail(struct file *f, int error)
{
	struct list *it;

	pthread_mutex_lock(&files_lock);
	file_set_error(f, error);
	list_for_each (it, &files) {
		struct file *other = container_of(it, struct file, node);

		if (file_may_be(f, other))
			file_set_error(other, error);
	}
	pthread_mutex_unlock(&files_lock);
}

static void file_queue_init(struct file_queue *q)
{
	list_init(&q->jobs);
	list_init(&q->ready);
}

void file_reset_queues(struct file *f)
{
	file_queue_init(&f->writes);
	file_queue_init(&f->reads);
	f->readers = 0;
	for (int i = 0; i < FILE_SLOTS; i++) {
		f->slot[i].busy = false;
		list_init(&f->slot[i].unconfirmed);
	}
}

static struct file *file_new(const struct vma *vma, const struct medium *m)
{
	struct file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->dev = vma->dev;
	f->ino = vma->ino;
	f->refs = 1;
	f->medium = *m;
	f->own_epoch = 1;
	pthread_mutex_init(&f->own_lock, NULL);
	file_reset_queues(f);
	return f;
}

static void file_delete(struct file *f)
{
	if (f->medium.fd >= 0)
		close(f->medium.fd);
	ownmap_delete(atomic_load(&f->own));
	pthread_mutex_destroy(&f->own_lock);
	free(f);
}

/* Add the entry. If another thread has added the same file meanwhile, use that thread's entry. */
static struct file *files_insert(struct file *entry, const struct vma *vma, const struct medium *m)
{
	struct file *other;

	pthread_mutex_lock(&files_lock);
	other = files_find(vma, m);
	if (!other) {
		file_inherit_error(entry);
		list_add_tail(&files, &entry->node);
	}
	pthread_mutex_unlock(&files_lock);
	if (!other)
		return entry;
	file_delete(entry);
	return other;
}

/* *out is NULL for a file that cannot be persisted. */
static int files_add(const struct vma *vma, struct medium *m, struct file **out)
{
	int ret = medium_find(vma, m);

	*out = NULL;
	if (ret || m->cls == VEXT_DURABILITY_VOLATILE)
		return ret;
	*out = file_new(vma, m);
	if (!*out) {
		if (m->fd >= 0)
			close(m->fd);
		return -ENOMEM;
	}
	*out = files_insert(*out, vma, m);
	return 0;
}

int file_get(const struct vma *vma, struct file **out, char fs[32])
{
	struct medium m;
	int ret = 0;

	pthread_mutex_lock(&files_lock);
	*out = files_find(vma, NULL);
	pthread_mutex_unlock(&files_lock);
	/* Call files_add() without files_lock, because a network file system may take long. */
	if (!*out)
		ret = files_add(vma, &m, out);
	if (!ret)
		memcpy(fs, *out ? (*out)->medium.fs : m.fs, sizeof(m.fs));
	return ret;
}

void file_put(struct file *f)
{
	bool last;

	if (!f)
		return;
	pthread_mutex_lock(&files_lock);
	last = --f->refs == 0;
	if (last)
		list_del(&f->node);
	pthread_mutex_unlock(&files_lock);
	if (last)
		file_delete(f);
}

/* Called under own_lock. */
static int file_extend_own(struct file *f, uint64_t end, bool writable)
{
	struct ownmap_source from = {f->medium.fd, f->medium.st_dev, f->medium.st_ino, f->dev,
				     f->ino};
	struct ownmap *own = atomic_load(&f->own);
	int ret;

	if (own && end <= own->len)
		return 0;
	if (own)
		ret = ownmap_extend(own, end, &own);
	else if (f->medium.fd < 0)
		ret = -ENOENT;
	else if (f->medium.copies_up && !writable)
		ret = -EROFS;
	else
		ret = ownmap_open(&from, end, &own);
	if (!ret)
		atomic_store(&f->own, own);
	return ret;
}

int file_own(struct file *f, uint64_t end, bool writable)
{
	int ret;

	pthread_mutex_lock(&f->own_lock);
	ret = file_extend_own(f, end, writable);
	pthread_mutex_unlock(&f->own_lock);
	return ret;
}

void *file_own_at(const struct file *f, uint64_t offset, uint64_t end)
{
	const struct ownmap *own = atomic_load(&f->own);

	return own && end <= own->len ? own->base + offset : NULL;
}

struct file *file_of_memory(void)
{
	return &files_memory;
}

/* Do not use fstat(): since Linux 6.13 it makes the file's time stamp exact, so the next store
 * changes the time stamp again. The write-back after that store may then have to write the inode as
 * well as the data. */
void file_find_end(const struct file *f, struct file_end *end)
{
	struct statx st;

	*end = (struct file_end){.size = UINT64_MAX};
	if (!f->medium.has_end)
		return;
	if (f->medium.fd < 0)
		end->error = FILE_END_UNKNOWN;
	else if (statx(f->medium.fd, "", AT_EMPTY_PATH, STATX_SIZE, &st) < 0)
		end->error = -errno;
	else
		end->size = st.stx_size;
}

int file_judge_end(const struct file_end *end, uint64_t range_end)
{
	return end->error || range_end <= end->size ? end->error : -EFAULT;
}

void files_atfork_prepare(void)
{
	pthread_mutex_lock(&files_lock);
}

void files_atfork_parent(void)
{
	pthread_mutex_unlock(&files_lock);
}

void files_atfork_child(void)
{
	struct list *it;

	list_for_each (it, &files) {
		struct file *f = container_of(it, struct file, node);

		file_reset_queues(f);
		pthread_mutex_init(&f->own_lock, NULL);
		ownmap_forget(atomic_exchange(&f->own, NULL));
		f->own_epoch++;
	}
	file_reset_queues(&files_memory);
	pthread_mutex_unlock(&files_lock);
}
