/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>

static int peer_open_by(const char *host, enum rpma_util_ibv_context_type type,
			struct ibv_context **context, struct rpma_peer **peer)
{
	int rc = rpma_utils_get_ibv_context(host, type, context);

	return rc ? rc : rpma_peer_new(*context, peer);
}

int peer_open_to(const char *host, struct ibv_context **context, struct rpma_peer **peer)
{
	return peer_open_by(host, RPMA_UTIL_IBV_CONTEXT_REMOTE, context, peer);
}

int peer_open_at(const char *host, struct ibv_context **context, struct rpma_peer **peer,
		 struct error *err)
{
	if (!peer_open_by(host, RPMA_UTIL_IBV_CONTEXT_LOCAL, context, peer))
		return 0;
	return error_set(err, ERROR_LOCAL, ENODEV, "no RDMA device for address %s: %s", host,
			 rpma_err_last());
}

int peer_listen(struct rpma_peer *peer, struct address *at, struct rpma_ep **ep, int *fd,
		struct error *err)
{
	char text[ADDRESS_TEXT];
	uint16_t port;
	int rc = rpma_ep_listen(peer, at->host, at->port, ep);

	if (!rc)
		rc = rpma_ep_get_port(*ep, &port);
	if (!rc)
		rc = rpma_ep_get_fd(*ep, fd);
	if (rc)
		return error_set(err, ERROR_LOCAL, rc, "cannot listen on %s: %s",
				 address_show(at, text), rpma_err_last());
	snprintf(at->port, sizeof(at->port), "%u", port);
	return 0;
}

int peer_watch(int epoll_fd, int fd, void *tag)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = tag};

	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

int peer_describe_memory(const struct rpma_mr_local *mr, uint8_t *desc, size_t max, uint8_t *len)
{
	size_t size = 0;
	int rc = rpma_mr_get_descriptor_size(mr, &size);

	if (!rc && size > max)
		rc = RPMA_E_NOSUPP;
	if (!rc)
		rc = rpma_mr_get_descriptor(mr, desc);
	*len = (uint8_t)size;
	return rc;
}

int peer_describe(bool direct_write, uint8_t *desc, size_t max, uint8_t *len)
{
	struct rpma_peer_cfg *pcfg;
	size_t size = 0;
	int rc = rpma_peer_cfg_new(&pcfg);

	if (rc)
		return rc;
	rpma_peer_cfg_set_direct_write_to_pmem(pcfg, direct_write);
	rc = rpma_peer_cfg_get_descriptor_size(pcfg, &size);
	if (!rc && size > max)
		rc = RPMA_E_NOSUPP;
	if (!rc)
		rc = rpma_peer_cfg_get_descriptor(pcfg, desc);
	*len = (uint8_t)size;
	rpma_peer_cfg_delete(&pcfg);
	return rc;
}
