/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/config.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

static int config_parse_line(struct settings *s, char *line, struct error *err)
{
	char *equal;

	line[strcspn(line, "#")] = '\0';
	line = text_trim(line);
	if (!line[0])
		return 0;
	equal = strchr(line, '=');
	if (!equal)
		return error_set(err, ERROR_ARGUMENT, EINVAL, "'%s' is not 'key = value'", line);
	*equal = '\0';
	return settings_set(s, text_trim(line), text_trim(equal + 1), err);
}

int config_parse(struct settings *s, const char *text, size_t len, const char *name,
		 struct error *err)
{
	char line[PATH_MAX + 256];
	unsigned number = 0;
	int rc = 0;

	for (size_t at = 0; at < len && !rc;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = end ? (size_t)(end - text) - at : len - at;

		number++;
		if (n >= sizeof(line) || memchr(text + at, '\0', n)) {
			rc = error_set(err, ERROR_ARGUMENT, EINVAL,
				       "the line is too long or is no text");
		} else {
			memcpy(line, text + at, n);
			line[n] = '\0';
			rc = config_parse_line(s, line, err);
		}
		at += n + 1;
	}
	return rc && err
		       ? error_set(err, (enum error_kind)rc, EINVAL,
				   "Invalid config file line at %s:%u: %s", name, number, err->text)
		       : rc;
}

static int config_read(int fd, char *text, size_t size, size_t *len)
{
	ssize_t n;

	*len = 0;
	do {
		n = read(fd, text + *len, size - *len);
		if (n > 0)
			*len += (size_t)n;
	} while (*len < size && (n > 0 || (n < 0 && errno == EINTR)));
	if (n < 0)
		return -errno;
	return *len == size ? -EFBIG : 0;
}

static int config_load_fd(struct settings *s, int fd, const char *path, struct error *err)
{
	char *text = malloc(CONFIG_SIZE_MAX);
	size_t len;
	int rc;

	if (!text)
		return error_set(err, ERROR_LOCAL, ENOMEM, "out of memory for %s", path);
	rc = config_read(fd, text, CONFIG_SIZE_MAX, &len);
	if (rc)
		rc = error_set(err, ERROR_LOCAL, -rc, "cannot read configuration file %s: %s", path,
			       strerror(-rc));
	else
		rc = config_parse(s, text, len, path, err);
	free(text);
	return rc;
}

static int config_load_file(struct settings *s, const char *path, bool must_exist,
			    struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int rc;

	if (fd < 0 && !must_exist && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (fd < 0)
		return error_set(err, ERROR_LOCAL, errno, "cannot open configuration file %s: %s",
				 path, strerror(errno));
	rc = config_load_fd(s, fd, path, err);
	close(fd);
	return rc;
}

int config_load(struct settings *s, const char *path, const char *home, struct error *err)
{
	char users[PATH_MAX];
	int rc;

	if (path)
		return config_load_file(s, path, true, err);
	rc = config_load_file(s, CONFIG_SYSTEM_FILE, false, err);
	if (rc ||
	    snprintf(users, sizeof(users), "%s/" CONFIG_USER_FILE, home) >= (int)sizeof(users))
		return rc;
	return config_load_file(s, users, false, err);
}

const char *config_home(void)
{
	const char *home = getenv("HOME");
	const struct passwd *pw;

	if (home && home[0])
		return home;
	pw = getpwuid(getuid());
	return pw && pw->pw_dir && pw->pw_dir[0] ? pw->pw_dir : "/";
}
