/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settext.h -- the text of a pool set file (rpmem-poolset(5)), parsed; pure.
 *
 *   file    = "PMEMPOOLSET" eol { line eol }
 *   line    = "" | "#" text | option | replica | part
 *   option  = "OPTION" { blank name }          name = "SINGLEHDR" | "NOHDRS", one or more
 *   replica = "REPLICA"                        parts of a local replica follow
 *           | "REPLICA" blank host blank set   a remote replica, without parts
 *   part    = size blank path
 *   size    = digits [ suffix ] | "AUTO"
 *
 * A "#" in a line cuts the rest off. The words OPTION and REPLICA begin in the first column.
 */
#ifndef POOLSET_SETTEXT_H
#define POOLSET_SETTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The first line of a pool set file. */
#define SETTEXT_SIGNATURE     "PMEMPOOLSET"
#define SETTEXT_SIGNATURE_LEN 11

#define SETTEXT_BYTES_MAX (1u << 20) /* a longer text is refused */
#define SETTEXT_PARTS_MAX 4096

enum settext_option {
	SETTEXT_SINGLEHDR = 1 << 0, /* only the first part has a header */
	SETTEXT_NOHDRS = 1 << 1,    /* no part has a header */
};

struct settext_part {
	char *path;       /* absolute; leads to a file, a directory or a device */
	uint64_t size;    /* 0: AUTO, the size of the device */
	unsigned replica; /* index of the part's replica; 0: the first section */
	unsigned line;
};

struct settext {
	unsigned options; /* bits of enum settext_option */
	struct settext_part *parts;
	unsigned nparts;
	unsigned nreplicas;    /* number of replicas, including the first section; at least 1 */
	unsigned nremotes;     /* number of remote replicas among the nreplicas */
	unsigned replica_line; /* line of the first REPLICA; 0: there is none */
};

/* name: the file's name, which the error's text contains together with the line's number. The
 * cause of a malformed text is EINVAL. The caller ends *set with settext_fini(), also after a
 * failure. */
int settext_parse(struct settext *set, const char *name, const char *bytes, size_t len,
		  struct error *err);
void settext_fini(struct settext *set);

/* Parse a size of a pool set file, such as "2MiB". Returns false if it is malformed, zero, or
 * beyond 64 bits. */
bool settext_size(const char *word, size_t len, uint64_t *size);

#endif
