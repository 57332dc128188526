/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status.h -- rpmemd's answer codes, and librpmem's results for them: the numbers and errno values
 * are those of PMDK's librpmem.
 */
#ifndef RPMEM_WIRE_STATUS_H
#define RPMEM_WIRE_STATUS_H

enum wire_status {
	WIRE_OK,
	WIRE_BADPROTO,    /* EPROTONOSUPPORT */
	WIRE_BADNAME,     /* EINVAL: the set's name is not acceptable */
	WIRE_BADSIZE,     /* EFBIG: the pool is smaller than requested */
	WIRE_BADNLANES,   /* EINVAL */
	WIRE_BADPROVIDER, /* EINVAL */
	WIRE_FATAL,       /* EREMOTEIO: any other failure */
	WIRE_FATAL_CONN,  /* ECONNABORTED: the data port failed */
	WIRE_BUSY,        /* EBUSY */
	WIRE_EXISTS,      /* EEXIST */
	WIRE_PROVNOSUP,   /* EMEDIUMTYPE */
	WIRE_NOEXIST,     /* ENOENT */
	WIRE_NOACCESS,    /* EACCES */
	WIRE_POOL_CFG,    /* EINVAL: the pool set is wrong */
	WIRE_STATUS_END,
};

/* Returns 0 for WIRE_OK, and EPROTO for a number that is not a status. */
int wire_status_errno(unsigned status);
/* Returns a text such as "Pool already in use". */
const char *wire_status_text(unsigned status);
/* Returns the code for the errno (positive) of an operation on a pool. 0 gives WIRE_OK. */
enum wire_status wire_status_of_errno(int error);

#endif
