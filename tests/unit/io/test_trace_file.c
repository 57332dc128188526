/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_trace_file.c -- which file a trace uses, which processes share it, and what happens when it
 * cannot be written.
 */
#include "lib/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "softrnic/trace/flow.h"
#include "trace_rig.h"

static void trace_one(void)
{
	struct rig r;

	rig_connect(&r, RIG_IPV4, true);
	rig_trace(&r);
	rig_exchange(&r, 3);
	rig_end(&r);
}

static void look_at_mode(void)
{
	struct stat st;

	umask(0);
	trace_one();
	MUST(!stat(FILE_NAME, &st));
	MUST((st.st_mode & 07777) == 0600);
	MUST(size_of("err") == 0);
}

static void the_file_is_for_its_owner_only(void **state)
{
	in_child(look_at_mode, FILE_NAME);
}

static void look_for_pid(void)
{
	char name[64];

	snprintf(name, sizeof(name), "a-%d-%d.pcapng", (int)getpid(), (int)getpid());
	MUST(!mkdir("elsewhere", 0700));
	trace_one();
	MUST(size_of(name) > 0);
}

static void a_name_may_have_the_process_id(void **state)
{
	in_child(look_for_pid, "a-%p-%p.pcapng");
}

/* Fork, and call the trace's fork handlers, as the engine's handlers do. */
static pid_t fork_tracing(void)
{
	pid_t pid;

	trace_atfork_prepare();
	pid = fork();
	if (pid)
		trace_atfork_parent();
	else
		trace_atfork_child();
	return pid;
}

static void expect_success(pid_t pid)
{
	int status;

	MUST(waitpid(pid, &status, 0) == pid && status == 0);
}

static void trace_in_parent_and_child(void)
{
	struct rig r, other;
	struct packets p;
	pid_t pid;

	rig_connect(&r, RIG_IPV4, true);
	rig_connect(&other, RIG_IPV4, true);
	rig_trace(&r);
	rig_exchange(&r, 3);
	pid = fork_tracing();
	if (pid == 0) {
		trace_forget(r.trace);
		/*
		 * The parent records this connection, so the child must not record the other end of
		 * this connection as well.
		 */
		MUST(!link_tcp_trace_new(r.peer, false));
		rig_trace(&other);
		rig_exchange(&other, 3);
		rig_end(&other);
		rig_expect(&other, FILE_NAME, TCP_ACK);
		_exit(0);
	}
	close(other.us); /* while this process has copies, the connection stays open */
	close(other.peer);
	expect_success(pid);
	rig_exchange(&r, 3);
	rig_end(&r);
	rig_expect(&r, FILE_NAME, TCP_ACK);
	MUST(!packets_load(&p, FILE_NAME));
	MUST(p.sections == 2);
	packets_fini(&p);
}

static void a_forked_child_appends_connections_of_its_own(void **state)
{
	in_child(trace_in_parent_and_child, FILE_NAME);
}

/* Read the file only after all processes are done: an unfinished block can be visible in part. */
static _Noreturn void trace_among_others(int i, int done, const int go[2])
{
	struct rig r;
	char c = 0;

	rig_connect(&r, i % 2 ? RIG_IPV6 : RIG_IPV4, i / 2);
	rig_trace(&r);
	rig_exchange(&r, 20);
	rig_end(&r);
	close(go[1]);
	MUST(write(done, &c, 1) == 1);
	MUST(read(go[0], &c, 1) == 0);
	rig_expect(&r, FILE_NAME, TCP_ACK);
	_exit(0);
}

static void trace_in_many_processes(void)
{
	int done[2], go[2];
	struct packets p;
	pid_t pid[4];
	char c;

	MUST(!pipe(done) && !pipe(go));
	for (int i = 0; i < 4; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			trace_among_others(i, done[1], go);
	}
	close(done[1]); /* do not wait for a process that has failed */
	for (int i = 0; i < 4; i++)
		MUST(read(done[0], &c, 1) == 1);
	close(go[1]);
	for (int i = 0; i < 4; i++)
		expect_success(pid[i]);
	MUST(!packets_load(&p, FILE_NAME));
	MUST(p.sections == 4);
	packets_fini(&p);
}

static void processes_share_a_file(void **state)
{
	in_child(trace_in_many_processes, FILE_NAME);
}

static void trace_both_ends(void)
{
	struct trace *second;
	struct rig r;

	rig_connect(&r, RIG_IPV4, true);
	rig_trace(&r);
	MUST(!link_tcp_trace_new(r.peer, false));
	rig_exchange(&r, 2);
	link_tcp_trace_delete(r.trace, r.us);
	rig_expect(&r, FILE_NAME, TCP_FIN | TCP_ACK);
	/* A later connection may use the same ports. */
	second = link_tcp_trace_new(r.peer, false);
	MUST(second);
	link_tcp_trace_delete(second, r.peer);
}

static void a_connection_is_written_by_one_end_only(void **state)
{
	in_child(trace_both_ends, FILE_NAME);
}

static void expect_refusal(const char *why)
{
	struct rig r;

	rig_connect(&r, RIG_IPV4, true);
	MUST(!link_tcp_trace_new(r.us, true));
	MUST(!link_tcp_trace_new(r.peer, false));
	MUST(complaints(why) == 1);
	MUST(complaints("") == 1); /* the failure is reported once */
}

static void over_a_text(void)
{
	FILE *f = fopen(FILE_NAME, "we");

	MUST(f && fputs("Dear Sir or Madam", f) >= 0 && !fclose(f));
	expect_refusal(FILE_NAME ": it exists and is not a pcapng file");
	MUST(size_of(FILE_NAME) == 17);
}

static void over_a_link(void)
{
	MUST(!symlink("victim", FILE_NAME));
	expect_refusal("symbolic links");
	MUST(size_of("victim") == -1);
}

static void over_a_fifo(void)
{
	MUST(!mkfifo(FILE_NAME, 0600));
	expect_refusal("it is not a regular file");
}

static void into_nowhere(void)
{
	expect_refusal("no/where: No such file or directory");
}

static void over_a_file_of_another_user(void)
{
	if (geteuid() != 0) /* only root can change the owner of a file */
		return;
	MUST(close(open(FILE_NAME, O_CREAT | O_WRONLY, 0666)) == 0);
	MUST(!chown(FILE_NAME, 65534, 65534));
	expect_refusal("it belongs to another user");
	MUST(size_of(FILE_NAME) == 0);
}

static void a_file_that_will_not_do_is_complained_about_once(void **state)
{
	in_child(over_a_text, FILE_NAME);
	in_child(over_a_link, FILE_NAME);
	in_child(over_a_fifo, FILE_NAME);
	in_child(into_nowhere, "no/where");
	in_child(over_a_file_of_another_user, FILE_NAME);
}

static void expect_whole_blocks(long limit)
{
	struct packets p;

	MUST(size_of(FILE_NAME) <= limit);
	MUST(!packets_load(&p, FILE_NAME));
	MUST(p.n > 3);
	packets_fini(&p);
}

/* A write beyond the limit would end the process with SIGXFSZ. */
static void beyond_the_limit_of_sizes(void)
{
	struct rlimit limit = {300001, RLIM_INFINITY};
	sigset_t pending;
	struct rig r;

	MUST(!setrlimit(RLIMIT_FSIZE, &limit));
	rig_connect(&r, RIG_IPV4, true);
	rig_trace(&r);
	rig_exchange(&r, 30);
	rig_end(&r);
	expect_whole_blocks(300001);
	MUST(complaints("tracing stops, the connections go on: writing to ") == 1);
	MUST(complaints(": File too large") == 1);
	MUST(!sigpending(&pending) && !sigismember(&pending, SIGXFSZ));
	rig_connect(&r, RIG_IPV4, true);
	MUST(!link_tcp_trace_new(r.us, true));
	MUST(complaints("") == 1);
}

static void a_full_file_stops_the_trace_and_nothing_else(void **state)
{
	in_child(beyond_the_limit_of_sizes, FILE_NAME);
}

static void beyond_our_own_limit(void)
{
	struct rig r;

	MUST(!setenv("SOFTRNIC_TRACE_BYTES", "500000", 1));
	rig_connect(&r, RIG_IPV4, true);
	rig_trace(&r);
	rig_exchange(&r, 30);
	rig_end(&r);
	MUST(size_of(FILE_NAME) > 400000);
	expect_whole_blocks(500000);
	MUST(complaints("tracing stops: SOFTRNIC_TRACE_BYTES") == 1);
}

static void bytes_can_be_limited(void **state)
{
	in_child(beyond_our_own_limit, FILE_NAME);
}

static void look_at_short_packets(void)
{
	unsigned n = 0;
	struct packets p;

	MUST(!setenv("SOFTRNIC_TRACE_SNAPLEN", "99", 1));
	trace_one();
	MUST(!packets_load(&p, FILE_NAME));
	for (unsigned i = 0; i < p.n; i++) {
		const struct packet *k = &p.all[i];

		MUST(k->captured == (k->original > 99 ? 99 : k->original));
		n += k->captured < k->original;
	}
	MUST(n > 0);
	packets_fini(&p);
}

static void packets_can_be_cut_short(void **state)
{
	in_child(look_at_short_packets, FILE_NAME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_file_is_for_its_owner_only),
		cmocka_unit_test(a_name_may_have_the_process_id),
		cmocka_unit_test(a_forked_child_appends_connections_of_its_own),
		cmocka_unit_test(processes_share_a_file),
		cmocka_unit_test(a_connection_is_written_by_one_end_only),
		cmocka_unit_test(a_file_that_will_not_do_is_complained_about_once),
		cmocka_unit_test(a_full_file_stops_the_trace_and_nothing_else),
		cmocka_unit_test(bytes_can_be_limited),
		cmocka_unit_test(packets_can_be_cut_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
