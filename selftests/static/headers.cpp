// SPDX-License-Identifier: LGPL-2.1-or-later
/* The library's headers in a C++ program: static.sh compiles this. */
#include <rashpa.h>
#include <rashpa-board.h>
#include <rashpa-gpu.h>
#include <rashpa-stream.h>
#include <rashpa-stream-format.h>
#include <rashpa-fpga.h>
#include <rashpa-processing.h>

/* The names of the structs are types in C++. */
int first_stack(const char *buffer);
int first_stack(const char *buffer)
{
	rashpa_stream *stream;
	rashpa_stack stack;
	int error = rashpa_stream_open(buffer, RASHPA_STREAM_OBSERVE, &stream);

	if (error)
		return error;
	error = rashpa_stream_next(stream, &stack, -1);
	rashpa_stream_close(stream);
	return error;
}

bool settled(const volatile void *record);
bool settled(const volatile void *record)
{
	rfpga_lock lock;

	return rfpga_lock_read(record, &lock) != 0;
}

int first_dtp(rashpa_board *board);
int first_dtp(rashpa_board *board)
{
	rashpa_dtp_stat counts;

	return rashpa_board_get_stat(board, RASHPA_BOARD_DTP(0), &counts);
}
