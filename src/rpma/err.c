/* SPDX-License-Identifier: BSD-3-Clause */
/* err.c -- texts for results, and the text of each thread's last failure. */
#include "rpma/err.h"

static _Thread_local char err_text[ERR_TEXT_MAX];

void err_set_text(const char *text)
{
	snprintf(err_text, sizeof(err_text), "%s", text);
}

unsigned int rpma_version(void)
{
	return RPMA_VERSION;
}

const char *rpma_err_last(void)
{
	return err_text;
}

int err_set(int ret, const char *text)
{
	err_set_text(text);
	return ret;
}

int err_invalid(const char *func, const char *what)
{
	snprintf(err_text, sizeof(err_text), "%s: %s; see %s(3)", func, what, func);
	return RPMA_E_INVAL;
}

int err_time_limit(int ret, int timeout_ms, const char *advice)
{
	if (timeout_ms)
		snprintf(err_text, sizeof(err_text), "within %d ms %s", timeout_ms, advice);
	return ret;
}

int err_nomem(const char *func)
{
	snprintf(err_text, sizeof(err_text), "%s: out of memory", func);
	return RPMA_E_NOMEM;
}

const char *err_advice(int err)
{
	switch (err) {
	case EADDRINUSE:
		return "another program listens there: end it, or choose another port";
	case EADDRNOTAVAIL:
		return "this machine has no such address: see ip addr";
	case ECONNREFUSED:
		return "no program listens there: see whether the server runs, and its port";
	case EHOSTUNREACH:
	case ENETUNREACH:
		return "there is no way to it: see ip route";
	case ETIMEDOUT:
		return "no answer: check the address and firewalls, see whether the other machine is up, "
		       "or allow more time";
	case ETIME:
		return "see whether an RDMA server listens at that port, and is not busy or stopped; or "
		       "allow more time";
	case EPROTONOSUPPORT:
		return "see whether the port is that of an RDMA server";
	case EMFILE:
	case ENFILE:
		return "too many descriptors are open: see ulimit -n";
	case ENOMEM:
		return "make fewer or smaller queues and regions; with RDMA devices see ulimit -l";
	case EACCES:
	case EPERM:
		return "see the rights of the file or of the port";
	default:
		return NULL;
	}
}

const char *rpma_err_2str(int ret)
{
	switch (ret) {
	case 0:
		return "Success";
	case RPMA_E_NOSUPP:
		return "Not supported";
	case RPMA_E_PROVIDER:
		return "Provider error occurred";
	case RPMA_E_NOMEM:
		return "Out of memory";
	case RPMA_E_INVAL:
		return "Invalid argument";
	case RPMA_E_NO_COMPLETION:
		return "No next completion available";
	case RPMA_E_NO_EVENT:
		return "No next event available";
	case RPMA_E_AGAIN:
		return "Temporary error, try again";
	case RPMA_E_SHARED_CHANNEL:
		return "Completion channel is shared";
	case RPMA_E_NOT_SHARED_CHNL:
		return "Completion channel is not shared";
	case RPMA_E_UNKNOWN:
	default:
		return "Unknown error";
	}
}
