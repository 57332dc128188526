/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_core.c -- rdma-core and its devices, for addresses that a real device owns.
 *
 * rdma-core calls its own public functions, and would find the interposer's functions instead. So a
 * second copy of rdma-core drives the devices, in a separate link name space without the
 * interposer. This copy is loaded only if the kernel has an RDMA device.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interposer/ops.h"
#include "interposer/paths.h"
#include "softrnic/softrnic.h"

static struct ops rdma_core_table = {.is_rdma_core = true};
static const struct ops *rdma_core_found;
static void *rdma_core_verbs_lib, *rdma_core_cm_lib;
static int *(*rdma_core_errno)(void);
static pthread_once_t rdma_core_once = PTHREAD_ONCE_INIT;

static bool rdma_core_kernel_has_device(void)
{
	DIR *dir = opendir(PATHS_TRUE "infiniband");
	const struct dirent *entry;
	bool any = false;

	while (dir && !any && (entry = readdir(dir)))
		any = entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return any;
}

/* Open the libraries by their paths, because the folder of the interposer has files with the same
 * names. */
static bool rdma_core_open_libs(void)
{
	Lmid_t ns;

	rdma_core_verbs_lib = dlmopen(LM_ID_NEWLM, RDMA_CORE_DIR "/libibverbs.so.1", RTLD_NOW);
	if (!rdma_core_verbs_lib || dlinfo(rdma_core_verbs_lib, RTLD_DI_LMID, &ns))
		return false;
	rdma_core_cm_lib = dlmopen(ns, RDMA_CORE_DIR "/librdmacm.so.1", RTLD_NOW);
	rdma_core_errno = (int *(*)(void))dlsym(rdma_core_verbs_lib, "__errno_location");
	return rdma_core_cm_lib != NULL;
}

static void rdma_core_load(void)
{
	const char *wanted = getenv("SOFTRNIC_HARDWARE");
	bool whole = true;

	if ((wanted && !strcmp(wanted, "0")) || !rdma_core_kernel_has_device())
		return;
	if (!rdma_core_open_libs()) {
		/* Print the reason. Without it the user could not explain why the devices are
		 * missing. */
		fprintf(stderr, "softrnic: RDMA devices cannot be used: %s\n", dlerror());
		return;
	}
#define LOAD(member, lib, symbol)                                                                  \
	rdma_core_table.member = (__typeof__(rdma_core_table.member))dlsym(lib, symbol);           \
	whole = whole && rdma_core_table.member;
#define LOAD_CM(ret, name, ...)    LOAD(cm.name, rdma_core_cm_lib, "rdma_" #name)
#define LOAD_VERBS(ret, name, ...) LOAD(verbs.name, rdma_core_verbs_lib, "ibv_" #name)
	VEXT_CM_CALLS(LOAD_CM)
	OPS_CM_CALLS(LOAD_CM)
	OPS_CM_LACKED_CALLS(LOAD_CM)
	VEXT_VERBS_CALLS(LOAD_VERBS)
	OPS_VERBS_CALLS(LOAD_VERBS)
	OPS_VERBS_LACKED_CALLS(LOAD_VERBS)
	OPS_QP_CALLS(LOAD_VERBS)
	if (whole)
		rdma_core_found = &rdma_core_table;
}

const struct ops *rdma_core_ops(void)
{
	pthread_once(&rdma_core_once, rdma_core_load);
	return rdma_core_found;
}

void *rdma_core_symbol(const char *name)
{
	if (!rdma_core_ops())
		return NULL;
	return dlsym(strncmp(name, "rdma_", 5) ? rdma_core_verbs_lib : rdma_core_cm_lib, name);
}

void ops_copy_errno(const struct ops **ops)
{
	if ((*ops)->is_rdma_core && rdma_core_errno)
		errno = *rdma_core_errno();
}

const struct ops *ops_of(const struct ibv_context *ctx)
{
	const struct ops *rdma_core = softrnic_owns_context(ctx) ? NULL : rdma_core_ops();

	return rdma_core ? rdma_core : &softrnic_ops;
}
