/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target_main.c -- the target as a program. Its arguments are its regions,
 *
 *   anon:SIZE:USAGE | strange:SIZE:USAGE | file:SIZE:USAGE:PATH
 *
 * A "strange" region is in a protection domain that no connection uses. The program prints "port
 * N", and then answers each line of its input with one line, until its input ends.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gauge.h"
#include "proc.h"
#include "target.h"

static struct target target;
static struct target_watch on_input;
static bool done;

static int add_region(const char *spec)
{
	char kind[16], path[512] = "";
	size_t size;
	int usage;

	if (sscanf(spec, "%15[a-z]:%zu:%i:%511s", kind, &size, &usage, path) < 3)
		return RPMA_E_INVAL;
	if (!strcmp(kind, "file"))
		return target_add_file(&target, path, size, usage);
	return target_add_anon(&target, size, usage, !strcmp(kind, "strange"));
}

/*
 * Make the mistake of unmapping registered memory. The addresses stay reserved, so that no other
 * memory of the process gets addresses to which peers still write.
 */
static void cmd_unmap(int i)
{
	mmap(target.region[i].ptr, target.region[i].size, PROT_NONE,
	     MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	target.region[i].ptr = NULL;
	printf("ok\n");
}

/* Let the application itself write the file back. */
static void cmd_sync(int i)
{
	bool failed = msync(target.region[i].ptr, target.region[i].size, MS_SYNC);

	printf("%s\n", failed ? "failed" : "ok");
}

static void cmd_dereg(int i)
{
	printf("%s\n", target_dereg(&target, i) ? "failed" : "ok");
}

/* Peers can write to the memory meanwhile, so hide the race from ThreadSanitizer. */
__attribute__((no_sanitize("thread"))) static void cmd_peek(int i, size_t at, size_t len)
{
	for (size_t k = 0; k < len; k++)
		printf("%02x", target.region[i].ptr[at + k]);
	printf("\n");
}

static void cmd_desc(int i)
{
	for (int k = 0; k < TARGET_DESC_SIZE; k++)
		printf("%02x", target.region[i].desc[k]);
	printf("\n");
}

static void cmd_fill(int i, int byte)
{
	memset(target.region[i].ptr, byte, target.region[i].size);
	printf("ok\n");
}

static void cmd_stat(void)
{
	struct gauge g = gauge_self();

	printf("%ld %ld %ld %ld\n", g.rss_anon_kib, g.pss_kib, g.cpu_ticks, g.allocated_kib);
}

static void command(const char *line)
{
	size_t at, len;
	int i, byte;

	if (sscanf(line, "peek %d %zu %zu", &i, &at, &len) == 3)
		cmd_peek(i, at, len);
	else if (sscanf(line, "fill %d %i", &i, &byte) == 2)
		cmd_fill(i, byte);
	else if (sscanf(line, "desc %d", &i) == 1)
		cmd_desc(i);
	else if (sscanf(line, "sync %d", &i) == 1)
		cmd_sync(i);
	else if (sscanf(line, "unmap %d", &i) == 1)
		cmd_unmap(i);
	else if (sscanf(line, "dereg %d", &i) == 1)
		cmd_dereg(i);
	else if (!strcmp(line, "stat"))
		cmd_stat();
	else if (!strcmp(line, "count"))
		printf("%u %u %u\n", target.n_conns, target.n_accepted, target.n_lost);
	else
		printf("what?\n");
	fflush(stdout);
}

static void on_line(struct target_watch *w)
{
	static char text[1024];
	static size_t have;
	ssize_t n = read(STDIN_FILENO, text + have, sizeof(text) - have);
	char *nl;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		done = true;
		return;
	}
	have += (size_t)n;
	while ((nl = memchr(text, '\n', have))) {
		size_t len = (size_t)(nl - text) + 1;

		*nl = '\0';
		command(text);
		have -= len;
		memmove(text, text + len, have);
	}
}

int main(int argc, char *argv[])
{
	int ret;

	proc_die_with_parent();
	gauge_raise_nofile();
	ret = target_open(&target);
	for (int i = 1; !ret && i < argc; i++)
		ret = add_region(argv[i]);
	on_input.ready = on_line;
	if (!ret)
		ret = target_watch(&target, STDIN_FILENO, &on_input);
	if (ret) {
		fprintf(stderr, "target: %d (%s)\n", ret, rpma_err_2str(ret));
		return 1;
	}
	printf("port %s\n", target.port);
	fflush(stdout);
	while (!done)
		target_step(&target, -1);
	target_close(&target);
	return 0;
}
