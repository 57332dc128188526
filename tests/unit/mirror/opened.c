/* SPDX-License-Identifier: BSD-3-Clause */
#include "opened.h"

#include "mirror/set.h"

uint8_t *opened_shared(const struct rpmirror *m)
{
	return m->copy.shared;
}

int opened_fd(const struct rpmirror *m)
{
	return m->copy.fd;
}
