// SPDX-License-Identifier: LGPL-2.1-or-later
#include "board.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fpga/log.h"

struct fpga board;
struct host board_host;
struct vfu *board_vfu;

/* Instead of log.c: millions of inputs, and what is logged is no finding. */
bool log_verbose;

static void format(const char *fmt, va_list args)
{
	char text[512];

	/* the arguments are evaluated all the same */
	vsnprintf(text, sizeof(text), fmt, args);
}

void log_msg(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	format(fmt, args);
	va_end(args);
}

void log_limited(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	format(fmt, args);
	va_end(args);
}

void board_check(bool good, const char *what, int line)
{
	if (good)
		return;
	fprintf(stderr, "line %d: not true: %s\n", line, what);
	abort();
}

void board_honest(void)
{
	board_assert(fault_command(&board, "dead off") && fault_command(&board, "flood off") &&
		     misbehave(&board, "honest") && fault_command(&board, "resetting off") &&
		     source_command(&board, "miss frames off") &&
		     source_command(&board, "miss lines off"));
	clock_run();
	engine_kick(&board);
}

int board_begin(void)
{
	board_assert(!board.faults.dead && !board.faults.no_link && !board.faults.flooding &&
		     !board.engine.stuck && !clock_held());
	return board_next_fd();
}

int board_next_fd(void)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

	close(fd);
	return fd;
}

void board_init(void)
{
	log_verbose = true;
	board.dtps = BOARD_DTPS;
	board.vectors = BOARD_VECTORS;
	board.entries = BUS_ENTRIES_MAX;
	board.features = FPGA_FEATURES;
	board.memory_size = BOARD_MEMORY;
	board.host = &board_host;
	board_assert(!host_init(&board_host) && !fpga_init(&board));
	board_vfu = vfu_new(&board.device, &board_host, -1);
	board_assert(board_vfu);
}
