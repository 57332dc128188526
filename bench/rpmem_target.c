/* SPDX-License-Identifier: BSD-3-Clause */
/* The target is rpmemd --listen, which needs no ssh. It runs in the child process of lib/ends.h. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/die.h"
#include "lib/environment.h"
#include "rpmem_impl.h"

static const char *const rpmem_files[] = {RPMEM_SET, "pool.part", "secret", "log"};

static struct rpmem_target *rpmem_to_clean; /* the target to clean up after a failed measurement */

static const char *rpmem_path(const struct rpmem_target *t, const char *file)
{
	static char path[320];

	snprintf(path, sizeof(path), "%s/%s", t->folder, file);
	return path;
}

static void rpmem_clean(void)
{
	const struct rpmem_target *t = rpmem_to_clean;

	rpmem_to_clean = NULL;
	for (size_t i = 0; t && i < sizeof(rpmem_files) / sizeof(rpmem_files[0]); i++)
		unlink(rpmem_path(t, rpmem_files[i]));
	if (t)
		rmdir(t->folder);
}

static void rpmem_write(const struct rpmem_target *t, const char *file, const char *text)
{
	const char *path = rpmem_path(t, file);
	FILE *f = fopen(path, "we");

	if (!f || fputs(text, f) < 0 || fclose(f) || chmod(path, 0600))
		die_errno(path);
}

/* A pool is always in a file; "memory" is a tmpfs. */
static void rpmem_make_folder(struct rpmem_target *t, const struct bench_case *c, size_t pool_size)
{
	char text[512];

	snprintf(t->folder, sizeof(t->folder), "%s/rpma-bench.XXXXXX",
		 case_is_memory(c) ? "/dev/shm" : case_target_where(c));
	if (!mkdtemp(t->folder))
		skip("%s: no folder can be made there", t->folder);
	rpmem_write(t, "secret", "a secret of this measurement only");
	snprintf(text, sizeof(text), "PMEMPOOLSET\n%zuB %s/pool.part\n", pool_size, t->folder);
	rpmem_write(t, RPMEM_SET, text);
}

/* Standard output of the target is the channel to the initiator; the target prints its address
 * there. */
static void rpmem_target_run(const struct bench_case *c, int fd, void *arg)
{
	const struct rpmem_target *t = arg;
	char listen[128], secret[320], dir[320], log[320];

	environment_softrnic(c, true);
	snprintf(listen, sizeof(listen), "--listen=%s:0", c->addr);
	snprintf(dir, sizeof(dir), "--poolset-dir=%s", t->folder);
	snprintf(secret, sizeof(secret), "--secret-file=%s/secret", t->folder);
	snprintf(log, sizeof(log), "--log-file=%s/log", t->folder);
	if (dup2(fd, STDOUT_FILENO) < 0)
		die_errno("dup2");
	execl(BENCH_RPMEMD, "rpmemd", listen, "--config=/dev/null", dir, secret, log,
	      "--log-level=info", "--allow-volatile", (char *)NULL);
	die_errno(BENCH_RPMEMD);
}

static void rpmem_take_name(struct rpmem_target *t)
{
	char line[96] = "";
	size_t len = 0;

	do {
		ends_get(t->ends.fd, line + len, 1);
	} while (line[len] != '\n' && ++len < sizeof(line) - 1);
	line[len] = 0;
	if (strncmp(line, "listening at ", 13) != 0)
		die("rpmemd said: %s", line);
	snprintf(t->name, sizeof(t->name), "rpma://%s", line + 13);
}

void rpmem_target_start(struct rpmem_target *t, const struct bench_case *c, size_t pool_size)
{
	*t = (struct rpmem_target){.durability = ""};
	rpmem_make_folder(t, c, pool_size);
	ends_start(&t->ends, c, rpmem_target_run, t);
	rpmem_to_clean = t;
	atexit(rpmem_clean);
	rpmem_take_name(t);
	environment_softrnic(c, false);
	environment_set("RPMEM_ENABLE_SOCKETS", "1");
	environment_set("RPMEM_ENABLE_VERBS", "0");
	environment_set("RPMEM_SPIN_US", c->ini_polls ? "1000000" : "0");
	environment_set("RPMEM_SECRET_FILE", rpmem_path(t, "secret"));
}

static void rpmem_add_counter(const char *line, const char *name, uint64_t *sum)
{
	const char *at = strstr(line, name);

	if (at)
		*sum += strtoull(at + strlen(name), NULL, 10);
}

static void rpmem_read_log(struct rpmem_target *t)
{
	const char *path = rpmem_path(t, "log"), *at;
	FILE *f = fopen(path, "re");
	char line[2048];

	if (!f)
		die_errno(path);
	while (fgets(line, sizeof(line), f)) {
		at = strstr(line, ", durability ");
		if (at)
			sscanf(at, ", durability %15[a-z]", t->durability);
		rpmem_add_counter(line, " writebacks=", &t->writebacks);
		rpmem_add_counter(line, " shm_rx_bytes=", &t->shm_rx_bytes);
	}
	fclose(f);
}

void rpmem_target_stop(struct rpmem_target *t)
{
	kill(t->ends.target, SIGTERM);
	ends_finish(&t->ends);
	rpmem_read_log(t);
	rpmem_clean();
}
