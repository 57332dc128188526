/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dissect.h -- what Wireshark's dissector reports about a capture, with its default preferences.
 *
 * Normal expert information: chats and notes of TCP on the begin and the end of a connection.
 * Warnings and errors are not normal.
 */
#ifndef DECODE_DISSECT_H
#define DECODE_DISSECT_H

#include <stdbool.h>

#define DISSECTED_MAX 4000

struct dissected {
	int len; /* bytes of TCP's payload */
	bool request, reply, malformed, continued;
	char opcodes[64];
	unsigned long worst;
};

struct dissection {
	struct dissected packet[DISSECTED_MAX];
	int n;
};

void need_tshark(void); /* skips the test without tshark */
void dissect(struct dissection *d, const char *file);
/* The number of RDMAP messages with that opcode. */
int dissection_count(const struct dissection *d, unsigned opcode);
/* Assert that nothing is malformed, has a warning, or is unknown to the dissector. */
void dissection_expect_no_trouble(const struct dissection *d);
/* Returns the number of FPDUs with a right CRC; *bad: the number of others. */
int dissection_crcs(const char *file, int *bad);

#endif
