/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirrord/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "mirrord/clients.h"
#include "mirrord/connections.h"
#include "mirrord/copies.h"
#include "service/manager.h"
#include "service/peer.h"
#include "service/process.h"

static void daemon_on_signal(struct watch *w)
{
	struct daemon *d = w->owner;
	struct signalfd_siginfo info;

	if (read(w->fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo != SIGHUP) {
		d->is_ending = true;
		return;
	}
	manager_reloading();
	reload(d);
	manager_reloaded();
}

static void daemon_on_answer(struct watch *w)
{
	struct daemon *d = w->owner;

	agent_answers_take(d->answers);
}

/* Read the boot id, which shows whether the host was restarted. */
static int daemon_read_boot(struct mirror_uuid *boot, struct error *err)
{
	static const char path[] = "/proc/sys/kernel/random/boot_id";
	FILE *file = fopen(path, "re");
	unsigned n = 0;
	int c;

	memset(boot, 0, sizeof(*boot));
	while (file && n < 32 && (c = getc(file)) != EOF) {
		char digit[2] = {(char)c, '\0'};
		char *end;
		unsigned long value = strtoul(digit, &end, 16);

		if (end == digit)
			continue;
		boot->bytes[n / 2] = (uint8_t)(boot->bytes[n / 2] << 4 | value);
		n++;
	}
	if (file)
		fclose(file);
	return n == 32 ? 0
		       : error_set(err, ERROR_LOCAL, EIO, "%s cannot be read: %s", path,
				   strerror(errno));
}

static int daemon_open_loop(struct daemon *d, struct error *err)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	int signal_fd = process_take_signals(signals, 3);

	/*
	 * The parent may have set SIGCHLD to be ignored; waitpid() then returns no status of an
	 * ended program.
	 */
	signal(SIGCHLD, SIG_DFL);
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	d->answers = agent_answers_new();
	if (d->epoll_fd < 0 || signal_fd < 0 || !d->answers ||
	    loop_watch(d, &d->on_signal, signal_fd, daemon_on_signal, d) ||
	    loop_watch(d, &d->on_answer, agent_answers_get_fd(d->answers), daemon_on_answer, d))
		return error_set(err, ERROR_LOCAL, errno, "epoll: %s", strerror(errno));
	return 0;
}

static int daemon_listen(struct daemon *d, struct error *err)
{
	char text[ADDRESS_TEXT];
	int fd, rc = peer_listen(d->peer, &d->listen, &d->ep, &fd, err);

	if (rc)
		return rc;
	if (loop_watch(d, &d->on_request, fd, accept_on_request, d))
		return error_set(err, ERROR_LOCAL, errno, "epoll: %s", strerror(errno));
	printf("listening at %s\n", address_show(&d->listen, text));
	fflush(stdout);
	return 0;
}

static int daemon_open_sets(struct daemon *d, struct error *err)
{
	int rc = 0;

	d->sets = calloc(d->conf->set_count ? d->conf->set_count : 1, sizeof(*d->sets));
	if (!d->sets)
		return error_set(err, ERROR_LOCAL, ENOMEM, "out of memory");
	for (unsigned i = 0; i < d->conf->set_count; i++)
		rc = rc ? rc : set_init(&d->sets[i], d, &d->conf->sets[i], err);
	return rc;
}

static void daemon_close(struct daemon *d)
{
	local_close(d);
	inbounds_end_all(d, NULL);
	for (unsigned i = 0; d->sets && i < d->conf->set_count; i++)
		if (d->sets[i].daemon)
			set_fini(&d->sets[i]);
	free(d->sets);
	agent_answers_delete(d->answers);
	rpma_ep_shutdown(&d->ep);
	rpma_peer_delete(&d->peer);
	if (d->on_signal.fd >= 0)
		close(d->on_signal.fd);
	if (d->epoll_fd >= 0)
		close(d->epoll_fd);
}

int daemon_run(struct conf *conf, const char *path, void (*set_log)(enum log_level level),
	       struct error *err)
{
	struct daemon d = {.conf = conf,
			   .conf_path = path,
			   .set_log = set_log,
			   .listen = conf->listen,
			   .epoll_fd = -1,
			   .on_request = {.fd = -1},
			   .on_client = {.fd = -1},
			   .on_signal = {.fd = -1},
			   .on_answer = {.fd = -1}};
	struct ibv_context *context;
	int rc = daemon_read_boot(&d.boot, err);

	arrivals_init(&d.arrivals);
	process_raise_limit();
	if (!rc)
		rc = daemon_open_loop(&d, err);
	if (!rc && metafault_open(&d))
		rc = error_set(err, ERROR_LOCAL, errno, "SIGBUS: %s", strerror(errno));
	if (!rc)
		rc = peer_open_at(d.listen.host, &context, &d.peer, err);
	if (!rc)
		rc = daemon_open_sets(&d, err);
	if (!rc)
		rc = local_open(&d, err);
	if (!rc)
		rc = daemon_listen(&d, err);
	if (!rc)
		loop_run(&d);
	manager_stopping();
	daemon_close(&d);
	return rc;
}
