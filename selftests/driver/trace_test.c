// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tracepoints report the life of a map, in order.
 * test: tier=check kernel=each seconds=1
 */
#include "common.h"
#include "trace.h"

static struct fpga f;

/* Are these lines in the trace, in this order? */
static void in_order(char (*want)[80], size_t n)
{
	struct trace_line l = {};
	size_t i = 0;

	while (trace_next(&l))
		i += i < n && strstr(l.text, want[i]);
	CHECK(i == n, "after %zu lines there is no \"%s\"", i, want[i < n ? i : 0]);
}

TEST(life, "a search, a map, its programming, a stop, its end")
{
	struct rashpa_map_make made;
	int buffer, map, twice;
	uint32_t entries = 0;
	char want[7][80];

	if (!trace_begin(NULL))
		return;
	buffer = buffer_alloc(4 * MIB, NULL);
	map = fpga_map(&f, buffer, RASHPA_BIDIRECTIONAL, &made);
	ANSWERED(fpga_program(map, 3, &entries), 0, NULL);
	twice = fcntl(map, F_DUPFD_CLOEXEC, 0);
	ANSWERED(fpga_program(twice, 1 << 20, NULL), ERANGE, "exceed");
	ANSWERED(fpga_quiesce(&f), 0, NULL);
	close(twice);
	close(map);
	close(buffer);
	snprintf(want[0], 80, "rashpa_search: length=%llu node=-1 backend=%u err=0",
		 4 * MIB, RASHPA_BACKEND_CONTIG);
	snprintf(want[1], 80, "rashpa_map: fpga%d map=%u class=%u segments=%u generation=%llu",
		 f.index, made.out_id, made.out_class, made.out_segments,
		 (u64)made.out_generation);
	snprintf(want[2], 80, "rashpa_program: fpga%d map=%u first=3 entries=%u err=0", f.index,
		 made.out_id, entries);
	snprintf(want[3], 80, "rashpa_program: fpga%d map=%u first=1048576 entries=0 err=-34",
		 f.index, made.out_id);
	snprintf(want[4], 80, "rashpa_stop: fpga%d engine=-1 err=0", f.index);
	/* the end of the map stops the function again */
	memcpy(want[5], want[4], 80);
	snprintf(want[6], 80, "rashpa_revoke: fpga%d map=%u for_good=1 what=%u", f.index,
		 made.out_id, RASHPA_DEVICE_EVENT_QUIESCED);
	in_order(want, ARRAY_SIZE(want));
	trace_end();
}

void setup(void)
{
	fpga_need(&f);
}
