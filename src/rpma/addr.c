/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpma/addr.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>

#include "librpma.h"
#include "rpma/err.h"

/* Convert an IPv4 address that is mapped to IPv6. An IPv4 client of a listener at :: then has the
 * same address text as at 0.0.0.0 (RFC 4291 s2.5.5.2). */
static bool addr_mapped_v4(const struct sockaddr *sa, struct sockaddr_in *v4)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)sa;

	if (sa->sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
		return false;
	*v4 = (struct sockaddr_in){.sin_family = AF_INET};
	memcpy(&v4->sin_addr, &v6->sin6_addr.s6_addr[12], sizeof(v4->sin_addr));
	return true;
}

int addr_text(const struct sockaddr *sa, char *addr, size_t size)
{
	struct sockaddr_in v4;
	char text[RPMA_ADDR_MAX];
	socklen_t len = sizeof(struct sockaddr_in6);

	if (addr_mapped_v4(sa, &v4))
		sa = (const struct sockaddr *)&v4;
	if (sa->sa_family == AF_INET)
		len = sizeof(v4);
	/* getnameinfo() also writes the scope of a link-local address; inet_ntop() does not. */
	if (getnameinfo(sa, len, text, sizeof(text), NULL, 0, NI_NUMERICHOST))
		return err_set(RPMA_E_UNKNOWN,
			       "the device does not report the other end's address");
	if (strlen(text) >= size)
		return err_set(RPMA_E_INVAL,
			       "the address needs more room: RPMA_ADDR_MAX is enough");
	strcpy(addr, text);
	return 0;
}
