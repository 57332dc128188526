/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmem/direct.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/poll.h"
#include "base/text.h"
#include "rpmem/env.h"
#include "rpmem/errmsg.h"

static int direct_wait_connected(int fd, uint64_t deadline)
{
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};
	socklen_t len = sizeof(int);
	int n, error = 0;

	do {
		n = poll(&pfd, 1, poll_ms_left(deadline));
	} while ((n < 0 && errno == EINTR) || (n == 0 && poll_ms_left(deadline) > 0));
	if (n < 0)
		return errno;
	if (n == 0)
		return ETIMEDOUT;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len))
		return errno;
	return error;
}

static int direct_try(const struct addrinfo *to, uint64_t deadline, int *out)
{
	int one = 1, rc = 0;
	int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return errno;
	if (connect(fd, to->ai_addr, to->ai_addrlen))
		rc = errno == EINPROGRESS ? direct_wait_connected(fd, deadline) : errno;
	if (rc) {
		close(fd);
		return rc;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	*out = fd;
	return 0;
}

/* Divide the remaining time among the remaining addresses, because the first address may never
 * answer. */
static uint64_t direct_share(uint64_t deadline, const struct addrinfo *info)
{
	uint64_t now = clock_now_ns(), left = deadline > now ? deadline - now : 0, n = 0;

	for (; info; info = info->ai_next)
		n++;
	return now + left / (n ? n : 1);
}

int direct_connect(const struct target *target, uint64_t deadline, int *fd)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list, *info;
	int rc = getaddrinfo(target->host, target->port, &hints, &list);

	if (rc)
		return errmsg_fail(ENOMEDIUM, "no such host '%s': %s", target->host,
				   gai_strerror(rc));
	rc = EADDRNOTAVAIL;
	for (info = list; info; info = info->ai_next) {
		rc = direct_try(info, direct_share(deadline, info), fd);
		if (!rc)
			break;
	}
	freeaddrinfo(list);
	if (!rc)
		return 0;
	return errmsg_fail(rc == ETIMEDOUT ? ETIMEDOUT : ECONNRESET,
			   "cannot connect to rpmemd at %s port %s: %s", target->host, target->port,
			   strerror(rc));
}

static int direct_load_secret(struct secret *secret)
{
	char path[4096];
	struct error err;

	if (!env_secret_file(path, sizeof(path)))
		return errmsg_fail(
			EACCES,
			"the target requires a secret, but neither RPMEM_SECRET_FILE nor HOME is "
			"set to find its file");
	if (secret_load(secret, path, &err))
		return errmsg_fail(EACCES, "%s (RPMEM_SECRET_FILE names another file)", err.text);
	return 0;
}

/* Check the answer to a proof: the daemon's own proof, or a refusal. */
static int direct_check(struct wire_stream *stream, const struct secret *secret,
			const struct wire_exchange *exchange, const char *who, uint64_t deadline)
{
	struct wire_proven proven;
	struct wire_frame frame;
	struct error err;
	uint8_t mac[WIRE_MAC];
	int rc = wire_stream_receive(stream, &frame, deadline);

	if (rc) {
		wire_stream_explain(stream, rc, who, &err);
		return errmsg_fail(err.cause, "%s", err.text);
	}
	if (frame.type != WIRE_PROVEN || !wire_proven_decode(frame.body, frame.len, &proven))
		return errmsg_fail(EPROTO, "%s broke the protocol", who);
	text_make_printable(proven.text);
	if (proven.error == EACCES)
		return errmsg_fail(EACCES, "%s does not accept this end's secret: %s", who,
				   proven.text);
	wire_prove_daemon(secret, exchange, &proven, mac);
	if (!mac_is_equal(mac, proven.mac))
		return errmsg_fail(EACCES, "%s does not know the secret", who);
	if (proven.error)
		return errmsg_fail((int)proven.error, "%s: %s", who, proven.text);
	return 0;
}

static int direct_exchange(struct wire_stream *stream, const struct secret *secret,
			   const struct wire_greeting *greeting, const char *who, uint64_t deadline,
			   struct wire_key *lane_key)
{
	struct wire_exchange exchange = {.greeting = *greeting};
	struct wire_proof proof;
	struct wire_keys keys;
	uint8_t body[WIRE_BODY_MAX];
	struct error err;
	int rc;

	wire_random(proof.nonce, sizeof(proof.nonce));
	memcpy(exchange.nonce, proof.nonce, sizeof(exchange.nonce));
	wire_prove_initiator(secret, &exchange, proof.mac);
	rc = wire_stream_send(stream, WIRE_PROOF, body, wire_proof_encode(&proof, body), deadline);
	if (rc) {
		wire_stream_explain(stream, rc, who, &err);
		return errmsg_fail(err.cause, "%s", err.text);
	}
	rc = direct_check(stream, secret, &exchange, who, deadline);
	if (rc)
		return rc;
	wire_keys_derive(secret, &exchange, &keys);
	wire_stream_seal(stream, &keys.to_daemon, &keys.to_initiator);
	*lane_key = keys.lanes;
	sodium_memzero(&keys, sizeof(keys));
	return 0;
}

int direct_prove(struct wire_stream *stream, const struct wire_greeting *greeting, const char *who,
		 uint64_t deadline, struct wire_key *lane_key)
{
	struct secret secret;
	int rc = direct_load_secret(&secret);

	if (rc)
		return rc;
	rc = direct_exchange(stream, &secret, greeting, who, deadline, lane_key);
	secret_forget(&secret);
	return rc;
}
