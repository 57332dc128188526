/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dissect.h -- run Wireshark's dissector with its default preferences on a capture.
 *
 * The dissector is allowed to report "chats" and "notes" of TCP about the begin and the end of a
 * connection, but no warnings or errors.
 */
#ifndef DECODE_DISSECT_H
#define DECODE_DISSECT_H

#include <stdbool.h>

#define DISSECTED_MAX 4000

struct dissected {
	int len; /* bytes of TCP payload */
	bool request, reply, malformed, continued;
	char opcodes[64];
	unsigned long worst;
};

struct dissection {
	struct dissected packet[DISSECTED_MAX];
	int n;
};

void need_tshark(void); /* skips the test if the machine has no tshark */
void dissect(struct dissection *d, const char *file);
/* Returns the number of RDMAP messages with this opcode. */
int dissection_count(const struct dissection *d, unsigned opcode);
/* Assert that no packet is malformed, causes a warning, or is unknown to the dissector. */
void dissection_expect_no_trouble(const struct dissection *d);
/*
 * Returns the number of FPDUs with a correct CRC; *bad gets the number of FPDUs with a wrong CRC.
 */
int dissection_crcs(const char *file, int *bad);

#endif
