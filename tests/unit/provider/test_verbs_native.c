/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_verbs_native.c -- flush and atomic write on a device that this test simulates: with which
 * operations its QP is created, and in which order requests of both interfaces reach it. If
 * rdma-core cannot post a flush, newer_verbs.cmake adds the declarations of a later release.
 */
#include <errno.h>

#include "lib/unit.h"
#include "provider/verbs_native.h"

enum { LOG_MAX = 64, RKEY = 0x77 };

static struct {
	enum ibv_atomic_cap atomic_cap;
	uint64_t caps;   /* capabilities of the device */
	int create_fail; /* number of attempts to create a QP that fail */
	int post_err, complete_err, plain_taken;
	/* forgets: like libsiw, lose the error of a request if other requests follow */
	bool forgets, doorbell_fails;

	int creates, starts;
	uint64_t asked; /* send_ops_flags of the created QP; 0: none */
	uint32_t comp_mask;
	/* The posted operations in order: 'w' plain, 'a' atomic, 'f' flush, and the wr_id of
	 * each. */
	char log[LOG_MAX];
	uint64_t ids[LOG_MAX];
	int count;
	unsigned int flags;
	uint64_t addr, len;
	uint32_t rkey;
	uint8_t type, level;
	char bytes[8];
} dev;

static struct ibv_device device;
static struct verbs_context vctx;
static struct ibv_qp_ex ex;
static struct rdma_cm_id id;
static bool is_extended;

struct ibv_qp_ex *__wrap_ibv_qp_to_qp_ex(struct ibv_qp *qp);
int __wrap_rdma_create_qp_ex(struct rdma_cm_id *cm_id, struct ibv_qp_init_attr_ex *attr);

struct ibv_qp_ex *__wrap_ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	assert_ptr_equal(qp, &ex.qp_base);
	return is_extended ? &ex : NULL;
}

int __wrap_rdma_create_qp_ex(struct rdma_cm_id *cm_id, struct ibv_qp_init_attr_ex *attr)
{
	dev.creates++;
	dev.comp_mask = attr->comp_mask;
	dev.asked = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? attr->send_ops_flags : 0;
	ex.qp_base.qp_context = attr->qp_context;
	if (dev.create_fail-- > 0) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return 0;
}

static void note(char what, uint64_t wr_id)
{
	assert_true(dev.count < LOG_MAX);
	dev.ids[dev.count] = wr_id;
	dev.log[dev.count++] = what;
}

static int query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *in,
			   struct ibv_device_attr_ex *attr, size_t size)
{
	attr->device_cap_flags_ex = dev.caps;
	attr->orig_attr.atomic_cap = dev.atomic_cap;
	return 0;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	for (; wr; wr = wr->next) {
		if (dev.post_err && !dev.plain_taken--) {
			*bad = wr;
			return dev.forgets ? 0 : dev.post_err;
		}
		note('w', wr->wr_id);
	}
	*bad = wr;
	return dev.doorbell_fails ? dev.post_err : 0;
}

static void wr_start(struct ibv_qp_ex *qp)
{
	dev.starts++;
}

static int wr_complete(struct ibv_qp_ex *qp)
{
	return dev.complete_err;
}

static void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, const void *bytes)
{
	note('a', qp->wr_id);
	dev.flags = qp->wr_flags;
	dev.rkey = rkey;
	dev.addr = addr;
	memcpy(dev.bytes, bytes, sizeof(dev.bytes));
}

static void wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len, uint8_t type,
		     uint8_t level)
{
	note('f', qp->wr_id);
	dev.flags = qp->wr_flags;
	dev.rkey = rkey;
	dev.addr = addr;
	dev.len = len;
	dev.type = type;
	dev.level = level;
}

static int setup(void **state)
{
	memset(&dev, 0, sizeof(dev));
	memset(&ex, 0, sizeof(ex));
	memset(&vctx, 0, sizeof(vctx));
	device.transport_type = IBV_TRANSPORT_IB;
	vctx.sz = sizeof(vctx);
	vctx.query_device_ex = query_device_ex;
	vctx.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	vctx.context.device = &device;
	vctx.context.ops.post_send = post_send;
	ex.qp_base.context = &vctx.context;
	ex.wr_start = wr_start;
	ex.wr_complete = wr_complete;
	ex.wr_atomic_write = wr_atomic_write;
	ex.wr_flush = wr_flush;
	id.verbs = &vctx.context;
	is_extended = true;
	return 0;
}

static void a_qp_is_asked_for_what_its_device_has(void **state)
{
	struct ibv_qp_init_attr_ex attr = {.comp_mask = IBV_QP_INIT_ATTR_PD};

	assert_int_equal(verbs_create_qp_ex(&id, &attr), 0);
	assert_int_equal(dev.asked, 0);
	dev.caps = VEXT_DEVICE_ATOMIC_WRITE | VEXT_DEVICE_FLUSH_GLOBAL;
	assert_int_equal(verbs_create_qp_ex(&id, &attr), 0);
	assert_true(dev.asked & IBV_QP_EX_WITH_ATOMIC_WRITE);
	/* the device has only a half of the capability */
	assert_false(dev.asked & IBV_QP_EX_WITH_FLUSH);
	assert_true(dev.asked & IBV_QP_EX_WITH_RDMA_WRITE);
	dev.caps |= VEXT_DEVICE_FLUSH;
	assert_int_equal(verbs_create_qp_ex(&id, &attr), 0);
	assert_true(dev.asked & IBV_QP_EX_WITH_FLUSH);
	assert_true(dev.comp_mask & IBV_QP_INIT_ATTR_PD);
}

/* verbs cannot query whether a queue pair has atomic operations, and a plain queue pair has them,
 * too. */
static void atomic_operations_are_the_devices(void **state)
{
	const uint64_t both =
		IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	struct ibv_qp_init_attr_ex attr = {.comp_mask = IBV_QP_INIT_ATTR_PD};

	assert_int_equal(verbs_create_qp_ex(&id, &attr), 0);
	assert_int_equal(verbs_qp_caps(&ex.qp_base) & VEXT_CAP_ATOMICS, 0);
	dev.atomic_cap = IBV_ATOMIC_HCA;
	assert_int_equal(verbs_create_qp_ex(&id, &attr), 0);
	assert_int_equal(dev.asked, 0);
	assert_int_equal(verbs_qp_caps(&ex.qp_base) & VEXT_CAP_ATOMICS, VEXT_CAP_ATOMICS);
	dev.caps = VEXT_DEVICE_ATOMIC_WRITE;
	assert_int_equal(verbs_create_qp_ex(&id, &attr), 0);
	assert_true((dev.asked & both) == both);
	attr = (struct ibv_qp_init_attr_ex){.comp_mask = IBV_QP_INIT_ATTR_PD};
	dev.create_fail = 1;
	assert_int_equal(verbs_create_qp_ex(&id, &attr), 0);
	assert_int_equal(dev.asked, 0);
	assert_int_equal(verbs_qp_caps(&ex.qp_base) & VEXT_CAP_ATOMICS, VEXT_CAP_ATOMICS);
}

/* The kernel supports the operation, but rdma-core's driver does not. */
static void a_driver_that_cannot_gets_a_plain_qp(void **state)
{
	struct ibv_qp_init_attr_ex attr = {.comp_mask = IBV_QP_INIT_ATTR_PD};

	dev.caps = VEXT_DEVICE_ATOMIC_WRITE;
	dev.create_fail = 1;
	assert_int_equal(verbs_create_qp_ex(&id, &attr), 0);
	assert_int_equal(dev.creates, 2);
	assert_int_equal(dev.asked, 0);
	dev.create_fail = 2;
	assert_int_equal(verbs_create_qp_ex(&id, &attr), -1);
	assert_int_equal(errno, EOPNOTSUPP);
}

static void the_qp_tells_what_can_be_posted(void **state)
{
	const uint32_t known = VEXT_CAP_KNOWN, native = VEXT_CAP_FLUSH | VEXT_CAP_ATOMIC_WRITE;

	assert_int_equal(verbs_qp_caps(&ex.qp_base), known | VEXT_CAP_IMM | native);
	device.transport_type = IBV_TRANSPORT_IWARP;
	assert_int_equal(verbs_qp_caps(&ex.qp_base), known | native);
	ex.wr_flush = NULL;
	assert_int_equal(verbs_qp_caps(&ex.qp_base), known | VEXT_CAP_ATOMIC_WRITE);
	is_extended = false;
	assert_int_equal(verbs_qp_caps(&ex.qp_base), known);
}

static struct vext_wr request(enum vext_op op, uint64_t wr_id)
{
	struct vext_wr wr = {.op = op, .len = 4096, .type = VEXT_FLUSH_VISIBLE};

	wr.wr.wr_id = wr_id;
	wr.wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
	wr.wr.wr.rdma.remote_addr = 0x1000 + wr_id;
	wr.wr.wr.rdma.rkey = RKEY;
	memcpy(wr.bytes, "12345678", sizeof(wr.bytes));
	return wr;
}

static void expect_target(uint64_t wr_id)
{
	assert_int_equal(dev.rkey, RKEY);
	assert_int_equal(dev.addr, 0x1000 + wr_id);
	assert_int_equal(dev.flags, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
}

static void requests_are_described_in_full(void **state)
{
	struct vext_wr wr = request(VEXT_OP_FLUSH, 1);
	int posted = 77;

	assert_int_equal(verbs_post_list(&ex.qp_base, &wr, 1, &posted), 0);
	assert_int_equal(posted, 1);
	expect_target(1);
	assert_int_equal(dev.len, 4096);
	assert_int_equal(dev.type, IBV_FLUSH_GLOBAL);
	assert_int_equal(dev.level, IBV_FLUSH_RANGE);
	wr.type = VEXT_FLUSH_PERSISTENT;
	assert_int_equal(verbs_post_list(&ex.qp_base, &wr, 1, &posted), 0);
	assert_int_equal(dev.type, IBV_FLUSH_PERSISTENT);
	wr = request(VEXT_OP_ATOMIC_WRITE, 2);
	assert_int_equal(verbs_post_list(&ex.qp_base, &wr, 1, &posted), 0);
	expect_target(2);
	assert_memory_equal(dev.bytes, "12345678", 8);
}

/* The length field of a flush has 32 bits in rxe and in its packets: a flush of 4 GiB would become
 * one of 0 bytes. */
static void a_flush_too_long_for_a_device_is_of_the_whole_region(void **state)
{
	struct vext_wr wr = request(VEXT_OP_FLUSH, 1);
	int posted;

	wr.len = UINT32_MAX;
	assert_int_equal(verbs_post_list(&ex.qp_base, &wr, 1, &posted), 0);
	assert_int_equal(dev.level, IBV_FLUSH_RANGE);
	wr.len++;
	assert_int_equal(verbs_post_list(&ex.qp_base, &wr, 1, &posted), 0);
	assert_int_equal(dev.level, IBV_FLUSH_MR);
}

static void a_list_of_both_kinds_keeps_its_order(void **state)
{
	enum { N = 40 };
	struct vext_wr wrs[N];
	int posted;

	for (uint64_t i = 0; i < N; i++)
		wrs[i] = request(VEXT_OP_VERBS, i);
	wrs[20].op = VEXT_OP_FLUSH;
	wrs[21].op = VEXT_OP_ATOMIC_WRITE;
	wrs[39].op = VEXT_OP_FLUSH;
	assert_int_equal(verbs_post_list(&ex.qp_base, wrs, N, &posted), 0);
	assert_int_equal(posted, N);
	assert_int_equal(dev.count, N);
	for (int i = 0; i < N; i++)
		assert_int_equal(dev.ids[i], i);
	assert_memory_equal(dev.log + 19, "wfaw", 4);
	assert_int_equal(dev.log[39], 'f');
	assert_int_equal(dev.starts, 2);
}

static void what_was_posted_before_a_failure_is_counted(void **state)
{
	struct vext_wr wrs[4];
	int posted;

	for (uint64_t i = 0; i < 4; i++)
		wrs[i] = request(VEXT_OP_VERBS, i);
	dev.post_err = -ENOMEM; /* siw's driver in rdma-core returns a negative errno value */
	dev.plain_taken = 3;
	assert_int_equal(verbs_post_list(&ex.qp_base, wrs, 4, &posted), ENOMEM);
	assert_int_equal(posted, 3);
	dev.post_err = 0;
	dev.complete_err = ENOMEM;
	wrs[2].op = wrs[3].op = VEXT_OP_ATOMIC_WRITE;
	assert_int_equal(verbs_post_list(&ex.qp_base, wrs, 4, &posted), ENOMEM);
	assert_int_equal(posted, 2);
}

static void a_full_queue_is_noticed_although_libsiw_forgets_the_error(void **state)
{
	struct vext_wr wrs[4];
	int posted;

	for (uint64_t i = 0; i < 4; i++)
		wrs[i] = request(VEXT_OP_VERBS, i);
	dev.post_err = -ENOMEM;
	dev.plain_taken = 2;
	dev.forgets = true;
	assert_int_equal(verbs_post_list(&ex.qp_base, wrs, 4, &posted), ENOMEM);
	assert_int_equal(posted, 2);
	dev.plain_taken = 4;
	dev.forgets = false;
	dev.doorbell_fails = true;
	assert_int_equal(verbs_post_list(&ex.qp_base, wrs, 4, &posted), ENOMEM);
	assert_int_equal(posted, 4);
}

static void what_a_qp_cannot_do_is_refused_before_anything_is_posted(void **state)
{
	struct vext_wr wrs[2] = {request(VEXT_OP_VERBS, 0), request(0, 1)};
	static const enum vext_op never[] = {VEXT_OP_FLUSH_ALL, VEXT_OP_VERIFY, VEXT_OP_QUERY};
	int posted;

	for (size_t i = 0; i < 3; i++) {
		wrs[1].op = never[i];
		assert_int_equal(verbs_post_list(&ex.qp_base, wrs, 2, &posted), EOPNOTSUPP);
	}
	is_extended = false;
	wrs[1].op = VEXT_OP_ATOMIC_WRITE;
	assert_int_equal(verbs_post_list(&ex.qp_base, wrs, 2, &posted), EOPNOTSUPP);
	wrs[1].op = VEXT_OP_FLUSH;
	assert_int_equal(verbs_post_list(&ex.qp_base, wrs, 2, &posted), EOPNOTSUPP);
	assert_int_equal(posted, 0);
	assert_int_equal(dev.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_qp_is_asked_for_what_its_device_has, setup),
		cmocka_unit_test_setup(atomic_operations_are_the_devices, setup),
		cmocka_unit_test_setup(a_driver_that_cannot_gets_a_plain_qp, setup),
		cmocka_unit_test_setup(the_qp_tells_what_can_be_posted, setup),
		cmocka_unit_test_setup(requests_are_described_in_full, setup),
		cmocka_unit_test_setup(a_flush_too_long_for_a_device_is_of_the_whole_region, setup),
		cmocka_unit_test_setup(a_list_of_both_kinds_keeps_its_order, setup),
		cmocka_unit_test_setup(what_was_posted_before_a_failure_is_counted, setup),
		cmocka_unit_test_setup(a_full_queue_is_noticed_although_libsiw_forgets_the_error,
				       setup),
		cmocka_unit_test_setup(what_a_qp_cannot_do_is_refused_before_anything_is_posted,
				       setup),
	};

	return cmocka_run_group_tests_name("native operations", tests, NULL, NULL);
}
