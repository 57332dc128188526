/* SPDX-License-Identifier: BSD-3-Clause */
#include "clients.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "history_file.h"
#include "system/lib/check.h"

#define CLIENTS_WAIT_MS 60000
#define CLIENTS_LOOK_MS 10
/* distance of the registers in words, which spreads them over all extents */
#define CLIENTS_STRIDE "130000"

static void client_name_history(const struct clients *all, unsigned number, char *path, size_t size)
{
	snprintf(path, size, "%s/history%u", all->hosts->folder, number);
}

void client_start(struct clients *all, struct client *c, unsigned host, const char *const envs[])
{
	char command[900], socket[400], history[300];
	const char *argv[] = {"/bin/sh", "-c", command, NULL};
	const char *more[8] = {socket};
	unsigned number = ++all->count, n = 1;

	bool is_direct = number / 2 % 2; /* use both kinds of mapping */

	for (; envs && envs[n - 1]; n++) {
		more[n] = envs[n - 1];
		/* Only a direct mapping reaches this point. */
		is_direct = is_direct || strstr(envs[n - 1], "=direct_");
	}
	if (is_direct)
		more[n] = "MIRROR_DIRECT=1";
	client_name_history(all, number, history, sizeof(history));
	snprintf(socket, sizeof(socket), "RPMIRROR_SOCKET=%s", all->hosts->hosts[host].socket);
	snprintf(command, sizeof(command),
		 "exec setpriv --pdeathsig KILL %s %s %s %u %llu 16 2 %u " CLIENTS_STRIDE
		 " 2>>%s/clients.log",
		 SYSTEM_MIRROR_REGISTERS, HOSTS_SET, history, number, (unsigned long long)all->seed,
		 all->pause_us, all->hosts->folder);
	if (proc_start(&c->proc, argv, more))
		fail_msg("cannot start " SYSTEM_MIRROR_REGISTERS);
	c->host = host;
	c->number = number;
	c->serves = false;
}

bool client_serves(struct client *c, int timeout_ms)
{
	const char *line = c->proc.pid && !c->serves ? proc_line(&c->proc, timeout_ms) : NULL;

	c->serves |= line && !strcmp(line, "serving");
	return c->proc.pid && c->serves;
}

/* Count the lines of this kind, up to `most`. */
static unsigned client_count(const char *path, char kind, unsigned most)
{
	FILE *file = fopen(path, "re");
	unsigned count = 0;
	char line[160];

	while (file && count < most && fgets(line, sizeof(line), file))
		count += line[0] == kind;
	if (file)
		fclose(file);
	return count;
}

bool client_has_written(const struct clients *all, const struct client *c, unsigned writes,
			int timeout_ms)
{
	uint64_t end = clock_now_ns() + (uint64_t)timeout_ms * NSEC_PER_MS;
	char path[300];

	client_name_history(all, c->number, path, sizeof(path));
	while (client_count(path, 'W', writes) < writes) {
		if (clock_now_ns() > end)
			return false;
		usleep(5000);
	}
	return true;
}

void client_wait_busy(const struct clients *all, const struct client *c)
{
	uint64_t end = clock_now_ns() + CLIENTS_WAIT_MS * NSEC_PER_MS;
	char path[300];

	client_name_history(all, c->number, path, sizeof(path));
	while (!client_count(path, 'R', 1) || !client_count(path, 'W', 1)) {
		if (clock_now_ns() > end)
			fail_msg("nothing is read or written, see %s", path);
		usleep(10000);
	}
}

int client_status(struct client *c)
{
	int status = c->proc.pid ? proc_wait(&c->proc, 0) : 0;

	return status < 0 ? -1 : status;
}

static bool client_judge_end(int status)
{
	if (!WIFEXITED(status) || (WEXITSTATUS(status) && WEXITSTATUS(status) != 3))
		fail_msg("a client ends with status %#x", (unsigned)status);
	return !WEXITSTATUS(status);
}

bool client_end(struct client *c)
{
	return client_judge_end(proc_finish(&c->proc));
}

bool client_end_before(struct client *c, struct client *next)
{
	uint64_t end = clock_now_ns() + CLIENTS_WAIT_MS * NSEC_PER_MS;
	int status;

	while (!client_serves(c, CLIENTS_LOOK_MS) && !client_serves(next, CLIENTS_LOOK_MS) &&
	       clock_now_ns() < end)
		;
	if (c->serves || !next->serves)
		return client_end(c);
	status = proc_wait(&c->proc, 0);
	if (status != -ETIMEDOUT)
		return client_judge_end(status);
	proc_kill(&c->proc);
	return false;
}

void hosts_wait_insync(const struct hosts *h, mirror_mask insync)
{
	static struct register_entry now;
	uint64_t end = clock_now_ns() + CLIENTS_WAIT_MS * NSEC_PER_MS;

	for (;;) {
		hosts_read(h, &now);
		if (now.record.view.insync == insync)
			return;
		if (clock_now_ns() > end)
			fail_msg("in-sync are %#x instead of %#x for %u s", now.record.view.insync,
				 insync, CLIENTS_WAIT_MS / 1000);
		usleep(5000);
	}
}

/* Read the superblock again if it is damaged: the host's daemon is possibly writing it. */
bool host_read_super(const struct hosts *h, unsigned i, struct meta_super *super)
{
	int fd = open(h->hosts[i].meta, O_RDONLY | O_CLOEXEC);
	struct meta_store store = {0};
	struct error err = {0};
	struct meta meta;
	struct stat st;
	bool is_read;

	assert_int_equal(fstat(fd, &st), 0);
	store.len = (uint64_t)st.st_size;
	store.base = mmap(NULL, store.len, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	assert_ptr_not_equal(store.base, MAP_FAILED);
	is_read = !meta_load(&meta, &store, &err);
	if (is_read) {
		*super = meta.super;
		meta_fini(&meta);
	}
	munmap(store.base, store.len);
	return is_read;
}

/* Wait until the copies, which no process uses, have grown to the set's size. Returns the size. */
static uint64_t clients_wait_grown(const struct hosts *h)
{
	static struct register_entry now;
	uint64_t end = clock_now_ns() + CLIENTS_WAIT_MS * NSEC_PER_MS;
	struct meta_super super = {0};

	hosts_read(h, &now);
	for (unsigned i = 0; i < h->opts.count; i++)
		while (!host_read_super(h, i, &super) || super.size != now.record.config.size) {
			if (clock_now_ns() > end)
				fail_msg("copy %c has %llu bytes instead of %llu for %u s",
					 'a' + (char)i, (unsigned long long)super.size,
					 (unsigned long long)now.record.config.size,
					 CLIENTS_WAIT_MS / 1000);
			usleep(5000);
		}
	return now.record.config.size;
}

static const void *clients_map(const struct hosts *h, unsigned i, uint64_t size)
{
	int fd = open(h->hosts[i].data, O_RDONLY | O_CLOEXEC);
	void *p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	close(fd);
	return p;
}

static void clients_compare(const struct hosts *h)
{
	uint64_t size = clients_wait_grown(h);
	const void *first = clients_map(h, 0, size);

	for (unsigned i = 1; i < h->opts.count; i++) {
		const void *other = clients_map(h, i, size);

		if (memcmp(first, other, size) != 0)
			fail_msg("copies a and %c differ", 'a' + (char)i);
		munmap((void *)(uintptr_t)other, size);
	}
	munmap((void *)(uintptr_t)first, size);
}

void clients_judge(struct clients *all, struct clients_counts *counts)
{
	struct history_log log = {0};
	struct history_verdict found;
	char path[300];

	clients_compare(all->hosts);
	for (unsigned i = 1; i <= all->count; i++) {
		unsigned line;

		client_name_history(all, i, path, sizeof(path));
		if (!access(path, F_OK) && history_file_load(&log, path, &line))
			fail_msg("%s:%u is not a history", path, line);
	}
	history_log_settle(&log);
	found = history_check(log.ops, log.count);
	if (found.fault)
		fail_msg("%s: register %llu, values %llu and %llu, see %s",
			 history_fault_2str(found.fault), (unsigned long long)found.a.reg,
			 (unsigned long long)found.a.value, (unsigned long long)found.b.value,
			 all->hosts->folder);
	assert_true(log.acknowledged && log.reads);
	counts->acknowledged += log.acknowledged;
	counts->unsure += log.unsure;
	counts->reads += log.reads;
	counts->epochs += log.epoch_count;
	history_log_free(&log);
}
