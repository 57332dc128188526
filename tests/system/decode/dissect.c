/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/lib/check.h"

#include "dissect.h"

#define WARNING   0x600000 /* severities as Wireshark numbers them */
#define DISSECTOR ". '" TSHARK_SH "'; dissector "

void need_tshark(void)
{
	if (!system("command -v tshark >/dev/null"))
		return;
	printf("skipped: tshark is not installed\n");
	exit(SKIPPED);
}

static unsigned long dissect_worst_of(const char *severities)
{
	unsigned long worst = 0, one;
	char *end;

	for (; *severities; severities = *end ? end + 1 : end) {
		one = strtoul(severities, &end, 10);
		worst = one > worst ? one : worst;
	}
	return worst;
}

static void dissect_take_packet(struct dissection *d, char *line)
{
	struct dissected *p = &d->packet[d->n++];
	char *field[7] = {0};

	for (size_t i = 0; i < ARRAY_LEN(field); i++)
		field[i] = strsep(&line, "|\n");
	assert_non_null(field[6]);
	p->len = atoi(field[0]);
	p->request = field[1][0] != '\0';
	p->reply = field[2][0] != '\0';
	snprintf(p->opcodes, sizeof(p->opcodes), "%s", field[3]);
	p->malformed = field[4][0] != '\0';
	p->worst = dissect_worst_of(field[5]);
	p->continued = field[6][0] != '\0';
}

void dissect(struct dissection *d, const char *file)
{
	char command[1024], line[1024];
	FILE *p;

	d->n = 0;
	snprintf(command, sizeof(command),
		 DISSECTOR
		 "-r %s -E separator='|' -T fields -e tcp.len -e iwarp_mpa.req "
		 "-e iwarp_mpa.rep -e iwarp_rdma.opcode -e _ws.malformed -e _ws.expert.severity "
		 "-e tcp.reassembled_in",
		 file);
	p = popen(command, "re");
	assert_non_null(p);
	while (fgets(line, sizeof(line), p)) {
		assert_true(d->n < DISSECTED_MAX);
		dissect_take_packet(d, line);
	}
	assert_int_equal(pclose(p), 0);
}

int dissection_count(const struct dissection *d, unsigned opcode)
{
	char text[8];
	int n = 0;

	snprintf(text, sizeof(text), "0x%02x", opcode);
	for (int i = 0; i < d->n; i++)
		for (const char *s = d->packet[i].opcodes; (s = strstr(s, text)); s += 4)
			n++;
	return n;
}

void dissection_expect_no_trouble(const struct dissection *d)
{
	for (int i = 0; i < d->n; i++) {
		const struct dissected *p = &d->packet[i];

		assert_false(p->malformed);
		if (p->worst >= WARNING)
			fail_msg("packet %d: expert information %#lx", i + 1, p->worst);
		/* A protocol above TCP must have dissected every byte. */
		if (p->len && !p->request && !p->reply && !p->opcodes[0] && !p->continued)
			fail_msg("packet %d is not understood", i + 1);
	}
}

int dissection_crcs(const char *file, int *bad)
{
	char command[1024], line[1024];
	int good = 0;
	FILE *p;

	*bad = 0;
	snprintf(command, sizeof(command), DISSECTOR "-r %s -V", file);
	p = popen(command, "re");
	assert_non_null(p);
	while (fgets(line, sizeof(line), p)) {
		if (!strstr(line, "CRC check:"))
			continue;
		good += strstr(line, "(Good CRC32)") != NULL;
		*bad += strstr(line, "(Good CRC32)") == NULL;
	}
	assert_int_equal(pclose(p), 0);
	return good;
}
