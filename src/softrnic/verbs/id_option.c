/* SPDX-License-Identifier: BSD-3-Clause */
/* id_option.c -- the options of rdma_set_option(). */
#include <errno.h>
#include <string.h>

#include "softrnic/verbs/id.h"
#include "softrnic/softrnic.h"

#define ACK_TIMEOUT_MAX 31 /* 5 bits */

/* The option must be set before the id is bound, because binding makes the link, which takes the
 * option only then. */
static int id_option_afonly(struct cmid *id, const void *val)
{
	int on;

	if (id->bound || id->conn || id->listener)
		return id_errno(EINVAL);
	memcpy(&on, val, sizeof(on));
	id->families = on ? LINK_FAMILIES_ONE : LINK_FAMILIES_BOTH;
	return 0;
}

/* The timeout becomes an attribute of the id's queue pair. */
static int id_option_ack_timeout(struct cmid *id, uint8_t timeout)
{
	if (timeout > ACK_TIMEOUT_MAX)
		return id_errno(EINVAL);
	id->has_ack_timeout = true;
	id->ack_timeout = timeout;
	if (id->conn)
		conn_set_ack_timeout(id->conn, timeout);
	return 0;
}

/* Address reuse is always on. The type of service is accepted and has no effect. */
int softrnic_set_option(struct rdma_cm_id *pub, int level, int name, void *val, size_t len)
{
	struct cmid *id = cmid_of(pub);

	if (id_is_removed(id))
		return id_errno(ENODEV);
	if (level != RDMA_OPTION_ID)
		return id_errno(ENOSYS);
	switch (name) {
	case RDMA_OPTION_ID_TOS:
		return len == sizeof(uint8_t) ? 0 : id_errno(EINVAL);
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		return len == sizeof(uint8_t) ? id_option_ack_timeout(id, *(const uint8_t *)val)
					      : id_errno(EINVAL);
	case RDMA_OPTION_ID_REUSEADDR:
		return len == sizeof(int) ? 0 : id_errno(EINVAL);
	case RDMA_OPTION_ID_AFONLY:
		return len == sizeof(int) ? id_option_afonly(id, val) : id_errno(EINVAL);
	default:
		return id_errno(ENOSYS);
	}
}
