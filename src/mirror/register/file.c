/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The register in a file: a text, which is replaced as a whole under a lock. All processes that
 * share the file system can use it. The lock is on a second file, which is never replaced or
 * removed. The form of the text:
 *
 *     rpmirror register 1
 *     revision 12
 *     record 11 {"format":1,...}
 *     alive 12 {"epoch":...}
 *
 * If a key is absent, its line has revision 0 and no text.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/newfile.h"
#include "base/poll.h"
#include "mirror/register/backend.h"

#define FILE_HEAD "rpmirror register 1\n"
#define FILE_MAX  (2 * VALUE_MAX + 256)

struct file_register {
	struct mirror_register base;
	uint64_t revision; /* revision of the file's last change */
	char path[REGISTER_URI_MAX + 1], lock_path[REGISTER_URI_MAX + 8],
		new_path[REGISTER_URI_MAX + 8];
	char text[FILE_MAX];
};

static struct file_register *file_of(struct mirror_register *r)
{
	/* the handle is the first member of struct file_register */
	return (struct file_register *)r;
}

static int file_error(struct error *err, const char *path, const char *what, int cause)
{
	error_set(err, ERROR_LOCAL, cause, "cannot %s %s: %s", what, path, strerror(cause));
	return -cause;
}

/* Lock the file. Returns the descriptor of the lock, or -errno. The call polls, because flock(2)
 * has no time limit. */
static int file_lock(struct file_register *f, int kind, uint64_t deadline, struct error *err)
{
	struct timespec pause = {.tv_nsec = 100000};
	int fd = open(f->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0)
		return file_error(err, f->lock_path, "open", errno);
	while (flock(fd, kind | LOCK_NB)) {
		int cause = errno;

		if (cause == EWOULDBLOCK && clock_now_ns() >= deadline)
			cause = ETIMEDOUT;
		if (cause != EWOULDBLOCK && cause != EINTR) {
			close(fd);
			return file_error(err, f->lock_path, "lock", cause);
		}
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 5000000)
			pause.tv_nsec *= 2;
	}
	return fd;
}

/* Parse one line "name REVISION[ TEXT]", and move *at behind it. */
static int file_parse_key(const char **at, const char *name, struct backend_value *value)
{
	const char *line = *at, *end = strchr(line, '\n');
	size_t len = strlen(name);
	char *text;

	if (!end || strncmp(line, name, len) || line[len] != ' ')
		return -EPROTO;
	errno = 0;
	value->revision = strtoull(line + len + 1, &text, 10);
	*at = end + 1;
	value->len = 0;
	if (errno || text == line + len + 1)
		return -EPROTO;
	if (!value->revision)
		return text == end ? 0 : -EPROTO;
	if (*text != ' ' || (size_t)(end - text) > VALUE_MAX)
		return -EPROTO;
	value->len = (size_t)(end - text) - 1;
	memcpy(value->text, text + 1, value->len);
	value->text[value->len] = '\0';
	return 0;
}

static int file_parse(struct file_register *f, struct backend_keys *now)
{
	struct backend_value *whole = &now->key[BACKEND_RECORD];
	const char *at = f->text;
	char *end;

	if (strncmp(at, FILE_HEAD, strlen(FILE_HEAD)) != 0)
		return -EPROTO;
	at += strlen(FILE_HEAD);
	if (strncmp(at, "revision ", 9) != 0)
		return -EPROTO;
	f->revision = strtoull(at + 9, &end, 10);
	if (*end != '\n')
		return -EPROTO;
	at = end + 1;
	if (file_parse_key(&at, "record", whole) ||
	    file_parse_key(&at, "alive", &now->key[BACKEND_ALIVE]) || *at)
		return -EPROTO;
	return 0;
}

/* Load the file. An absent file is an empty register. */
static int file_load(struct file_register *f, struct backend_keys *now, struct error *err)
{
	int fd = open(f->path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n;

	f->revision = now->key[BACKEND_RECORD].revision = now->key[BACKEND_ALIVE].revision = 0;
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return file_error(err, f->path, "open", errno);
	do {
		n = read(fd, f->text + len, sizeof(f->text) - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	} while (n > 0 || (n < 0 && errno == EINTR));
	f->text[len] = '\0';
	if (n < 0) {
		int cause = errno;

		close(fd);
		return file_error(err, f->path, "read", cause);
	}
	close(fd);
	if (strlen(f->text) == len && !file_parse(f, now))
		return 0;
	error_set(err, ERROR_ARGUMENT, EPROTO, "%s is not a register that rpmirror wrote", f->path);
	return -EPROTO;
}

static int file_read(struct mirror_register *r, uint64_t deadline, enum backend_word word,
		     struct backend_keys *now, struct error *err)
{
	(void)word; /* the store is one file, so both kinds of read are the same */
	struct file_register *f = file_of(r);
	/* Take the lock for the read, because a value that is not durable yet must not be read: a
	 * power failure could undo it. */
	int lock = file_lock(f, LOCK_SH, deadline, err);
	int rc;

	if (lock < 0)
		return lock;
	rc = file_load(f, now, err);
	close(lock);
	return rc;
}

static bool file_holds(const struct backend_value *now, const struct backend_value *expect)
{
	return !expect || (now->revision == expect->revision &&
			   (!now->revision || (now->len == expect->len &&
					       !memcmp(now->text, expect->text, now->len))));
}

/* Only the lock's holder writes the new file. So a fixed name is sufficient, and the next writer
 * overwrites the remains of a killed process. */
static int file_write_new(struct file_register *f, size_t len)
{
	int fd = open(f->new_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int rc;

	if (fd < 0)
		return -errno;
	rc = newfile_write(fd, f->text, len);
	if (!rc && fsync(fd))
		rc = -errno;
	if (close(fd) && !rc)
		rc = -errno;
	return rc;
}

static enum register_result file_store(struct file_register *f, const struct backend_keys *now,
				       struct error *err)
{
	const struct backend_value *record = &now->key[BACKEND_RECORD];
	const struct backend_value *alive = &now->key[BACKEND_ALIVE];
	int len = snprintf(f->text, sizeof(f->text),
			   FILE_HEAD "revision %" PRIu64 "\nrecord %" PRIu64 "%s%s\nalive %" PRIu64
				     "%s%s\n",
			   f->revision, record->revision, record->revision ? " " : "",
			   record->revision ? record->text : "", alive->revision,
			   alive->revision ? " " : "", alive->revision ? alive->text : "");
	int rc = file_write_new(f, (size_t)len);

	if (!rc && rename(f->new_path, f->path))
		rc = -errno;
	if (rc) {
		file_error(err, f->new_path, "write", -rc);
		return REGISTER_FAILED;
	}
	rc = newfile_sync_folder(f->path);
	if (!rc)
		return REGISTER_DONE;
	file_error(err, f->path, "make durable", -rc);
	/* the new file has its name now, but may lose the name in a power failure */
	return REGISTER_UNKNOWN;
}

static enum register_result file_change(struct file_register *f, const struct backend_txn *txn,
					struct backend_keys *now, struct error *err)
{
	if (file_load(f, now, err))
		return REGISTER_FAILED;
	for (unsigned key = 0; key < BACKEND_KEYS; key++)
		if (!file_holds(&now->key[key], txn->expect[key]))
			return REGISTER_CHANGED;
	f->revision++;
	for (unsigned key = 0; key < BACKEND_KEYS; key++) {
		struct backend_value *value = &now->key[key];

		if (txn->change[key] == BACKEND_DELETE)
			value->revision = 0;
		if (txn->change[key] != BACKEND_PUT)
			continue;
		value->revision = f->revision;
		value->len = strlen(txn->put[key]);
		memcpy(value->text, txn->put[key], value->len + 1);
	}
	return file_store(f, now, err);
}

static enum register_result file_txn(struct mirror_register *r, uint64_t deadline,
				     const struct backend_txn *txn, uint64_t *revision,
				     struct backend_keys *now, struct error *err)
{
	struct file_register *f = file_of(r);
	int lock = file_lock(f, LOCK_EX, deadline, err);
	enum register_result result;

	if (lock < 0)
		return REGISTER_FAILED;
	result = file_change(f, txn, now, err);
	*revision = f->revision;
	close(lock);
	return result;
}

/* Returns true if there is a newer record, or the alive key was cleared. An unreadable file counts
 * as a change, too. */
static bool file_has_news(struct file_register *f, uint64_t revision, bool was_alive)
{
	struct backend_keys *now = &f->base.now;

	return file_load(f, now, NULL) || now->key[BACKEND_RECORD].revision != revision ||
	       (was_alive && !now->key[BACKEND_ALIVE].revision);
}

static bool file_wait(struct file_register *f, int notify, uint64_t revision, uint64_t deadline,
		      int wake_fd)
{
	struct pollfd fds[2] = {{.fd = notify, .events = POLLIN},
				{.fd = wake_fd, .events = POLLIN}};
	bool was_alive =
		!file_load(f, &f->base.now, NULL) && f->base.now.key[BACKEND_ALIVE].revision;
	char events[4096];

	for (;;) {
		if (file_has_news(f, revision, was_alive))
			return true;
		if (poll(fds, 2, poll_ms_left(deadline)) < 0 && errno != EINTR)
			return true;
		if (fds[1].revents)
			return false;
		if (!fds[0].revents && !poll_ms_left(deadline))
			return false;
		if (fds[0].revents && read(notify, events, sizeof(events)) < 0)
			return true;
	}
}

static bool file_watch(struct mirror_register *r, uint64_t revision, unsigned timeout_ms,
		       int wake_fd)
{
	struct file_register *f = file_of(r);
	uint64_t deadline = clock_now_ns() + timeout_ms * NSEC_PER_MS;
	int notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char folder[sizeof(f->path)];
	bool seen;

	strcpy(folder, f->path);
	/* without inotify the watch only waits */
	if (notify >= 0)
		inotify_add_watch(notify, dirname(folder), IN_MOVED_TO | IN_DELETE);
	seen = file_wait(f, notify, revision, deadline, wake_fd);
	if (notify >= 0)
		close(notify);
	return seen;
}

static void file_health(struct mirror_register *r, struct register_health *health)
{
	strcpy(health->kind, "file");
	health->members = 1;
	health->healthy = !r->ops->read(r, clock_now_ns() + r->limit_ms * NSEC_PER_MS,
					BACKEND_OF_ALL, &r->now, NULL);
}

static void file_close(struct mirror_register *r)
{
	free(file_of(r));
}

static const struct backend_ops file_ops = {
	.read = file_read,
	.txn = file_txn,
	.watch = file_watch,
	.health = file_health,
	.close = file_close,
};

int file_register_open(const char *rest, struct mirror_register **r, struct error *err)
{
	struct file_register *f;

	if (rest[0] != '/')
		return error_set(err, ERROR_ARGUMENT, EINVAL,
				 "the path of a file register must begin with '/': 'file:%s'",
				 rest);
	f = calloc(1, sizeof(*f));
	if (!f)
		return error_set(err, ERROR_LOCAL, ENOMEM, "out of memory for a register");
	f->base.ops = &file_ops;
	snprintf(f->path, sizeof(f->path), "%s", rest);
	snprintf(f->lock_path, sizeof(f->lock_path), "%s.lock", rest);
	snprintf(f->new_path, sizeof(f->new_path), "%s.new", rest);
	*r = &f->base;
	return 0;
}
