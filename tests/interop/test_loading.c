/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_loading.c -- a program that is linked with neither libibverbs nor librdmacm loads both by
 * name, as interpreters and plug-ins do.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void *must_load(const char *name)
{
	void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (!lib)
		fail_msg("%s", dlerror());
	return lib;
}

#define CALL(lib, name) ((__typeof__(name) *)dlsym(lib, #name))

static void loaded_libraries_show_the_software_rnic(void **state)
{
	void *verbs = must_load("libibverbs.so.1");
	struct ibv_device **list = CALL(verbs, ibv_get_device_list)(NULL);
	int found = 0;

	assert_non_null(list);
	for (int i = 0; list[i]; i++)
		found += !strcmp(CALL(verbs, ibv_get_device_name)(list[i]), "softrnic0");
	assert_int_equal(found, 1);
	CALL(verbs, ibv_free_device_list)(list);
}

/* Functions that the interposer does not replace are found in the original libraries. */
static void the_rest_of_the_libraries_is_there(void **state)
{
	void *verbs = must_load("libibverbs.so.1"), *cm = must_load("librdmacm.so.1");

	assert_string_equal(CALL(verbs, ibv_wc_status_str)(IBV_WC_SUCCESS), "success");
	assert_non_null(dlsym(cm, "rdma_event_str"));
	assert_non_null(dlvsym(cm, "rdma_create_id", "RDMACM_1.0"));
}

/*
 * The name without a version number, which the development package has: NCCL tries this name first.
 */
static void the_name_without_a_number_is_the_same_library(void **state)
{
	assert_ptr_equal(must_load("libibverbs.so"), must_load("libibverbs.so.1"));
	assert_ptr_equal(must_load("librdmacm.so"), must_load("librdmacm.so.1"));
}

/*
 * Drivers of rdma-core are linked with the private interface between its libraries, whose version
 * node differs between releases. A library without this node cannot replace the original one.
 */
static void drivers_load_with_all_their_symbols(void **state)
{
	static const char *const drivers[] = {"libmlx5.so.1", "libefa.so.1"};
	int found = 0;

	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		void *lib = dlopen(drivers[i], RTLD_NOW | RTLD_LOCAL);
		const char *why = lib ? "" : dlerror();

		if (strstr(why, "cannot open shared object file"))
			continue;
		if (!lib)
			fail_msg("%s", why);
		found++;
	}
	if (!found)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loaded_libraries_show_the_software_rnic),
		cmocka_unit_test(the_rest_of_the_libraries_is_there),
		cmocka_unit_test(the_name_without_a_number_is_the_same_library),
		cmocka_unit_test(drivers_load_with_all_their_symbols),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
