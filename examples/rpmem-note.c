/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rpmem-note -- a note in a pool of libpmemobj. The pool set names the pool's copies. If the set
 * has a REPLICA on another machine, libpmemobj loads librpmem by itself; this program needs no code
 * for it. With the text "-" each input line becomes the note in turn. A line of output acknowledges
 * each note, once it is in every copy.
 */
#include <err.h>
#include <libpmemobj.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct note {
	unsigned long edition;
	char text[4096];
};

/* A power failure leaves the old text or the new text, never a mixture. */
static void note_write(PMEMobjpool *pop, struct note *note, const char *text)
{
	TX_BEGIN(pop)
	{
		pmemobj_tx_add_range_direct(note, sizeof(*note));
		note->edition++;
		memset(note->text, 0, sizeof(note->text));
		strncpy(note->text, text, sizeof(note->text) - 1);
	}
	TX_ONABORT
	{
		errx(EXIT_FAILURE, "the note is as it was: %s", pmemobj_errormsg());
	}
	TX_END
}

static void note_show(const struct note *note)
{
	printf("edition %lu: %s\n", note->edition, note->text);
	fflush(stdout);
}

static void note_write_lines(PMEMobjpool *pop, struct note *note)
{
	char line[sizeof(note->text)];

	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		note_write(pop, note, line);
		note_show(note);
	}
}

int main(int argc, char **argv)
{
	PMEMobjpool *pop;
	struct note *note;

	if (argc != 2 && argc != 3)
		errx(EXIT_FAILURE, "usage: POOL_SET [TEXT | -]");
	pop = pmemobj_open(argv[1], "note");
	if (!pop)
		errx(EXIT_FAILURE, "%s: %s", argv[1], pmemobj_errormsg());
	note = pmemobj_direct(pmemobj_root(pop, sizeof(struct note)));
	if (!note)
		errx(EXIT_FAILURE, "%s: %s", argv[1], pmemobj_errormsg());
	if (argc == 3 && strcmp(argv[2], "-") == 0) {
		note_write_lines(pop, note);
	} else {
		if (argc == 3)
			note_write(pop, note, argv[2]);
		note_show(note);
	}
	pmemobj_close(pop);
	return EXIT_SUCCESS;
}
