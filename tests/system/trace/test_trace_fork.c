/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trace_fork.c -- processes that write to the same trace fork in the middle of their traffic,
 * and their children make further connections. */
#include "system/lib/check.h"

#include "lib/packets.h"
#include "system/lib/client.h"
#include "system/lib/remote.h"

#define NAME  "fork.pcapng"
#define FORKS 5
#define SYN   0x02
#define FIN   0x01
#define ACK   0x10

static struct remote target, forker;
static struct packets trace;

static int start(void **state)
{
	static const char *const env[] = {"SOFTRNIC_TRACE=" NAME, "SOFTRNIC_TRACE_SNAPLEN=100",
					  NULL};

	unlink(NAME);
	if (remote_start(&target, SYSTEM_TARGET, (const char *[]){"anon:1048576:0xff", NULL},
			 env) ||
	    remote_start(&forker, SYSTEM_FORKER, (const char *[]){target.port, NULL}, env))
		return -1;
	for (int i = 0; i < FORKS; i++) {
		const char *line = proc_ask(&forker.proc, "fork");

		if (!line || strcmp(line, "0")) {
			fprintf(stderr, "fork: %s\n", line ? line : "no answer");
			return -1;
		}
	}
	if (proc_finish(&forker.proc) || remote_wait_conns(&target, 0, CLIENT_WAIT_MS) ||
	    proc_finish(&target.proc))
		return -1;
	return packets_load(&trace, NAME);
}

static int stop(void **state)
{
	packets_fini(&trace);
	return unlink(NAME);
}

static void every_child_has_a_section_of_its_own(void **state)
{
	/* The forker, the target and each child can have a section. Only one end of a connection
	 * records the connection, so the target possibly has no section. */
	assert_in_range(trace.sections, FORKS + 1, FORKS + 2);
}

static bool is_same_way(const struct packet *a, const struct packet *b)
{
	return a->sport == b->sport && a->dport == b->dport;
}

/* The sequence numbers must continue, without a gap or a repetition, from the SYN to the end. */
static unsigned follow(unsigned first)
{
	const struct packet *syn = &trace.all[first], *k;
	uint32_t next = syn->seq + 1;
	unsigned n = 0;

	for (unsigned i = first + 1; i < trace.n; i++) {
		k = &trace.all[i];
		if (!is_same_way(k, syn))
			continue;
		if (k->flags & SYN)
			break; /* a later connection uses the same ports */
		assert_int_equal(k->seq, next);
		next += (uint32_t)k->len + (k->flags & FIN ? 1 : 0);
		n++;
	}
	return n;
}

static void every_connection_is_whole_and_there_once(void **state)
{
	unsigned conns = 0;

	for (unsigned i = 0; i < trace.n; i++)
		if (trace.all[i].flags & SYN) {
			assert_true(follow(i) > 0);
			conns += !(trace.all[i].flags & ACK);
		}
	/* The forker has a connection to the target, and each child at least one. */
	assert_true(conns > FORKS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_child_has_a_section_of_its_own),
		cmocka_unit_test(every_connection_is_whole_and_there_once),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
