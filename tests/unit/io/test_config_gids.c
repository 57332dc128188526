/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFTRNIC_GIDS with one address: queue pairs without rdma_cm listen at this address. A link-local
 * address also names its interface. */
#include "lib/unit.h"

#include <net/if.h>
#include <stdlib.h>

#include "softrnic/io/config.h"

static void one_link_local_address_is_the_place_to_listen(void **state)
{
	struct link_addr at;

	(void)state;
	setenv("SOFTRNIC_GIDS", "fe80::1%lo", 1);
	at = config_get()->qp_address;
	assert_int_equal(at.family, LINK_IPV6);
	assert_int_equal(at.bytes[0], 0xfe);
	assert_int_equal(at.bytes[15], 1);
	assert_int_equal(at.scope, if_nametoindex("lo"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_link_local_address_is_the_place_to_listen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
