/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the transport of a session in its connection's counters. */
#include <string.h>

#include "base/shm_state.h"
#include "regions/session_impl.h"

#define TRANSPORT_COUNTERS 64

void session_get_transport(const struct session *s, struct session_transport *transport)
{
	struct rpma_counter counters[TRANSPORT_COUNTERS];
	size_t count = TRANSPORT_COUNTERS;

	*transport = (struct session_transport){.device = s->device, .link = "rdma"};
	if (rpma_conn_get_counters(s->conn, counters, &count))
		return; /* only the software RNIC has counters */
	transport->link = "tcp";
	for (size_t i = 0; i < count && i < TRANSPORT_COUNTERS; i++) {
		if (!strcmp(counters[i].name, "crc"))
			transport->crc = counters[i].value != 0;
		else if (!strcmp(counters[i].name, "shm_state"))
			transport->shm = shm_state_str(counters[i].value);
		else if (!strcmp(counters[i].name, "shm_tx_bytes") && counters[i].value)
			transport->link = "shm";
	}
}
