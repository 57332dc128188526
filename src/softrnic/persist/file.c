/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/file.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softrnic/persist/medium.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list files = LIST_INIT(files);
static struct file memory = {
	.fd = -1,
	.writes = {.jobs = LIST_INIT(memory.writes.jobs), .ready = LIST_INIT(memory.writes.ready)},
	.reads = {.jobs = LIST_INIT(memory.reads.jobs), .ready = LIST_INIT(memory.reads.ready)},
	.slot = {{.held = LIST_INIT(memory.slot[0].held)},
		 {.held = LIST_INIT(memory.slot[1].held)}},
};

static bool has_numbers_of(const struct file *f, const struct vma *vma)
{
	return f->dev == vma->dev && f->ino == vma->ino;
}

/* m: what was found out about the mapping's file; NULL: nothing yet. */
static bool is_entry_of(const struct file *f, const struct vma *vma, const struct medium *m)
{
	if (!has_numbers_of(f, vma))
		return false;
	if (f->unique)
		return true;
	return m && (f->fd >= 0) == (m->fd >= 0) && f->st_dev == m->st_dev &&
	       f->st_ino == m->st_ino;
}

/* Under the lock. */
static struct file *find_and_count(const struct vma *vma, const struct medium *m)
{
	struct list *it;

	list_for_each (it, &files) {
		struct file *f = container_of(it, struct file, node);

		if (is_entry_of(f, vma, m)) {
			f->refs++;
			return f;
		}
	}
	return NULL;
}

/* Nothing leads to one of them, so they may be the same file. */
static bool may_be_one(const struct file *a, const struct file *b)
{
	return a->dev == b->dev && a->ino == b->ino && (a->fd < 0 || b->fd < 0);
}

/* Under the lock: a failure of what may be the same file counts. */
static void inherit_error(struct file *f)
{
	struct list *it;

	list_for_each (it, &files) {
		struct file *other = container_of(it, struct file, node);

		if (may_be_one(f, other) && !atomic_load(&f->error))
			atomic_store(&f->error, atomic_load(&other->error));
	}
}

static void set_error(struct file *f, int error)
{
	int none = 0;

	atomic_compare_exchange_strong(&f->error, &none, error);
}

void file_fail(struct file *f, int error)
{
	struct list *it;

	pthread_mutex_lock(&lock);
	set_error(f, error);
	list_for_each (it, &files) {
		struct file *other = container_of(it, struct file, node);

		if (may_be_one(f, other))
			set_error(other, error);
	}
	pthread_mutex_unlock(&lock);
}

static void queue_init(struct file_queue *q)
{
	list_init(&q->jobs);
	list_init(&q->ready);
}

void file_reset_queues(struct file *f)
{
	queue_init(&f->writes);
	queue_init(&f->reads);
	f->readers = 0;
	for (int i = 0; i < FILE_SLOTS; i++) {
		f->slot[i].busy = false;
		list_init(&f->slot[i].held);
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
	f->cls = m->cls;
	f->may_dax = m->may_dax;
	f->sized = m->sized;
	f->served = m->served;
	f->direct = m->direct;
	f->st_dev = m->st_dev;
	f->st_ino = m->st_ino;
	f->unique = m->unique;
	f->copies_up = m->copies_up;
	f->fd = m->fd;
	f->own_epoch = 1;
	pthread_mutex_init(&f->own_lock, NULL);
	memcpy(f->fs, m->fs, sizeof(f->fs));
	file_reset_queues(f);
	return f;
}

static void file_delete(struct file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	ownmap_delete(atomic_load(&f->own));
	pthread_mutex_destroy(&f->own_lock);
	free(f);
}

/* Another thread may have been here meanwhile: then its entry counts. */
static struct file *insert_or_find(struct file *mine, const struct vma *vma, const struct medium *m)
{
	struct file *theirs;

	pthread_mutex_lock(&lock);
	theirs = find_and_count(vma, m);
	if (!theirs) {
		inherit_error(mine);
		list_add_tail(&files, &mine->node);
	}
	pthread_mutex_unlock(&lock);
	if (!theirs)
		return mine;
	file_delete(mine);
	return theirs;
}

/* *out is NULL for a file that cannot be persisted. */
static int find_medium(const struct vma *vma, struct medium *m, struct file **out)
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
	*out = insert_or_find(*out, vma, m);
	return 0;
}

int file_get(const struct vma *vma, struct file **out, char fs[32])
{
	struct medium m;
	int ret = 0;

	pthread_mutex_lock(&lock);
	*out = find_and_count(vma, NULL);
	pthread_mutex_unlock(&lock);
	/* Outside of the lock: a network file system may take its time. */
	if (!*out)
		ret = find_medium(vma, &m, out);
	if (!ret)
		memcpy(fs, *out ? (*out)->fs : m.fs, sizeof(m.fs));
	return ret;
}

void file_put(struct file *f)
{
	bool last;

	if (!f)
		return;
	pthread_mutex_lock(&lock);
	last = --f->refs == 0;
	if (last)
		list_del(&f->node);
	pthread_mutex_unlock(&lock);
	if (last)
		file_delete(f);
}

/* Under the file's lock. */
static int get_own(struct file *f, uint64_t end, bool writable)
{
	struct ownmap_source from = {f->fd, f->st_dev, f->st_ino, f->dev, f->ino};
	struct ownmap *own = atomic_load(&f->own);
	int ret;

	if (own && end <= own->len)
		return 0;
	if (own)
		ret = ownmap_extend(own, end, &own);
	else if (f->fd < 0)
		ret = -ENOENT;
	else if (f->copies_up && !writable)
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
	ret = get_own(f, end, writable);
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
	return &memory;
}

int file_check_end(const struct file *f, uint64_t end)
{
	struct stat st;

	if (!f->sized)
		return 0;
	if (f->fd < 0)
		return FILE_END_UNKNOWN;
	if (fstat(f->fd, &st) < 0)
		return -errno;
	return (uint64_t)st.st_size < end ? -EFAULT : 0;
}

void files_atfork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void files_atfork_parent(void)
{
	pthread_mutex_unlock(&lock);
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
	file_reset_queues(&memory);
	pthread_mutex_unlock(&lock);
}
