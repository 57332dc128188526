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

/* Under the lock. */
static struct file *find_and_count(const struct vma *vma)
{
	struct list *it;

	list_for_each (it, &files) {
		struct file *f = container_of(it, struct file, node);

		if (f->dev == vma->dev && f->ino == vma->ino) {
			f->refs++;
			return f;
		}
	}
	return NULL;
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
	f->fd = m->fd;
	memcpy(f->fs, m->fs, sizeof(f->fs));
	file_reset_queues(f);
	return f;
}

/* Another thread may have been here meanwhile: then its entry counts. */
static struct file *insert_or_find(struct file *mine, const struct vma *vma)
{
	struct file *theirs;

	pthread_mutex_lock(&lock);
	theirs = find_and_count(vma);
	if (!theirs)
		list_add_tail(&files, &mine->node);
	pthread_mutex_unlock(&lock);
	if (!theirs)
		return mine;
	if (mine->fd >= 0)
		close(mine->fd);
	free(mine);
	return theirs;
}

int file_get(const struct vma *vma, struct file **out, char fs[32])
{
	struct medium m;
	struct file *f;

	pthread_mutex_lock(&lock);
	f = find_and_count(vma);
	pthread_mutex_unlock(&lock);
	if (!f) {
		/* Outside of the lock: a network file system may take its time. */
		int ret = medium_find(vma, &m);

		if (ret)
			return ret;
		if (m.cls == PERSIST_VOLATILE) {
			memcpy(fs, m.fs, sizeof(m.fs));
			*out = NULL;
			return 0;
		}
		f = file_new(vma, &m);
		if (!f) {
			if (m.fd >= 0)
				close(m.fd);
			return -ENOMEM;
		}
		f = insert_or_find(f, vma);
	}
	memcpy(fs, f->fs, sizeof(f->fs));
	*out = f;
	return 0;
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
	if (!last)
		return;
	if (f->fd >= 0)
		close(f->fd);
	free(f);
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

	list_for_each (it, &files)
		file_reset_queues(container_of(it, struct file, node));
	file_reset_queues(&memory);
	pthread_mutex_unlock(&lock);
}
