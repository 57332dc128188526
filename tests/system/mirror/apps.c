/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "system/lib/check.h"

#define APP_ENVS    5
#define APP_STOP_MS 60000

struct proc apps[APPS_MAX];

void app_start(struct proc *app, const struct hosts *h, unsigned host, const char *const envs[])
{
	const char *argv[] = {SYSTEM_MIRROR_APP, NULL};
	char socket[400];
	const char *all[APP_ENVS + 2] = {socket};

	for (unsigned i = 0; i < APP_ENVS && envs && envs[i]; i++)
		all[i + 1] = envs[i];
	snprintf(socket, sizeof(socket), "RPMIRROR_SOCKET=%s", h->hosts[host].socket);
	assert_int_equal(proc_start(app, argv, all), 0);
}

void app_tell(struct proc *app, const char *command)
{
	assert_int_equal(write(app->in, command, strlen(command)), strlen(command));
}

void app_check(const char *wanted, const char *line)
{
	if (!line || strncmp(line, wanted, strlen(wanted)))
		fail_msg("%s instead of %s", line ? line : "nothing", wanted);
}

int apps_teardown(void **state)
{
	for (unsigned i = 0; i < APPS_MAX; i++)
		if (apps[i].pid)
			proc_kill(&apps[i]);
	return hosts_teardown(state);
}

uint64_t host_read_word(const struct hosts *h, unsigned host, uint64_t offset)
{
	uint64_t word = 0;
	FILE *file = fopen(h->hosts[host].data, "re");

	assert_non_null(file);
	assert_int_equal(fseek(file, (long)offset, SEEK_SET), 0);
	assert_int_equal(fread(&word, sizeof(word), 1, file), 1);
	fclose(file);
	return word;
}

static bool is_task_stopped(pid_t pid, const char *task)
{
	char path[300], stat[256];
	FILE *file;
	bool is_read;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)pid, task);
	file = fopen(path, "re");
	if (!file)
		return false;
	is_read = fgets(stat, sizeof(stat), file) && strrchr(stat, ')');
	fclose(file);
	return is_read && strrchr(stat, ')')[2] == 'T';
}

/* Check all threads, because some of them can still be running. */
static bool is_stopped(pid_t pid)
{
	char path[64];
	struct dirent *task;
	bool all = true;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((task = readdir(dir)))
		all &= task->d_name[0] == '.' || is_task_stopped(pid, task->d_name);
	closedir(dir);
	return all;
}

void process_wait_stopped(pid_t pid)
{
	for (int waited = 0; !is_stopped(pid); waited++) {
		assert_in_range(waited, 0, APP_STOP_MS);
		usleep(1000);
	}
}

int host_run_tool(const struct hosts *h, unsigned host, const char *command)
{
	char line[1200];

	snprintf(line, sizeof(line), "'%s' %s --timeout 60 --socket %s >%s/said 2>&1",
		 SYSTEM_RPMIRROR, command, h->hosts[host].socket, h->folder);
	return WEXITSTATUS(system(line));
}
