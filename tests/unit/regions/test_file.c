/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librpmafile through its public calls: a server in a thread, which serves memory and a file of its
 * own.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <librpmafile.h>

#define SIZE         (8u << 20)
#define THREADS      4
#define RING_THREADS 12

static struct rpma_file_server *server;
static pthread_t thread;
static atomic_bool ends;
static unsigned char *memory;
static char target[64], file_target[64];

static void *serve(void *arg)
{
	while (!ends)
		assert_int_equal(rpma_file_server_step(server, 20, NULL), 0);
	return arg;
}

static int start(void **state)
{
	struct rpma_file_server_options options = {
		.size = sizeof(options), .flags = RPMA_FILE_SERVE_VOLATILE_OK, .max_clients = 64};
	struct rpma_file_export exports[2] = {{.name = "memory", .length = SIZE},
					      {.name = "file", .path = "regions-file"}};
	uint16_t port;
	FILE *f;

	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	exports[0].addr = memory;
	unlink("regions-file");
	f = fopen("regions-file", "w");
	if (!f || ftruncate(fileno(f), SIZE) || fclose(f) ||
	    rpma_file_serve("127.0.0.1:0", exports, 2, &options, &server)) {
		print_error("no server: %s\n", rpma_file_errormsg());
		return -1;
	}
	rpma_file_server_get_port(server, &port);
	snprintf(target, sizeof(target), "127.0.0.1:%u:memory", port);
	snprintf(file_target, sizeof(file_target), "127.0.0.1:%u:file", port);
	return pthread_create(&thread, NULL, serve, NULL);
}

static int stop(void **state)
{
	ends = true;
	pthread_join(thread, NULL);
	rpma_file_server_delete(&server);
	munmap(memory, SIZE);
	unlink("regions-file.rpma");
	return unlink("regions-file");
}

/* May be called by any thread. */
static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: %s\n", rpma_file_err_2str(rc), rpma_file_errormsg());
	abort();
}

static void must_equal(const unsigned char *a, const unsigned char *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (a[i] != b[i]) {
			fprintf(stderr, "of %zu bytes that at %zu is %u and not %u\n", len, i, a[i],
				b[i]);
			abort();
		}
}

static struct rpma_file *open_memory(uint32_t flags)
{
	struct rpma_file_options options = {.size = sizeof(options),
					    .flags = flags | RPMA_FILE_VOLATILE_OK,
					    .reconnect_ms = 20000};
	struct rpma_file *file;

	must(rpma_file_open(target, &options, &file));
	return file;
}

static void fill(unsigned char *buf, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (unsigned char)(seed + i + (i >> 8) * 3);
}

/* Lengths on both sides of each threshold, in pieces that overlap or touch. */
static void what_is_written_is_read_and_in_the_memory(void **state)
{
	static const size_t lengths[] = {
		1, 7, 4096, 65535, 65536, 65537, (1u << 20) - 1, (1u << 20) + 1, (5u << 20) + 3};
	struct rpma_file *file = open_memory(0);
	unsigned char *buf = malloc(SIZE), *back = malloc(SIZE), *mirror = malloc(SIZE);
	uint64_t offset = 0;

	memcpy(mirror, memory, SIZE);
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		fill(buf, lengths[i], i * 17);
		offset = (offset * 3 + i * 40000) % (SIZE - lengths[i] + 1);
		must(rpma_file_pwrite(file, buf, lengths[i], offset));
		memcpy(mirror + offset, buf, lengths[i]);
		memset(buf, 0, lengths[i]); /* the buffer may be used again */
		must(rpma_file_pread(file, back, lengths[i], offset));
		assert_memory_equal(back, mirror + offset, lengths[i]);
	}
	must(rpma_file_sync(file, NULL, 0));
	assert_memory_equal(memory, mirror, SIZE);
	must(rpma_file_close(&file));
	assert_null(file);
	free(buf);
	free(back);
	free(mirror);
}

/* More writes than fit into rings and queues, without a sync. */
static void very_many_small_writes_arrive(void **state)
{
	struct rpma_file *file = open_memory(0);
	uint64_t value;

	for (uint64_t i = 0; i < 50000; i++) {
		value = i + 1;
		must(rpma_file_pwrite(file, &value, sizeof(value), i * 16 % (1u << 20)));
	}
	must(rpma_file_sync(file, NULL, 0));
	memcpy(&value, memory + 49999 * 16 % (1u << 20), sizeof(value));
	assert_int_equal(value, 50000);
	must(rpma_file_close(&file));
}

static void several_buffers_are_one_write(void **state)
{
	struct rpma_file *file = open_memory(0);
	char a[] = "abc", *big = malloc(100000);
	struct iovec iov[] = {{a, 3}, {NULL, 0}, {big, 100000}, {a, 3}};

	memset(big, 'x', 100000);
	must(rpma_file_pwritev(file, iov, 4, 999));
	must(rpma_file_sync(file, NULL, 0));
	assert_memory_equal(memory + 999, "abcxxx", 6);
	assert_memory_equal(memory + 999 + 100000, "xxxabc", 6);
	/* All bytes or none. */
	memset(big, 'y', 100000);
	assert_int_equal(rpma_file_pwritev(file, iov, 4, SIZE - 100005), RPMA_E_INVAL);
	must(rpma_file_sync(file, NULL, 0));
	assert_int_not_equal(memory[SIZE - 50000], 'y');
	must(rpma_file_close(&file));
	free(big);
}

static void a_word_is_stored_and_syncs_have_tickets(void **state)
{
	struct rpma_file *file = open_memory(0);
	uint64_t tickets[3], word;

	must(rpma_file_pwrite(file, "before", 6, 64));
	must(rpma_file_store8_start(file, 8, 0x1122334455667788, &tickets[0]));
	must(rpma_file_pwrite(file, "after", 5, 128));
	must(rpma_file_sync_start(file, NULL, 0, &tickets[1]));
	must(rpma_file_sync_start(file, &(struct rpma_file_range){128, 5}, 1, &tickets[2]));
	assert_true(tickets[0] < tickets[1] && tickets[1] < tickets[2]);
	must(rpma_file_sync_wait(file, tickets[2], -1));
	must(rpma_file_sync_wait(file, tickets[0], 0)); /* it ended with the later sync */
	memcpy(&word, memory + 8, 8);
	assert_true(word == 0x1122334455667788);
	assert_memory_equal(memory + 64, "before", 6);
	assert_int_equal(rpma_file_sync_wait(file, tickets[2] + 1, 0), RPMA_E_INVAL);
	assert_int_equal(rpma_file_sync_wait(file, 0, 0), RPMA_E_INVAL);
	must(rpma_file_close(&file));
}

static void a_file_is_described(void **state)
{
	struct rpma_file *file = open_memory(RPMA_FILE_READONLY);
	struct rpma_file_info info = {.size = sizeof(info)};
	uint64_t size;

	must(rpma_file_size(file, &size));
	assert_int_equal(size, SIZE);
	must(rpma_file_get_info(file, &info));
	assert_int_equal(info.length, SIZE);
	assert_int_equal(info.durability, RPMA_DURABILITY_VOLATILE);
	assert_string_equal(info.region, "memory");
	assert_non_null(strstr(target, info.server));
	info.size = 1;
	assert_int_equal(rpma_file_get_info(file, &info), RPMA_E_INVAL);
	must(rpma_file_close(&file));
	must(rpma_file_close(&file)); /* of NULL */
}

struct writer {
	struct rpma_file *file;
	unsigned number;
	uint64_t ticket;
};

/* Each thread has a part of the file, and several syncs in flight. */
static void *write_and_sync(void *arg)
{
	struct writer *w = arg;
	uint64_t from = w->number * (SIZE / THREADS), tickets[4] = {0};
	unsigned char buf[3000], back[3000], *big = malloc(70000);

	fill(big, 70000, w->number);
	for (unsigned i = 0; i < 200; i++) {
		uint64_t at = from + i * 4096 % (SIZE / THREADS - 70000);

		fill(buf, sizeof(buf), w->number * 50 + i);
		must(rpma_file_pwrite(w->file, buf, sizeof(buf), at));
		if (i % 50 == 0)
			must(rpma_file_pwrite(w->file, big, 70000, from + SIZE / THREADS - 70000));
		if (tickets[i % 4])
			must(rpma_file_sync_wait(w->file, tickets[i % 4], -1));
		must(rpma_file_sync_start(w->file, NULL, 0, &tickets[i % 4]));
		must(rpma_file_pread(w->file, back, sizeof(back), at));
		must_equal(back, buf, sizeof(buf));
	}
	for (unsigned i = 0; i < 4; i++)
		must(rpma_file_sync_wait(w->file, tickets[i], -1));
	must_equal(memory + from + SIZE / THREADS - 70000, big, 70000);
	free(big);
	return NULL;
}

static void threads_share_a_file(void **state)
{
	struct writer writers[THREADS];
	pthread_t threads[THREADS];
	struct rpma_file *file = open_memory(0);
	size_t count = 0;

	for (unsigned i = 0; i < THREADS; i++) {
		writers[i] = (struct writer){file, i, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, write_and_sync, &writers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	must(rpma_file_get_undecided(file, NULL, &count));
	assert_int_equal(count, 0);
	must(rpma_file_close(&file));
}

/* As much as fits into the ring, so that threads wait for room in it between each other's calls. */
static void *fill_the_ring(void *arg)
{
	struct writer *w = arg;
	uint64_t from = w->number * (SIZE / RING_THREADS);
	unsigned char *buf = malloc(60000), *back = malloc(60000);

	for (unsigned i = 0; i < 300; i++) {
		size_t len = i % 3 ? 60000 : 100 + i;
		uint64_t at = from + i * 8192 % (SIZE / RING_THREADS - 60000);

		fill(buf, len, w->number * 31 + i);
		must(rpma_file_pwrite(w->file, buf, len, at));
		if (i % 4)
			continue;
		must(rpma_file_pread(w->file, back, len, at));
		must_equal(back, buf, len);
	}
	must(rpma_file_sync(w->file, NULL, 0));
	free(buf);
	free(back);
	return NULL;
}

static void threads_that_wait_for_room_lose_nothing(void **state)
{
	struct writer writers[RING_THREADS];
	pthread_t threads[RING_THREADS];
	struct rpma_file *file = open_memory(0);

	for (unsigned i = 0; i < RING_THREADS; i++) {
		writers[i] = (struct writer){file, i, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, fill_the_ring, &writers[i]), 0);
	}
	for (unsigned i = 0; i < RING_THREADS; i++)
		pthread_join(threads[i], NULL);
	must(rpma_file_close(&file));
}

#define CLAIMERS 8
#define CLAIMS   6

/* Opens its part again and again. */
static void *claim_a_part(void *arg)
{
	uint64_t *generations = arg, number = generations[0];
	struct rpma_file_options options = {.size = sizeof(options),
					    .flags = RPMA_FILE_VOLATILE_OK,
					    .reconnect_ms = 20000,
					    .write_offset = number * 4096,
					    .write_length = 4096};

	for (unsigned i = 0; i < CLAIMS; i++) {
		struct rpma_file *file;

		must(rpma_file_open(file_target, &options, &file));
		must(rpma_file_get_generation(file, &generations[i]));
		must(rpma_file_close(&file));
	}
	return NULL;
}

/*
 * Several records are under way at a time. Each claim has a number of its own, and no number is
 * left out.
 */
static void writers_of_several_parts_claim_at_once(void **state)
{
	uint64_t generations[CLAIMERS][CLAIMS] = {{0}}, first;
	bool seen[CLAIMERS * CLAIMS] = {false};
	pthread_t threads[CLAIMERS];
	struct rpma_file *file;

	must(rpma_file_open(file_target,
			    &(struct rpma_file_options){.size = sizeof(struct rpma_file_options),
							.flags = RPMA_FILE_VOLATILE_OK,
							.reconnect_ms = 20000},
			    &file));
	must(rpma_file_get_generation(file, &first));
	assert_int_equal(rpma_file_get_generation(file, NULL), RPMA_E_INVAL);
	must(rpma_file_close(&file));
	for (unsigned i = 0; i < CLAIMERS; i++) {
		generations[i][0] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, claim_a_part, generations[i]),
				 0);
	}
	for (unsigned i = 0; i < CLAIMERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (unsigned i = 0; i < CLAIMERS * CLAIMS; i++) {
		uint64_t generation = generations[i / CLAIMS][i % CLAIMS];

		assert_in_range(generation, first + 1, first + CLAIMERS * CLAIMS);
		assert_false(seen[generation - first - 1]);
		seen[generation - first - 1] = true;
	}
}

static void a_served_file_is_verified(void **state)
{
	struct rpma_file_options options = {.size = sizeof(options),
					    .flags = RPMA_FILE_VOLATILE_OK};
	struct rpma_file_info info = {.size = sizeof(info)};
	unsigned char buf[5000];
	struct rpma_file *file;

	must(rpma_file_open(file_target, &options, &file));
	must(rpma_file_get_info(file, &info));
	fill(buf, sizeof(buf), 9);
	must(rpma_file_pwrite(file, buf, sizeof(buf), 12345));
	if (info.durability >= RPMA_DURABILITY_FILE) {
		must(rpma_file_verify(file, buf, sizeof(buf), 12345));
		assert_int_equal(rpma_file_verify(file, buf, sizeof(buf), 12346),
				 RPMA_FILE_E_DIFFERS);
	}
	must(rpma_file_close(&file));
}

static void wrong_exports_are_refused(void **state)
{
	struct rpma_file_export none = {.name = "x"}, both = {"x", "path", memory, 10};
	struct rpma_file_export volatile_one = {.name = "x", .addr = memory, .length = 4096};
	struct rpma_file_server *s = NULL;

	assert_int_equal(rpma_file_serve("127.0.0.1:0", &none, 1, NULL, &s), RPMA_E_INVAL);
	assert_int_equal(rpma_file_serve("127.0.0.1:0", &both, 1, NULL, &s), RPMA_E_INVAL);
	assert_int_equal(rpma_file_serve("127.0.0.1:0", &volatile_one, 0, NULL, &s), RPMA_E_INVAL);
	assert_int_equal(rpma_file_serve("127.0.0.1:0", &volatile_one, 1, NULL, &s), RPMA_E_NOSUPP);
	assert_non_null(strstr(rpma_file_errormsg(), "cannot be persisted"));
	assert_null(s);
}

/* Clients read what the program itself stores, as it is the same memory. */
static void served_memory_is_the_callers(void **state)
{
	struct rpma_file *file = open_memory(RPMA_FILE_READONLY);
	char back[6];

	memcpy(memory + 5000, "hello", 6);
	must(rpma_file_pread(file, back, 6, 5000));
	assert_string_equal(back, "hello");
	must(rpma_file_close(&file));
}

/* The list of a server's regions, without opening a file. */
static void the_regions_of_a_server_are_listed(void **state)
{
	struct rpma_file_options options = {.size = sizeof(options)};
	struct rpma_file_region regions[RPMA_FILE_REGIONS_MAX];
	size_t count = RPMA_FILE_REGIONS_MAX;
	char server_only[64];

	snprintf(server_only, sizeof(server_only), "%.*s", (int)(strrchr(target, ':') - target),
		 target);
	must(rpma_file_list(server_only, NULL, regions, &count));
	assert_int_equal(count, 2);
	assert_string_equal(regions[0].name, "memory");
	assert_int_equal(regions[0].length, SIZE);
	assert_int_equal(regions[0].durability, RPMA_DURABILITY_VOLATILE);
	assert_int_equal(regions[0].holds, RPMA_FILE_HOLDS_BYTES);
	assert_int_equal(regions[0].file_length, 0);
	assert_string_equal(regions[1].name, "file");
	count = 1; /* room for one region */
	must(rpma_file_list(server_only, &options, regions, &count));
	assert_int_equal(count, 2);
	count = 0;
	must(rpma_file_list(server_only, NULL, NULL, &count));
	assert_int_equal(count, 2);
	count = RPMA_FILE_REGIONS_MAX;
	must(rpma_file_list(file_target, NULL, regions, &count));
	assert_int_equal(count, 1);
	assert_string_equal(regions[0].name, "file");
}

static void a_list_says_why_there_is_none(void **state)
{
	struct rpma_file_options options = {.size = sizeof(options), .secret_file = "/nowhere"};
	struct rpma_file_region regions[1];
	size_t count = 1;
	char none[80];

	assert_int_equal(rpma_file_list(NULL, NULL, regions, &count), RPMA_E_INVAL);
	assert_int_equal(rpma_file_list(target, NULL, regions, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_file_list(target, &options, regions, &count), RPMA_E_PROVIDER);
	assert_non_null(strstr(rpma_file_errormsg(), "/nowhere"));
	options.timeout_ms = -2;
	assert_int_equal(rpma_file_list(target, &options, regions, &count), RPMA_E_INVAL);
	snprintf(none, sizeof(none), "%.*s:none", (int)(strrchr(target, ':') - target), target);
	assert_int_equal(rpma_file_list(none, NULL, regions, &count), RPMA_FILE_E_REFUSED);
	assert_non_null(strstr(rpma_file_errormsg(), "does not serve a region 'none'"));
	assert_int_equal(rpma_file_list("127.0.0.1:1", NULL, regions, &count),
			 RPMA_FILE_E_UNREACHED);
	assert_int_equal(count, 1); /* a failure does not change it */
}

/* Several under way, large and small, around writes and syncs that have tickets, too. */
static void reads_are_under_way_at_a_time(void **state)
{
	static const size_t lengths[] = {1,      65535, 65536,   4096, (1u << 20) + 7,
					 300000, 8,     2u << 20};
	enum { READS = sizeof(lengths) / sizeof(lengths[0]) };
	struct rpma_file *file = open_memory(0);
	uint64_t tickets[READS], sync, before = 0;
	unsigned char *bufs[READS], *mirror = malloc(SIZE);

	fill(memory, SIZE, 5);
	memcpy(mirror, memory, SIZE);
	for (unsigned i = 0; i < READS; i++) {
		bufs[i] = malloc(lengths[i]);
		mirror[i] = 'x'; /* a write before a read is seen by it */
		must(rpma_file_pwrite(file, "x", 1, i));
		must(rpma_file_pread_start(file, bufs[i], lengths[i], i, &tickets[i]));
		assert_true(tickets[i] > before);
		before = tickets[i];
	}
	must(rpma_file_sync_start(file, NULL, 0, &sync));
	assert_true(sync > before);
	must(rpma_file_sync_wait(file, tickets[READS - 1], -1));
	for (unsigned i = 0; i < READS; i++) {
		must(rpma_file_sync_wait(file, tickets[i], 0)); /* they end in their order */
		assert_memory_equal(bufs[i] + READS, mirror + i + READS,
				    lengths[i] > READS ? lengths[i] - READS : 0);
		assert_int_equal(bufs[i][0], 'x');
	}
	must(rpma_file_sync_wait(file, sync, -1));
	/* One that is under way when the file is closed. */
	must(rpma_file_pread_start(file, bufs[READS - 1], lengths[READS - 1], 0, &before));
	must(rpma_file_close(&file));
	for (unsigned i = 0; i < READS; i++)
		free(bufs[i]);
	free(mirror);
}

/* What was written is undecided until a sync, whatever is read meanwhile. */
static void a_read_decides_nothing(void **state)
{
	struct rpma_file *file = open_memory(0);
	unsigned char back[8];
	uint64_t ticket;
	size_t count = 0;

	must(rpma_file_pwrite(file, "undecided", 9, 100));
	must(rpma_file_pread_start(file, back, sizeof(back), 100, &ticket));
	must(rpma_file_sync_wait(file, ticket, -1));
	assert_memory_equal(back, "undecide", 8);
	must(rpma_file_get_undecided(file, NULL, &count));
	assert_int_equal(count, 1);
	assert_int_equal(rpma_file_pread_start(file, back, 0, 0, &ticket), RPMA_E_INVAL);
	assert_int_equal(rpma_file_pread_start(file, back, 8, SIZE - 7, &ticket), RPMA_E_INVAL);
	assert_int_equal(rpma_file_pread_start(file, NULL, 8, 0, &ticket), RPMA_E_INVAL);
	assert_int_equal(rpma_file_pread_start(file, back, 8, 0, NULL), RPMA_E_INVAL);
	must(rpma_file_sync(file, NULL, 0));
	must(rpma_file_get_undecided(file, NULL, &count));
	assert_int_equal(count, 0);
	must(rpma_file_close(&file));
}

static struct rpma_file *open_unclaimed(const char *where)
{
	struct rpma_file_options options = {.size = sizeof(options),
					    .flags = RPMA_FILE_UNCLAIMED | RPMA_FILE_VOLATILE_OK};
	struct rpma_file *file;

	must(rpma_file_open(where, &options, &file));
	return file;
}

static struct rpma_file_region region_of(const char *where)
{
	struct rpma_file_region region;
	size_t count = 1;

	must(rpma_file_list(where, NULL, &region, &count));
	assert_int_equal(count, 1);
	return region;
}

static void a_digest_is_that_of_the_bytes(void **state)
{
	struct rpma_file_info info = {.size = sizeof(info)};
	struct rpma_digest there = {.len = 7}, here;
	struct rpma_file *file = open_unclaimed(file_target);
	unsigned char *buf = malloc(300000);

	must(rpma_file_get_info(file, &info));
	fill(buf, 300000, 77);
	must(rpma_file_claim(file, 0, 0));
	must(rpma_file_pwrite(file, buf, 300000, 4096));
	if (info.verifies) {
		must(rpma_file_digest(file, &there, 300000, 4096));
		must(rpma_digest_compute(RPMA_DIGEST_BLAKE2B, buf, 300000, &here));
		assert_true(rpma_digest_equal(&there, &here));
		assert_int_not_equal(there.source, RPMA_DIGEST_FROM_MEMORY);
		assert_true(info.persists);
	} else { /* a file system in memory */
		assert_int_equal(rpma_file_digest(file, &there, 300000, 4096), RPMA_E_NOSUPP);
		assert_int_equal(there.len, 7);
	}
	assert_int_equal(rpma_file_digest(file, &there, 0, 0), RPMA_E_INVAL);
	assert_int_equal(rpma_file_digest(file, &there, RPMA_FILE_DIGEST_MAX + 1, 0), RPMA_E_INVAL);
	assert_int_equal(rpma_file_digest(file, &there, 2, SIZE - 1), RPMA_E_INVAL);
	must(rpma_file_close(&file));
	file = open_memory(0);
	assert_int_equal(rpma_file_digest(file, &there, 8, 0), RPMA_E_NOSUPP);
	must(rpma_file_close(&file));
	free(buf);
}

static void a_file_is_put_as_a_whole(void **state)
{
	struct rpma_file_info info = {.size = sizeof(info)};
	struct rpma_file *file = open_unclaimed(file_target);
	struct rpma_file_region region;
	struct rpma_digest digest;
	unsigned char buf[9000];
	uint64_t generation = 1;

	fill(buf, sizeof(buf), 3);
	must(rpma_digest_compute(RPMA_DIGEST_BLAKE2B, buf, sizeof(buf), &digest));
	assert_int_equal(rpma_file_put_begin(file, SIZE + 1, 0), RPMA_E_INVAL);
	assert_int_equal(rpma_file_put_end(file, 1, digest.bytes), RPMA_E_INVAL);
	assert_int_equal(rpma_file_pwrite(file, buf, 1, 0), RPMA_E_INVAL); /* it has no range yet */
	must(rpma_file_get_generation(file, &generation));
	assert_int_equal(generation, 0);
	must(rpma_file_put_begin(file, sizeof(buf), 1234567890));
	must(rpma_file_get_generation(file, &generation));
	assert_int_not_equal(generation, 0);
	assert_int_equal(rpma_file_pwrite(file, buf, 1, sizeof(buf)), RPMA_E_INVAL);
	must(rpma_file_pwrite(file, buf + 5000, 4000, 5000));
	must(rpma_file_pwrite(file, buf, 5000, 0));
	region = region_of(file_target);
	assert_int_equal(region.holds, RPMA_FILE_HOLDS_PARTIAL);
	assert_int_equal(region.file_length, sizeof(buf));
	assert_int_equal(region.file_time_ns, 1234567890);
	assert_int_equal(rpma_file_put_end(file, 8999, digest.bytes), RPMA_E_INVAL);
	must(rpma_file_put_end(file, sizeof(buf), digest.bytes));
	region = region_of(file_target);
	assert_int_equal(region.holds, RPMA_FILE_HOLDS_WHOLE);
	assert_memory_equal(region.file_digest, digest.bytes, sizeof(region.file_digest));
	assert_int_equal(rpma_file_pwrite(file, buf, 1, 0), RPMA_E_INVAL);
	assert_int_equal(rpma_file_put_begin(file, 1, 0), RPMA_E_INVAL);
	must(rpma_file_close(&file));

	file = open_unclaimed(file_target);
	must(rpma_file_get_info(file, &info));
	assert_int_equal(info.holds, RPMA_FILE_HOLDS_WHOLE);
	assert_int_equal(info.file_length, sizeof(buf));
	assert_int_equal(info.file_time_ns, 1234567890);
	assert_memory_equal(info.file_digest, digest.bytes, sizeof(info.file_digest));
	must(rpma_file_put_begin(file, UINT64_MAX, 0));
	must(rpma_file_close(&file)); /* without its end */
	region = region_of(file_target);
	assert_int_equal(region.holds, RPMA_FILE_HOLDS_PARTIAL);
	assert_int_equal(region.file_length, UINT64_MAX);
}

/* A file looks at the region, and then takes a part of it, if no other one has it. */
static void a_part_is_claimed_after_the_open(void **state)
{
	struct rpma_file_options options = {
		.size = sizeof(options), .flags = RPMA_FILE_UNCLAIMED, .write_offset = 8};
	struct rpma_file *file = open_unclaimed(target), *first = open_memory(0), *none;
	char back[4];

	options.flags |= RPMA_FILE_VOLATILE_OK;
	assert_int_equal(rpma_file_open(target, &options, &none), RPMA_E_INVAL);
	options.write_offset = 0;
	options.flags |= RPMA_FILE_READONLY;
	assert_int_equal(rpma_file_open(target, &options, &none), RPMA_E_INVAL);
	assert_int_equal(rpma_file_claim(first, 0, 8), RPMA_E_INVAL);
	assert_int_equal(rpma_file_claim(file, SIZE, 1), RPMA_E_INVAL);
	assert_int_equal(rpma_file_claim(file, UINT64_MAX, 8), RPMA_E_INVAL);
	must(rpma_file_pwrite(first, "seen", 4, 0));
	must(rpma_file_sync(first, NULL, 0));
	must(rpma_file_pread(file, back, 4, 0));
	assert_memory_equal(back, "seen", 4);
	assert_int_equal(rpma_file_claim(file, 0, 4096), RPMA_FILE_E_REFUSED);
	assert_int_equal(rpma_file_pread(file, back, 4, 0), RPMA_FILE_E_REFUSED);
	must(rpma_file_close(&first));
	must(rpma_file_reopen(file));
	must(rpma_file_claim(file, 4096, 4096));
	assert_int_equal(rpma_file_claim(file, 0, 4096), RPMA_E_INVAL);
	assert_int_equal(rpma_file_pwrite(file, "x", 1, 4095), RPMA_E_INVAL);
	must(rpma_file_pwrite(file, "x", 1, 8191));
	must(rpma_file_close(&file));
	assert_int_equal(memory[8191], 'x');
}

/* What speaks first, and not iWARP. */
static void *greet_as_another_program(void *listener)
{
	int fd = accept(*(int *)listener, NULL, NULL);

	assert_int_equal(send(fd, "SSH-2.0-x\r\n", 11, MSG_NOSIGNAL), 11);
	while (recv(fd, &(char){0}, 1, 0) > 0)
		;
	close(fd);
	return NULL;
}

/* Also where an owner is named, which not every device of this end can carry. */
static void a_port_of_another_program_is_called_so(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rpma_file_options options = {.size = sizeof(options), .owner = "orders"};
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct rpma_file *file = NULL;
	socklen_t len = sizeof(at);
	pthread_t other;
	char foreign[32];

	assert_int_equal(bind(listener, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(pthread_create(&other, NULL, greet_as_another_program, &listener), 0);
	snprintf(foreign, sizeof(foreign), "127.0.0.1:%u", ntohs(at.sin_port));
	assert_int_equal(rpma_file_open(foreign, &options, &file), RPMA_FILE_E_UNREACHED);
	assert_non_null(strstr(rpma_file_errormsg(), "what listens there does not speak iWARP"));
	pthread_join(other, NULL);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_regions_of_a_server_are_listed),
		cmocka_unit_test(a_list_says_why_there_is_none),
		cmocka_unit_test(a_port_of_another_program_is_called_so),
		cmocka_unit_test(what_is_written_is_read_and_in_the_memory),
		cmocka_unit_test(very_many_small_writes_arrive),
		cmocka_unit_test(several_buffers_are_one_write),
		cmocka_unit_test(a_word_is_stored_and_syncs_have_tickets),
		cmocka_unit_test(a_file_is_described),
		cmocka_unit_test(reads_are_under_way_at_a_time),
		cmocka_unit_test(a_read_decides_nothing),
		cmocka_unit_test(a_digest_is_that_of_the_bytes),
		cmocka_unit_test(a_file_is_put_as_a_whole),
		cmocka_unit_test(a_part_is_claimed_after_the_open),
		cmocka_unit_test(threads_share_a_file),
		cmocka_unit_test(threads_that_wait_for_room_lose_nothing),
		cmocka_unit_test(writers_of_several_parts_claim_at_once),
		cmocka_unit_test(a_served_file_is_verified),
		cmocka_unit_test(wrong_exports_are_refused),
		cmocka_unit_test(served_memory_is_the_callers),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
