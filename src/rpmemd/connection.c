/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/poll.h"
#include "rpmemd/journal.h"
#include "rpmemd/run.h"
#include "rpmemd/startup.h"

#define CONNECTION_ADMISSION_MS 5000

static int connection_ask(void *arg, struct error *err)
{
	char byte = CONNECTION_ASK;

	if (write(CONNECTION_LISTENER_FD, &byte, 1) != 1 ||
	    poll_readable(CONNECTION_LISTENER_FD, poll_deadline(CONNECTION_ADMISSION_MS)) ||
	    read(CONNECTION_LISTENER_FD, &byte, 1) != 1)
		byte = '\0';
	switch (byte) {
	case CONNECTION_ADMITTED:
		return 0;
	case CONNECTION_TOO_MANY:
		error_set(err, ERROR_REFUSED, EBUSY,
			  "rpmemd serves as many pools as it may (max-pools)");
		return EBUSY;
	case CONNECTION_ADDRESS_FULL:
		error_set(err, ERROR_REFUSED, EBUSY,
			  "rpmemd serves as many pools to this address as it may "
			  "(max-per-address)");
		return EBUSY;
	default:
		error_set(err, ERROR_REFUSED, ECONNABORTED, "rpmemd is being stopped");
		return ECONNABORTED;
	}
}

/* An initiator that vanished without a word is noticed here, too, within half a minute. */
static void connection_set_options(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {{SOL_SOCKET, SO_KEEPALIVE, 1},
		       {IPPROTO_TCP, TCP_KEEPIDLE, 10},
		       {IPPROTO_TCP, TCP_KEEPINTVL, 5},
		       {IPPROTO_TCP, TCP_KEEPCNT, 4},
		       {IPPROTO_TCP, TCP_NODELAY, 1}};

	for (unsigned i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		setsockopt(fd, options[i].level, options[i].name, &options[i].value,
			   sizeof(options[i].value));
	fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* What it is exactly is not for those who have proved nothing. */
static int connection_report_failure(void)
{
	struct error err;

	error_set(&err, ERROR_LOCAL, EIO, "rpmemd cannot serve: its log says why");
	run_report_failure(CONNECTION_FD, &err);
	return RUN_ENDED;
}

int connection_run(const struct options *opts, struct settings *s)
{
	static const int signals[] = {SIGINT, SIGTERM};
	struct endpoint endpoint;
	struct secret secret;
	struct run_opts run = {.settings = s,
			       .endpoint = &endpoint,
			       .in = CONNECTION_FD,
			       .out = CONNECTION_FD,
			       .secret = &secret,
			       .admission = {.ask = connection_ask},
			       .signal_fd = startup_block_signals(signals, 2)};
	struct error err;
	int code, rc = endpoint_from_socket(CONNECTION_FD, &endpoint);

	if (rc) {
		LOG_ERROR("the connection is none: %s", strerror(-rc));
		return RUN_ENDED;
	}
	connection_set_options(CONNECTION_FD);
	fcntl(CONNECTION_LISTENER_FD, F_SETFD, FD_CLOEXEC);
	journal_set_subject(endpoint.there);
	if (startup_begin(opts, s, &err))
		return connection_report_failure();
	if (secret_load(&secret, s->secret_file, &err)) {
		LOG_ERROR("%s", err.text);
		return connection_report_failure();
	}
	startup_raise_limit();
	code = (int)run_session(&run);
	secret_forget(&secret);
	return code;
}
