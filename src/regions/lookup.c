/* SPDX-License-Identifier: BSD-3-Clause */
#include "regions/lookup.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/newfile.h"

#define LEAVE_AFTER_MS 1000

struct lookup {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t asked, answered;
	uint64_t asked_ticket;
	bool durable, ending, ended;
	bool overdue; /* a wait has timed out, and no answer has come since */
	struct lookup_answer latest;
	bool has_record; /* a record waits to be stored */
	struct file_record record;
	struct file_record_place place;
	uint64_t size;
	int fd, notify_fd;
	char path[8192];
};

/* Only this name must lead to the file. Other hard links of the file do not count. */
static enum lookup_result lookup_look(const struct lookup *l)
{
	struct stat open_file, named;

	if (l->fd < 0)
		return LOOKUP_FOUND;
	if (fstat(l->fd, &open_file))
		return LOOKUP_FAILED;
	if (stat(l->path, &named))
		return errno == ENOENT || errno == ENOTDIR ? LOOKUP_REMOVED : LOOKUP_FAILED;
	if (named.st_dev != open_file.st_dev || named.st_ino != open_file.st_ino)
		return LOOKUP_REPLACED;
	return (uint64_t)open_file.st_size < l->size ? LOOKUP_TRUNCATED : LOOKUP_FOUND;
}

/* Check the name first, then sync its folder: a crash then cannot undo what the check has found. */
static struct lookup_answer lookup_make_answer(const struct lookup *l, bool durable)
{
	struct lookup_answer answer = {.result = lookup_look(l)};
	int rc;

	if (answer.result == LOOKUP_FAILED)
		answer.error = errno;
	if (answer.result != LOOKUP_FOUND || !durable || l->fd < 0)
		return answer;
	rc = newfile_sync_name(l->fd, l->path);
	return rc ? (struct lookup_answer){.result = LOOKUP_FAILED, .error = -rc} : answer;
}

static void lookup_measure(const struct lookup *l, struct lookup_answer *answer)
{
	struct statvfs fs;

	if (l->fd < 0 || fstatvfs(l->fd, &fs))
		return;
	answer->avail = (uint64_t)fs.f_bavail * fs.f_frsize;
	answer->room = (uint64_t)fs.f_blocks * fs.f_frsize;
}

static bool lookup_is_final(enum lookup_result result)
{
	return result != LOOKUP_FOUND && result != LOOKUP_FAILED;
}

/* Do not store a record for a file that has lost its name: the record of another file may be in its
 * place. Returns 0 or an errno. */
static int lookup_store_record(const struct lookup *l, const struct file_record *record)
{
	if (l->fd < 0)
		return 0;
	return lookup_is_final(lookup_look(l)) ? ENOENT : -file_record_store(&l->place, record);
}

static void lookup_publish(struct lookup *l, struct lookup_answer answer)
{
	if (lookup_is_final(l->latest.result)) {
		l->latest.ticket = answer.ticket;
		l->latest.store_error = answer.store_error;
		l->latest.avail = answer.avail;
		l->latest.room = answer.room;
	} else {
		l->latest = answer;
	}
	l->overdue = false;
	pthread_cond_broadcast(&l->answered);
	eventfd_write(l->notify_fd, 1);
}

static void lookup_free(struct lookup *l)
{
	pthread_cond_destroy(&l->asked);
	pthread_cond_destroy(&l->answered);
	pthread_mutex_destroy(&l->lock);
	if (l->fd >= 0)
		close(l->fd);
	free(l);
}

static void *lookup_run(void *arg)
{
	struct lookup *l = arg;
	struct lookup_answer answer;

	pthread_mutex_lock(&l->lock);
	while (!l->ending) {
		uint64_t ticket = l->asked_ticket;
		bool durable = l->durable, stores = l->has_record;
		struct file_record record = l->record;
		int store_error = l->latest.store_error;

		if (ticket == l->latest.ticket) {
			pthread_cond_wait(&l->asked, &l->lock);
			continue;
		}
		l->durable = l->has_record = false;
		pthread_mutex_unlock(&l->lock);
		if (stores)
			store_error = lookup_store_record(l, &record);
		answer = lookup_make_answer(l, durable);
		lookup_measure(l, &answer);
		answer.ticket = ticket;
		answer.store_error = store_error;
		pthread_mutex_lock(&l->lock);
		if (!l->ending)
			lookup_publish(l, answer);
	}
	l->ended = true;
	pthread_cond_broadcast(&l->answered);
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* Make a relative path absolute now, because the current folder may be renamed later. */
static int lookup_set_path(struct lookup *l, const char *path)
{
	char folder[4096];
	int len;

	if (path[0] == '/' || !getcwd(folder, sizeof(folder)) || folder[0] != '/')
		len = snprintf(l->path, sizeof(l->path), "%s", path);
	else
		len = snprintf(l->path, sizeof(l->path), "%s/%s", folder, path);
	if (len < (int)sizeof(l->path))
		return 0;
	errno = ENAMETOOLONG;
	return -1;
}

struct lookup *lookup_new(const char *path, int fd, uint64_t size,
			  const struct file_record_place *place, int notify_fd)
{
	struct lookup *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->size = size;
	l->place = *place;
	l->notify_fd = notify_fd;
	thread_cond_init(&l->asked);
	thread_cond_init(&l->answered);
	pthread_mutex_init(&l->lock, NULL);
	l->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if ((fd < 0 || l->fd >= 0) && !lookup_set_path(l, path)) {
		errno = -thread_start(&l->thread, 0, lookup_run, l);
		if (!errno)
			return l;
	}
	fd = errno;
	lookup_free(l);
	errno = fd;
	return NULL;
}

void lookup_delete(struct lookup *l)
{
	struct timespec limit = clock_timespec(clock_now_ns() + LEAVE_AFTER_MS * NSEC_PER_MS);
	bool ended;

	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->ending = true;
	pthread_cond_signal(&l->asked);
	while (!l->ended && !pthread_cond_timedwait(&l->answered, &l->lock, &limit))
		;
	ended = l->ended;
	pthread_mutex_unlock(&l->lock);
	if (!ended) {
		pthread_detach(l->thread); /* the thread still uses *l */
		return;
	}
	pthread_join(l->thread, NULL);
	lookup_free(l);
}

const char *lookup_path(const struct lookup *l)
{
	return l->path;
}

static uint64_t lookup_ask_locked(struct lookup *l, bool durable)
{
	l->durable |= durable;
	pthread_cond_signal(&l->asked);
	return ++l->asked_ticket;
}

uint64_t lookup_ask(struct lookup *l, bool durable)
{
	uint64_t ticket;

	pthread_mutex_lock(&l->lock);
	ticket = lookup_ask_locked(l, durable);
	pthread_mutex_unlock(&l->lock);
	return ticket;
}

uint64_t lookup_store(struct lookup *l, const struct file_record *record, bool durable)
{
	uint64_t ticket;

	pthread_mutex_lock(&l->lock);
	l->record = *record;
	l->has_record = true;
	ticket = lookup_ask_locked(l, durable);
	pthread_mutex_unlock(&l->lock);
	return ticket;
}

void lookup_get(struct lookup *l, struct lookup_answer *latest)
{
	pthread_mutex_lock(&l->lock);
	*latest = l->latest;
	pthread_mutex_unlock(&l->lock);
}

bool lookup_wait(struct lookup *l, unsigned ms, struct lookup_answer *latest)
{
	struct timespec limit = clock_timespec(clock_now_ns() + ms * NSEC_PER_MS);
	bool answered = false;
	uint64_t ticket;

	pthread_mutex_lock(&l->lock);
	ticket = lookup_ask_locked(l, false);
	while (!l->overdue && !answered) {
		if (pthread_cond_timedwait(&l->answered, &l->lock, &limit))
			l->overdue = l->latest.ticket < ticket;
		answered = l->latest.ticket >= ticket;
	}
	*latest = l->latest;
	pthread_mutex_unlock(&l->lock);
	return answered;
}
