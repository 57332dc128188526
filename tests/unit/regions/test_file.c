/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests librpmafile through its public interface only. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "served.h"

#define THREADS      4
#define RING_THREADS 12

static void must_equal(const unsigned char *a, const unsigned char *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (a[i] != b[i]) {
			fprintf(stderr, "of %zu bytes that at %zu is %u and not %u\n", len, i, a[i],
				b[i]);
			abort();
		}
}

/* The lengths are on both sides of each threshold; pieces overlap or touch. */
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

/* Write more often than rings and queues have slots, without a sync. */
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
	/* A write is done completely or not at all: if a part is past the end, the call refuses all
	 * of it. */
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
	/* the later sync is complete, so this ticket's sync is complete, too */
	must(rpma_file_sync_wait(file, tickets[0], 0));
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
	must(rpma_file_close(&file)); /* closing NULL succeeds */
}

struct writer {
	struct rpma_file *file;
	unsigned number;
	uint64_t ticket;
};

/* Each thread uses its own part of the file, with several syncs under way. */
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

/* Write as much as the ring holds, so that threads wait for space while others make calls. */
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

/* Open the thread's part again and again. */
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
 * Several records of claims are stored at the same time. Each claim gets its own number, and no
 * number is skipped.
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

/* Clients read what this program stores, because both use the same memory. */
static void served_memory_is_the_callers(void **state)
{
	struct rpma_file *file = open_memory(RPMA_FILE_READONLY);
	char back[6];

	memcpy(memory + 5000, "hello", 6);
	must(rpma_file_pread(file, back, 6, 5000));
	assert_string_equal(back, "hello");
	must(rpma_file_close(&file));
}

/* Get the list of a server's regions without opening a file. */
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
	count = 1; /* the array has space for one region */
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
	assert_int_equal(count, 1); /* a failure leaves `count` unchanged */
}

/* A listener of another protocol that sends first. */
static void *greet_as_another_program(void *listener)
{
	int fd = accept(*(int *)listener, NULL, NULL);

	assert_int_equal(send(fd, "SSH-2.0-x\r\n", 11, MSG_NOSIGNAL), 11);
	while (recv(fd, &(char){0}, 1, 0) > 0)
		;
	close(fd);
	return NULL;
}

/* The error must name the port even if the caller gives an owner. Some devices cannot transmit the
 * owner's name. */
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
	assert_non_null(strstr(rpma_file_errormsg(),
			       "the program that listens there does not speak iWARP"));
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
		cmocka_unit_test(threads_share_a_file),
		cmocka_unit_test(threads_that_wait_for_room_lose_nothing),
		cmocka_unit_test(writers_of_several_parts_claim_at_once),
		cmocka_unit_test(a_served_file_is_verified),
		cmocka_unit_test(wrong_exports_are_refused),
		cmocka_unit_test(served_memory_is_the_callers),
	};

	return cmocka_run_group_tests(tests, served_start, served_stop);
}
