/* SPDX-License-Identifier: BSD-3-Clause */
#include "environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"

void environment_set(const char *name, const char *value)
{
	if (setenv(name, value, 1))
		die_errno("setenv");
}

void environment_softrnic(const struct bench_case *c, bool target)
{
	char spin[16];

	environment_set("RPMA_PROVIDER", "softrnic");
	environment_set("SOFTRNIC_CRC", c->crc);
	environment_set("SOFTRNIC_SHM", strcmp(c->link, "shm") == 0 ? "1" : "0");
	if (target && c->spin != CASE_SPIN_DEFAULT) {
		snprintf(spin, sizeof(spin), "%d", c->spin);
		environment_set("SOFTRNIC_SPIN_US", spin);
	}
}
