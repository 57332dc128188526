/* SPDX-License-Identifier: BSD-3-Clause */
/* How a session begins and ends. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "liblog.h"
#include "session.h"

#define MAX_ADDRESSES 8

int session_take_option(int opt, struct session_wish *wish)
{
	uint64_t seconds;

	switch (opt) {
	case 'r':
		if (strlen(optarg) > HELLO_NAME_MAX)
			return cli_usage("--region: '%s' is longer than %d characters", optarg,
					 HELLO_NAME_MAX);
		wish->region = optarg;
		return CLI_OK;
	case 'S':
		wish->secret_file = optarg;
		return CLI_OK;
	case 't':
		if (!cli_parse_number(optarg, 1, 86400, &seconds))
			return cli_usage(
				"--timeout: '%s' is not a number of seconds from 1 to 86400",
				optarg);
		wish->timeout_ms = (int)seconds * 1000;
		return CLI_OK;
	case 'v':
		wish->verbose = true;
		return CLI_OK;
	default:
		return CLI_USAGE; /* getopt has printed the line */
	}
}

static int make_request(struct session *s, const struct session_wish *wish,
			const struct address *to, struct rpma_conn_req **req)
{
	struct rpma_conn_cfg *cfg;
	int rc = rpma_conn_cfg_new(&cfg);

	if (rc)
		return rc;
	rpma_conn_cfg_set_sq_size(cfg, wish->depth);
	rpma_conn_cfg_set_cq_size(cfg, wish->depth + 3); /* messages, too */
	rc = rpma_conn_req_new(s->peer, to->host, to->port, cfg, req);
	rpma_conn_cfg_delete(&cfg);
	if (!rc && (s->has_secret || wish->access == HELLO_LIST || wish->access == HELLO_WRITE)) {
		rc = session_mail_open(s, *req);
		if (rc)
			rpma_conn_req_delete(req);
	}
	return rc;
}

static int send_request(struct session *s, const struct session_wish *wish,
			struct rpma_conn_req **req)
{
	uint8_t buf[HELLO_MAX];
	struct hello_request hello = {.version = HELLO_VERSION,
				      .access = (uint8_t)wish->access,
				      .has_secret = s->has_secret};
	struct rpma_conn_private_data pdata = {.ptr = buf};

	snprintf(hello.region, sizeof(hello.region), "%s", wish->region);
	pdata.len = (uint8_t)hello_request_encode(&hello, buf);
	return rpma_conn_req_connect(req, &pdata, &s->conn);
}

static int wait_established(struct session *s, enum rpma_conn_event *event)
{
	struct pollfd pfd = {.events = POLLIN};
	int rc;

	rpma_conn_get_event_fd(s->conn, &pfd.fd);
	do {
		rc = poll(&pfd, 1, s->timeout_ms);
	} while (rc < 0 && errno == EINTR);
	if (rc == 0) {
		*event = RPMA_CONN_UNREACHABLE;
		return 0;
	}
	return rpma_conn_next_event(s->conn, event);
}

/* One address. 0 with *event set, or the library's error. */
static int try_address(struct session *s, const struct session_wish *wish, const struct address *to,
		       enum rpma_conn_event *event)
{
	struct ibv_context *context;
	struct rpma_conn_req *req;
	int rc = rpma_utils_get_ibv_context(to->host, RPMA_UTIL_IBV_CONTEXT_REMOTE, &context);

	if (!rc)
		rc = rpma_peer_new(context, &s->peer);
	if (!rc)
		rc = make_request(s, wish, to, &req);
	if (!rc)
		rc = send_request(s, wish, &req);
	if (!rc)
		rc = wait_established(s, event);
	if (rc || *event != RPMA_CONN_ESTABLISHED) {
		rpma_conn_delete(&s->conn);
		rpma_mr_dereg(&s->mail_mr);
		rpma_peer_delete(&s->peer);
	}
	return rc;
}

static int say_unreachable(const struct session *s, int rc, enum rpma_conn_event event)
{
	if (rc)
		return cli_fail(CLI_REACH, "cannot connect to %s: %s", s->server,
				liblog_reason(rc));
	if (event == RPMA_CONN_REJECTED)
		return cli_fail(CLI_REACH,
				"%s refused the connection: is 'rpma serve' running there?",
				s->server);
	if (event == RPMA_CONN_UNREACHABLE)
		return cli_fail(CLI_REACH, "%s does not answer: check the address and firewalls",
				s->server);
	return cli_fail(CLI_REACH, "cannot connect to %s: the connection was lost during start-up",
			s->server);
}

/* A name may have several addresses, and the server may listen on one of them only. */
static int connect_to_any(struct session *s, const struct session_wish *wish)
{
	struct address found[MAX_ADDRESSES];
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	int count, rc;

	rc = address_resolve(&wish->server, found, MAX_ADDRESSES, &count);
	if (rc)
		return rc;
	for (int i = 0; i < count; i++) {
		rc = try_address(s, wish, &found[i], &event);
		if (!rc && event == RPMA_CONN_ESTABLISHED)
			return CLI_OK;
	}
	return say_unreachable(s, rc, event);
}

static int say_no_region(const struct session *s, const struct session_wish *wish)
{
	if (s->region.region[0])
		return cli_fail(CLI_REFUSED, "%s does not serve a region '%s'; it serves '%s'",
				s->server, wish->region, s->region.region);
	return cli_fail(CLI_REFUSED,
			"%s does not serve a region '%s'; 'rpma info %s' lists what it serves",
			s->server, wish->region, s->server);
}

static int say_refused(const struct session *s, const struct session_wish *wish)
{
	switch (s->region.status) {
	case HELLO_NO_REGION:
		return say_no_region(s, wish);
	case HELLO_CHOOSE:
		return cli_fail(CLI_REFUSED,
				"%s serves several regions: choose one with --region; "
				"'rpma info %s' lists them",
				s->server, s->server);
	case HELLO_BUSY:
		return cli_fail(CLI_REFUSED, "%s serves as many clients as it may; try again later",
				s->server);
	case HELLO_BUSY_ADDRESS:
		return cli_fail(CLI_REFUSED,
				"%s serves as many clients from this address as it may; "
				"try again later",
				s->server);
	case HELLO_SECRET_NEEDED:
		return cli_fail(CLI_REFUSED, "%s asks for a secret: give its --secret-file",
				s->server);
	case HELLO_SECRET_UNUSED:
		return cli_fail(CLI_REFUSED,
				"%s serves without a secret and proves none: leave out "
				"--secret-file, or start it with one",
				s->server);
	case HELLO_FILE_REMOVED:
	case HELLO_FILE_REPLACED:
	case HELLO_FILE_TRUNCATED:
	case HELLO_FILE_UNKNOWN:
		return session_say_lost(s, (enum hello_status)s->region.status);
	default:
		return cli_fail(CLI_REFUSED,
				"%s does not understand this client (version %d); "
				"use the same release of rpma on both sides",
				s->server, HELLO_VERSION);
	}
}

/* Only the one answer that leads to a proof will do for a client that has a secret. */
static int follow_reply(struct session *s, const struct session_wish *wish)
{
	if (s->region.version != HELLO_VERSION)
		return say_refused(s, wish);
	if (s->has_secret && s->region.status == HELLO_PROVE)
		return session_prove(s, wish);
	if (s->has_secret && s->region.status == HELLO_OK)
		s->region.status = HELLO_SECRET_UNUSED;
	return CLI_OK;
}

static int read_reply(struct session *s, const struct session_wish *wish)
{
	struct rpma_conn_private_data pdata;
	int rc = rpma_conn_get_private_data(s->conn, &pdata);

	if (rc || !hello_reply_decode(&pdata, &s->region))
		return cli_fail(CLI_REFUSED, "%s is not an 'rpma serve': its greeting is unknown",
				s->server);
	rc = follow_reply(s, wish);
	if (rc)
		return rc;
	cli_make_printable(s->region.region);
	return s->region.status == HELLO_OK ? CLI_OK : say_refused(s, wish);
}

static int adopt_descriptors(struct session *s)
{
	struct rpma_peer_cfg *pcfg = NULL;
	int rc = rpma_peer_cfg_from_descriptor(s->region.pcfg, s->region.pcfg_len, &pcfg);

	if (!rc)
		rc = rpma_conn_apply_remote_peer_cfg(s->conn, pcfg);
	if (!rc)
		rc = rpma_mr_remote_from_descriptor(s->region.mr, s->region.mr_len, &s->remote);
	rpma_peer_cfg_delete(&pcfg);
	return rc ? cli_fail(CLI_REFUSED, "the region's description from %s is damaged: %s",
			     s->server, liblog_reason(rc))
		  : CLI_OK;
}

static void use_descriptors(struct session *s)
{
	rpma_conn_get_cq(s->conn, &s->cq);
	rpma_cq_get_fd(s->cq, &s->cq_fd);
	rpma_conn_get_event_fd(s->conn, &s->event_fd);
	/* poll() decides what is ready; a wake-up taken by nobody must not block us. */
	fcntl(s->cq_fd, F_SETFL, fcntl(s->cq_fd, F_GETFL) | O_NONBLOCK);
	fcntl(s->event_fd, F_SETFL, fcntl(s->event_fd, F_GETFL) | O_NONBLOCK);
}

static int load_secret(struct session *s, const struct session_wish *wish)
{
	s->has_secret = wish->secret_file;
	return s->has_secret ? secret_load(&s->secret, wish->secret_file) : CLI_OK;
}

int session_open(struct session *s, const struct session_wish *wish)
{
	int rc;

	memset(s, 0, sizeof(*s));
	s->timeout_ms = wish->timeout_ms;
	snprintf(s->server, sizeof(s->server), "%s", address_show(&wish->server));
	rc = load_secret(s, wish);
	if (!rc)
		rc = connect_to_any(s, wish);
	if (!rc) {
		use_descriptors(s);
		rc = read_reply(s, wish);
	}
	if (!rc && wish->access != HELLO_LIST)
		rc = adopt_descriptors(s);
	secret_forget(&s->secret);
	if (rc)
		session_close(s);
	return rc;
}

void session_close(struct session *s)
{
	if (s->conn)
		rpma_conn_disconnect(s->conn);
	rpma_mr_remote_delete(&s->remote);
	rpma_conn_delete(&s->conn);
	rpma_mr_dereg(&s->mail_mr);
	rpma_peer_delete(&s->peer);
}
