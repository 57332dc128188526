/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dissect.h -- what Wireshark's dissector reports about a capture, with its default preferences.
 *
 * Expert information that is normal: chats and notes of TCP about the begin and the end of a
 * connection. Warnings and errors are not.
 */
#ifndef DECODE_DISSECT_H
#define DECODE_DISSECT_H

#include <stdbool.h>

#define DISSECTED_MAX 4000

struct dissected {
	int len; /* of TCP's payload */
	bool request, reply, malformed, continued;
	char opcodes[64];
	unsigned long worst;
};

struct dissection {
	struct dissected packet[DISSECTED_MAX];
	int n;
};

void need_tshark(void); /* or the test is skipped */
void dissect(struct dissection *d, const char *file);
/* RDMAP messages of that opcode. */
int dissection_count(const struct dissection *d, unsigned opcode);
/* Nothing is malformed, worth a warning, or not understood. */
void dissection_expect_no_trouble(const struct dissection *d);
/* FPDUs whose CRC is right, and the others. */
int dissection_crcs(const char *file, int *bad);

#endif
