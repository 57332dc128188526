/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/rand.h"
#include "service/peer.h"

int device_open(struct device *d, const char *addr, struct error *err)
{
	struct ibv_context *context;
	int rc;

	*d = (struct device){.addr = addr};
	rc = peer_open_at(addr, &context, &d->peer, err);
	if (rc)
		return rc;
	/* Hardware does not write back: bytes that a card writes may stay in the processor's
	 * caches. */
	d->writes_back = !strncmp(context->device->name, "softrnic", 8);
	return 0;
}

void device_close(struct device *d)
{
	rpma_peer_delete(&d->peer);
}

enum wire_method device_method(const struct device *d, const struct settings *s,
			       enum rpma_durability durability, enum wire_method wanted)
{
	if (d->writes_back && s->persist_native && wanted == WIRE_METHOD_NATIVE)
		return WIRE_METHOD_NATIVE;
	/*
	 * With the setting persist-apm the operator states that Writes of cards bypass the caches.
	 * This is sufficient only if the memory itself is persistent.
	 */
	if (s->persist_apm && durability == RPMA_DURABILITY_DAX)
		return WIRE_METHOD_APPLIANCE;
	return WIRE_METHOD_GENERAL;
}

static int device_listen_at(const struct device *d, unsigned number, struct rpma_ep **ep,
			    uint16_t *port)
{
	char text[8];
	int rc;

	snprintf(text, sizeof(text), "%u", number);
	rc = rpma_ep_listen(d->peer, d->addr, text, ep);
	if (!rc)
		rc = rpma_ep_get_port(*ep, port);
	if (rc)
		rpma_ep_shutdown(ep);
	return rc;
}

int device_listen(const struct device *d, const struct settings_ports *range, struct rpma_ep **ep,
		  uint16_t *port, struct error *err)
{
	unsigned count = (unsigned)(range->last - range->first) + 1;
	/* a random first port, so that many daemons do not try the same ports */
	unsigned begin = rand_u32() % count;
	int rc = RPMA_E_PROVIDER;

	*ep = NULL;
	for (unsigned i = 0; i < count && rc; i++)
		rc = device_listen_at(d, range->first + (begin + i) % count, ep, port);
	if (!rc)
		return 0;
	if (!range->last)
		return error_set(err, ERROR_LOCAL, ECONNABORTED, "cannot listen on %s: %s", d->addr,
				 rpma_err_last());
	return error_set(err, ERROR_LOCAL, ECONNABORTED,
			 "cannot listen on %s at any port of port-range %u-%u: %s", d->addr,
			 range->first, range->last, rpma_err_last());
}
