/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file-serve -- offer memory of this program to clients of librpmafile: file-serve HOST:PORT FILE
 */
#include <err.h>
#include <fcntl.h>
#include <librpmafile.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define LENGTH (1u << 20)

/*
 * Map a file as shared memory, which is durable: after a client's sync, its bytes are on the disk.
 */
static void *map(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *addr;

	if (fd < 0 || posix_fallocate(fd, 0, LENGTH))
		err(EXIT_FAILURE, "%s", path);
	addr = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return addr != MAP_FAILED ? addr : NULL;
}

int main(int argc, char **argv)
{
	struct rpma_file_export memory = {.name = "memory", .length = LENGTH};
	struct rpma_file_server *server;
	uint16_t port;

	if (argc != 3)
		errx(EXIT_FAILURE, "usage: file-serve HOST:PORT FILE");
	memory.addr = map(argv[2]);
	if (rpma_file_serve(argv[1], &memory, 1, NULL, &server) ||
	    rpma_file_server_get_port(server, &port))
		errx(EXIT_FAILURE, "%s", rpma_file_errormsg());
	printf("serving region 'memory' at port %u\n", port);
	fflush(stdout);
	while (!rpma_file_server_step(server, -1, NULL))
		; /* a program with an event loop waits for rpma_file_server_get_fd() instead */
	errx(EXIT_FAILURE, "%s", rpma_file_errormsg());
}
