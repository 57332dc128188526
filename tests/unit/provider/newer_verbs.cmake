# SPDX-License-Identifier: BSD-3-Clause
# newer_verbs(dir): writes this machine's infiniband/verbs.h with the flush of rdma-core 45 added, for a test that
# simulates the device. The test must not be linked with code that uses the original structs.
function(newer_verbs dir)
	find_file(VERBS_H infiniband/verbs.h PATHS ${IBVERBS_INCLUDE_DIRS} REQUIRED)
	file(READ ${VERBS_H} text)
	set(args "struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len, uint8_t type, uint8_t level")
	set(member "void (*wr_atomic_write)(")
	string(FIND "${text}" "${member}" at)
	if(at EQUAL -1)
		message(FATAL_ERROR "${VERBS_H} has no wr_atomic_write")
	endif()
	string(REPLACE "${member}" "void (*wr_flush)(${args});\n\t${member}" text "${text}")
	string(APPEND text "
#ifndef NEWER_VERBS
#define NEWER_VERBS
enum { IBV_QP_EX_WITH_FLUSH = 1 << 11 };
enum { IBV_FLUSH_GLOBAL = 1 << 0, IBV_FLUSH_PERSISTENT = 1 << 1 };
enum { IBV_FLUSH_RANGE, IBV_FLUSH_MR };
static inline void ibv_wr_flush(${args})
{
	qp->wr_flush(qp, rkey, remote_addr, len, type, level);
}
#endif
")
	file(WRITE ${dir}/infiniband/verbs.h "${text}")
endfunction()
