// SPDX-License-Identifier: LGPL-2.1-or-later
/* Input of a control link of the network, in any pieces: messages, hellos, acceptances. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "link/contract.h"
#include "link/control-link.h"
#include "common/say.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_region(const struct hello *h, const struct contract_process *p)
{
	const uint32_t pixel = 1u << ((h->pixel - 1) & 3);
	const struct cut cut = cut_region(p->width, p->height, pixel, h->adjacent, h->message);
	const struct piece last = cut_piece(&cut, cut.messages - 1);

	assert(cut.messages && (uint64_t)cut.messages * h->bunch <= UINT32_MAX / 2);
	assert(h->transport->has & TRANSPORT_RDMA || h->immediate == CONTRACT_EACH);
	assert(last.bytes && last.bytes <= h->message);
	assert((uint64_t)last.y * cut.line_bytes + last.offset + last.bytes ==
	       (uint64_t)p->width * p->height * pixel);
}

static void use(struct json_object *message)
{
	char why[WHY_SIZE], text[64];
	struct hello hello = { .transport = transport_named("roce") };
	struct accept accept = {};
	struct json_object *sent;
	uint64_t number;

	credit_read(message, &number, why);
	link_error_read(message, text, sizeof(text));
	bye_read(message, &number, &number, why);
	if (!sent_read(message, 2, 0, UINT64_MAX, &number, &sent, why))
		sent_element(sent, 1, 0, UINT64_MAX, &number, why);
	if (!hello_read(message, &hello, why)) {
		for (uint32_t i = 0; i < hello.processes; i++)
			check_region(&hello, &hello.process[i]);
	}
	if (!hello.processes)
		hello = (struct hello) { .transport = transport_named("roce"), .processes = 2 };
	accept_read(message, &hello, &accept, why);
	accept_free(&accept);
	hello_free(&hello);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_object *message;
	struct link link = LINK_NONE;
	const size_t piece = size ? data[0] + 1 : 1;
	char why[WHY_SIZE];
	static struct wire_listener listener = { .fd = -1 };
	struct sockaddr_un there = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), result = 0;

	snprintf(there.sun_path, sizeof(there.sun_path), "/tmp/link-fuzz.%d", getpid());
	snprintf(why, sizeof(why), "unix:%s", there.sun_path);
	if ((listener.fd < 0 && wire_listen(why, NULL, &listener, why)) ||
	    connect(fd, (struct sockaddr *)&there, sizeof(there)) || link_accept(&listener, &link, why))
		abort();
	for (size_t at = 1; at < size && result >= 0; at += piece) {
		const size_t n = size - at < piece ? size - at : piece;

		if (write(fd, data + at, n) < 0)
			break;
		while ((result = link_take(&link, &message, why)) > 0) {
			use(message);
			json_object_put(message);
		}
	}
	link_close(&link);
	close(fd);
	return 0;
}
