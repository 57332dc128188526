/* SPDX-License-Identifier: BSD-3-Clause */
/* caps.c -- the peer's capabilities, and this end's counters. */
#include "rpma/err.h"
#include "rpma/op.h"

enum { COUNTERS_MAX = 64 };

const char *conn_phase(const struct rpma_conn *conn)
{
	return conn->prov->qp_caps(conn->id->qp) & VEXT_CAP_KNOWN
		       ? ""
		       : " on a connection that is not established";
}

int rpma_conn_get_remote_caps(const struct rpma_conn *conn, uint32_t *caps)
{
	uint32_t found;

	if (!conn || !caps)
		return INVALID();
	found = conn->prov->qp_caps(conn->id->qp);
	if (!(found & VEXT_CAP_KNOWN))
		return err_set(RPMA_E_AGAIN, "RPMA_CONN_ESTABLISHED is still to come");
	*caps = found & ~VEXT_CAP_KNOWN;
	return 0;
}

int rpma_conn_get_counters(const struct rpma_conn *conn, struct rpma_counter *counters,
			   size_t *count)
{
	const char *const *names;
	uint64_t values[COUNTERS_MAX];
	size_t room;
	int n;

	if (!conn || !count)
		return INVALID();
	n = conn->prov->qp_counters(conn->id->qp, &names, values, COUNTERS_MAX);
	if (n == -ETIMEDOUT)
		return PROVIDER_FAILED(ETIMEDOUT, "reading the counters of a connection whose "
						  "memory waits for a file system");
	if (n <= 0)
		return err_set(RPMA_E_NOSUPP, "the connection's device counts nothing");
	room = counters ? *count : 0;
	if (room > COUNTERS_MAX)
		room = COUNTERS_MAX;
	for (size_t i = 0; i < (size_t)n && i < room; i++)
		counters[i] = (struct rpma_counter){.name = names[i], .value = values[i]};
	*count = (size_t)n;
	return 0;
}
