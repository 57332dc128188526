/* SPDX-License-Identifier: BSD-3-Clause */
/* A second copy of sigfault.c, as in a process with librpma and librpmirror, each of which has its
 * own handlers. */
#define sigfault_setup other_sigfault_setup
#include "base/sigfault.c"
