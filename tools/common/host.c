// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/host.h"

#include <string.h>
#include <sys/socket.h>

const char *host_resolve(const char *text, bool own, struct addrinfo **list)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM, .ai_flags = own ? AI_PASSIVE : 0,
	};
	const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
	char host[256] = "";
	size_t n = colon ? colon - text : 0;
	int error;

	if (n && text[0] == '[' && text[n - 1] == ']') {
		text++;
		n -= 2;
	}
	if (n >= sizeof(host) || !*port || (!n && !own))
		return "it is not HOST:PORT";
	memcpy(host, text, n);
	error = getaddrinfo(n ? host : NULL, port, &hints, list);
	return error ? gai_strerror(error) : NULL;
}
