// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-bench: measurements, compared with other drivers. See rashpa-bench(1). */
#include "bench/bench.h"
#include "common/command.h"

static const struct command commands[] = {
	{ NULL, "memory", NULL, cmd_memory, "allocation, maps, mmap, reading and writing" },
	{ NULL, "event", NULL, cmd_event, "cost of an event for the processor, without a board" },
	{ NULL, "latency", NULL, cmd_latency, "time from an event to the program, on all paths" },
	{ NULL, "roundtrip", NULL, cmd_roundtrip,
	  "start, DMA, notification and acknowledgement, by the clock of the FPGA" },
	{ NULL, "loop", NULL, cmd_loop, "drive the board by a ring, and check each event" },
	{ NULL, "process", NULL, cmd_process, "stages of a pipeline, compared with STREAM" },
	{ NULL, "sizing", NULL, cmd_sizing, "processors that each stage of a pipeline needs for 1 GB/s" },
	{ NULL, "stream", NULL, cmd_stream, "cost of a stack for consumers, and loss and latency at fixed rates" },
	{ NULL, "gpu", NULL, cmd_gpu, "GPU notifications, copies, stages of a pipeline" },
	{ NULL, "paper", NULL, cmd_paper, "figures of the source documents, repeated here" },
	{ NULL, "validate", NULL, cmd_validate, "state of the machine, board test, latency, throughput, as one page" },
	{ "network", "sink", NULL, cmd_network_sink, "memory that a writer writes to (rcwritesink)" },
	{ "network", "write", NULL, cmd_network_write,
	  "messages to a sink, by RDMA and other transports (rcwrite)" },
	{ "network", "sweep", NULL, cmd_network_sweep, "messages between two ends with many settings" },
	{}
};

int main(int argc, char **argv)
{
	return command_run("rashpa-bench", commands, argc, argv);
}
