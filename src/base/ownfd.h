/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ownfd.h -- is a descriptor still what this library opened? A program may close descriptors that
 * it did not open, as with closefrom(3), and what it opens next gets the same numbers.
 *
 * The answer holds for the moment of the question. All functions are async-signal-safe.
 */
#ifndef BASE_OWNFD_H
#define BASE_OWNFD_H

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* A file, a socket or a pipe. fd -1: no descriptor. */
struct ownfd {
	int fd;
	dev_t dev;
	ino_t ino;
};

/*
 * Do not use fstat(): since Linux 6.13 a time that fstat() has read is exact from then on. The next
 * store to any file of the machine then gets a separate time, and the next fdatasync() of that file
 * also writes its inode. Returns false if fd is not open.
 */
static inline bool ownfd_look(int fd, struct statx *st)
{
	return !statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_INO, st);
}

static inline struct ownfd ownfd_of(int fd)
{
	struct statx st;

	if (fd < 0 || !ownfd_look(fd, &st))
		return (struct ownfd){.fd = -1};
	return (struct ownfd){fd, makedev(st.stx_dev_major, st.stx_dev_minor), st.stx_ino};
}

/* "No descriptor" is never lost. */
static inline bool ownfd_is_lost(const struct ownfd *own)
{
	struct statx st;

	return own->fd >= 0 && (!ownfd_look(own->fd, &st) || st.stx_ino != own->ino ||
				makedev(st.stx_dev_major, st.stx_dev_minor) != own->dev);
}

/*
 * The inode's number identifies a socket, because all sockets are in one file system. That saves 16
 * bytes for each of many sockets.
 */
static inline ino_t ownfd_inode(int fd)
{
	struct statx st;

	return ownfd_look(fd, &st) ? st.stx_ino : 0;
}

static inline bool ownfd_is_socket(int fd, ino_t inode)
{
	struct statx st;

	return ownfd_look(fd, &st) && S_ISSOCK(st.stx_mode) && st.stx_ino == inode;
}

/*
 * An eventfd has no inode of its own: all files of such kinds share one. So the library marks the
 * files that it opens, by the signal of F_SETSIG, which has no effect on files that send none. The
 * mark belongs to the open file, so a file that the application opens has none. Reading the mark
 * costs half of fstat().
 */
#define OWNFD_MARK 55

/* The descriptor, or -1 if it was closed. */
static inline int ownfd_mark(int fd)
{
	if (fd < 0 || !fcntl(fd, F_SETSIG, OWNFD_MARK))
		return fd;
	close(fd);
	return -1;
}

static inline bool ownfd_is_marked(int fd)
{
	return fcntl(fd, F_GETSIG) == OWNFD_MARK;
}

static inline void ownfd_close_marked(int fd)
{
	if (ownfd_is_marked(fd))
		close(fd);
}

static inline int ownfd_event(int flags)
{
	return ownfd_mark(eventfd(0, EFD_CLOEXEC | flags));
}

/*
 * The same as eventfd_write(fd, 1) and eventfd_read(). Return false also if the descriptor belongs
 * to another file.
 */
static inline bool ownfd_wake(int fd)
{
	const uint64_t one = 1;

	return ownfd_is_marked(fd) && write(fd, &one, sizeof(one)) == sizeof(one);
}

static inline bool ownfd_clear(int fd)
{
	uint64_t count;

	return ownfd_is_marked(fd) && read(fd, &count, sizeof(count)) == sizeof(count);
}

#define OWNFD_LOOK_MS 1000 /* a closed eventfd wakes no thread */

/* Wait until the eventfd is signalled, or for OWNFD_LOOK_MS. */
static inline void ownfd_wait(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	poll(&pfd, ownfd_is_marked(fd), OWNFD_LOOK_MS);
	ownfd_clear(fd);
}

#endif
