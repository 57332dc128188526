/* SPDX-License-Identifier: BSD-3-Clause */
/* test_gather.c -- one message is gathered from several segments. */
#include "ends_ext.h"

static void a_message_is_put_together_in_the_order_of_its_segments(void **state)
{
	static const size_t lens[RPMA_SEND_SEGMENTS_MAX] = {24, 1, 4000, 300};
	struct rpma_segment parts[RPMA_SEND_SEGMENTS_MAX];
	uint8_t want[8192];
	struct ends d;

	ends_open(&d, NULL);
	ends_fill(d.cli_buf, ENDS_BUF, 7);
	for (uint32_t count = 1; count <= RPMA_SEND_SEGMENTS_MAX; count++) {
		size_t len = 0;

		for (uint32_t i = 0; i < count; i++) {
			size_t at = 10000 * (size_t)(count - i);

			parts[i] = (struct rpma_segment){d.cli_mr, at, lens[i]};
			memcpy(want + len, d.cli_buf + at, lens[i]);
			len += lens[i];
		}
		OK(rpma_recv(d.srv, d.srv_mr, 0, 8192, &d));
		OK(rpma_send_gather(d.cli, parts, count, RPMA_F_COMPLETION_ALWAYS, &d));
		ends_expect_received(d.srv, len, &d);
		assert_memory_equal(d.srv_buf, want, len);
		ends_expect_wc(d.cli, IBV_WC_SEND, &d);
	}
	ends_close(&d);
}

/* One message gathers a header from the library's memory and a payload from the application's
 * memory. The two are registered separately. */
static void segments_may_lie_in_different_regions(void **state)
{
	char header[16] = "fifteen letters";
	struct rpma_segment parts[3];
	struct rpma_mr_local *mr;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_mr_reg(d.peer, header, sizeof(header), RPMA_MR_USAGE_SEND, &mr));
	ends_fill(d.cli_buf, 100, 2);
	parts[0] = (struct rpma_segment){mr, 0, 16};
	parts[1] = (struct rpma_segment){d.cli_mr, 0, 0};
	parts[2] = (struct rpma_segment){d.cli_mr, 0, 100};
	OK(rpma_recv(d.srv, d.srv_mr, 0, 200, &d));
	OK(rpma_send_gather(d.cli, parts, 3, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_expect_received(d.srv, 116, &d);
	assert_memory_equal(d.srv_buf, header, 16);
	assert_true(ends_is_filled(d.srv_buf + 16, 100, 2));
	/* The completion of a later operation proves that the unsignalled one is complete. */
	ends_flush(d.cli, d.at_srv, 0, 8);
	OK(rpma_mr_dereg(&mr));
	ends_close(&d);
}

static void a_segment_outside_its_region_fails(void **state)
{
	struct rpma_segment parts[2];
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_recv(d.srv, d.srv_mr, 0, 200, &d));
	parts[0] = (struct rpma_segment){d.cli_mr, 0, 8};
	parts[1] = (struct rpma_segment){d.cli_mr, ENDS_BUF - 4, 8};
	OK(rpma_send_gather(d.cli, parts, 2, RPMA_F_COMPLETION_ALWAYS, &d));
	if (ends_is_kernels()) /* siw reports IBV_WC_LOC_QP_OP_ERR */
		ends_wait_failure(d.cli);
	else
		assert_int_equal(ends_wait_failure(d.cli), IBV_WC_LOC_PROT_ERR);
	ends_close(&d);
}

static void gathering_needs_a_connection_that_stands(void **state)
{
	struct rpma_segment part;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct ends d;

	SOFTRNIC_ONLY(); /* RDMA devices can accept the request and drop it */
	ends_open(&d, NULL);
	part = (struct rpma_segment){d.cli_mr, 0, 8};
	OK(rpma_conn_req_new(d.peer, ends_addr(), d.port, NULL, &req));
	/* no program accepts the request, so the connection is not established */
	OK(rpma_conn_req_connect(&req, NULL, &conn));
	assert_int_equal(rpma_send_gather(conn, &part, 1, RPMA_F_COMPLETION_ALWAYS, NULL),
			 RPMA_E_PROVIDER);
	OK(rpma_conn_delete(&conn));
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_is_put_together_in_the_order_of_its_segments),
		cmocka_unit_test(segments_may_lie_in_different_regions),
		cmocka_unit_test(a_segment_outside_its_region_fails),
		cmocka_unit_test(gathering_needs_a_connection_that_stands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
