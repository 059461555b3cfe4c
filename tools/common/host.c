// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/host.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static bool is_port(const char *text, bool own)
{
	const size_t n = strlen(text);

	return n && n < 6 && strspn(text, "0123456789") == n && atoi(text) <= UINT16_MAX &&
	       (own || atoi(text));
}

const char *host_resolve(const char *text, enum host_use use, char *host, struct addrinfo **list)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM, .ai_protocol = IPPROTO_TCP,
		.ai_flags = AI_NUMERICSERV | (use == HOST_OWN ? AI_PASSIVE : 0),
	};
	const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
	size_t n = colon ? colon - text : 0;
	const bool brackets = n > 2 && text[0] == '[' && text[n - 1] == ']', own = use != HOST_OTHER;
	int error;

	*list = NULL;
	text += brackets;
	n -= 2 * brackets;
	if (!is_port(port, own) || n >= HOST_SIZE || (colon ? !n : !own) || (!brackets && memchr(text, ':', n)))
		return own ? "it is not HOST:PORT, [ADDRESS]:PORT or PORT" : "it is not HOST:PORT or [ADDRESS]:PORT";
	memcpy(host, text, n);
	host[n] = '\0';
	error = getaddrinfo(n ? host : NULL, port, &hints, list);
	if (!error)
		return NULL;
	*list = NULL;
	return gai_strerror(error);
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
