/* SPDX-License-Identifier: BSD-3-Clause */
/* which-librpma.c -- a program of librpma 1.3, for cmake/check-install.sh and tests/package. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <librpma.h>
#include <stdio.h>

/* Prints which librpma it runs with, and whether that one is of version 1.4. */
int main(void)
{
	struct rpma_peer_cfg *pcfg;
	Dl_info info;
	if (rpma_peer_cfg_new(&pcfg) || !dladdr((void *)(size_t)rpma_peer_cfg_new, &info))
		return 1;
	printf("%s %s\n", info.dli_fname, dlsym(RTLD_DEFAULT, "rpma_wc_explain") ? "1.4" : "older");
	return rpma_peer_cfg_delete(&pcfg);
}
