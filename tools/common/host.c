// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/host.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
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

void host_tune(int fd)
{
	const int on = 1, idle_s = 10, unsent_ms = 20000;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unsent_ms, sizeof(unsent_ms));
}
