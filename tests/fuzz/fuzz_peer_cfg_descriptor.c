/* SPDX-License-Identifier: BSD-3-Clause */
/* Input: any bytes as a peer configuration's descriptor, through the public API. Only one byte has
 * a meaning. */
#include "fuzz/fuzz.h"

#include "fuzz/fuzz_rpma.h"
#include "librpma.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct rpma_peer_cfg *pcfg = NULL;
	bool direct = false;
	uint8_t desc = 0xff;
	size_t size = 0;
	int ret;

	fuzz_rpma_log();
	ret = rpma_peer_cfg_from_descriptor(data, len, &pcfg);
	if (ret) {
		EXPECT(ret == RPMA_E_INVAL && !pcfg && len == 0);
		return 0;
	}
	EXPECT(len > 0);
	EXPECT(!rpma_peer_cfg_get_direct_write_to_pmem(pcfg, &direct) && direct == !!data[0]);
	EXPECT(!rpma_peer_cfg_get_descriptor_size(pcfg, &size) && size == sizeof(desc));
	EXPECT(!rpma_peer_cfg_get_descriptor(pcfg, &desc) && desc == direct);
	EXPECT(!rpma_peer_cfg_delete(&pcfg) && !pcfg);
	return 0;
}
