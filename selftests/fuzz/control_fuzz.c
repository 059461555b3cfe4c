// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The control socket: lines in any pieces. The first byte of an input says how long the
 * pieces are that the rest arrives in.
 */
#include "board.h"
#include "fpga/control.h"

#include <poll.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_un address = { .sun_family = AF_UNIX };
static jmp_buf exited;

/* control.c is compiled with this instead of _exit(): the command "exit" is no crash. */
_Noreturn void fuzz_exit(int status);
_Noreturn void fuzz_exit(int status)
{
	board_assert(!status);
	longjmp(exited, 1);
}

/* As server.c polls. After "exit" it is the next program that listens, and knows nothing. */
static void serve(void)
{
	struct pollfd p = { .events = POLLIN };

	if (setjmp(exited)) {
		control_close(address.sun_path);
		board_assert(!control_open(address.sun_path));
		return;
	}
	for (p.fd = control_fd(); poll(&p, 1, 0) == 1; p.fd = control_fd())
		control_serve(&board.device, board_vfu);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/control-fuzz.%d", getpid());
	board_init();
	board_assert(!control_open(address.sun_path));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t piece = size ? data[0] + 1u : 1, at, n;
	int before = board_begin(), fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char answers[4096];

	board_assert(!connect(fd, (struct sockaddr *)&address, sizeof(address)));
	serve();
	for (at = 1; at < size; at += n) {
		n = size - at < piece ? size - at : piece;
		if (send(fd, data + at, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;		/* hung up */
		serve();
		while (recv(fd, answers, sizeof(answers), MSG_DONTWAIT) > 0)
			;
	}
	close(fd);
	serve();
	board_honest();
	board_assert(board_next_fd() == before);
	return 0;
}
