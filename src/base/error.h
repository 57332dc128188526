/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * error.h -- how a function that several programs use reports a failure. The function prints
 * nothing and does not end the process. Its caller gets the kind of the failure, the cause, and
 * one line of text with what failed, the value, and what helps.
 *
 * A function with a `struct error *` returns 0, or the kind, which is also in err->kind. The
 * function writes *err only on failure; err may be NULL. The caller owns *err, and each thread
 * uses a separate one.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

enum error_kind {
	ERROR_NONE,
	ERROR_ARGUMENT,  /* an argument of the caller is wrong */
	ERROR_LOCAL,     /* a file, a disk, an address or a device of this machine cannot be used */
	ERROR_UNREACHED, /* the other end cannot be reached */
	ERROR_REFUSED,   /* the other end refuses the request */
	ERROR_FAILED,    /* a connection failed, or an operation on a connection */
};

#define ERROR_TEXT 512

struct error {
	enum error_kind kind;
	/* An errno (positive), a result of librpma (negative), or 0. With ERROR_REFUSED: the other
	 * end's reason, a number that the protocol defines. */
	int cause;
	char text[ERROR_TEXT];
};

/* Fill *err and return kind. The arguments may include err->text. */
int error_set(struct error *err, enum error_kind kind, int cause, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
