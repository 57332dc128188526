/* SPDX-License-Identifier: BSD-3-Clause */
/* test_memory.c -- memory regions and protection domains, made and changed with the calls of
 * libibverbs. */
#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "ends.h"

#define RW (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static char memory[2][64];

static int setup(void **state)
{
	static struct ends d;

	memset(memory, 0, sizeof(memory));
	ends_open(&d);
	*state = &d;
	return 0;
}

static int teardown(void **state)
{
	ends_close(*state);
	return 0;
}

static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, addr, len, access);

	assert_non_null(mr);
	return mr;
}

/* Write 4 bytes from the client to the start of the server's region. */
static enum ibv_wc_status write_to(struct ends *d, const struct ibv_mr *mr, const char *bytes)
{
	struct ibv_sge sge = {.addr = (uintptr_t)bytes, .length = 4};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge,
		      .num_sge = 1,
		      .opcode = IBV_WR_RDMA_WRITE,
		      .send_flags = IBV_SEND_INLINE,
		      .wr.rdma = {.remote_addr = (uintptr_t)mr->addr, .rkey = mr->rkey}};
	struct ibv_send_wr read = {.opcode = IBV_WR_RDMA_READ, .wr.rdma = wr.wr.rdma};
	struct ibv_wc wc[2];

	/* The Read gets an answer. When the Read completes, the Write before it has been placed or
	 * refused. */
	wr.next = &read;
	assert_int_equal(ibv_post_send(d->client->qp, &wr, &bad), 0);
	assert_int_equal(rdma_get_send_comp(d->client, &wc[0]), 1);
	assert_int_equal(rdma_get_send_comp(d->client, &wc[1]), 1);
	return wc[0].status != IBV_WC_SUCCESS ? wc[0].status : wc[1].status;
}

/* --- registering again -------------------------------------------------------------------- */

static void a_region_can_move_to_other_memory_under_its_keys(void **state)
{
	struct ends *d = *state;
	struct ibv_mr *mr = reg(d->server->pd, memory[0], 64, RW);
	uint32_t lkey = mr->lkey, rkey = mr->rkey;

	assert_int_equal(write_to(d, mr, "1st"), IBV_WC_SUCCESS);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory[1], 8, 0),
			 0);
	assert_int_equal(mr->lkey, lkey);
	assert_int_equal(mr->rkey, rkey);
	assert_ptr_equal(mr->addr, memory[1]);
	assert_int_equal(mr->length, 8);
	assert_int_equal(write_to(d, mr, "2nd"), IBV_WC_SUCCESS);
	assert_string_equal(memory[0], "1st");
	assert_string_equal(memory[1], "2nd");
	/* Move the region once more, to the first memory. */
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory[0], 64, 0),
			 0);
	assert_int_equal(write_to(d, mr, "3rd"), IBV_WC_SUCCESS);
	assert_string_equal(memory[0], "3rd");
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void a_region_can_lose_and_get_rights(void **state)
{
	struct ends *d = *state;
	struct ibv_mr *mr = reg(d->server->pd, memory[0], 64, IBV_ACCESS_LOCAL_WRITE);

	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RW), 0);
	assert_int_equal(write_to(d, mr, "yes"), IBV_WC_SUCCESS);
	assert_int_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE),
		0);
	assert_int_not_equal(write_to(d, mr, "no!"), IBV_WC_SUCCESS);
	assert_string_equal(memory[0], "yes");
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void a_region_can_change_its_domain(void **state)
{
	struct ends *d = *state;
	struct ibv_pd *pd = ibv_alloc_pd(d->server->verbs);
	struct ibv_mr *mr = reg(pd, memory[0], 64, RW);

	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, d->server->pd, NULL, 0, 0), 0);
	assert_ptr_equal(mr->pd, d->server->pd);
	assert_int_equal(write_to(d, mr, "yes"), IBV_WC_SUCCESS);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
	assert_int_not_equal(write_to(d, mr, "no!"), IBV_WC_SUCCESS);
	assert_string_equal(memory[0], "yes");
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void assert_not_reregistered(struct ibv_mr *mr, int flags, void *addr, size_t len,
				    int access, int err)
{
	errno = 0;
	assert_int_equal(ibv_rereg_mr(mr, flags, NULL, addr, len, access), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, err);
}

static void a_region_that_cannot_be_registered_anew_is_what_it_was(void **state)
{
	struct ends *d = *state;
	struct ibv_mr *mr = reg(d->server->pd, memory[0], 64, RW);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *gone = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(gone, page);
	assert_not_reregistered(mr, IBV_REREG_MR_CHANGE_TRANSLATION, gone, page, 0, EFAULT);
	assert_not_reregistered(mr, IBV_REREG_MR_CHANGE_TRANSLATION, memory[1], 0, 0, EINVAL);
	assert_not_reregistered(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, 64, 0, EINVAL);
	assert_not_reregistered(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, 0, IBV_ACCESS_REMOTE_WRITE,
				EINVAL);
	assert_not_reregistered(mr, IBV_REREG_MR_CHANGE_PD, NULL, 0, 0, EINVAL);
	assert_not_reregistered(mr, 0, NULL, 0, 0, EINVAL);
	assert_not_reregistered(mr, 1 << 20, NULL, 0, 0, EINVAL);
	assert_int_equal(write_to(d, mr, "yes"), IBV_WC_SUCCESS);
	assert_string_equal(memory[0], "yes");
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* --- what can be registered ---------------------------------------------------------------- */

static void memory_that_does_not_exist_is_refused_at_once(void **state)
{
	struct ends *d = *state;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *two = mmap(NULL, 2 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(two + page, page);
	errno = 0;
	assert_null(ibv_reg_mr(d->server->pd, two, 2 * page, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	errno = 0;
	assert_null(ibv_reg_dmabuf_mr(d->server->pd, 0, page, 0, -1, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EOPNOTSUPP);
	munmap(two, page);
}

static void hints_about_the_memory_are_accepted(void **state)
{
	struct ends *d = *state;
	const int hints[] = {IBV_ACCESS_ON_DEMAND, IBV_ACCESS_RELAXED_ORDERING, IBV_ACCESS_HUGETLB};

	for (size_t i = 0; i < sizeof(hints) / sizeof(*hints); i++) {
		struct ibv_mr *mr = reg(d->server->pd, memory[0], 64, RW | hints[i]);
		struct ibv_sge sge = {.addr = (uintptr_t)memory[0], .length = 8, .lkey = mr->lkey};

		assert_int_equal(write_to(d, mr, "yes"), IBV_WC_SUCCESS);
		assert_int_equal(ibv_advise_mr(d->server->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
					       IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1),
				 0);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
}

static struct ibv_mr *reg_all(struct ibv_pd *pd)
{
	return reg(pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
}

/* rdma_post_recv() asserts that the buffer is in the region, but this region has no address, so
 * post with verbs. */
static int post_recv_all(struct rdma_cm_id *id, void *buf, size_t len, const struct ibv_mr *mr)
{
	struct ibv_sge sge = {(uintptr_t)buf, (uint32_t)len, mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	return ibv_post_recv(id->qp, &wr, &bad);
}

/* A region of all memory uses on-demand paging, so it includes memory that is mapped after the
 * registration. */
static void a_region_of_all_memory_has_what_is_mapped_when_it_is_used(void **state)
{
	struct ends *d = *state;
	struct ibv_mr *from = reg_all(d->client->pd), *to = reg_all(d->server->pd);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *in = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char out[] = "hello";
	struct ibv_wc wc;

	assert_int_equal(post_recv_all(d->server, in, page, to), 0);
	assert_int_equal(rdma_post_send(d->client, NULL, out, sizeof(out), from, 0), 0);
	assert_int_equal(rdma_get_recv_comp(d->server, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_string_equal(in, "hello");
	munmap(in, page);
	/* An access to unmapped memory fails, and the process does not crash. */
	assert_int_equal(rdma_get_send_comp(d->client, &wc), 1);
	assert_int_equal(rdma_post_send(d->client, NULL, in, page, from, 0), 0);
	assert_int_equal(rdma_get_send_comp(d->client, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_dereg_mr(from), 0);
	assert_int_equal(ibv_dereg_mr(to), 0);
}

static void a_receive_into_memory_that_is_gone_fails(void **state)
{
	struct ends *d = *state;
	struct ibv_mr *to = reg_all(d->server->pd);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *in = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char out[] = "hello";
	struct ibv_wc wc;

	munmap(in, page);
	assert_int_equal(post_recv_all(d->server, in, page, to), 0);
	assert_int_equal(rdma_post_send(d->client, NULL, out, sizeof(out), NULL, IBV_SEND_INLINE),
			 0);
	assert_int_equal(rdma_get_recv_comp(d->server, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_dereg_mr(to), 0);
}

static void a_region_of_all_memory_is_for_this_end_alone(void **state)
{
	struct ends *d = *state;
	struct ibv_mr *mr = reg_all(d->server->pd);

	errno = 0;
	assert_null(ibv_reg_mr(d->server->pd, NULL, SIZE_MAX, RW | IBV_ACCESS_ON_DEMAND));
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
	assert_null(ibv_reg_mr(d->server->pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	assert_not_reregistered(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, 0, RW | IBV_ACCESS_ON_DEMAND,
				EOPNOTSUPP);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void on_demand_paging_is_a_capability(void **state)
{
	struct ends *d = *state;
	struct ibv_device_attr_ex attr;

	assert_int_equal(ibv_query_device_ex(d->client->verbs, NULL, &attr), 0);
	assert_int_equal(attr.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	assert_true(attr.odp_caps.per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_SRQ_RECV);
}

/* --- domains ------------------------------------------------------------------------------ */

static void *no_memory(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
		       uint64_t type)
{
	return NULL;
}

static void no_free(struct ibv_pd *pd, void *context, void *ptr, uint64_t type)
{
}

/* The allocators of this domain return no memory, so a device that uses them fails. */
static void a_parent_domain_is_another_name_of_the_domain(void **state)
{
	struct ends *d = *state;
	struct ibv_td_init_attr td_attr = {0};
	struct ibv_td *td = ibv_alloc_td(d->server->verbs, &td_attr);
	struct ibv_parent_domain_init_attr attr = {
		.pd = d->server->pd,
		.td = td,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = no_memory,
		.free = no_free,
	};
	struct ibv_pd *parent = ibv_alloc_parent_domain(d->server->verbs, &attr);
	struct ibv_mr *mr;

	assert_non_null(td);
	assert_non_null(parent);
	mr = reg(parent, memory[0], 64, RW);
	assert_int_equal(write_to(d, mr, "yes"), IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
	attr.pd = NULL;
	errno = 0;
	assert_null(ibv_alloc_parent_domain(d->server->verbs, &attr));
	assert_int_equal(errno, EINVAL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_region_can_move_to_other_memory_under_its_keys),
		CASE(a_region_can_lose_and_get_rights),
		CASE(a_region_can_change_its_domain),
		CASE(a_region_that_cannot_be_registered_anew_is_what_it_was),
		CASE(memory_that_does_not_exist_is_refused_at_once),
		CASE(hints_about_the_memory_are_accepted),
		CASE(a_region_of_all_memory_has_what_is_mapped_when_it_is_used),
		CASE(a_receive_into_memory_that_is_gone_fails),
		CASE(a_region_of_all_memory_is_for_this_end_alone),
		CASE(on_demand_paging_is_a_capability),
		CASE(a_parent_domain_is_another_name_of_the_domain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
