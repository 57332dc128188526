/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reload.c -- reads the configuration and the files that it names again, without an interruption
 * of service (SIGHUP).
 *
 * A wrong configuration changes nothing. From a correct configuration each key that can change
 * takes effect immediately; the log names the other keys, which keep their values. If a secret or a
 * register's credentials cannot be used, the daemon keeps the former ones.
 */
#include <stdlib.h>
#include <string.h>

#include "mirrord/conf_keys.h"
#include "mirrord/clients.h"
#include "mirrord/programs.h"

/*
 * Apply the keys that take effect immediately, and log the keys that do not. `where` is for the
 * log: the name of a set, or an empty text.
 */
static void reload_keys(const struct conf_key *keys, void *live, const void *fresh,
			const char *where)
{
	for (; keys->name; keys++) {
		char *to = (char *)live + keys->offset;
		const char *from = (const char *)fresh + keys->offset;

		if (keys->when == CONF_CHECKED || !memcmp(to, from, keys->size))
			continue;
		if (keys->when == CONF_NOW)
			memcpy(to, from, keys->size);
		else
			LOG_WARNING(
				"%s'%s' has changed: the new value is used after a restart of the "
				"daemon; the former value is kept until then",
				where, keys->name);
	}
}

/* ---- secrets ---- */

static void reload_use_secret(struct set *s, const struct secret *secret)
{
	s->secret = *secret;
	if (s->has_entry)
		set_plan_neighbours(s);
	/* Close the connection: the process connects again immediately, and gets the new secret
	 * with the answer. */
	if (s->holder.client)
		local_drop(s->holder.client);
	LOG_NOTICE("set %s: the secret has changed", s->conf->name);
}

static void reload_secret(struct set *s, struct conf_set *live, const struct conf_set *fresh)
{
	struct secret secret;
	struct error err;

	if (!live->secret_file[0] != !fresh->secret_file[0]) {
		LOG_WARNING(
			"set %s: a set gets or loses its secret only when the daemon is restarted; "
			"the former 'secret-file' is kept until then",
			live->name);
		return;
	}
	if (!fresh->secret_file[0])
		return;
	if (secret_load(&secret, fresh->secret_file, &err)) {
		LOG_ERROR("set %s: the new secret cannot be used, so the former one is kept: %s",
			  live->name, err.text);
		return;
	}
	memcpy(live->secret_file, fresh->secret_file, sizeof(live->secret_file));
	if (s->is_open && !mac_is_equal(s->secret.key, secret.key))
		reload_use_secret(s, &secret);
	secret_forget(&secret);
}

/* ---- the register's credentials ---- */

static void reload_on_dropped(struct agent_job *job)
{
	free(job->arg);
}

static void reload_on_reopened(struct agent_job *job)
{
	struct set *s = job->owner;

	if (job->rc)
		LOG_ERROR(
			"set %s: the register's new credentials cannot be used, so the former ones "
			"are kept: %s",
			s->conf->name, job->err.text);
	free(job->arg);
	free(job);
}

static void reload_agent(struct set *s, struct agent *agent)
{
	struct agent_job *job;

	if (!agent)
		return;
	job = agent_job_new(AGENT_REOPEN, reload_on_reopened, s);
	if (!job)
		return;
	job->on_drop = reload_on_dropped;
	job->arg = strdup(s->conf->register_uri);
	if (job->arg)
		agent_post(agent, job);
	else
		free(job);
}

/* Returns true if both URIs name the same register. Another register would not have this set's
 * records. */
static bool reload_is_same_store(const char *live, const char *fresh)
{
	size_t len = strcspn(live, "?");

	return strcspn(fresh, "?") == len && !strncmp(live, fresh, len);
}

static void reload_register(struct set *s, struct conf_set *live, const struct conf_set *fresh)
{
	struct mirror_register *probe;
	struct error err;

	if (!reload_is_same_store(live->register_uri, fresh->register_uri)) {
		LOG_WARNING(
			"set %s: 'register' has changed before '?': the new value is used after a "
			"restart of the daemon; the former value is kept until then",
			live->name);
		return;
	}
	if (register_open(fresh->register_uri, live->name, s->daemon->conf->register_timeout_ms,
			  &probe, &err)) {
		LOG_ERROR(
			"set %s: the register's new credentials cannot be used, so the former ones "
			"are kept: %s",
			live->name, err.text);
		return;
	}
	register_close(probe);
	memcpy(live->register_uri, fresh->register_uri, sizeof(live->register_uri));
	reload_agent(s, s->asks);
	reload_agent(s, s->alive);
	reload_agent(s, s->watcher);
	reload_agent(s, s->worker);
}

/* ---- the whole configuration ---- */

static struct conf_set *reload_find(struct conf *c, const char *name)
{
	for (unsigned i = 0; i < c->set_count; i++)
		if (!strcmp(c->sets[i].name, name))
			return &c->sets[i];
	return NULL;
}

static void reload_set(struct daemon *d, struct conf_set *live, const struct conf_set *fresh)
{
	struct set *s = set_find(d, live->name);
	char where[MIRROR_SET_MAX + 16];

	snprintf(where, sizeof(where), "set %s: ", live->name);
	reload_keys(conf_set_keys, live, fresh, where);
	memcpy(live->users, fresh->users, sizeof(live->users));
	live->user_count = fresh->user_count;
	reload_secret(s, live, fresh);
	reload_register(s, live, fresh);
	fence_agent_on_conf(s);
	/* try to open now, because the files or their medium may be available now */
	s->open_retry_ms = 0;
}

void reload(struct daemon *d)
{
	static struct conf fresh; /* static, because it is large */
	struct error err;

	if (conf_load(&fresh, d->conf_path, &err)) {
		LOG_ERROR("the new configuration cannot be used, so the former one is kept: %s",
			  err.text);
		return;
	}
	reload_keys(conf_keys, d->conf, &fresh, "");
	d->set_log(d->conf->log_level);
	for (unsigned i = 0; i < d->conf->set_count; i++) {
		struct conf_set *live = &d->conf->sets[i];
		const struct conf_set *its = reload_find(&fresh, live->name);

		if (its)
			reload_set(d, live, its);
		else
			LOG_WARNING(
				"set %s is not configured any more: it is served until the daemon "
				"is restarted",
				live->name);
	}
	for (unsigned i = 0; i < fresh.set_count; i++)
		if (!reload_find(d->conf, fresh.sets[i].name))
			LOG_WARNING("set %s is new: it is served after a restart of the daemon",
				    fresh.sets[i].name);
	LOG_NOTICE("the configuration %s was reloaded", d->conf_path);
}
