/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_torn.c -- a reader at the target that polls a word in memory sees the old value or the new
 * value, never a mixture. This is tested for atomic writes, and for plain writes of eight aligned
 * bytes.
 *
 * Both the target and the test map a file, so the test sees each store of the target's process like
 * a thread of that process. SYSTEM_OBSERVATIONS is the number of reads.
 */
#include "system/lib/check.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "system/lib/client.h"
#include "system/lib/remote.h"

#define SIZE         4096
#define AT           64 /* offset of the word in the region */
#define DEPTH        8  /* number of outstanding writes */
#define OBSERVATIONS (SYSTEM_SANITIZED ? 200000 : 5000000)
#define CHANGES_MIN  500 /* with fewer changes the test proves nothing */
#define LOOK_MAX_S   400

static const char path[] = "torn.file";

typedef int write_fn(struct client *c, uint64_t value, size_t slot);

struct writer {
	struct client client;
	write_fn *write;
	atomic_bool done, ended;
	unsigned long written;
	int ret;
};

/* Returns eight equal bytes, so that a mixture of two values is visible. */
static uint64_t value_of(unsigned long n)
{
	return (n % 255 + 1) * 0x0101010101010101ull;
}

static int write_atomic(struct client *c, uint64_t value, size_t slot)
{
	return rpma_atomic_write(c->conn, c->at[0], AT, (const char *)&value,
				 RPMA_F_COMPLETION_ALWAYS, NULL);
}

static int write_plain(struct client *c, uint64_t value, size_t slot)
{
	memcpy(c->buf + slot * sizeof(value), &value, sizeof(value));
	return rpma_write(c->conn, c->at[0], AT, c->mr, slot * sizeof(value), sizeof(value),
			  RPMA_F_COMPLETION_ALWAYS, NULL);
}

static void *write_on_and_on(void *arg)
{
	struct writer *w = arg;
	unsigned under_way = 0;
	struct ibv_wc wc;

	while (!w->ret && (under_way || !atomic_load(&w->done))) {
		if (under_way < DEPTH && !atomic_load(&w->done)) {
			w->ret = w->write(&w->client, value_of(w->written), w->written % DEPTH);
			w->written++;
			under_way++;
			continue;
		}
		w->ret = client_wait_wc(w->client.cq, &wc, CLIENT_WAIT_MS);
		if (!w->ret && wc.status != IBV_WC_SUCCESS)
			w->ret = RPMA_E_UNKNOWN;
		under_way--;
	}
	atomic_store(&w->ended, true);
	return NULL;
}

static uint64_t *map_file(void)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	uint64_t *p;

	assert_true(fd >= 0);
	assert_int_equal(posix_fallocate(fd, 0, SIZE), 0);
	p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(p != MAP_FAILED);
	close(fd);
	return p;
}

/*
 * Read the word this many times, and longer if it has not changed often enough. Returns the number
 * of changes.
 */
static unsigned long look(const uint64_t *word, struct writer *w, unsigned long times,
			  unsigned long *looked)
{
	uint64_t end = clock_now_ns() + LOOK_MAX_S * NSEC_PER_SEC, last = 0;
	unsigned long changes = 0, n = 0, enough = times / 2000;

	if (enough < CHANGES_MIN)
		enough = CHANGES_MIN;
	while (n < times || changes < enough) {
		uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

		if (seen != (seen & 0xff) * 0x0101010101010101ull)
			fail_msg("torn: %016llx after %lu observations", (unsigned long long)seen,
				 n);
		changes += seen != last;
		last = seen;
		if (++n % 65536 == 0 && (atomic_load(&w->ended) || clock_now_ns() > end))
			break;
	}
	*looked = n;
	assert_true(n >= times && changes >= enough);
	return changes;
}

static void watch(const char *what, write_fn *write, const char *crc)
{
	static struct writer w;
	unsigned long looked, changes;
	struct remote target;
	char region[64], env[32];
	uint64_t *p = map_file();
	pthread_t thread;

	w = (struct writer){.write = write};
	snprintf(region, sizeof(region), "file:%d:0xff:%s", SIZE, path);
	snprintf(env, sizeof(env), "SOFTRNIC_CRC=%s", crc);
	remote_must_start(&target, ((const char *[]){env, NULL}), region);
	OK(client_begin(&w.client, SIZE, target.port));
	assert_int_equal(pthread_create(&thread, NULL, write_on_and_on, &w), 0);
	changes =
		look(p + AT / sizeof(*p), &w, env_or("SYSTEM_OBSERVATIONS", OBSERVATIONS), &looked);
	atomic_store(&w.done, true);
	pthread_join(thread, NULL);
	OK(w.ret);
	print_message("%s, CRC %s: %lu observations, %lu changes of %lu writes\n", what, crc,
		      looked, changes, w.written);
	client_close(&w.client);
	assert_int_equal(proc_finish(&target.proc), 0);
	munmap(p, SIZE);
	unlink(path);
}

static void an_atomic_write_is_never_torn(void **state)
{
	watch("atomic write", write_atomic, "off");
	watch("atomic write", write_atomic, "on");
}

static void an_aligned_word_is_never_torn(void **state)
{
	watch("plain write", write_plain, "off");
	watch("plain write", write_plain, "on");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_atomic_write_is_never_torn),
		cmocka_unit_test(an_aligned_word_is_never_torn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
