/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bad_pages.h -- pages of a tmpfs file that raise SIGBUS in one mapping until they are written to,
 * as on a bad medium. Private copies of other pages keep their content. The implementation uses
 * userfaultfd(2).
 */
#ifndef TESTS_BAD_PAGES_H
#define TESTS_BAD_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From now on, accesses to holes of the file in this range raise SIGBUS. Returns a descriptor, or
 * -1 if this system does not support this feature. */
int bad_pages_watch(void *base, size_t len);
/* Remove a part of the file's content, so that this part becomes a hole. Returns false if this
 * system does not support holes. */
bool bad_pages_lose(int fd, uint64_t offset, uint64_t len);
/* Make the memory of a page bad, even if the page is a private copy. Returns false if this system
 * does not support this operation. */
bool bad_pages_poison(int watch, void *page);

#endif
