/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layout.c -- the numbers and layouts that librpmafile.h, librpmirror.h and librpmem.h promise to
 * programs that were built before (doc/stability.md); values.h has librpma.h's. This file is only
 * compiled. A line here never changes. A new value gets its own line. So does a new member, which
 * can be added only at the end of a structure that begins with its size.
 */
#include <librpmafile.h>
#include <librpmem.h>
#include <librpmirror.h>
#include <stddef.h>

#define IS(expression, value) _Static_assert((expression) == (value), #expression " has changed")
/* A caller states the size of the structure that it was built with, so a later library fills at
 * most that many bytes. */
#define MAY_GROW(name, least)                                                                      \
	_Static_assert(sizeof(struct name) >= (least) && offsetof(struct name, size) == 0,         \
		       "struct " #name " has shrunk")

#ifdef __LP64__

/* numbers of librpmafile.h */
IS(RPMA_FILE_HOLDS_BYTES, 0);
IS(RPMA_FILE_HOLDS_PARTIAL, 1);
IS(RPMA_FILE_HOLDS_WHOLE, 2);
IS(RPMA_FILE_E_UNREACHED, -300001);
IS(RPMA_FILE_E_REFUSED, -300002);
IS(RPMA_FILE_E_LOST, -300003);
IS(RPMA_FILE_E_MEDIUM, -300004);
IS(RPMA_FILE_E_GONE, -300005);
IS(RPMA_FILE_E_DIFFERS, -300006);
IS(RPMA_FILE_E_TAKEN, -300007);
IS(RPMA_FILE_READONLY, 1);
IS(RPMA_FILE_VOLATILE_OK, 2);
IS(RPMA_FILE_UNCLAIMED, 4);
IS(RPMA_FILE_REGIONS_MAX, 32);
IS(RPMA_FILE_DIGEST_MAX, 33554432);
IS(RPMA_FILE_SERVE_VOLATILE_OK, 1);
IS(RPMA_FILE_SERVE_CREATE, 2);
MAY_GROW(rpma_file_options, 56);
IS(offsetof(struct rpma_file_options, size), 0);
IS(offsetof(struct rpma_file_options, flags), 8);
IS(offsetof(struct rpma_file_options, timeout_ms), 12);
IS(offsetof(struct rpma_file_options, reconnect_ms), 16);
IS(offsetof(struct rpma_file_options, secret_file), 24);
IS(offsetof(struct rpma_file_options, write_offset), 32);
IS(offsetof(struct rpma_file_options, write_length), 40);
IS(offsetof(struct rpma_file_options, owner), 48);
IS(sizeof(struct rpma_file_range), 16);
IS(offsetof(struct rpma_file_range, offset), 0);
IS(offsetof(struct rpma_file_range, length), 8);
IS(sizeof(struct rpma_file_info), 488);
IS(offsetof(struct rpma_file_info, size), 0);
IS(offsetof(struct rpma_file_info, length), 8);
IS(offsetof(struct rpma_file_info, durability), 16);
IS(offsetof(struct rpma_file_info, region), 20);
IS(offsetof(struct rpma_file_info, server), 68);
IS(offsetof(struct rpma_file_info, device), 348);
IS(offsetof(struct rpma_file_info, link), 412);
IS(offsetof(struct rpma_file_info, persists), 428);
IS(offsetof(struct rpma_file_info, verifies), 432);
IS(offsetof(struct rpma_file_info, holds), 436);
IS(offsetof(struct rpma_file_info, file_length), 440);
IS(offsetof(struct rpma_file_info, file_time_ns), 448);
IS(offsetof(struct rpma_file_info, file_digest), 456);
IS(sizeof(struct rpma_file_region), 112);
IS(offsetof(struct rpma_file_region, name), 0);
IS(offsetof(struct rpma_file_region, length), 48);
IS(offsetof(struct rpma_file_region, durability), 56);
IS(offsetof(struct rpma_file_region, holds), 60);
IS(offsetof(struct rpma_file_region, file_length), 64);
IS(offsetof(struct rpma_file_region, file_time_ns), 72);
IS(offsetof(struct rpma_file_region, file_digest), 80);
IS(sizeof(struct rpma_file_export), 32);
IS(offsetof(struct rpma_file_export, name), 0);
IS(offsetof(struct rpma_file_export, path), 8);
IS(offsetof(struct rpma_file_export, addr), 16);
IS(offsetof(struct rpma_file_export, length), 24);
MAY_GROW(rpma_file_server_options, 56);
IS(offsetof(struct rpma_file_server_options, size), 0);
IS(offsetof(struct rpma_file_server_options, flags), 8);
IS(offsetof(struct rpma_file_server_options, secret_file), 16);
IS(offsetof(struct rpma_file_server_options, create_size), 24);
IS(offsetof(struct rpma_file_server_options, max_clients), 32);
IS(offsetof(struct rpma_file_server_options, note), 40);
IS(offsetof(struct rpma_file_server_options, note_arg), 48);

/* numbers of librpmirror.h */
IS(RPMIRROR_ROLE_READER, 0);
IS(RPMIRROR_ROLE_PRIMARY, 1);
IS(RPMIRROR_ROLE_FENCED, 2);
IS(RPMIRROR_HEALTH_FULL, 0);
IS(RPMIRROR_HEALTH_DEGRADED, 1);
IS(RPMIRROR_HEALTH_BLOCKED, 2);
IS(RPMIRROR_HEALTH_DOWN, 3);
IS(RPMIRROR_COPY_UNKNOWN, 0);
IS(RPMIRROR_COPY_IN_SYNC, 1);
IS(RPMIRROR_COPY_SYNCING, 2);
IS(RPMIRROR_COPY_STALE, 3);
IS(RPMIRROR_COPY_FAILED, 4);
IS(RPMIRROR_EVENT_VIEW, 1);
IS(RPMIRROR_EVENT_LOST, 2);
IS(RPMIRROR_EVENT_SLOW, 3);
IS(RPMIRROR_EVENT_BLOCKED, 4);
IS(RPMIRROR_EVENT_UNBLOCKED, 5);
IS(RPMIRROR_EVENT_LEASE_OVER, 6);
IS(RPMIRROR_EVENT_FENCED, 7);
IS(RPMIRROR_EVENT_LOCAL_FAILED, 8);
IS(RPMIRROR_EVENT_ERROR, 9);
IS(RPMIRROR_EVENT_MISSED, 10);
IS(RPMIRROR_EVENT_VERIFIED, 11);
IS(RPMIRROR_EVENT_STUCK, 12);
IS(RPMIRROR_E_UNKNOWN, -200000);
IS(RPMIRROR_E_NOSUPP, -200001);
IS(RPMIRROR_E_PROVIDER, -200002);
IS(RPMIRROR_E_NOMEM, -200003);
IS(RPMIRROR_E_INVAL, -200004);
IS(RPMIRROR_E_AGAIN, -200005);
IS(RPMIRROR_E_NO_EVENT, -200006);
IS(RPMIRROR_E_DAEMON, -200007);
IS(RPMIRROR_E_QUORUM, -200010);
IS(RPMIRROR_E_COPIES, -200011);
IS(RPMIRROR_E_BUSY, -200012);
IS(RPMIRROR_E_FENCED, -200013);
IS(RPMIRROR_E_MEDIUM, -200014);
IS(RPMIRROR_E_VERIFY, -200015);
IS(RPMIRROR_E_NOTINSYNC, -200016);
IS(RPMIRROR_E_SPLIT, -200017);
IS(RPMIRROR_E_LEASE, -200018);
IS(RPMIRROR_MAP_WAIT, 1);
IS(RPMIRROR_MAP_READONLY, 2);
IS(RPMIRROR_MAP_STALE_OK, 4);
IS(RPMIRROR_MAP_ISOLATED, 8);
IS(RPMIRROR_MAP_DIRECT, 16);
IS(RPMIRROR_MAP_FENCED_ERROR, 32);
IS(RPMIRROR_MAP_FENCED_PROTECT, 64);
IS(RPMIRROR_MAP_FENCED_KILL, 128);
IS(RPMIRROR_DEGRADED, 1);
IS(RPMIRROR_SOLO, 2);
IS(RPMIRROR_LOCAL_FAILED, 4);
IS(RPMIRROR_RANGES_MAX, 65536);
IS(RPMIRROR_MEMBERS_MAX, 8);
IS(RPMIRROR_NAME_MAX, 31);
IS(RPMIRROR_ADDRESS_MAX, 271);
IS(sizeof(struct rpmirror_range), 16);
IS(offsetof(struct rpmirror_range, addr), 0);
IS(offsetof(struct rpmirror_range, len), 8);
IS(sizeof(struct rpmirror_result), 24);
IS(offsetof(struct rpmirror_result, seq), 0);
IS(offsetof(struct rpmirror_result, durable_mask), 8);
IS(offsetof(struct rpmirror_result, failed_mask), 12);
IS(offsetof(struct rpmirror_result, flags), 16);
IS(sizeof(struct rpmirror_member_state), 464);
IS(offsetof(struct rpmirror_member_state, name), 0);
IS(offsetof(struct rpmirror_member_state, address), 32);
IS(offsetof(struct rpmirror_member_state, copy), 304);
IS(offsetof(struct rpmirror_member_state, connected), 308);
IS(offsetof(struct rpmirror_member_state, durable_seq), 312);
IS(offsetof(struct rpmirror_member_state, remainder), 320);
IS(offsetof(struct rpmirror_member_state, flush_p50_us), 328);
IS(offsetof(struct rpmirror_member_state, flush_p99_us), 332);
IS(offsetof(struct rpmirror_member_state, reason), 336);
MAY_GROW(rpmirror_state, 3792);
IS(offsetof(struct rpmirror_state, size), 0);
IS(offsetof(struct rpmirror_state, role), 8);
IS(offsetof(struct rpmirror_state, health), 12);
IS(offsetof(struct rpmirror_state, epoch), 16);
IS(offsetof(struct rpmirror_state, view_seq), 24);
IS(offsetof(struct rpmirror_state, flush_seq), 32);
IS(offsetof(struct rpmirror_state, acked_seq), 40);
IS(offsetof(struct rpmirror_state, self), 48);
IS(offsetof(struct rpmirror_state, insync_mask), 52);
IS(offsetof(struct rpmirror_state, config_mask), 56);
IS(offsetof(struct rpmirror_state, min_copies), 60);
IS(offsetof(struct rpmirror_state, lease_left_ms), 64);
IS(offsetof(struct rpmirror_state, age_ms), 72);
IS(offsetof(struct rpmirror_state, members), 80);
MAY_GROW(rpmirror_event, 288);
IS(offsetof(struct rpmirror_event, size), 0);
IS(offsetof(struct rpmirror_event, type), 8);
IS(offsetof(struct rpmirror_event, member), 12);
IS(offsetof(struct rpmirror_event, value), 16);
IS(offsetof(struct rpmirror_event, time_ms), 24);
IS(offsetof(struct rpmirror_event, text), 32);
MAY_GROW(rpmirror_error, 288);
IS(offsetof(struct rpmirror_error, size), 0);
IS(offsetof(struct rpmirror_error, offset), 8);
IS(offsetof(struct rpmirror_error, len), 16);
IS(offsetof(struct rpmirror_error, repaired), 24);
IS(offsetof(struct rpmirror_error, dirty), 25);
IS(offsetof(struct rpmirror_error, text), 26);

/* numbers of librpmem.h */
IS(RPMEM_MAJOR_VERSION, 1);
IS(RPMEM_MINOR_VERSION, 3);
IS(RPMEM_POOL_HDR_SIG_LEN, 8);
IS(RPMEM_POOL_HDR_UUID_LEN, 16);
IS(RPMEM_POOL_USER_FLAGS_LEN, 16);
IS(RPMEM_MIN_POOL, 8192);
IS(RPMEM_MIN_PART, 2097152);
IS(RPMEM_PERSIST_RELAXED, 1);
IS(RPMEM_FLUSH_RELAXED, 1);
IS(RPMEM_REMOVE_FORCE, 1);
IS(RPMEM_REMOVE_POOL_SET, 2);
IS(sizeof(struct rpmem_pool_attr), 104);
IS(offsetof(struct rpmem_pool_attr, signature), 0);
IS(offsetof(struct rpmem_pool_attr, major), 8);
IS(offsetof(struct rpmem_pool_attr, compat_features), 12);
IS(offsetof(struct rpmem_pool_attr, incompat_features), 16);
IS(offsetof(struct rpmem_pool_attr, ro_compat_features), 20);
IS(offsetof(struct rpmem_pool_attr, poolset_uuid), 24);
IS(offsetof(struct rpmem_pool_attr, uuid), 40);
IS(offsetof(struct rpmem_pool_attr, next_uuid), 56);
IS(offsetof(struct rpmem_pool_attr, prev_uuid), 72);
IS(offsetof(struct rpmem_pool_attr, user_flags), 88);

#endif
