/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * system_switch PID... -- an Ethernet switch between hosts, each of which is a network namespace.
 * On request the switch loses, delays and blocks frames. The only kernel module that it needs is
 * tun.
 *
 * Each PID is a process whose namespace gets an interface "eth0", with MAC address
 * 02:00:00:00:00:0N for the Nth PID, counted from 1. The program prints "ready". Then it carries
 * out each line of its standard input, answers it with "ok", and exits when the input ends. FROM
 * and TO are numbers of hosts, or "*".
 *
 *   cut FROM TO          pass no frame in this direction
 *   port FROM TO PORT    pass no TCP segment from or to this port
 *   kind FROM TO KIND    pass no segment of a mirror's connections of this kind (control, ...)
 *   loss FROM TO PERMIL  lose PERMIL of 1000 frames
 *   delay FROM TO MS     deliver each frame MS milliseconds later
 *   heal FROM TO         end all these effects
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "sim/prng.h"
#include "switch_flows.h"

#define HOSTS_MAX 8
#define PORTS_MAX 8
#define FRAME_MAX 65536
#define HELD_MAX  20000 /* limit of delayed frames: above it, further frames are lost */

struct way {
	bool is_cut;
	unsigned permil, delay_ms, port_count;
	unsigned kinds; /* one bit for each kind */
	uint16_t ports[PORTS_MAX];
};

struct held {
	struct held *next;
	uint64_t due_ns;
	unsigned to;
	size_t len;
	uint8_t frame[];
};

static unsigned hosts;
static int taps[HOSTS_MAX];
static struct way ways[HOSTS_MAX][HOSTS_MAX];
static struct held *held; /* list ordered by the time of delivery */
static unsigned held_count;
static struct prng chance = {1};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * Make an interface in the namespace of this process, and return its descriptor. The switch itself
 * stays in its own namespace.
 */
static int open_tap(unsigned host, const char *pid, int home)
{
	struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
	char path[64];
	int namespace, tap, control;

	snprintf(path, sizeof(path), "/proc/%s/ns/net", pid);
	namespace = open(path, O_RDONLY | O_CLOEXEC);
	if (namespace < 0 || setns(namespace, CLONE_NEWNET))
		err(1, "%s", path);
	tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	strcpy(request.ifr_name, "eth0");
	if (tap < 0 || ioctl(tap, TUNSETIFF, &request))
		err(1, "eth0 of process %s", pid);
	control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	request.ifr_hwaddr.sa_family = 1; /* the type Ethernet */
	memcpy(request.ifr_hwaddr.sa_data, (uint8_t[]){2, 0, 0, 0, 0, (uint8_t)(host + 1)}, 6);
	if (control < 0 || ioctl(control, SIOCSIFHWADDR, &request))
		err(1, "address of eth0 of process %s", pid);
	close(control);
	close(namespace);
	if (setns(home, CLONE_NEWNET))
		err(1, "setns");
	return tap;
}

static void deliver(unsigned to, const uint8_t *frame, size_t len)
{
	/* An interface that is down or full loses the frame, as a real interface does. */
	if (write(taps[to], frame, len) < 0 && errno != EIO && errno != EAGAIN && errno != ENOBUFS)
		err(1, "write to host %u", to + 1);
}

static void hold(unsigned to, const uint8_t *frame, size_t len, uint64_t due_ns)
{
	struct held **at = &held, *h;

	if (held_count == HELD_MAX)
		return;
	h = malloc(sizeof(*h) + len);
	if (!h)
		err(1, "hold a frame");
	*h = (struct held){.due_ns = due_ns, .to = to, .len = len};
	memcpy(h->frame, frame, len);
	while (*at && (*at)->due_ns <= due_ns)
		at = &(*at)->next;
	h->next = *at;
	*at = h;
	held_count++;
}

static bool has_port(const struct way *way, const struct segment *s)
{
	for (unsigned i = 0; i < way->port_count; i++)
		if (s->ports[0] == way->ports[i] || s->ports[1] == way->ports[i])
			return true;
	return false;
}

/* Returns true if the frame belongs to a blocked connection. Call this for each frame, because only
 * the first segment of a connection contains the connection's kind. */
static bool is_cut_off(const struct way *way, const uint8_t *frame, size_t len)
{
	struct segment s;

	if (!segment_find(frame, len, &s))
		return false;
	return way->kinds >> flows_kind(&s) & 1 || has_port(way, &s);
}

static void pass(unsigned from, unsigned to, const uint8_t *frame, size_t len)
{
	const struct way *way = &ways[from][to];

	if (is_cut_off(way, frame, len) || way->is_cut ||
	    (way->permil && prng_below(&chance, 1000) < way->permil))
		return;
	if (way->delay_ms)
		hold(to, frame, len, now_ns() + way->delay_ms * 1000000ull);
	else
		deliver(to, frame, len);
}

static void receive(unsigned from)
{
	static uint8_t frame[FRAME_MAX];
	ssize_t len;

	for (unsigned burst = 0; burst < 64; burst++) {
		len = read(taps[from], frame, sizeof(frame));
		if (len < 14)
			return;
		for (unsigned to = 0; to < hosts; to++)
			if (to != from && (frame[0] & 1 || frame[5] == to + 1))
				pass(from, to, frame, (size_t)len);
	}
}

/* Deliver the frames that are due. Returns the time until the next one is due. */
static int release(void)
{
	uint64_t now = now_ns();

	while (held && held->due_ns <= now) {
		struct held *h = held;

		held = h->next;
		held_count--;
		deliver(h->to, h->frame, h->len);
		free(h);
	}
	return held ? (int)((held->due_ns - now) / 1000000) + 1 : -1;
}

static bool obey_one(struct way *way, const char *word, const char *value)
{
	unsigned number = (unsigned)atoi(value);

	if (!strcmp(word, "cut"))
		way->is_cut = true;
	else if (!strcmp(word, "loss"))
		way->permil = number;
	else if (!strcmp(word, "delay"))
		way->delay_ms = number;
	else if (!strcmp(word, "port") && way->port_count < PORTS_MAX)
		way->ports[way->port_count++] = (uint16_t)number;
	else if (!strcmp(word, "kind") && flows_kind_named(value))
		way->kinds |= 1u << flows_kind_named(value);
	else if (!strcmp(word, "heal"))
		*way = (struct way){0};
	else
		return false;
	return true;
}

static bool is_meant(const char *text, unsigned host)
{
	return !strcmp(text, "*") || (unsigned)atoi(text) == host + 1;
}

static void obey(const char *line)
{
	char word[16], from[8], to[8], value[16] = "";
	unsigned count = 0;

	if (sscanf(line, "%15s %7s %7s %15s", word, from, to, value) < 3)
		errx(2, "cannot obey: %s", line);
	for (unsigned i = 0; i < hosts; i++)
		for (unsigned k = 0; k < hosts; k++)
			if (i != k && is_meant(from, i) && is_meant(to, k))
				count += obey_one(&ways[i][k], word, value);
	if (!count)
		errx(2, "cannot obey: %s", line);
	puts("ok");
	fflush(stdout);
}

/* Returns false when standard input has ended. */
static bool read_orders(void)
{
	static char text[4096];
	static size_t len;
	ssize_t n = read(STDIN_FILENO, text + len, sizeof(text) - len - 1);
	char *end;

	if (n <= 0)
		return false;
	len += (size_t)n;
	text[len] = 0;
	while ((end = strchr(text, '\n'))) {
		*end++ = 0;
		obey(text);
		len -= (size_t)(end - text);
		memmove(text, end, len + 1);
	}
	return true;
}

int main(int argc, char **argv)
{
	struct pollfd fds[HOSTS_MAX + 1] = {{.fd = STDIN_FILENO, .events = POLLIN}};
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	hosts = (unsigned)argc - 1;
	if (!hosts || hosts > HOSTS_MAX)
		errx(2, "usage: system_switch PID...");
	for (unsigned i = 0; i < hosts; i++) {
		taps[i] = open_tap(i, argv[i + 1], home);
		fds[i + 1] = (struct pollfd){.fd = taps[i], .events = POLLIN};
	}
	puts("ready");
	fflush(stdout);
	for (;;) {
		if (poll(fds, hosts + 1, release()) < 0 && errno != EINTR)
			err(1, "poll");
		for (unsigned i = 0; i < hosts; i++)
			if (fds[i + 1].revents)
				receive(i);
		if (fds[0].revents && !read_orders())
			return 0;
	}
}
