/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands of mirror_app about descriptors:
 *
 *   close-all  close all descriptors, like a program that becomes a daemon (closefrom(3))
 *   reuse      close all descriptors; files and sockets of the application get their numbers
 *   reused     check that nothing was read from or written to these files and sockets
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "app.h"

#define FILES_FIRST  3
#define FILES_END    256
#define FILES_ROUNDS 50 /* rounds of four descriptors each, in total more than the library has */
#define FILES_SIZE   4096

static enum files_kind { FILES_NONE, FILES_SOCKET, FILES_MEMORY } files[FILES_END];

static int files_close_all(void)
{
	return syscall(SYS_close_range, FILES_FIRST, ~0U, 0) ? RPMIRROR_E_UNKNOWN : 0;
}

static int files_add(int fd, enum files_kind kind)
{
	if (fd < 0 || fd >= FILES_END || (kind == FILES_MEMORY && ftruncate(fd, FILES_SIZE)))
		return -1;
	files[fd] = kind;
	return 0;
}

/* Open a socket and its peer, and two files. */
static int files_open(void)
{
	int pair[2];

	return socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || files_add(pair[0], FILES_SOCKET) ||
	       files_add(pair[1], FILES_SOCKET) ||
	       files_add(memfd_create("mine", 0), FILES_MEMORY) ||
	       files_add(memfd_create("mine", 0), FILES_MEMORY);
}

/* A thread of the library has possibly opened a file meanwhile, for instance to log that its
 * descriptors are lost. The number of this file does not belong to the application. */
static void files_reuse(void)
{
	int rc = files_close_all();

	for (int i = 0; !rc && i < FILES_ROUNDS; i++)
		rc = files_open();
	printf("%s\n", rc ? strerror(errno) : "ok");
}

/* Returns true if the socket's peer has received nothing and is still connected. */
static bool files_is_whole(int fd)
{
	static const uint8_t zeros[FILES_SIZE];
	uint8_t bytes[FILES_SIZE] = {1};
	struct stat st;

	if (files[fd] == FILES_SOCKET)
		return recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) < 0 && errno == EAGAIN;
	return !fstat(fd, &st) && st.st_size == FILES_SIZE && !lseek(fd, 0, SEEK_CUR) &&
	       pread(fd, bytes, sizeof(bytes), 0) == sizeof(bytes) &&
	       !memcmp(bytes, zeros, sizeof(bytes));
}

static void files_check(void)
{
	for (int fd = FILES_FIRST; fd < FILES_END; fd++)
		if (files[fd] != FILES_NONE && !files_is_whole(fd)) {
			printf("%d is not as it was\n", fd);
			return;
		}
	printf("ok\n");
}

bool app_files_do(const char *line)
{
	if (!strncmp(line, "close-all", 9))
		app_answer(files_close_all());
	else if (!strncmp(line, "reused", 6))
		files_check();
	else if (!strncmp(line, "reuse", 5))
		files_reuse();
	else
		return false;
	return true;
}
