/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ownfd.h -- checks that a descriptor still belongs to the file that this library opened. A
 * program may close descriptors that it did not open, for instance by closefrom(3). The files that
 * the program opens next then get the same numbers.
 *
 * The result holds only at the moment of the check. All functions are async-signal-safe.
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

/* The identity of a file, a socket or a pipe. fd -1: no descriptor. */
struct ownfd {
	int fd;
	dev_t dev;
	ino_t ino;
};

/*
 * Use statx() and not fstat(), because since Linux 6.13 reading a file's times makes them exact.
 * The next store to any file of the machine would then get a separate time, and the next
 * fdatasync() of that file would also write its inode. Returns false if fd is not open.
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

/* Always returns false for "no descriptor" (fd -1). */
static inline bool ownfd_is_lost(const struct ownfd *own)
{
	struct statx st;

	return own->fd >= 0 && (!ownfd_look(own->fd, &st) || st.stx_ino != own->ino ||
				makedev(st.stx_dev_major, st.stx_dev_minor) != own->dev);
}

/*
 * The inode's number alone identifies a socket, because all sockets are in one file system.
 * Without the other members of struct ownfd, each of many sockets takes 16 bytes less.
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
 * An eventfd has no inode of its own: all files of the kernel's anonymous kinds share one. So the
 * library marks the eventfds that it opens by the signal of F_SETSIG, which has no effect on a
 * file that sends no signals. The mark belongs to the open file, so a file that the application
 * opens has no mark. Reading the mark takes half as long as fstat().
 */
#define OWNFD_MARK 55

/* Returns the descriptor, or -1 if the descriptor was closed. */
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
 * These two functions do the same as eventfd_write(fd, 1) and eventfd_read(). They also return
 * false if the descriptor belongs to another file.
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

/* check again after this time, because closing an eventfd wakes no thread */
#define OWNFD_LOOK_MS 1000

/* Wait until the eventfd is signalled, but at most for OWNFD_LOOK_MS. */
static inline void ownfd_wait(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	poll(&pfd, ownfd_is_marked(fd), OWNFD_LOOK_MS);
	ownfd_clear(fd);
}

#endif
