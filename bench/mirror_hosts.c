/* SPDX-License-Identifier: BSD-3-Clause */
/* The hosts of a set whose register is a file: their daemons are children of this process. */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/child.h"
#include "lib/clock.h"
#include "lib/die.h"
#include "lib/ends.h"
#include "lib/environment.h"
#include "mirror_impl.h"

#define MIRROR_PORT    7640
#define MIRROR_WAIT_NS 20000000000u

static struct mirror_hosts *mirror_to_clean; /* the hosts to clean up after a failed measurement */

struct mirror_path {
	char text[320];
};

static struct mirror_path mirror_path(const struct mirror_hosts *h, unsigned i, const char *what)
{
	struct mirror_path path;

	snprintf(path.text, sizeof(path.text), "%s/%c%s", h->folder, 'a' + (char)i, what);
	return path;
}

static struct mirror_path mirror_copy(const struct mirror_hosts *h, unsigned i)
{
	struct mirror_path path;

	snprintf(path.text, sizeof(path.text), "%s/%c", i ? h->away : h->folder, 'a' + (char)i);
	return path;
}

/*
 * Returns the address of daemon i. In one network namespace each daemon has a loopback address that
 * no other measurement uses. Otherwise all daemons but the first are on the other side of the link.
 */
static struct mirror_path mirror_address(const struct mirror_hosts *h, unsigned i)
{
	struct mirror_path address;
	unsigned pid = (unsigned)getpid();
	const char *dot = strrchr(h->c->addr, '.');

	if (!h->c->ini_ns)
		snprintf(address.text, sizeof(address.text), "127.%u.%u.%u:%u", 1 + pid / 256 % 254,
			 pid % 256, 1 + i, MIRROR_PORT);
	else
		snprintf(address.text, sizeof(address.text), "%.*s.%c:%u", (int)(dot - h->c->addr),
			 h->c->addr, i ? dot[1] : '1', MIRROR_PORT + i);
	return address;
}

/* ---- processes ---- */

static pid_t mirror_spawn(const struct mirror_hosts *h, unsigned i, const char *log,
			  const char *const argv[])
{
	pid_t pid = child_fork();
	int fd;

	if (pid)
		return pid;
	ends_enter(h->c, i != 0);
	environment_softrnic(h->c, true);
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		die_errno(log);
	execv(argv[0], (char *const *)argv);
	die_errno(argv[0]);
}

static void mirror_run(const struct mirror_hosts *h, unsigned i, const char *const argv[])
{
	struct mirror_path log = mirror_path(h, i, ".init");
	pid_t pid = mirror_spawn(h, i, log.text, argv);
	char text[512] = "";
	int status;
	FILE *f;

	if (waitpid(pid, &status, 0) != pid)
		die_errno("wait for rpmirror");
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return;
	f = fopen(log.text, "re");
	if (f && !fgets(text, sizeof(text), f))
		text[0] = '\0';
	die("rpmirror init: %s", text);
}

static bool mirror_says(const struct mirror_hosts *h, unsigned i, const char *what)
{
	FILE *f = fopen(mirror_path(h, i, ".log").text, "re");
	char line[2048];
	bool says = false;

	while (f && !says && fgets(line, sizeof(line), f))
		says = strstr(line, what);
	if (f)
		fclose(f);
	return says;
}

/* Wait until the daemon has opened its copy. */
static void mirror_await(const struct mirror_hosts *h, unsigned i)
{
	uint64_t until = clock_now_ns() + MIRROR_WAIT_NS;
	const struct timespec moment = {.tv_nsec = 1000000};

	while (!mirror_says(h, i, " is open, ")) {
		if (clock_now_ns() > until)
			die("rpmirrord does not start, see %s", h->folder);
		nanosleep(&moment, NULL);
	}
}

void mirror_host_start(struct mirror_hosts *h, unsigned i)
{
	struct mirror_path conf = mirror_path(h, i, ".conf"), log = mirror_path(h, i, ".log");
	const char *const argv[] = {BENCH_RPMIRRORD, "--config", conf.text, NULL};

	h->daemons[i] = mirror_spawn(h, i, log.text, argv);
	mirror_await(h, i);
}

static void mirror_host_end(struct mirror_hosts *h, unsigned i, int signal)
{
	if (h->daemons[i] <= 0)
		return;
	kill(h->daemons[i], signal);
	waitpid(h->daemons[i], NULL, 0);
	h->daemons[i] = 0;
}

void mirror_host_kill(struct mirror_hosts *h, unsigned i)
{
	mirror_host_end(h, i, SIGKILL);
	/* The next daemon starts with an empty log. */
	unlink(mirror_path(h, i, ".log").text);
}

void mirror_host_enter(const struct mirror_hosts *h, unsigned i)
{
	environment_set("RPMIRROR_SOCKET", mirror_path(h, i, ".socket").text);
}

/* ---- files ---- */

static void mirror_clean(void)
{
	struct mirror_hosts *h = mirror_to_clean;
	char command[600];

	mirror_to_clean = NULL;
	if (!h)
		return;
	for (unsigned i = 0; i < h->count; i++)
		mirror_host_kill(h, i);
	snprintf(command, sizeof(command), "rm -rf '%s' '%s'", h->folder, h->away);
	if (system(command))
		fprintf(stderr, "%s could not be removed\n", h->folder);
}

static void mirror_make_folder(char folder[256], const char *where)
{
	snprintf(folder, 256, "%s/rpma-bench.XXXXXX", where);
	if (!mkdtemp(folder))
		skip("%s: no folder can be made there", folder);
}

static void mirror_make_folders(struct mirror_hosts *h)
{
	mirror_make_folder(h->folder, h->is_volatile ? "/dev/shm" : h->c->where);
	mirror_to_clean = h;
	atexit(mirror_clean);
	if (h->c->tgt_where)
		mirror_make_folder(h->away, h->c->tgt_where);
	else
		snprintf(h->away, sizeof(h->away), "%s", h->folder);
}

static void mirror_write_conf(const struct mirror_hosts *h, unsigned i)
{
	struct mirror_path conf = mirror_path(h, i, ".conf");
	FILE *f = fopen(conf.text, "we");

	if (!f ||
	    fprintf(f,
		    "listen = %s\nsocket = %s\nlog-level = info\npeer-timeout = 2000\n"
		    "[set " MIRROR_SET "]\nmember = %c\ndata = %s\nregister = file:%s/register\n"
		    "auto = yes\n",
		    mirror_address(h, i).text, mirror_path(h, i, ".socket").text, 'a' + (char)i,
		    mirror_copy(h, i).text, h->folder) < 0 ||
	    fclose(f))
		die_errno(conf.text);
}

static void mirror_init_first(const struct mirror_hosts *h, const char *uri)
{
	char members[MIRROR_HOSTS_MAX][700], size[32];
	const char *argv[16 + 2 * MIRROR_HOSTS_MAX] = {
		BENCH_RPMIRROR, "init",   MIRROR_SET,     "--size", size,     "--register", uri,
		"--lonely",     "manual", "--min-copies", "1",      "--here", "a"};
	unsigned n = 13;

	snprintf(size, sizeof(size), "%" PRIu64, h->size);
	for (unsigned i = 0; i < h->count; i++) {
		snprintf(members[i], sizeof(members[i]), "%c=%s:%s", 'a' + (char)i,
			 mirror_address(h, i).text, mirror_copy(h, i).text);
		argv[n++] = "--member";
		argv[n++] = members[i];
	}
	mirror_run(h, 0, argv);
}

static void mirror_init(const struct mirror_hosts *h)
{
	char uri[320];

	snprintf(uri, sizeof(uri), "file:%s/register", h->folder);
	mirror_init_first(h, uri);
	for (unsigned i = 1; i < h->count; i++) {
		const char name[] = {'a' + (char)i, '\0'};
		const char *const argv[] = {BENCH_RPMIRROR, "init",       MIRROR_SET, "--join",
					    name,           "--register", uri,        NULL};

		mirror_run(h, i, argv);
	}
}

void mirror_hosts_start(struct mirror_hosts *h, const struct bench_case *c, unsigned count,
			uint64_t size)
{
	*h = (struct mirror_hosts){
		.c = c, .count = count, .size = size, .is_volatile = case_is_memory(c)};
	if (count > MIRROR_HOSTS_MAX)
		die("conns=%u: there are at most %u hosts", count - 1, MIRROR_HOSTS_MAX);
	mirror_make_folders(h);
	mirror_init(h);
	for (unsigned i = 0; i < count; i++)
		mirror_write_conf(h, i);
	for (unsigned i = 0; i < count; i++)
		mirror_host_start(h, i);
	ends_enter(c, false);
	environment_softrnic(c, false);
	mirror_host_enter(h, 0);
}

/* ---- counters of the daemons ---- */

static void mirror_add_counter(const char *line, const char *name, uint64_t *sum)
{
	const char *at = strstr(line, name);

	if (at)
		*sum += strtoull(at + strlen(name), NULL, 10);
}

static void mirror_read_log(struct mirror_hosts *h, unsigned i)
{
	struct mirror_path path = mirror_path(h, i, ".log");
	FILE *f = fopen(path.text, "re");
	char line[2048];

	if (!f)
		die_errno(path.text);
	while (fgets(line, sizeof(line), f)) {
		if (!strstr(line, " lane connection "))
			continue;
		mirror_add_counter(line, " writebacks=", &h->writebacks);
		mirror_add_counter(line, " shm_rx_bytes=", &h->shm_rx_bytes);
	}
	fclose(f);
}

void mirror_hosts_stop(struct mirror_hosts *h)
{
	for (unsigned i = 0; i < h->count; i++)
		mirror_host_end(h, i, SIGTERM);
	for (unsigned i = 0; i < h->count; i++)
		mirror_read_log(h, i);
	mirror_clean();
}
