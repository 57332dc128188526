/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hard.c -- rdma-core and its devices, for addresses that a real device owns.
 *
 * rdma-core calls its own public functions, and would find ours instead. So its devices are driven
 * by a second copy in a link name space of its own, where the interposer does not exist. It is
 * loaded only where the kernel has an RDMA device.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interposer/words.h"
#include "softrnic/softrnic.h"

static struct words table = {.hard = true};
static const struct words *found;
static void *verbs_lib, *cm_lib;
static int *(*hard_errno)(void);
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool kernel_has_device(void)
{
	DIR *dir = opendir("/sys/class/infiniband");
	const struct dirent *entry;
	bool any = false;

	while (dir && !any && (entry = readdir(dir)))
		any = entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return any;
}

static bool hard_is_wanted(void)
{
	const char *s = getenv("SOFTRNIC_HARDWARE");

	return !s || strcmp(s, "0") != 0;
}

/* By path: the drop-in directory holds files of the same names. */
static bool libs_open(void)
{
	Lmid_t ns;

	verbs_lib = dlmopen(LM_ID_NEWLM, RDMA_CORE_DIR "/libibverbs.so.1", RTLD_NOW);
	if (!verbs_lib || dlinfo(verbs_lib, RTLD_DI_LMID, &ns))
		return false;
	cm_lib = dlmopen(ns, RDMA_CORE_DIR "/librdmacm.so.1", RTLD_NOW);
	hard_errno = (int *(*)(void))dlsym(verbs_lib, "__errno_location");
	return cm_lib != NULL;
}

static void hard_load(void)
{
	bool whole = true;

	if (!hard_is_wanted() || !kernel_has_device())
		return;
	if (!libs_open()) {
		/* Nobody would understand why the device is not there. */
		fprintf(stderr, "softrnic: RDMA devices cannot be used: %s\n", dlerror());
		return;
	}
#define LOAD(group, lib, sym, name)                                                                \
	table.group.name = (__typeof__(table.group.name))dlsym(lib, sym);                          \
	whole = whole && table.group.name;
#define LOAD_CM(ret, name, params, ...)    LOAD(cm, cm_lib, "rdma_" #name, name)
#define LOAD_VERBS(ret, name, params, ...) LOAD(verbs, verbs_lib, "ibv_" #name, name)
	WORDS_CM(LOAD_CM)
	WORDS_VERBS(LOAD_VERBS)
	if (whole)
		found = &table;
}

const struct words *hard_words(void)
{
	pthread_once(&once, hard_load);
	return found;
}

void *hard_symbol(const char *name)
{
	if (!hard_words())
		return NULL;
	return dlsym(strncmp(name, "rdma_", 5) ? verbs_lib : cm_lib, name);
}

void words_errno(const struct words **w)
{
	if ((*w)->hard && hard_errno)
		errno = *hard_errno();
}

const struct words *words_of(const struct ibv_context *ctx)
{
	const struct words *hard = softrnic_owns_context(ctx) ? NULL : hard_words();

	return hard ? hard : &soft_words;
}
