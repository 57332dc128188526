/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "rpmemd/journal.h"
#include "rpmemd/run.h"
#include "rpmemd/startup.h"
#include "service/process.h"

/* Read the start, which the listener wrote before this process began. */
static bool connection_read_start(struct direct_start *start)
{
	bool ok = recv(CONNECTION_START_FD, start, sizeof(*start), MSG_DONTWAIT) == sizeof(*start);

	close(CONNECTION_START_FD);
	return ok;
}

/* Keepalive detects within half a minute that an initiator has vanished without closing the
 * connection. */
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

/* Report to the initiator only that the start failed: the log has the details. */
static int connection_report_failure(const struct direct_start *start)
{
	struct wire_stream *stream = malloc(sizeof(*stream));
	struct error err;

	if (!stream)
		return RUN_ENDED;
	error_set(&err, ERROR_LOCAL, EIO, "rpmemd cannot serve: its log has the reason");
	wire_stream_init(stream, CONNECTION_FD, CONNECTION_FD);
	direct_answer(stream, start, &err, NULL);
	free(stream);
	return RUN_ENDED;
}

static int connection_serve(const struct options *opts, struct run_opts *run, struct settings *s)
{
	struct error err;

	if (startup_begin(opts, s, &err))
		return connection_report_failure(run->start);
	process_raise_limit();
	return (int)run_session(run);
}

int connection_run(const struct options *opts, struct settings *s)
{
	static const int signals[] = {SIGINT, SIGTERM};
	struct endpoint endpoint;
	struct direct_start start;
	struct run_opts run = {.settings = s,
			       .endpoint = &endpoint,
			       .in = CONNECTION_FD,
			       .out = CONNECTION_FD,
			       .start = &start,
			       .signal_fd = process_take_signals(signals, 2)};
	int code, rc = endpoint_from_socket(CONNECTION_FD, &endpoint);

	if (rc || !connection_read_start(&start)) {
		LOG_ERROR("the connection that the listener passed cannot be used: %s",
			  strerror(rc ? -rc : EPROTO));
		return RUN_ENDED;
	}
	connection_set_options(CONNECTION_FD);
	journal_set_subject(endpoint.there);
	code = connection_serve(opts, &run, s);
	secret_forget(&start.secret);
	return code;
}
