/* SPDX-License-Identifier: BSD-3-Clause */
/* Input: the private data of a request or a reply of rdma_cm. An accepted name of a queue pair
 * encodes to the same bytes. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "softrnic/proto/cm_qp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t again[CM_QP_LEN];
	struct cm_qp name;

	if (cm_qp_decode(data, len, &name) < 0)
		return 0;
	EXPECT(len >= CM_QP_LEN && name.qpn <= CM_QP_MAX && name.psn <= CM_QP_MAX);
	EXPECT(cm_qp_encode(again, sizeof(again), &name) == CM_QP_LEN);
	EXPECT(!memcmp(again, data, CM_QP_LEN));
	return 0;
}
