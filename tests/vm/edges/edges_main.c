/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * edges_main.c -- arguments FROM ADDRESS PORT [FIRST]: send the FPDUs of lib/header_edges.c to the
 * program that listens at ADDRESS. Send each FPDU twice: as the first FPDU of a connection, and
 * after an empty Write. Print the name of each FPDU before sending it, in case the other end
 * crashes, and then print the answer. FIRST is the number of the FPDU to begin with.
 */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/header_edges.h"
#include "system/lib/rawpeer.h"

#define CONNECT_TRIES 100
#define ANSWER_MS     5000
#define LIMIT_S       200

static struct raw peer;

/* After a connection has ended, the other end possibly accepts no new connection for a short time,
 * so try again. */
static void connect_to(const char *from, const char *addr, const char *port)
{
	int ret = -1;

	for (int i = 0; i < CONNECT_TRIES && ret; i++) {
		ret = raw_dial_to(&peer, from, addr, port);
		if (!ret)
			ret = raw_send_request(&peer, RAW_PLAIN);
		if (!ret)
			ret = raw_take_reply(&peer);
		if (ret) {
			raw_close(&peer);
			usleep(100000);
		}
	}
	if (ret)
		errx(1, "%s does not accept: %s", addr, strerror(-ret));
}

/* After a wrong FPDU send many zeros, because a wrong target could compute a negative length and
 * continue to read. */
static int send_edge(const struct header_edge *edge, bool behind_another)
{
	static const uint8_t zeros[8192];
	uint8_t fpdu[EDGE_FPDU_MAX];
	size_t len = header_edge_fpdu(edge, fpdu);
	int ret = behind_another ? raw_write(&peer, 0, 0, NULL, 0) : 0;

	if (!ret)
		ret = raw_send(&peer, fpdu, len);
	return ret || !edge->error ? ret : raw_send(&peer, zeros, sizeof(zeros));
}

static void print_answer(const struct header_edge *edge)
{
	const uint8_t *ulpdu;
	struct ddp_hdr hdr;
	struct terminate t;
	int len = raw_take_fpdu(&peer, &ulpdu, edge->error ? ANSWER_MS : 1000), at;

	if (len == -ETIMEDOUT) {
		printf("  no answer\n");
		return;
	}
	at = len < 0 ? -1 : ddp_decode(ulpdu, (size_t)len, &hdr);
	if (at < 0)
		printf("  hung up\n");
	else if (rdmap_ctrl_opcode(hdr.ulp) != RDMAP_TERMINATE)
		printf("  %s\n", rdmap_ops[rdmap_ctrl_opcode(hdr.ulp)].name);
	else if (terminate_decode(ulpdu + at, (size_t)(len - at), &t))
		printf("  a Terminate without sense\n");
	else
		printf("  Terminate: %s\n", term_str(terminate_error(&t)));
}

int main(int argc, char **argv)
{
	unsigned long first = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;

	if (argc < 4)
		errx(2, "FROM ADDRESS PORT [FIRST]");
	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(LIMIT_S);
	for (unsigned long i = first; i < 2 * header_edges_count; i++) {
		const struct header_edge *edge = &header_edges[i / 2];

		connect_to(argv[1], argv[2], argv[3]);
		printf("edge %lu: %s%s\n", i, edge->name, i % 2 ? ", behind an empty Write" : "");
		fsync(STDOUT_FILENO);
		if (send_edge(edge, i % 2))
			printf("  hung up before it was sent\n");
		else
			print_answer(edge);
		raw_close(&peer);
	}
	/* Check that the peer still accepts a connection. */
	connect_to(argv[1], argv[2], argv[3]);
	raw_close(&peer);
	printf("all %zu were sent\n", 2 * header_edges_count);
	return 0;
}
