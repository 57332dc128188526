/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/proto/cm_qp.h"

#include <errno.h>
#include <string.h>

#include "base/cursor.h"

#define CM_QP_MAGIC   0x73525851u /* the bytes "sRXQ" */
#define CM_QP_VERSION 1u
#define CM_QP_FLAG_UD 1u

int cm_qp_encode(void *buf, size_t size, const struct cm_qp *qp)
{
	struct wcursor c = wcursor_init(buf, size);

	wcursor_be32(&c, CM_QP_MAGIC);
	wcursor_u8(&c, CM_QP_VERSION);
	wcursor_u8(&c, qp->datagram ? CM_QP_FLAG_UD : 0);
	wcursor_be16(&c, 0);
	wcursor_be32(&c, qp->qpn);
	wcursor_be32(&c, qp->psn);
	wcursor_bytes(&c, qp->gid, CM_QP_GID_LEN);
	return c.bad ? -ENOSPC : (int)wcursor_len(&c);
}

int cm_qp_decode(const void *buf, size_t len, struct cm_qp *qp)
{
	struct rcursor c = rcursor_init(buf, len);
	uint32_t magic = rcursor_be32(&c);
	uint8_t version = rcursor_u8(&c), flags = rcursor_u8(&c);
	uint16_t zero = rcursor_be16(&c);
	const uint8_t *gid;

	qp->qpn = rcursor_be32(&c);
	qp->psn = rcursor_be32(&c);
	gid = rcursor_bytes(&c, CM_QP_GID_LEN);
	if (c.bad || !gid || magic != CM_QP_MAGIC || version != CM_QP_VERSION ||
	    flags & ~CM_QP_FLAG_UD || zero || qp->qpn > CM_QP_MAX || qp->psn > CM_QP_MAX)
		return -EBADMSG;
	qp->datagram = flags & CM_QP_FLAG_UD;
	memcpy(qp->gid, gid, CM_QP_GID_LEN);
	return CM_QP_LEN;
}
