/* SPDX-License-Identifier: BSD-3-Clause */
#include "hosts.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rand.h"
#include "mirror/core/meta.h"
#include "mirror/core/view.h"
#include "system/lib/check.h"

#define HOSTS_WAIT_MS 20000

struct hosts hosts;

static uint64_t hosts_random(void)
{
	uint64_t v;

	rand_bytes(&v, sizeof(v));
	return v | 1;
}

static void hosts_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		fail_msg("cannot write %s", path);
	close(fd);
}

static void host_write_conf(const struct hosts *h, unsigned i)
{
	const struct host *host = &h->hosts[i];
	char text[4096], secret[400] = "";

	if (h->opts.has_secret)
		snprintf(secret, sizeof(secret), "secret-file = %s\n", h->secret);
	snprintf(
		text, sizeof(text),
		"listen = 127.0.0.1:%s\nsocket = %s\npeer-timeout = %u\nregister-timeout = %u\nlog-level = info\n"
		"[set " HOSTS_SET "]\nmember = %c\ndata = %s\nregister = %s\nauto = %s\n%s%s",
		host->port, host->socket, h->opts.peer_timeout_ms, h->opts.register_timeout_ms,
		'a' + (char)i, host->data, h->register_uri, h->opts.automatic ? "yes" : "no",
		secret, h->opts.more ? h->opts.more : "");
	hosts_write_file(host->conf, text);
}

bool host_try_start(struct hosts *h, unsigned i, const char *const envs[])
{
	struct host *host = &h->hosts[i];
	char command[900];
	const char *argv[] = {"/bin/sh", "-c", command, NULL};

	host_write_conf(h, i);
	snprintf(command, sizeof(command), "exec setpriv --pdeathsig KILL %s -c %s 2>>%s",
		 SYSTEM_RPMIRRORD, host->conf, host->log);
	if (proc_start(&host->daemon, argv, envs))
		fail_msg("cannot start " SYSTEM_RPMIRRORD);
	if (!proc_line(&host->daemon, HOSTS_WAIT_MS)) {
		proc_kill(&host->daemon);
		return false;
	}
	return true;
}

void host_start(struct hosts *h, unsigned i, const char *const envs[])
{
	if (!host_try_start(h, i, envs))
		fail_msg("the daemon does not listen, see %s", h->hosts[i].log);
}

void host_reload(struct hosts *h, unsigned i)
{
	host_write_conf(h, i);
	proc_signal(&h->hosts[i].daemon, SIGHUP);
}

static int hosts_persist(void *arg, uint64_t offset, uint64_t len)
{
	return 0;
}

static void host_make_copy(const struct hosts *h, unsigned i)
{
	const struct host *host = &h->hosts[i];
	const struct mirror_config *config = &h->first.config;
	struct meta_super super = {.uuid = config->uuid,
				   .member_id = config->members[i].id,
				   .slot = (uint8_t)i,
				   .size = config->size,
				   .hot_slots = h->opts.hot_slots,
				   .flags = META_CLEAN};
	struct meta_members members = {.config_number = config->number};
	struct meta_store store = {.len = meta_size_for(config->size), .persist = hosts_persist};
	char temp[320];
	int fd;

	snprintf(super.set, sizeof(super.set), "%s", config->set);
	for (unsigned j = 0; j < h->opts.count; j++) {
		members.members[j].id = config->members[j].id;
		members.members[j].port = config->members[j].port;
		snprintf(members.members[j].name, sizeof(members.members[j].name), "%s",
			 config->members[j].name);
		snprintf(members.members[j].host, sizeof(members.members[j].host), "%s",
			 config->members[j].host);
	}
	fd = open(host->data, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)config->size))
		fail_msg("cannot make %s", host->data);
	close(fd);
	/* Write the file under another name, and rename it when it is complete, because a daemon
	 * waits for its name. */
	snprintf(temp, sizeof(temp), "%s.new", host->meta);
	fd = open(temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)store.len))
		fail_msg("cannot make %s", temp);
	store.base = mmap(NULL, store.len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(store.base, MAP_FAILED);
	assert_int_equal(meta_create(&store, &super, &members), 0);
	munmap(store.base, store.len);
	close(fd);
	assert_int_equal(rename(temp, host->meta), 0);
}

static void hosts_fill_config(struct hosts *h, struct mirror_config *config)
{
	*config = (struct mirror_config){.size = h->opts.size,
					 .format = 1,
					 .min_copies = h->opts.min_copies,
					 .lonely = h->opts.lonely,
					 .local_error_continues = h->opts.local_error_continues,
					 .lease_ms = h->opts.lease_ms,
					 .replica_timeout_ms = h->opts.replica_timeout_ms,
					 .slow_ms = 1000,
					 .holdoff_ms = 100,
					 .blocked_ms = 10000};
	rand_bytes(&config->uuid, sizeof(config->uuid));
	snprintf(config->set, sizeof(config->set), HOSTS_SET);
	for (unsigned i = 0; i < h->opts.count; i++) {
		struct mirror_member *m = &config->members[i];

		m->id = hosts_random();
		m->name[0] = (char)('a' + (char)i);
		snprintf(m->host, sizeof(m->host), "127.0.0.1");
		m->port = h->opts.via[i] ? h->opts.via[i] : (uint16_t)atoi(h->hosts[i].port);
		snprintf(m->path, sizeof(m->path), "%s", h->hosts[i].data);
	}
}

static void hosts_register(struct hosts *h)
{
	struct mirror_register *r;
	struct register_entry *now = calloc(1, sizeof(*now));
	struct error err = {0};

	if (register_open(h->register_uri, HOSTS_SET, 5000, &r, &err))
		fail_msg("%s", err.text);
	if (register_create(r, &h->first, now, &err) != REGISTER_DONE)
		fail_msg("%s", err.text);
	register_close(r);
	free(now);
}

static void hosts_make_set(struct hosts *h)
{
	struct mirror_config config;
	const char *why = "";

	hosts_fill_config(h, &config);
	if (view_create(&h->first, &config, (mirror_mask)((1u << h->opts.count) - 1),
			hosts_random(), &why))
		fail_msg("%s", why);
	hosts_register(h);
	for (unsigned i = 0; i < h->opts.count; i++)
		host_make_copy(h, i);
}

static void hosts_set_defaults(struct hosts_opts *opts)
{
	if (!opts->size)
		opts->size = 8 << 20;
	if (!opts->lease_ms)
		opts->lease_ms = 1000;
	if (!opts->min_copies)
		opts->min_copies = 1;
	if (!opts->peer_timeout_ms)
		opts->peer_timeout_ms = 5000;
	if (!opts->replica_timeout_ms)
		opts->replica_timeout_ms = 5000;
	if (!opts->register_timeout_ms)
		opts->register_timeout_ms = 2000;
}

/* Make the path of a file in the host's folder. */
static void host_name_file(const struct hosts *h, unsigned i, char *path, size_t size,
			   const char *name)
{
	if (snprintf(path, size, "%s/%c%s", h->folder, 'a' + (char)i, name) >= (int)size)
		fail_msg("the path of %s is too long", h->folder);
}

static bool host_is_present(const struct hosts *h, unsigned i)
{
	return !(h->opts.absent & MIRROR_BIT(i));
}

/* The daemon waits for its files; a reload makes it check for them immediately. */
static void host_wait_open(const struct hosts *h, unsigned i)
{
	char text[65536];
	ssize_t n;

	for (unsigned tries = 0; tries < HOSTS_WAIT_MS / 2; tries++) {
		int fd = open(h->hosts[i].log, O_RDONLY | O_CLOEXEC);

		n = read(fd, text, sizeof(text) - 1);
		close(fd);
		text[n > 0 ? n : 0] = '\0';
		if (strstr(text, " is open, "))
			return;
		usleep(2000);
	}
	fail_msg("the daemon does not open its copy: %s", text);
}

static void host_make_folder(const struct hosts *h, unsigned i, const char *folder)
{
	char size[32];

	if (mkdir(folder, 0700))
		fail_msg("cannot make %s", folder);
	snprintf(size, sizeof(size), "size=%llu", (unsigned long long)h->opts.disk);
	if (h->opts.disk && mount("tmpfs", folder, "tmpfs", 0, size))
		fail_msg("cannot mount a file system at %s", folder);
	if (h->opts.mount)
		h->opts.mount(i, folder);
}

/*
 * Keep the daemon's port while the daemon is down, so that no other program gets it. For this
 * purpose, bind a socket to the port, but do not listen on it. The kernel then does not choose this
 * port for other programs. A program that requests this port and sets SO_REUSEADDR, like the
 * daemon, can listen on it.
 */
static void host_reserve_port(struct host *host)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(addr);
	int one = 1;

	host->port_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (setsockopt(host->port_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(host->port_fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    getsockname(host->port_fd, (struct sockaddr *)&addr, &len))
		fail_msg("there is no free port");
	snprintf(host->port, sizeof(host->port), "%u", ntohs(addr.sin_port));
}

static void host_name_files(struct hosts *h, unsigned i)
{
	struct host *host = &h->hosts[i];

	host_name_file(h, i, host->folder, sizeof(host->folder), "");
	host_make_folder(h, i, host->folder);
	host_name_file(h, i, host->conf, sizeof(host->conf), "/conf");
	host_name_file(h, i, host->socket, sizeof(host->socket), "/socket");
	host_name_file(h, i, host->data, sizeof(host->data), "/data");
	host_name_file(h, i, host->meta, sizeof(host->meta), "/data.rpmirror");
	host_name_file(h, i, host->log, sizeof(host->log), "/log");
	host_reserve_port(host);
}

void hosts_start(struct hosts *h, const struct hosts_opts *opts)
{
	char here[128];

	/* Leases are short in tests, and the machine can be slow: an expired lease must not end an
	 * application. */
	setenv("RPMIRROR_ON_FENCED", "error", 0);
	memset(h, 0, sizeof(*h));
	h->opts = *opts;
	hosts_set_defaults(&h->opts);
	if (!getcwd(here, sizeof(here)))
		fail_msg("no folder");
	snprintf(h->folder, sizeof(h->folder), "%s/mirror.XXXXXX", here);
	if (!mkdtemp(h->folder))
		fail_msg("cannot make %s", h->folder);
	snprintf(h->secret, sizeof(h->secret), "%s/secret", h->folder);
	hosts_write_file(h->secret, "a secret that both ends know");
	if (opts->register_uri)
		snprintf(h->register_uri, sizeof(h->register_uri), "%s", opts->register_uri);
	else
		snprintf(h->register_uri, sizeof(h->register_uri), "file:%s/register", h->folder);
	for (unsigned i = 0; i < h->opts.count; i++) {
		host_name_files(h, i);
		if (host_is_present(h, i))
			host_start(h, i, NULL);
	}
	hosts_make_set(h);
	for (unsigned i = 0; i < h->opts.count; i++)
		if (host_is_present(h, i))
			proc_signal(&h->hosts[i].daemon, SIGHUP);
	for (unsigned i = 0; i < h->opts.count; i++)
		if (host_is_present(h, i))
			host_wait_open(h, i);
}

void host_kill(struct hosts *h, unsigned i)
{
	proc_kill(&h->hosts[i].daemon);
}

static bool host_log_has(const struct hosts *h, unsigned i, const char *words)
{
	char line[1024];
	FILE *log = fopen(h->hosts[i].log, "re");
	bool has = false;

	assert_non_null(log);
	while (!has && fgets(line, sizeof(line), log))
		has = strstr(line, words);
	fclose(log);
	return has;
}

bool host_wait_log(const struct hosts *h, unsigned i, const char *words, int timeout_ms)
{
	for (; timeout_ms > 0; timeout_ms -= 10) {
		if (host_log_has(h, i, words))
			return true;
		usleep(10000);
	}
	return false;
}

int host_stop(struct hosts *h, unsigned i)
{
	proc_signal(&h->hosts[i].daemon, SIGTERM);
	return proc_wait(&h->hosts[i].daemon, HOSTS_WAIT_MS);
}

void hosts_stop(struct hosts *h)
{
	char command[300];

	for (unsigned i = 0; i < h->opts.count; i++) {
		if (h->hosts[i].daemon.pid)
			host_kill(h, i);
		if (h->hosts[i].port_fd > 0)
			close(h->hosts[i].port_fd);
		h->hosts[i].port_fd = 0;
	}
	if (getenv("MIRROR_TEST_KEEP"))
		return;
	for (unsigned i = 0; i < h->opts.count && (h->opts.disk || h->opts.mount); i++)
		umount2(h->hosts[i].folder, MNT_DETACH);
	snprintf(command, sizeof(command), "rm -rf '%s'", h->folder);
	if (system(command))
		fail_msg("cannot remove %s", h->folder);
}

int hosts_setup(void **state)
{
	hosts_start(&hosts, *state);
	return 0;
}

int hosts_teardown(void **state)
{
	hosts_stop(&hosts);
	return 0;
}

void hosts_read(const struct hosts *h, struct register_entry *now)
{
	struct mirror_register *r;
	struct error err = {0};

	if (register_open(h->register_uri, HOSTS_SET, 5000, &r, &err) || register_get(r, now, &err))
		fail_msg("%s", err.text);
	register_close(r);
}

static struct mirror_record hosts_change(const struct hosts *h, unsigned slot,
					 int (*change)(struct mirror_record *rec, uint8_t slot,
						       uint64_t nonce, const char **why))
{
	static struct register_entry now;
	static struct mirror_record next;
	struct mirror_register *r;
	struct error err = {0};
	const char *why = "";

	if (register_open(h->register_uri, HOSTS_SET, 5000, &r, &err))
		fail_msg("%s", err.text);
	/* One attempt is sufficient: daemons can renew or clear the alive key, but no other program
	 * changes the record. */
	if (register_get(r, &now, &err))
		fail_msg("%s", err.text);
	next = now.record;
	if (change(&next, (uint8_t)slot, hosts_random(), &why))
		fail_msg("%s", why);
	if (register_swap(r, &now, &next, NULL, &now, &err) != REGISTER_DONE)
		fail_msg("%s", err.text);
	register_close(r);
	return next;
}

struct mirror_epoch hosts_promote(const struct hosts *h, unsigned slot)
{
	return hosts_change(h, slot, view_promote).view.epoch;
}

static int hosts_lose(struct mirror_record *rec, uint8_t slot, uint64_t nonce, const char **why)
{
	return view_shrink(rec, rec->view.primary, MIRROR_BIT(slot), nonce, why);
}

void hosts_exclude(const struct hosts *h, unsigned slot)
{
	hosts_change(h, slot, hosts_lose);
}
