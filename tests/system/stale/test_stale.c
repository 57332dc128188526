/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_stale.c -- an initiator writes without an acknowledgement, and its connection ends in one of
 * six ways. It connects again, writes to the same range of the file ("the place"), and gets an
 * acknowledgement for a flush. From then on the place must have only the bytes of the second write,
 * in the file and on its medium.
 *
 * The argument is the way in which connections end. Without an argument all ways are tested.
 * STALE_ROUNDS is the number of rounds. For the ways that wait, STALE_LANES is the number of lanes
 * that run at the same time.
 */
#include "system/lib/check.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "lane.h"
#include "lib/medium.h"
#include "system/lib/remote.h"
#include "unit/persist/disk.h"

#define LANES_MAX 64
#define THREADS   4
#define LIVENESS  1000
/* TCP retransmits an unacknowledged segment after 0.2, 0.6 and 1.4 s. The silence ends shortly
 * before the last retransmission. */
#define PATIENCE   1200 /* ms for which an application with the default limits waits */
#define SILENCE_MS 1300
#define LATER_MS   400
#define SMALL      (3u * LANE_PIECE) /* length of the places of lanes that wait */
#define THAW_MS    300
#define FROZEN_MAX 12 /* maximum number of threads that wait for a file system */
#define FILE_BYTES (LANES_MAX * LANE_STRIDE)

static struct remote target;
static struct place place;
static atomic_uint stale_rounds;

static void start_target(const char *path)
{
	char region[300];
	const char *regions[] = {region, NULL};

	snprintf(region, sizeof(region), "file:%lu:0xff:%s", FILE_BYTES, path);
	assert_int_equal(remote_start(&target, SYSTEM_TARGET, regions, NULL), 0);
	place.port = target.port;
	place.fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(place.fd >= 0);
	place.behind = medium_is_behind(place.fd);
}

static void stop_target(void)
{
	assert_int_equal(proc_finish(&target.proc), 0);
	close(place.fd);
}

static void judge(const struct lane *lane)
{
	size_t bytes = lane_stale(lane, &place);

	if (!bytes)
		return;
	printf("place %u: %zu bytes are not what was acknowledged\n", lane->number, bytes);
	stale_rounds++;
}

static void expect_none_stale(unsigned rounds)
{
	printf("%u of %u rounds ended with bytes of the former connection%s\n",
	       (unsigned)stale_rounds, rounds, place.behind ? "" : " (the medium cannot be seen)");
	fflush(stdout);
	assert_int_equal(stale_rounds, 0);
}

/* --- a target that is silent -------------------------------------------------------------- */

static void set_way(bool up)
{
	struct ifreq req = {.ifr_name = "lo", .ifr_flags = up ? IFF_UP : 0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &req), 0);
	close(fd);
}

/* Rings need no network, so stop the target's process instead. */
static void silence(bool begins)
{
	if (place.rings)
		proc_signal(&target.proc, begins ? SIGSTOP : SIGCONT);
	else
		set_way(!begins);
}

static void sleep_until(uint64_t at)
{
	uint64_t now = clock_now_ns();

	if (now < at)
		usleep((useconds_t)((at - now) / 1000));
}

static void expect_lost(struct lane *lane)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	OK(client_wait_event(lane->client.conn, &event, CLIENT_WAIT_MS));
	assert_int_equal(event, RPMA_CONN_LOST);
}

static void end_in_silence(struct lane lanes[], unsigned n, bool is_lost)
{
	uint64_t begun = clock_now_ns();

	silence(true);
	for (unsigned i = 0; i < n; i++)
		lane_post(&lanes[i]);
	if (is_lost)
		for (unsigned i = 0; i < n; i++)
			expect_lost(&lanes[i]);
	else
		sleep_until(begun + PATIENCE * NSEC_PER_MS);
	for (unsigned i = 0; i < n; i++)
		lane_give_up(&lanes[i]);
	sleep_until(begun + SILENCE_MS * NSEC_PER_MS);
	silence(false);
}

static void put_again(struct lane lanes[], unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		lane_connect(&lanes[i], &place);
	for (unsigned i = 0; i < n; i++)
		lane_put(&lanes[i]);
}

static unsigned lanes_of(unsigned rounds, unsigned max)
{
	unsigned lanes = env_or("STALE_LANES", 8);

	lanes = lanes < max ? lanes : max;
	return lanes < rounds ? lanes : rounds;
}

/* --- a target that is busy ------------------------------------------------------------------ */

struct worker {
	pthread_t thread;
	struct lane lane;
	unsigned rounds;
	void (*end)(struct lane *lane);
};

static void disconnect_and_delete(struct lane *lane)
{
	OK(rpma_conn_disconnect(lane->client.conn));
	lane_give_up(lane);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < w->rounds; i++) {
		if (w->end != NULL) {
			lane_connect(&w->lane, &place);
			lane_post(&w->lane);
			w->end(&w->lane);
		}
		lane_connect(&w->lane, &place);
		lane_put(&w->lane);
		usleep(3000);
		judge(&w->lane);
		client_disconnect(&w->lane.client);
	}
	return NULL;
}

static void work_at_once(struct worker workers[THREADS], void *(*run)(void *),
			 void (*end)(struct lane *lane))
{
	unsigned rounds = (env_or("STALE_ROUNDS", 80) + THREADS - 1) / THREADS;

	start_target("stale.file");
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i].rounds = rounds;
		workers[i].end = end;
		lane_open(&workers[i].lane, i, LANE_BYTES, 0);
		assert_int_equal(pthread_create(&workers[i].thread, NULL, run, &workers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		lane_close(&workers[i].lane);
	}
	stop_target();
	expect_none_stale(rounds * THREADS);
}

static void deleted_while_busy(void **state)
{
	struct worker workers[THREADS];

	work_at_once(workers, work, lane_give_up);
}

static void deleted_after_a_disconnect(void **state)
{
	struct worker workers[THREADS];

	work_at_once(workers, work, disconnect_and_delete);
}

/* --- the first process dies ----------------------------------------------------------------- */

/* main() of a separate program: argv has the port, the number of the lane, and the lane's last
 * letter. */
static int first_process(char *argv[])
{
	struct lane lane;

	place.port = argv[0];
	place.rings = env_or("SOFTRNIC_SHM", 1);
	lane_open(&lane, (unsigned)atoi(argv[1]), LANE_BYTES, 0);
	lane.letter = (uint8_t)atoi(argv[2]);
	lane_connect(&lane, &place);
	lane_post(&lane);
	printf("posted\n");
	fflush(stdout);
	pause();
	return 0;
}

static void run_first_process(struct lane *lane)
{
	char number[16], letter[16];
	struct proc first;

	snprintf(number, sizeof(number), "%u", lane->number);
	snprintf(letter, sizeof(letter), "%u", lane->letter++);
	assert_int_equal(proc_start(&first,
				    (const char *[]){"/proc/self/exe", "first", place.port, number,
						     letter, NULL},
				    NULL),
			 0);
	assert_non_null(proc_line(&first, 20000));
	proc_kill(&first);
}

static void *work_after_a_kill(void *arg)
{
	struct worker *w = arg;
	unsigned rounds = w->rounds;

	w->rounds = 1;
	for (unsigned i = 0; i < rounds; i++) {
		run_first_process(&w->lane);
		work(w);
	}
	return NULL;
}

static void killed(void **state)
{
	struct worker workers[THREADS];

	work_at_once(workers, work_after_a_kill, NULL);
}

/* --- a file system that does not answer ------------------------------------------------------ */

static void end_while_frozen(struct lane lanes[], unsigned n)
{
	uint64_t begun = clock_now_ns();

	disk_freeze("frozen");
	for (unsigned i = 0; i < n; i++)
		lane_post(&lanes[i]);
	for (unsigned i = 0; i < n; i++)
		expect_lost(&lanes[i]);
	for (unsigned i = 0; i < n; i++)
		lane_give_up(&lanes[i]);
	sleep_until(begun + SILENCE_MS * NSEC_PER_MS);
}

static void *thaw_soon(void *arg)
{
	usleep(THAW_MS * 1000);
	disk_thaw();
	return NULL;
}

/* Until the file system is unfrozen, bytes of the former connection can still be placed. So the
 * target answers only afterwards. */
static void put_until_thaw(struct lane lanes[], unsigned n)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, thaw_soon, NULL), 0);
	for (unsigned i = 0; i < n; i++) {
		lane_connect(&lanes[i], &place);
		lane_post_put(&lanes[i]);
	}
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < n; i++)
		lane_expect_put(&lanes[i]);
}

/* --- connections that end, and the next ones ------------------------------------------------- */

static void end_and_put_again(struct lane lanes[], unsigned n, bool freezes, bool is_lost)
{
	for (unsigned i = 0; i < n; i++)
		lane_connect(&lanes[i], &place);
	if (freezes) {
		end_while_frozen(lanes, n);
		put_until_thaw(lanes, n);
	} else {
		end_in_silence(lanes, n, is_lost);
		put_again(lanes, n);
	}
	usleep(LATER_MS * 1000);
	for (unsigned i = 0; i < n; i++) {
		judge(&lanes[i]);
		client_disconnect(&lanes[i].client);
	}
}

static void wait_and_judge(bool freezes, bool is_lost)
{
	unsigned rounds = env_or("STALE_ROUNDS", freezes ? 4 : 8), done;
	unsigned n = lanes_of(rounds, freezes ? FROZEN_MAX : LANES_MAX);
	struct lane lanes[LANES_MAX];

	start_target(freezes ? "frozen/file" : "stale.file");
	for (unsigned i = 0; i < n; i++)
		lane_open(&lanes[i], i, freezes ? LANE_BYTES : SMALL, is_lost ? LIVENESS : 0);
	for (done = 0; done < rounds; done += n)
		end_and_put_again(lanes, n, freezes, is_lost);
	for (unsigned i = 0; i < n; i++)
		lane_close(&lanes[i]);
	stop_target();
	expect_none_stale(done);
}

static void lost_in_silence(void **state)
{
	wait_and_judge(false, true);
}

static void given_up_in_silence(void **state)
{
	wait_and_judge(false, false);
}

static void frozen(void **state)
{
	wait_and_judge(true, true);
}

/* --- the test program ------------------------------------------------------------------------- */

static int begin(void **state)
{
	stale_rounds = 0;
	return 0;
}

#define WAY(name) cmocka_unit_test_setup(name, begin)

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		WAY(deleted_while_busy), WAY(deleted_after_a_disconnect), WAY(killed),
		WAY(lost_in_silence),    WAY(given_up_in_silence),        WAY(frozen),
	};
	int failed;

	if (argc > 4 && !strcmp(argv[1], "first"))
		return first_process(argv + 2);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	need_root("mounting file systems");
	place.rings = env_or("SOFTRNIC_SHM", 1);
	if (unshare(CLONE_NEWNET)) {
		printf("skipped: a network of our own: %s\n", strerror(errno));
		return SKIPPED;
	}
	set_way(true);
	disk_begin();
	disk_mount_image("ext4", "frozen.image", FILE_BYTES + 64 * MIB, "frozen");
	disk_make_file("frozen/file", FILE_BYTES);
	disk_make_file("stale.file", FILE_BYTES);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	disk_end();
	return failed;
}
