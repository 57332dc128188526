/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmem/wire/status.h"

#include <errno.h>

static const struct {
	int error;
	const char *text;
} status_rows[WIRE_STATUS_END] = {
	[WIRE_OK] = {0, "Success"},
	[WIRE_BADPROTO] = {EPROTONOSUPPORT, "Protocol version number mismatch"},
	[WIRE_BADNAME] = {EINVAL, "Invalid pool descriptor"},
	[WIRE_BADSIZE] = {EFBIG, "Invalid pool size"},
	[WIRE_BADNLANES] = {EINVAL, "Invalid number of lanes"},
	[WIRE_BADPROVIDER] = {EINVAL, "Invalid provider"},
	[WIRE_FATAL] = {EREMOTEIO, "Fatal error"},
	[WIRE_FATAL_CONN] = {ECONNABORTED, "Fatal in-band connection error"},
	[WIRE_BUSY] = {EBUSY, "Pool already in use"},
	[WIRE_EXISTS] = {EEXIST, "Pool already exists"},
	[WIRE_PROVNOSUP] = {EMEDIUMTYPE, "Provider not supported"},
	[WIRE_NOEXIST] = {ENOENT, "Pool set or its part doesn't exist or it is unavailable"},
	[WIRE_NOACCESS] = {EACCES, "Pool set permission denied"},
	[WIRE_POOL_CFG] = {EINVAL, "Invalid pool set configuration"},
};

int wire_status_errno(unsigned status)
{
	return status < WIRE_STATUS_END ? status_rows[status].error : EPROTO;
}

const char *wire_status_text(unsigned status)
{
	return status < WIRE_STATUS_END ? status_rows[status].text : "unknown status";
}

enum wire_status wire_status_of_errno(int error)
{
	switch (error) {
	case 0:
		return WIRE_OK;
	case EEXIST:
		return WIRE_EXISTS;
	case EACCES:
		return WIRE_NOACCESS;
	case ENOENT:
		return WIRE_NOEXIST;
	case EWOULDBLOCK:
		return WIRE_BUSY;
	case EBADF:
		return WIRE_BADNAME;
	case EINVAL:
		return WIRE_POOL_CFG;
	default:
		return WIRE_FATAL;
	}
}
