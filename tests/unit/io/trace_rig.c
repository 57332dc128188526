/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "lib/unit.h"
#include "softrnic/trace/flow.h"

#define LONGEST 200000

static uint64_t seed = 20260101;

static void remove_folder(const char *folder)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

void in_child(void (*body)(void), const char *name)
{
	char folder[] = "trace.XXXXXX";
	int status;
	pid_t pid;

	assert_non_null(mkdtemp(folder));
	pid = fork();
	if (pid == 0) {
		MUST(!chdir(folder));
		MUST(!setenv("SOFTRNIC_TRACE", name, 1));
		MUST(dup2(open("err", O_CREAT | O_RDWR | O_APPEND, 0600), 2) == 2);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status) {
		char command[64];

		snprintf(command, sizeof(command), "cat %s/err", folder);
		assert_int_equal(system(command), 0);
	}
	remove_folder(folder);
	assert_int_equal(status, 0);
}

int complaints(const char *text)
{
	FILE *f = fopen("err", "re");
	char line[512];
	int n = 0;

	MUST(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, text) != NULL;
	fclose(f);
	return n;
}

long size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? -1 : (long)st.st_size;
}

static struct sockaddr_storage loopback(enum rig_family family, socklen_t *len)
{
	struct sockaddr_storage ss = {0};
	struct sockaddr_in *sin = (struct sockaddr_in *)&ss;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&ss;

	*len = family == RIG_IPV4 ? sizeof(*sin) : sizeof(*sin6);
	if (family == RIG_IPV4) {
		sin->sin_family = AF_INET;
		sin->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return ss;
	}
	sin6->sin6_family = AF_INET6;
	MUST(inet_pton(AF_INET6, family == RIG_IPV6 ? "::1" : "::ffff:127.0.0.1",
		       &sin6->sin6_addr) == 1);
	return ss;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in6 sin6 = {0};
	socklen_t len = sizeof(sin6);

	MUST(!getsockname(fd, (struct sockaddr *)&sin6, &len));
	return ntohs(sin6.sin6_port);
}

void rig_connect(struct rig *r, enum rig_family family, bool initiator)
{
	socklen_t len;
	struct sockaddr_storage addr = loopback(family, &len);
	int listener = socket(addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), active, passive;

	memset(r, 0, sizeof(*r));
	MUST(!bind(listener, (struct sockaddr *)&addr, len) && !listen(listener, 1));
	MUST(!getsockname(listener, (struct sockaddr *)&addr, &len));
	active = socket(addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST(!connect(active, (struct sockaddr *)&addr, len));
	passive = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	MUST(passive >= 0);
	close(listener);
	r->initiator = initiator;
	r->us = initiator ? active : passive;
	r->peer = initiator ? passive : active;
	MUST(!fcntl(r->us, F_SETFL, O_NONBLOCK));
	r->port[0] = port_of(r->us);
	r->port[1] = port_of(r->peer);
}

void rig_trace(struct rig *r)
{
	r->trace = link_tcp_trace_new(r->us, r->initiator);
	MUST(r->trace);
}

static void note(struct rig *r, int side, const uint8_t *bytes, size_t len)
{
	r->bytes[side] = realloc(r->bytes[side], r->len[side] + len);
	MUST(r->bytes[side]);
	memcpy(r->bytes[side] + r->len[side], bytes, len);
	r->len[side] += len;
}

/* Take what the peer receives: these are the bytes of the wire. */
static size_t drain_peer(struct rig *r)
{
	static uint8_t buf[LONGEST];
	ssize_t n = recv(r->peer, buf, sizeof(buf), MSG_DONTWAIT);

	if (n > 0)
		note(r, 0, buf, (size_t)n);
	return n > 0 ? (size_t)n : 0;
}

static int cut(uint8_t *bytes, size_t len, struct iovec *iov, int n)
{
	int used = 0;

	while (len && used < n) {
		size_t part = used == n - 1 ? len : 1 + test_random(&seed) % len;

		iov[used++] = (struct iovec){bytes, part};
		bytes += part;
		len -= part;
	}
	return used;
}

void rig_send(struct rig *r, const void *bytes, size_t len)
{
	uint8_t *p = (uint8_t *)bytes;
	size_t sent = 0, got = 0;

	while (got < len) {
		struct iovec iov[5];
		struct msghdr msg = {.msg_iov = iov};
		ssize_t n;

		msg.msg_iovlen = (size_t)cut(p + sent, len - sent, iov, 5);
		n = sent < len ? link_tcp_trace_sendmsg(r->trace, r->us, &msg) : 0;
		MUST(n >= 0 || errno == EAGAIN);
		sent += n > 0 ? (size_t)n : 0;
		got += drain_peer(r);
	}
}

void rig_receive(struct rig *r, const void *bytes, size_t len)
{
	static uint8_t buf[LONGEST];
	size_t got = 0;

	MUST(send(r->peer, bytes, len, 0) == (ssize_t)len);
	note(r, 1, bytes, len);
	while (got < len) {
		struct pollfd p = {r->us, POLLIN, 0};
		struct iovec iov[2];
		struct msghdr msg = {.msg_iov = iov};
		ssize_t n;

		MUST(poll(&p, 1, 10000) == 1);
		msg.msg_iovlen = (size_t)cut(buf + got, sizeof(buf) - got, iov, 2);
		n = link_tcp_trace_recvmsg(r->trace, r->us, &msg);
		MUST(n > 0);
		MUST(!memcmp(buf + got, (const uint8_t *)bytes + got, (size_t)n));
		got += (size_t)n;
	}
}

void rig_exchange(struct rig *r, unsigned rounds)
{
	static uint8_t bytes[LONGEST];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)test_random(&seed);
	while (rounds--) {
		uint64_t n = test_random(&seed), at = n >> 40;

		rig_send(r, bytes + at % 1000, 1 + n % (LONGEST - 1000));
		rig_receive(r, bytes + at % 1000, 1 + (n >> 20) % 50000);
	}
}

static void expect_nothing_to_come(struct rig *r)
{
	uint8_t byte;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct pollfd p = {r->us, POLLIN, 0};

	MUST(poll(&p, 1, 10000) == 1);
	MUST(link_tcp_trace_recvmsg(r->trace, r->us, &msg) == 0);
}

void rig_end(struct rig *r)
{
	close(r->peer);
	expect_nothing_to_come(r);
	shutdown(r->us, SHUT_WR);
	trace_shutdown(r->trace);
	link_tcp_trace_delete(r->trace, r->us);
	close(r->us);
}

static void expect_handshake(const struct rig *r, const struct packet *first[3])
{
	uint16_t initiator = r->port[!r->initiator];

	MUST(first[0]->flags == TCP_SYN && first[0]->sport == initiator);
	MUST(first[1]->flags == (TCP_SYN | TCP_ACK) && first[1]->dport == initiator);
	MUST(first[2]->flags == TCP_ACK && first[2]->sport == initiator);
}

void rig_expect(const struct rig *r, const char *path, uint8_t flags)
{
	const struct packet *first[3] = {0}, *last = NULL;
	uint32_t next[2] = {0};
	size_t done[2] = {0};
	struct packets p;
	unsigned n = 0;

	MUST(!packets_load(&p, path));
	for (unsigned i = 0; i < p.n; i++) {
		const struct packet *k = &p.all[i];
		int side = k->sport == r->port[1];

		if (k->sport + k->dport != r->port[0] + r->port[1] ||
		    (k->sport != r->port[0] && k->sport != r->port[1]))
			continue;
		if (n < 3)
			first[n] = k;
		n++;
		MUST(k->direction == (side ? 1 : 2));
		MUST(k->flags & TCP_SYN || k->seq == next[side]);
		MUST(!(k->flags & TCP_ACK) || k->ack == next[!side]);
		MUST(!last || k->time_ns >= last->time_ns);
		MUST(done[side] + k->len <= r->len[side]);
		MUST(!memcmp(k->data, r->bytes[side] + done[side], k->len));
		done[side] += k->len;
		next[side] = k->seq + (uint32_t)k->len + (k->flags & (TCP_SYN | TCP_FIN) ? 1 : 0);
		last = k;
	}
	MUST(n >= 4);
	expect_handshake(r, first);
	MUST(done[0] == r->len[0] && done[1] == r->len[1]);
	MUST(last->flags == flags);
	packets_fini(&p);
}
