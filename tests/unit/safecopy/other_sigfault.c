/* SPDX-License-Identifier: BSD-3-Clause */
/* As in a process with librpma and librpmirror, which each have handlers of their own. */
#define sigfault_setup other_sigfault_setup
#include "base/sigfault.c"
