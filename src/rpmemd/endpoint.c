/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define ENDPOINT_MAPPED "::ffff:"

/* Parse "there port here port", separated by single blanks. */
bool endpoint_from_ssh(const char *connection, struct endpoint *e)
{
	struct in6_addr in6;
	struct in_addr in;
	char there[64], here[64], plain[64];
	int end = 0;

	*e = (struct endpoint){.here = "127.0.0.1"};
	if (!connection || sscanf(connection, "%63s %*u %63s %*u%n", there, here, &end) != 2 ||
	    !end)
		return false;
	snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(here, "%"), here);
	if (inet_pton(AF_INET, plain, &in) != 1 && inet_pton(AF_INET6, plain, &in6) != 1)
		return false;
	snprintf(e->here, sizeof(e->here), "%s", here);
	snprintf(e->there, sizeof(e->there), "%s", there);
	return true;
}

static int endpoint_name(const struct sockaddr_storage *sa, socklen_t len,
			 char out[WIRE_ADDR_MAX + 1])
{
	char host[WIRE_ADDR_MAX + 1];
	int rc = getnameinfo((const struct sockaddr *)sa, len, host, sizeof(host), NULL, 0,
			     NI_NUMERICHOST);
	bool mapped = !rc && !strncmp(host, ENDPOINT_MAPPED, strlen(ENDPOINT_MAPPED)) &&
		      strchr(host, '.');

	if (rc)
		return -EAFNOSUPPORT;
	strcpy(out, host + (mapped ? strlen(ENDPOINT_MAPPED) : 0));
	return 0;
}

int endpoint_from_socket(int fd, struct endpoint *e)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);

	*e = (struct endpoint){.here = ""};
	if (getsockname(fd, (struct sockaddr *)&sa, &len))
		return -errno;
	if (endpoint_name(&sa, len, e->here))
		return -EAFNOSUPPORT;
	len = sizeof(sa);
	if (getpeername(fd, (struct sockaddr *)&sa, &len))
		return -errno;
	return endpoint_name(&sa, len, e->there);
}
