/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/link_udp.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "softrnic/io/link_sockaddr.h"
#include "softrnic/io/trace.h"

#define UDP_RCVBUF (4 << 20)
/* with a smaller buffer, packets are lost if a few senders send bursts */
#define UDP_RCVBUF_OK (1 << 20)
/* bytes of the buffer that one packet takes; 8.9 KiB for a packet of 4 KiB */
#define UDP_PACKET  9216
#define UDP_IPV4_AT 12 /* offset of an IPv4 address in a GID */

/* --- open ----------------------------------------------------------------------------------- */

static void udp_set(int fd, int level, int name, int value)
{
	if (setsockopt(fd, level, name, &value, sizeof(value)))
		LOG_DEBUG("socket option %d/%d of datagrams: %s", level, name, strerror(errno));
}

/* Enlarge the receive buffer. The kernel limits the buffer to net.core.rmem_max, unless the process
 * may administer the network. */
static void udp_set_buffer(struct link_udp *u)
{
	int size = UDP_RCVBUF;
	socklen_t len = sizeof(size);

	if (setsockopt(u->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		udp_set(u->fd, SOL_SOCKET, SO_RCVBUF, size);
	if (getsockopt(u->fd, SOL_SOCKET, SO_RCVBUF, &size, &len))
		size = 0;
	u->window = (uint32_t)size / 2 / UDP_PACKET;
	if (size < UDP_RCVBUF_OK)
		LOG_NOTICE_LIMITED(
			"the socket of datagrams has a buffer of %d KiB only: bursts of several "
			"senders may be lost (sysctl net.core.rmem_max=%d)",
			size / 1024, UDP_RCVBUF);
}

/* Set the socket's options: each packet has its own source address, may be fragmented, and is
 * received with its destination, traffic class and hop limit. An IPv6 socket needs IPv4's options,
 * too, for IPv4 packets. */
static void udp_set_options(struct link_udp *u)
{
	udp_set_buffer(u);
	udp_set(u->fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT);
	udp_set(u->fd, IPPROTO_IP, IP_RECVTOS, 1);
	udp_set(u->fd, IPPROTO_IP, IP_RECVTTL, 1);
	if (u->ipv4) {
		udp_set(u->fd, IPPROTO_IP, IP_PKTINFO, 1);
		return;
	}
	udp_set(u->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DONT);
	udp_set(u->fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	udp_set(u->fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
	udp_set(u->fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
}

static int udp_open(const struct link_addr *at, struct link_udp *u)
{
	int type = SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
	struct sockaddr_storage ss;
	socklen_t len = link_addr_to(at, &ss);

	u->port = at->port;
	u->ipv4 = at->family == LINK_IPV4;
	u->fd = socket(ss.ss_family, type, 0);
	if (u->fd < 0)
		return -errno;
	if (!u->ipv4)
		udp_set(u->fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	if (bind(u->fd, (struct sockaddr *)&ss, len)) {
		int ret = -errno;

		link_udp_close(u);
		return ret;
	}
	udp_set_options(u);
	return 0;
}

int link_udp_open(const struct link_addr *at, struct link_udp *u)
{
	struct link_addr any = *at;
	int ret;

	if (at->family != LINK_NONE)
		return udp_open(at, u);
	any.family = LINK_IPV6;
	ret = udp_open(&any, u);
	if (ret != -EAFNOSUPPORT && ret != -EADDRNOTAVAIL)
		return ret;
	any.family = LINK_IPV4; /* the host has no IPv6 */
	return udp_open(&any, u);
}

void link_udp_close(struct link_udp *u)
{
	if (u->fd >= 0)
		close(u->fd);
	u->fd = -1;
}

/* --- packets -------------------------------------------------------------------------------- */

#define UDP_CONTROL (CMSG_SPACE(sizeof(struct in6_pktinfo)) + 2 * CMSG_SPACE(sizeof(int)))

/* One packet in the form that the kernel needs: its peer, this host's address, the fields of its IP
 * header, and its bytes. */
struct udp_msg {
	struct sockaddr_storage peer;
	_Alignas(struct cmsghdr) uint8_t control[UDP_CONTROL];
	struct iovec iov;
};

static void udp_frame(struct mmsghdr *m, struct udp_msg *msg, const struct ud_packet *p)
{
	msg->iov = (struct iovec){.iov_base = p->bytes, .iov_len = p->len};
	*m = (struct mmsghdr){
		.msg_hdr.msg_name = &msg->peer,
		.msg_hdr.msg_namelen = sizeof(msg->peer),
		.msg_hdr.msg_iov = &msg->iov,
		.msg_hdr.msg_iovlen = 1,
		.msg_hdr.msg_control = msg->control,
		.msg_hdr.msg_controllen = sizeof(msg->control),
	};
}

static void udp_put_control(struct msghdr *m, int level, int type, const void *data, size_t len)
{
	struct cmsghdr *c = (struct cmsghdr *)((uint8_t *)m->msg_control + m->msg_controllen);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), data, len);
	m->msg_controllen += CMSG_SPACE(len);
}

static void udp_put_fields(struct msghdr *m, const struct ud_path *path)
{
	int traffic_class = path->traffic_class, hop_limit = path->hop_limit;
	size_t len = sizeof(int);

	if (ud_gid_is_ipv4(path->to)) {
		udp_put_control(m, IPPROTO_IP, IP_TOS, &traffic_class, len);
		udp_put_control(m, IPPROTO_IP, IP_TTL, &hop_limit, len);
	} else {
		udp_put_control(m, IPPROTO_IPV6, IPV6_TCLASS, &traffic_class, len);
		udp_put_control(m, IPPROTO_IPV6, IPV6_HOPLIMIT, &hop_limit, len);
	}
}

static void udp_put_ipv4(struct msghdr *m, const struct ud_packet *p)
{
	struct sockaddr_in *sin = m->msg_name;
	struct in_pktinfo info = {.ipi_ifindex = 0};

	*sin = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(p->port)};
	memcpy(&sin->sin_addr, p->path.to + UDP_IPV4_AT, sizeof(sin->sin_addr));
	memcpy(&info.ipi_spec_dst, p->path.from + UDP_IPV4_AT, sizeof(info.ipi_spec_dst));
	m->msg_namelen = sizeof(*sin);
	udp_put_control(m, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
}

/* Put an IPv6 source address; an IPv4 address is mapped to IPv6. */
static void udp_put_ipv6(struct msghdr *m, const struct ud_packet *p)
{
	struct sockaddr_in6 *sin6 = m->msg_name;
	struct in6_pktinfo info = {.ipi6_ifindex = p->path.scope};

	*sin6 = (struct sockaddr_in6){.sin6_family = AF_INET6,
				      .sin6_port = htons(p->port),
				      .sin6_scope_id = p->path.scope};
	memcpy(&sin6->sin6_addr, p->path.to, sizeof(sin6->sin6_addr));
	memcpy(&info.ipi6_addr, p->path.from, sizeof(info.ipi6_addr));
	m->msg_namelen = sizeof(*sin6);
	udp_put_control(m, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
}

int link_udp_send(struct link_udp *u, const struct ud_packet *packets, int n)
{
	struct mmsghdr m[LINK_UDP_BATCH];
	struct udp_msg msgs[LINK_UDP_BATCH];
	int sent;

	for (int i = 0; i < n; i++) {
		udp_frame(&m[i], &msgs[i], &packets[i]);
		memset(&msgs[i].control, 0, sizeof(msgs[i].control));
		m[i].msg_hdr.msg_controllen = 0;
		if (u->ipv4)
			udp_put_ipv4(&m[i].msg_hdr, &packets[i]);
		else
			udp_put_ipv6(&m[i].msg_hdr, &packets[i]);
		udp_put_fields(&m[i].msg_hdr, &packets[i].path);
	}
	do
		sent = sendmmsg(u->fd, m, (unsigned)n, 0);
	while (sent < 0 && errno == EINTR);
	if (sent > 0) {
		trace_datagrams(packets, sent, u->port, true);
		return sent;
	}
	if (errno == EAGAIN)
		return -EAGAIN;
	LOG_NOTICE_LIMITED("a datagram is lost, because this host cannot send it: %s",
			   strerror(errno));
	return 1;
}

static void udp_get_ipv4(const uint8_t *addr, uint8_t gid[UD_GID_LEN])
{
	memset(gid, 0, UD_GID_LEN);
	memset(gid + UDP_IPV4_AT - 2, 0xff, 2);
	memcpy(gid + UDP_IPV4_AT, addr, sizeof(struct in_addr));
}

static void udp_get_peer(const struct msghdr *m, struct ud_packet *p)
{
	const struct sockaddr_in *sin = m->msg_name;
	const struct sockaddr_in6 *sin6 = m->msg_name;

	if (sin->sin_family == AF_INET) {
		udp_get_ipv4((const uint8_t *)&sin->sin_addr, p->path.from);
		p->port = ntohs(sin->sin_port);
		return;
	}
	memcpy(p->path.from, &sin6->sin6_addr, UD_GID_LEN);
	p->path.scope = sin6->sin6_scope_id;
	p->port = ntohs(sin6->sin6_port);
}

static uint8_t udp_get_int(const struct cmsghdr *c)
{
	int value;

	memcpy(&value, CMSG_DATA(c), sizeof(value));
	return (uint8_t)value;
}

static void udp_get_control_ipv6(const struct cmsghdr *c, struct ud_path *path)
{
	struct in6_pktinfo own;

	switch (c->cmsg_type) {
	case IPV6_PKTINFO:
		memcpy(&own, CMSG_DATA(c), sizeof(own));
		memcpy(path->to, &own.ipi6_addr, UD_GID_LEN);
		break;
	case IPV6_TCLASS:
		path->traffic_class = udp_get_int(c);
		break;
	case IPV6_HOPLIMIT:
		path->hop_limit = udp_get_int(c);
		break;
	default: /* other options were not requested */
		break;
	}
}

static void udp_get_control_ipv4(const struct cmsghdr *c, struct ud_path *path)
{
	struct in_pktinfo own;

	switch (c->cmsg_type) {
	case IP_PKTINFO:
		memcpy(&own, CMSG_DATA(c), sizeof(own));
		udp_get_ipv4((const uint8_t *)&own.ipi_addr, path->to);
		break;
	case IP_TOS: /* this value is received as one byte, but sent as an int */
		path->traffic_class = *CMSG_DATA(c);
		break;
	case IP_TTL:
		path->hop_limit = udp_get_int(c);
		break;
	default: /* other options were not requested */
		break;
	}
}

static void udp_get(struct mmsghdr *m, struct ud_packet *p)
{
	struct cmsghdr *c;

	p->path = (struct ud_path){.hop_limit = LINK_UDP_HOP_LIMIT};
	p->len = m->msg_len;
	udp_get_peer(&m->msg_hdr, p);
	for (c = CMSG_FIRSTHDR(&m->msg_hdr); c; c = CMSG_NXTHDR(&m->msg_hdr, c)) {
		if (c->cmsg_level == IPPROTO_IPV6)
			udp_get_control_ipv6(c, &p->path);
		else if (c->cmsg_level == IPPROTO_IP)
			udp_get_control_ipv4(c, &p->path);
	}
}

int link_udp_recv(struct link_udp *u, struct ud_packet *packets, int n)
{
	struct mmsghdr m[LINK_UDP_BATCH];
	struct udp_msg msgs[LINK_UDP_BATCH];
	int got;

	for (int i = 0; i < n; i++)
		udp_frame(&m[i], &msgs[i], &packets[i]);
	do
		got = recvmmsg(u->fd, m, (unsigned)n, 0, NULL);
	while (got < 0 && errno == EINTR);
	for (int i = 0; i < got; i++)
		udp_get(&m[i], &packets[i]);
	trace_datagrams(packets, got, u->port, false);
	return got < 0 ? -EAGAIN : got;
}
