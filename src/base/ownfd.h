/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ownfd.h -- is a descriptor still what this library opened? A program may close descriptors that
 * it did not open, as with closefrom(3), and what it opens next gets the same numbers.
 *
 * The answer holds for the moment of the question. All functions are async-signal-safe.
 */
#ifndef BASE_OWNFD_H
#define BASE_OWNFD_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file, a socket or a pipe. fd -1: none. */
struct ownfd {
	int fd;
	dev_t dev;
	ino_t ino;
};

static inline struct ownfd ownfd_of(int fd)
{
	struct stat st = {0};

	if (fd < 0 || fstat(fd, &st))
		return (struct ownfd){.fd = -1};
	return (struct ownfd){fd, st.st_dev, st.st_ino};
}

/* None is never lost. */
static inline bool ownfd_is_lost(const struct ownfd *own)
{
	struct stat st;

	return own->fd >= 0 &&
	       (fstat(own->fd, &st) || st.st_dev != own->dev || st.st_ino != own->ino);
}

/* Of a socket the inode's number is enough, as all sockets are in one file system: 16 bytes less
 * where there are many. */
static inline ino_t ownfd_inode(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : st.st_ino;
}

static inline bool ownfd_is_socket(int fd, ino_t inode)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISSOCK(st.st_mode) && st.st_ino == inode;
}

/*
 * An eventfd has no number of its own: all of them share one inode, whose mode names no type of
 * file. So a file, a pipe or a socket is told from it, but not an eventfd of the application.
 */
static inline bool ownfd_is_event(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && !(st.st_mode & S_IFMT);
}

/* As eventfd_write(fd, 1) and eventfd_read(). False: also if the descriptor is another one. */
static inline bool ownfd_wake(int fd)
{
	const uint64_t one = 1;

	return ownfd_is_event(fd) && write(fd, &one, sizeof(one)) == sizeof(one);
}

static inline bool ownfd_clear(int fd)
{
	uint64_t count;

	return ownfd_is_event(fd) && read(fd, &count, sizeof(count)) == sizeof(count);
}

#define OWNFD_LOOK_MS 1000 /* a closed eventfd wakes no thread */

/* Wait until the eventfd is signalled, or for OWNFD_LOOK_MS. */
static inline void ownfd_wait(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	poll(&pfd, ownfd_is_event(fd), OWNFD_LOOK_MS);
	ownfd_clear(fd);
}

#endif
