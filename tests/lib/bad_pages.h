/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bad_pages.h -- pages of a file on tmpfs that raise SIGBUS in one mapping until they are written
 * to, as those of a bad medium do; private copies of others stay. By userfaultfd(2).
 */
#ifndef TESTS_BAD_PAGES_H
#define TESTS_BAD_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From now on holes of the file raise SIGBUS there. A descriptor, or -1: this system cannot. */
int bad_pages_watch(void *base, size_t len);
/* The content is gone. False: this system cannot. */
bool bad_pages_lose(int fd, uint64_t offset, uint64_t len);
/* The memory of a page is bad, also if it is a private copy. False: this system cannot. */
bool bad_pages_poison(int watch, void *page);

#endif
