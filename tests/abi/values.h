/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * values.h -- every number that the header promises: X(expression, its value).
 *
 * This list is compiled once with this project's librpma.h and once with the distribution's.
 */
#ifndef TEST_ABI_VALUES_H
#define TEST_ABI_VALUES_H

#define ABI_VALUES(X)                                                                              \
	X(RPMA_W_WAIT_FOR_COMPLETION, 1)                                                           \
	X(RPMA_DEFAULT_TIMEOUT_MS, 1000)                                                           \
	X(RPMA_ATOMIC_WRITE_ALIGNMENT, 8)                                                          \
	X(RPMA_F_COMPLETION_ON_ERROR, 1)                                                           \
	X(RPMA_F_COMPLETION_ALWAYS, 3)                                                             \
	X(RPMA_MR_USAGE_READ_SRC, 1)                                                               \
	X(RPMA_MR_USAGE_READ_DST, 2)                                                               \
	X(RPMA_MR_USAGE_WRITE_SRC, 4)                                                              \
	X(RPMA_MR_USAGE_WRITE_DST, 8)                                                              \
	X(RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, 16)                                                 \
	X(RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, 32)                                                 \
	X(RPMA_MR_USAGE_SEND, 64)                                                                  \
	X(RPMA_MR_USAGE_RECV, 128)                                                                 \
	X(RPMA_E_UNKNOWN, -100000)                                                                 \
	X(RPMA_E_NOSUPP, -100001)                                                                  \
	X(RPMA_E_PROVIDER, -100002)                                                                \
	X(RPMA_E_NOMEM, -100003)                                                                   \
	X(RPMA_E_INVAL, -100004)                                                                   \
	X(RPMA_E_NO_COMPLETION, -100005)                                                           \
	X(RPMA_E_NO_EVENT, -100006)                                                                \
	X(RPMA_E_AGAIN, -100007)                                                                   \
	X(RPMA_E_SHARED_CHANNEL, -100008)                                                          \
	X(RPMA_E_NOT_SHARED_CHNL, -100009)                                                         \
	X(RPMA_UTIL_IBV_CONTEXT_LOCAL, 0)                                                          \
	X(RPMA_UTIL_IBV_CONTEXT_REMOTE, 1)                                                         \
	X(RPMA_CONN_UNDEFINED, -1)                                                                 \
	X(RPMA_CONN_ESTABLISHED, 0)                                                                \
	X(RPMA_CONN_CLOSED, 1)                                                                     \
	X(RPMA_CONN_LOST, 2)                                                                       \
	X(RPMA_CONN_REJECTED, 3)                                                                   \
	X(RPMA_CONN_UNREACHABLE, 4)                                                                \
	X(RPMA_FLUSH_TYPE_PERSISTENT, 0)                                                           \
	X(RPMA_FLUSH_TYPE_VISIBILITY, 1)                                                           \
	X(RPMA_LOG_DISABLED, -1)                                                                   \
	X(RPMA_LOG_LEVEL_FATAL, 0)                                                                 \
	X(RPMA_LOG_LEVEL_ERROR, 1)                                                                 \
	X(RPMA_LOG_LEVEL_WARNING, 2)                                                               \
	X(RPMA_LOG_LEVEL_NOTICE, 3)                                                                \
	X(RPMA_LOG_LEVEL_INFO, 4)                                                                  \
	X(RPMA_LOG_LEVEL_DEBUG, 5)                                                                 \
	X(RPMA_LOG_THRESHOLD, 0)                                                                   \
	X(RPMA_LOG_THRESHOLD_AUX, 1)                                                               \
	X(RPMA_LOG_THRESHOLD_MAX, 2)                                                               \
	X((RPMA_LOG_USE_DEFAULT_FUNCTION) != NULL, 0)                                              \
	X(sizeof(enum rpma_util_ibv_context_type), 4)                                              \
	X(sizeof(enum rpma_conn_event), 4)                                                         \
	X(sizeof(enum rpma_flush_type), 4)                                                         \
	X(sizeof(enum rpma_log_level), 4)                                                          \
	X(sizeof(enum rpma_log_threshold), 4)                                                      \
	X(sizeof(struct rpma_conn_private_data), 16)                                               \
	X(offsetof(struct rpma_conn_private_data, ptr), 0)                                         \
	X(offsetof(struct rpma_conn_private_data, len), 8)                                         \
	X(sizeof(((struct rpma_conn_private_data *)0)->len), 1)                                    \
	X(sizeof(struct ibv_wc), 48)

/* Numbers that are new after librpma 1.3; the distribution's header does not have them. */
#define ABI_VALUES_14(X)                                                                           \
	X(RPMA_CAP_SOFTRNIC, 1)                                                                    \
	X(RPMA_CAP_FLUSH, 2)                                                                       \
	X(RPMA_CAP_FLUSH_ALL, 4)                                                                   \
	X(RPMA_CAP_ATOMIC_WRITE, 8)                                                                \
	X(RPMA_CAP_VERIFY, 16)                                                                     \
	X(RPMA_CAP_QUERY, 32)                                                                      \
	X(RPMA_CAP_IMM, 64)                                                                        \
	X(RPMA_CAP_ATOMICS, 128)                                                                   \
	X(RPMA_VERSION, 1004000)                                                                   \
	X(RPMA_VERSION_MAJOR, PROJECT_MAJOR)                                                       \
	X(RPMA_VERSION_MINOR, PROJECT_MINOR)                                                       \
	X(RPMA_VERSION_PATCH, PROJECT_PATCH)                                                       \
	X(RPMA_HAS_ATOMICS, 1004000)                                                               \
	X(RPMA_ATOMIC_ALIGNMENT, 8)                                                                \
	X(RPMA_HAS_BATCH, 1004000)                                                                 \
	X(RPMA_HAS_CONN_OPEN, 1004000)                                                             \
	X(RPMA_HAS_COUNTERS, 1004000)                                                              \
	X(RPMA_HAS_CQ, 1004000)                                                                    \
	X(RPMA_HAS_DURABILITY, 1004000)                                                            \
	X(RPMA_HAS_ERR_LAST, 1004000)                                                              \
	X(RPMA_HAS_FLUSH_ALL, 1004000)                                                             \
	X(RPMA_HAS_MR_REG_FILE, 1004000)                                                           \
	X(RPMA_HAS_PROVIDERS, 1004000)                                                             \
	X(RPMA_HAS_REASONS, 1004000)                                                               \
	X(RPMA_HAS_REJECTION, 1004000)                                                             \
	X(RPMA_HAS_REMOTE_CAPS, 1004000)                                                           \
	X(RPMA_HAS_STRICT_FLUSH, 1004000)                                                          \
	X(RPMA_HAS_TIMEOUTS, 1004000)                                                              \
	X(RPMA_HAS_VERIFY, 1004000)                                                                \
	X(RPMA_REJECTION_NONE, 0)                                                                  \
	X(RPMA_REJECTION_UNKNOWN, 1)                                                               \
	X(RPMA_REJECTION_NO_LISTENER, 2)                                                           \
	X(RPMA_REJECTION_REFUSED, 3)                                                               \
	X(RPMA_REJECTION_CLOSED, 4)                                                                \
	X(sizeof(enum rpma_rejection), 4)                                                          \
	X(RPMA_ADDR_MAX, 64)                                                                       \
	X(RPMA_SEND_SEGMENTS_MAX, 4)                                                               \
	X(RPMA_WC_FLUSH, 8)                                                                        \
	X(RPMA_WC_ATOMIC_WRITE, 9)                                                                 \
	X(RPMA_WC_VERIFY, 80)                                                                      \
	X(RPMA_WC_QUERY, 81)                                                                       \
	X(RPMA_DURABILITY_UNKNOWN, 0)                                                              \
	X(RPMA_DURABILITY_VOLATILE, 1)                                                             \
	X(RPMA_DURABILITY_FILE, 2)                                                                 \
	X(RPMA_DURABILITY_DAX, 3)                                                                  \
	X(RPMA_DIGEST_SMALL, 4096)                                                                 \
	X(RPMA_DIGEST_AUTO, 0)                                                                     \
	X(RPMA_DIGEST_CRC32C, 1)                                                                   \
	X(RPMA_DIGEST_BLAKE2B, 2)                                                                  \
	X(RPMA_DIGEST_FROM_MEMORY, 0)                                                              \
	X(RPMA_DIGEST_FROM_CACHE, 1)                                                               \
	X(RPMA_DIGEST_FROM_MEDIUM, 2)                                                              \
	X(RPMA_DIGEST_FROM_DAX, 3)                                                                 \
	X(RPMA_REASON_NONE, 0)                                                                     \
	X(RPMA_REASON_WRITE_BACK, 1)                                                               \
	X(RPMA_REASON_VOLATILE, 2)                                                                 \
	X(RPMA_REASON_GONE, 3)                                                                     \
	X(RPMA_REASON_TERMINATE_IN, 4)                                                             \
	X(RPMA_REASON_TERMINATE_OUT, 5)                                                            \
	X(RPMA_REASON_LINK, 6)                                                                     \
	X(RPMA_REASON_LOCAL, 7)                                                                    \
	X(RPMA_REASON_DEVICE, 8)                                                                   \
	X(sizeof(enum rpma_durability), 4)                                                         \
	X(sizeof(enum rpma_digest_alg), 4)                                                         \
	X(sizeof(enum rpma_digest_source), 4)                                                      \
	X(sizeof(enum rpma_reason), 4)                                                             \
	X(sizeof(struct rpma_counter), 16)                                                         \
	X(offsetof(struct rpma_counter, value), 8)                                                 \
	X(sizeof(struct rpma_segment), 24)                                                         \
	X(offsetof(struct rpma_segment, offset), 8)                                                \
	X(offsetof(struct rpma_segment, len), 16)                                                  \
	X(sizeof(struct rpma_digest), 48)                                                          \
	X(offsetof(struct rpma_digest, source), 4)                                                 \
	X(offsetof(struct rpma_digest, durability), 8)                                             \
	X(offsetof(struct rpma_digest, len), 12)                                                   \
	X(offsetof(struct rpma_digest, bytes), 16)                                                 \
	X(sizeof(struct rpma_provider_info), 40)                                                   \
	X(offsetof(struct rpma_provider_info, device), 16)                                         \
	X(offsetof(struct rpma_provider_info, usable), 24)                                         \
	X(offsetof(struct rpma_provider_info, why), 32)

struct abi_value {
	const char *name;
	long value, expected;
};

#endif
