/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writer_main.c -- a program that makes traffic: its arguments are PORT FIRST:CONNECTIONS:ALL
 * (remote.h explains them). It answers "stat" until its input ends.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "proc.h"
#include "traffic.h"

#define CONNS_MAX 64
#define IDLE_MS   5

static struct traffic traffic[CONNS_MAX];

static void print_stat(unsigned n)
{
	unsigned long writes = 0, flushes = 0, failures = 0, connects = 0;

	for (unsigned i = 0; i < n; i++) {
		writes += traffic[i].writes;
		flushes += traffic[i].flushes;
		failures += traffic[i].failures;
		connects += traffic[i].connects;
	}
	printf("%lu %lu %lu %lu\n", writes, flushes, failures, connects);
	fflush(stdout);
}

/* Returns false when the input has ended. */
static bool serve_input(const struct pollfd *input, unsigned n)
{
	char text[256];
	ssize_t len;

	if (!input->revents)
		return true;
	len = read(STDIN_FILENO, text, sizeof(text));
	for (ssize_t i = 0; i < len; i++)
		if (text[i] == '\n')
			print_stat(n);
	return len > 0;
}

int main(int argc, char *argv[])
{
	struct pollfd fds[CONNS_MAX + 1] = {{.fd = STDIN_FILENO, .events = POLLIN}};
	unsigned first, n, all;

	proc_die_with_parent();
	if (argc != 3 || sscanf(argv[2], "%u:%u:%u", &first, &n, &all) != 3 || n > CONNS_MAX)
		return 2;
	for (unsigned i = 0; i < n; i++)
		if (traffic_open(&traffic[i], argv[1], first + i, all))
			return 1;
	do {
		for (unsigned i = 0; i < n; i++) {
			traffic_step(&traffic[i]);
			fds[i + 1] =
				(struct pollfd){.fd = traffic_fd(&traffic[i]), .events = POLLIN};
		}
		poll(fds, (nfds_t)n + 1, IDLE_MS);
	} while (serve_input(&fds[0], n));
	for (unsigned i = 0; i < n; i++)
		traffic_close(&traffic[i]);
	return 0;
}
