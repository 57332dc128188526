/* SPDX-License-Identifier: BSD-3-Clause */
#include "served.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct rpma_file_server *server;
static pthread_t thread;
static atomic_bool ends;
/* one name for each process, because several programs run in one folder */
static char file_path[64];
unsigned char *memory;
char target[64], file_target[64];

static void *served_run(void *arg)
{
	while (!ends)
		assert_int_equal(rpma_file_server_step(server, 20, NULL), 0);
	return arg;
}

int served_start(void **state)
{
	struct rpma_file_server_options options = {
		.size = sizeof(options), .flags = RPMA_FILE_SERVE_VOLATILE_OK, .max_clients = 64};
	struct rpma_file_export exports[2] = {{.name = "memory", .length = SIZE},
					      {.name = "file", .path = file_path}};
	uint16_t port;
	FILE *f;

	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	exports[0].addr = memory;
	snprintf(file_path, sizeof(file_path), "%s-file", program_invocation_short_name);
	unlink(file_path);
	f = fopen(file_path, "w");
	if (!f || ftruncate(fileno(f), SIZE) || fclose(f) ||
	    rpma_file_serve("127.0.0.1:0", exports, 2, &options, &server)) {
		print_error("no server: %s\n", rpma_file_errormsg());
		return -1;
	}
	rpma_file_server_get_port(server, &port);
	snprintf(target, sizeof(target), "127.0.0.1:%u:memory", port);
	snprintf(file_target, sizeof(file_target), "127.0.0.1:%u:file", port);
	return pthread_create(&thread, NULL, served_run, NULL);
}

int served_stop(void **state)
{
	char record[sizeof(file_path) + 8];

	ends = true;
	pthread_join(thread, NULL);
	rpma_file_server_delete(&server);
	munmap(memory, SIZE);
	snprintf(record, sizeof(record), "%s.rpma", file_path);
	unlink(record);
	return unlink(file_path);
}

void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: %s\n", rpma_file_err_2str(rc), rpma_file_errormsg());
	abort();
}

struct rpma_file *open_memory(uint32_t flags)
{
	struct rpma_file_options options = {.size = sizeof(options),
					    .flags = flags | RPMA_FILE_VOLATILE_OK,
					    .reconnect_ms = 20000};
	struct rpma_file *file;

	must(rpma_file_open(target, &options, &file));
	return file;
}

void fill(unsigned char *buf, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (unsigned char)(seed + i + (i >> 8) * 3);
}
