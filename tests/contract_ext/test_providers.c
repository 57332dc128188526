/* SPDX-License-Identifier: BSD-3-Clause */
/* test_providers.c -- the list of providers, a device context of a chosen provider, and the
 * durability class of memory. */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ends.h"

static char said[1024];

__attribute__((format(printf, 5, 6))) static void
listen_to(enum rpma_log_level level, const char *file_name, const int line_no,
	  const char *function_name, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(said, sizeof(said), format, args);
	va_end(args);
}

static int setup(void **state)
{
	said[0] = '\0';
	unsetenv("RPMA_PROVIDER");
	OK(rpma_log_set_function(listen_to));
	return rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_ERROR);
}

static void expect_said(const char *part)
{
	if (!strstr(said, part))
		fail_msg("\"%s\" is not in: %s", part, said);
}

/* Find a provider's row in the list. Every row of the list must be plausible. */
static bool find_row(const struct rpma_provider_list *list, const char *provider,
		     struct rpma_provider_info *found)
{
	struct rpma_provider_info info = {.size = sizeof(info)};
	bool is_there = false;
	size_t i;

	for (i = 0; rpma_provider_list_get(list, i, &info) == 0; i++) {
		assert_non_null(info.provider);
		assert_non_null(info.why);
		assert_true(strlen(info.why) > 0);
		assert_null(strchr(info.why, '\n'));
		if (info.usable)
			assert_non_null(info.device);
		if (!strcmp(info.provider, provider) && !is_there) {
			*found = info;
			is_there = true;
		}
	}
	assert_true(i > 0);
	assert_int_equal(rpma_provider_list_get(list, i + 1, &info), RPMA_E_INVAL);
	return is_there;
}

static void the_software_is_always_usable(void **state)
{
	static const char *const addrs[] = {NULL, "127.0.0.1"};
	struct rpma_provider_list *list;
	struct rpma_provider_info info = {.size = sizeof(info)};

	for (size_t i = 0; i < 2; i++)
		for (int type = 0; type < 2; type++) {
			OK(rpma_provider_list_new(addrs[i], (enum rpma_util_ibv_context_type)type,
						  &list));
			assert_true(find_row(list, "softrnic", &info));
			assert_true(info.usable);
			assert_non_null(strstr(info.why, "software RNIC"));
			/* On a machine without a device the list still has rdma-core's row, with
			 * the reason. */
			assert_true(find_row(list, "verbs", &info));
			if (!info.device)
				assert_false(info.usable);
			OK(rpma_provider_list_delete(&list));
			assert_null(list);
		}
}

/* 192.0.2.0/24 belongs to no host (RFC 5737). */
static void an_address_that_is_not_ours_is_served_by_none(void **state)
{
	struct rpma_provider_list *list;
	struct rpma_provider_info info = {.size = sizeof(info)};

	OK(rpma_provider_list_new("192.0.2.1", RPMA_UTIL_IBV_CONTEXT_LOCAL, &list));
	assert_true(find_row(list, "softrnic", &info));
	assert_false(info.usable);
	assert_non_null(strstr(info.why, "rdma_bind_addr"));
	assert_true(find_row(list, "verbs", &info));
	assert_false(info.usable);
	OK(rpma_provider_list_delete(&list));
}

static void a_context_comes_from_the_named_provider(void **state)
{
	struct ibv_context *ctx = NULL;
	struct rpma_peer *peer;

	setenv("RPMA_PROVIDER", "verbs", 1); /* this variable decides for all other addresses */
	OK(rpma_utils_get_ibv_context_from("softrnic", "127.0.0.1", RPMA_UTIL_IBV_CONTEXT_LOCAL,
					   &ctx));
	OK(rpma_peer_new(ctx, &peer));
	OK(rpma_peer_delete(&peer));
	ctx = NULL;
	OK(rpma_utils_get_ibv_context_from("softrnic", "127.0.0.1", RPMA_UTIL_IBV_CONTEXT_REMOTE,
					   &ctx));
	assert_non_null(ctx);
}

static void an_unknown_name_is_answered_with_the_known_ones(void **state)
{
	struct ibv_context *ctx = NULL;

	assert_int_equal(rpma_utils_get_ibv_context_from("hardware", "127.0.0.1",
							 RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx),
			 RPMA_E_INVAL);
	expect_said("hardware");
	expect_said("verbs");
	expect_said("softrnic");
	assert_null(ctx);
}

static void a_known_provider_that_cannot_serve_says_why(void **state)
{
	struct ibv_context *ctx = NULL;

	assert_int_equal(rpma_utils_get_ibv_context_from("softrnic", "192.0.2.1",
							 RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx),
			 RPMA_E_PROVIDER);
	expect_said("192.0.2.1");
	assert_int_equal(rpma_utils_get_ibv_context_from("verbs", "192.0.2.1",
							 RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx),
			 RPMA_E_PROVIDER);
	expect_said("verbs");
	expect_said("192.0.2.1");
	expect_said("no RDMA device");
	assert_null(ctx);
}

static void anonymous_memory_is_volatile_and_says_so(void **state)
{
	enum rpma_durability cls = RPMA_DURABILITY_UNKNOWN;
	uint8_t *p = ends_map(8192);
	char why[256] = "", cut[4] = "";

	OK(rpma_utils_get_durability(p + 100, 5000, &cls, why, sizeof(why)));
	assert_int_equal(cls, RPMA_DURABILITY_VOLATILE);
	assert_true(strlen(why) > 0);
	OK(rpma_utils_get_durability(p, 1, &cls, NULL, 0));
	OK(rpma_utils_get_durability(p, 1, &cls, cut, sizeof(cut)));
	assert_memory_equal(cut, why, 3);
	assert_int_equal(cut[3], '\0');
	munmap(p, 8192);
}

static void a_hole_in_the_range_is_an_error(void **state)
{
	enum rpma_durability cls = RPMA_DURABILITY_UNKNOWN;
	uint8_t *p = ends_map(3 * 4096);

	munmap(p + 4096, 4096);
	assert_int_equal(rpma_utils_get_durability(p, 3 * 4096, &cls, NULL, 0), RPMA_E_INVAL);
	assert_int_equal(rpma_utils_get_durability(p, SIZE_MAX, &cls, NULL, 0), RPMA_E_INVAL);
	assert_int_equal(cls, RPMA_DURABILITY_UNKNOWN);
	munmap(p, 4096);
	munmap(p + 8192, 4096);
}

static void a_mapped_file_has_its_path(void **state)
{
	enum rpma_durability cls = RPMA_DURABILITY_UNKNOWN;
	char path[] = "durability-XXXXXX", why[512] = "";
	int fd = mkstemp(path);
	void *p;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	OK(rpma_utils_get_durability(p, 4096, &cls, why, sizeof(why)));
	assert_int_not_equal(cls, RPMA_DURABILITY_UNKNOWN);
	/* The build tree can be on a tmpfs, where no file is durable. */
	if (cls != RPMA_DURABILITY_VOLATILE && !strstr(why, path))
		fail_msg("%s is not in: %s", path, why);
	munmap(p, 4096);
	close(fd);
	unlink(path);
}

/* Without a free descriptor, librpma cannot read /proc. The call fails instead of guessing. */
static void a_kernel_that_does_not_tell_is_no_class(void **state)
{
	enum rpma_durability cls = RPMA_DURABILITY_UNKNOWN;
	struct rlimit old, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(rpma_utils_get_durability(said, 1, &cls, NULL, 0), RPMA_E_UNKNOWN);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(cls, RPMA_DURABILITY_UNKNOWN);
	expect_said("Too many open files");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_software_is_always_usable, setup),
		cmocka_unit_test_setup(an_address_that_is_not_ours_is_served_by_none, setup),
		cmocka_unit_test_setup(a_context_comes_from_the_named_provider, setup),
		cmocka_unit_test_setup(an_unknown_name_is_answered_with_the_known_ones, setup),
		cmocka_unit_test_setup(a_known_provider_that_cannot_serve_says_why, setup),
		cmocka_unit_test_setup(anonymous_memory_is_volatile_and_says_so, setup),
		cmocka_unit_test_setup(a_hole_in_the_range_is_an_error, setup),
		cmocka_unit_test_setup(a_mapped_file_has_its_path, setup),
		cmocka_unit_test_setup(a_kernel_that_does_not_tell_is_no_class, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
