/* SPDX-License-Identifier: BSD-3-Clause */
/* replay.c -- run a fuzz target, without libFuzzer, on every file of a folder. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz/fuzz.h"

static int replay(const char *dir, const char *name)
{
	char path[4096];
	uint8_t *data;
	long len;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "rb");
	if (!f || fseek(f, 0, SEEK_END) || (len = ftell(f)) < 0) {
		perror(path);
		exit(1);
	}
	rewind(f);
	/* The block has exactly the input's size, so that a sanitizer reports a read past the
	 * end. */
	data = malloc(len ? (size_t)len : 1);
	if (!data || fread(data, 1, (size_t)len, f) != (size_t)len) {
		perror(path);
		exit(1);
	}
	fclose(f);
	fprintf(stderr, "%s\n", path);
	LLVMFuzzerTestOneInput(data, (size_t)len);
	free(data);
	return 1;
}

int main(int argc, char **argv)
{
	DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
	struct dirent *entry;
	int count = 0;

	if (!dir) {
		fprintf(stderr, "usage: %s FOLDER-WITH-INPUTS\n", argv[0]);
		return 1;
	}
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			count += replay(argv[1], entry->d_name);
	closedir(dir);
	return count ? 0 : 1;
}
