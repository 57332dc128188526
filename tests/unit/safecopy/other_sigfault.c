/* SPDX-License-Identifier: BSD-3-Clause */
/* As in a process with librpma and librpmirror, each of which has handlers of its own. */
#define sigfault_setup other_sigfault_setup
#include "base/sigfault.c"
