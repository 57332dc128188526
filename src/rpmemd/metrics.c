/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/metrics.h"

#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/openmetrics_file.h"
#include "poolset/inspect.h"

#define METRICS_CONNECT_MS 2000
#define METRICS_POOLS_MAX  1024

struct metrics_pool {
	char name[NAME_MAX + 1];
	struct poolset_state state;
};

struct metrics {
	const struct settings *settings;
	struct metrics_pool *pools;
	unsigned count;
};

/* ---- the service ---- */

static bool metrics_connects(const struct addrinfo *ai)
{
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};
	int error = 0;
	socklen_t len = sizeof(error);
	bool is_up;

	if (fd < 0)
		return false;
	is_up = !connect(fd, ai->ai_addr, ai->ai_addrlen) ||
		(errno == EINPROGRESS && poll(&pfd, 1, METRICS_CONNECT_MS) > 0 &&
		 !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) && !error);
	close(fd);
	return is_up;
}

/* Returns true if one of the addresses of rpmemd --listen accepts a connection. */
static bool metrics_is_up(const struct address *at)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
	bool is_up = false;

	if (getaddrinfo(at->host, at->port, &hints, &list))
		return false;
	for (const struct addrinfo *ai = list; ai && !is_up; ai = ai->ai_next)
		is_up = metrics_connects(ai);
	freeaddrinfo(list);
	return is_up;
}

/* ---- the pools ---- */

/* Also add a set whose file cannot be parsed: that pool is as unusable as a pool with missing
 * parts. */
static int metrics_add(struct metrics *m, const char *name)
{
	struct poolset_place place = {m->settings->poolset_dir, name};
	struct metrics_pool *pools, *pool;
	struct error err;

	if (m->count == METRICS_POOLS_MAX || !poolset_is_set(&place))
		return 0;
	pools = realloc(m->pools, (m->count + 1) * sizeof(*pools));
	if (!pools)
		return -ENOMEM;
	m->pools = pools;
	pool = &pools[m->count++];
	snprintf(pool->name, sizeof(pool->name), "%s", name);
	if (poolset_inspect(&place, &pool->state, &err)) {
		pool->state = (struct poolset_state){0};
		snprintf(pool->state.why, sizeof(pool->state.why), "%s", err.text);
	}
	if (!pool->state.is_usable)
		LOG_WARNING("pool set %s: %s", name, pool->state.why);
	return 0;
}

static int metrics_look(struct metrics *m)
{
	struct dirent **names;
	int count = scandir(m->settings->poolset_dir, &names, NULL, alphasort), rc = 0;

	if (count < 0) {
		rc = -errno;
		LOG_ERROR("cannot read %s: %s", m->settings->poolset_dir, strerror(errno));
		return rc;
	}
	for (int i = 0; i < count; i++) {
		if (!rc)
			rc = metrics_add(m, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	return rc;
}

/* ---- the text ---- */

static const struct openmetrics_family metrics_up =
	OM_GAUGE("rpmemd_up", "1 if rpmemd --listen accepts a connection.", NULL);
static const struct openmetrics_family metrics_pools =
	OM_GAUGE("rpmemd_pools", "Pool sets in poolset-dir.", NULL);
static const struct openmetrics_family metrics_avail =
	OM_GAUGE("rpmemd_filesystem_avail_bytes",
		 "Room that is left in the file system of poolset-dir.", "bytes");
static const struct openmetrics_family metrics_room = OM_GAUGE(
	"rpmemd_filesystem_size_bytes", "Size of the file system of poolset-dir.", "bytes");

static double metrics_get_size(const struct poolset_state *state)
{
	return (double)state->size;
}

static double metrics_get_in_use(const struct poolset_state *state)
{
	return state->is_in_use;
}

static double metrics_get_usable(const struct poolset_state *state)
{
	return state->is_usable;
}

static double metrics_get_missing(const struct poolset_state *state)
{
	return state->missing;
}

static const struct metrics_row {
	struct openmetrics_family family;
	double (*get)(const struct poolset_state *state);
} metrics_rows[] = {
	{OM_GAUGE("rpmemd_pool_size_bytes", "Size of the pool's parts, by its set file.", "bytes"),
	 metrics_get_size},
	{OM_GAUGE("rpmemd_pool_in_use", "1 if a process has the pool open.", NULL),
	 metrics_get_in_use},
	{OM_GAUGE("rpmemd_pool_usable",
		  "0 if the set file is malformed, or parts are missing, of another size or "
		  "damaged.",
		  NULL),
	 metrics_get_usable},
	{OM_GAUGE("rpmemd_pool_missing_parts",
		  "Parts that do not exist; if no part exists, the pool is not created yet.", NULL),
	 metrics_get_missing},
};

static void metrics_put(struct openmetrics *om, const struct openmetrics_family *family,
			double value)
{
	openmetrics_family(om, family);
	openmetrics_sample(om, NULL, value);
}

static void metrics_put_pools(struct openmetrics *om, const struct metrics *m)
{
	for (size_t i = 0; i < sizeof(metrics_rows) / sizeof(metrics_rows[0]); i++) {
		openmetrics_family(om, &metrics_rows[i].family);
		for (unsigned n = 0; n < m->count; n++) {
			struct openmetrics_label labels[] = {{"pool", m->pools[n].name}, {0}};

			openmetrics_sample(om, labels, metrics_rows[i].get(&m->pools[n].state));
		}
	}
}

static void metrics_write(struct openmetrics *om, const struct options *opts,
			  const struct metrics *m)
{
	double avail, size;

	if (opts->listens)
		metrics_put(om, &metrics_up, metrics_is_up(&m->settings->listen));
	metrics_put(om, &metrics_pools, m->count);
	if (openmetrics_room(m->settings->poolset_dir, &avail, &size)) {
		metrics_put(om, &metrics_avail, avail);
		metrics_put(om, &metrics_room, size);
	}
	metrics_put_pools(om, m);
}

static int metrics_end(struct openmetrics *om, const char *textfile)
{
	struct error err;

	if (openmetrics_end(om)) {
		LOG_ERROR("out of memory");
		return 1;
	}
	if (textfile && openmetrics_save(om, textfile, &err)) {
		LOG_ERROR("%s", err.text);
		return 1;
	}
	if (!textfile)
		fwrite(om->text, 1, om->len, stdout);
	return fflush(stdout) ? 1 : 0;
}

int metrics_run(const struct options *opts, const struct settings *s)
{
	struct metrics m = {.settings = s};
	struct openmetrics om;
	int rc = metrics_look(&m) ? 1 : 0;

	if (!rc) {
		openmetrics_init(&om, opts->textfile ? OPENMETRICS_TEXT_0_0_4 : OPENMETRICS_1_0);
		metrics_write(&om, opts, &m);
		rc = metrics_end(&om, opts->textfile);
		openmetrics_fini(&om);
	}
	free(m.pools);
	return rc;
}
