/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_LISTEN_PROBE_H
#define TOOL_LISTEN_PROBE_H
#include "session/address.h"
/* Is the address ours and the port free? 0 or CLI_FILE, line printed. */
int address_probe_listen(const struct address *addr);
#endif
