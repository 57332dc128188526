/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client of `rpma serve` that tries to invalidate the regions for all clients: revoker PORT. It
 * gets the region's STags for readers, for writers and for ping. Then, for each STag, it requests
 * the list of regions with a message that invalidates this STag. It prints each answer. The server
 * has no secret.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "regions/hello.h"
#include "system/lib/rawpeer.h"

/* offset of the STag in a region's descriptor, after the address and the length */
#define STAG_AT 16

static struct raw peer;

static void must(const char *what, int ret)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "revoker: %s: %s\n", what, strerror(-ret));
	exit(2);
}

static void request_region(const char *port, enum hello_access access, struct hello_reply *reply)
{
	struct hello_request req = {.version = HELLO_VERSION, .access = (uint8_t)access};
	struct rpma_conn_private_data answer = {.ptr = peer.pdata};
	uint8_t buf[HELLO_MAX];

	must("connect", raw_connect_with(&peer, port, buf, hello_request_encode(&req, buf)));
	answer.len = (uint8_t)peer.reply.pd_len;
	if (!hello_reply_decode(&answer, reply) || reply->status != HELLO_OK) {
		fprintf(stderr, "revoker: refused\n");
		exit(2);
	}
}

static uint32_t learn_stag(const char *port, enum hello_access access)
{
	struct hello_reply reply;
	const uint8_t *at = reply.mr + STAG_AT;

	request_region(port, access, &reply);
	raw_close(&peer);
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void revoke(const char *port, uint32_t stag)
{
	struct hello_reply reply;
	int error;

	request_region(port, HELLO_LIST, &reply);
	must("invalidate", raw_invalidate(&peer, stag));
	error = raw_expect_terminate(&peer, NULL);
	printf("%s\n", error < 0 ? "no objection" : term_str((unsigned)error));
	raw_close(&peer);
}

int main(int argc, char **argv)
{
	uint32_t stag[HELLO_SCRATCH + 1];

	if (argc != 2)
		return 2;
	for (int access = HELLO_READ; access <= HELLO_SCRATCH; access++)
		stag[access] = learn_stag(argv[1], (enum hello_access)access);
	for (int access = HELLO_READ; access <= HELLO_SCRATCH; access++)
		revoke(argv[1], stag[access]);
	return 0;
}
