/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "system/lib/check.h"

#define APP_ENVS 3

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
