/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of the tool. */
#include <stdio.h>
#include <string.h>

#include "mirrord/impl.h"

void request_on_packet(struct client *client, const char *text, size_t len)
{
	static const char answer[] =
		"{\"error\":{\"name\":\"unknown\",\"message\":\"no such request\"}}";

	local_send_text(client, answer, sizeof(answer) - 1);
}

void request_on_lost(struct client *client)
{
}

void request_on_event(struct set *s, const char *text)
{
	LOG_NOTICE("set %s: %s", s->conf->name, text);
}

void request_on_ordered(struct set *s, const struct packet *p)
{
}
