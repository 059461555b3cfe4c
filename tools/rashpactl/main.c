// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl: the administrator's command. See rashpactl(1). */
#include "common/command.h"
#include "rashpactl/rashpactl.h"

static const struct command commands[] = {
	{ NULL, "doctor", "", cmd_doctor, "check this machine, print remedies; a problem is a failure" },
	{ NULL, "report", "", cmd_report,
	  "JSON to attach to a request for help, without addresses and data" },
	{ NULL, "cdi", "", cmd_cdi, "buffers and boards as devices of containers: a file for /etc/cdi" },
	{ NULL, "list", "", cmd_list, "bound functions, bindable functions, holders of resources" },
	{ NULL, "limits", "", cmd_limits, "usage and limits of each resource" },
	{ NULL, "apply", "[fpgaN]", cmd_apply,
	  "create buffers and bind boards configured in /etc/rashpa, or apply the profile of fpgaN" },
	{ NULL, "bind", "BDF|VENDOR:DEVICE", cmd_bind,
	  "give a PCI function to the driver, apply its profile, print fpgaN" },
	{ NULL, "unbind", "BDF|fpgaN", cmd_unbind, "take a function back from the driver, after a stop" },
	{ NULL, "profile", "FILE\n--schema", cmd_profile, "check a device profile, without a device" },
	{ "buffer", "create", "NAME SIZE", cmd_buffer_create,
	  "make a zeroed buffer that lives until it is removed" },
	{ "buffer", "list", "", cmd_buffer_list, "all named buffers" },
	{ "buffer", "info", "BUFFER", cmd_buffer_info, "properties of a named buffer" },
	{ "buffer", "permit", "BUFFER", cmd_buffer_permit, "set owner and mode of a named buffer" },
	{ "buffer", "query", "", cmd_buffer_query, "largest possible buffer, and how to make room" },
	{ "buffer", "remove", "BUFFER", cmd_buffer_remove,
	  "remove a named buffer; its memory is freed after its last use" },
	{ "lock", "create", "fpgaN NAME SLOTS", cmd_lock_create, "make named lock memory near a function" },
	{ "window", "list", "fpgaN", cmd_window_list,
	  "windows of a function's profile, and whether they can be made" },
	{ "window", "info", "fpgaN:WINDOW", cmd_window_info,
	  "make a window, print its properties, and release it" },
	{ "map", "make", "BUFFER|fpgaN:WINDOW fpgaM", cmd_map_make,
	  "map a memory for a function, print the addresses, and release it, which stops the DMA" },
	{ "map", "program", "BUFFER|fpgaN:WINDOW fpgaM", cmd_map_program,
	  "map a memory, let the driver program the table, and hold the map until a signal" },
	{ "map", "explain", "BUFFER|fpgaN:WINDOW", cmd_map_explain,
	  "location of a memory, and the path of a function's DMA to it" },
	{ "map", "list", "", cmd_map_list, "all maps, and their owners" },
	{ "map", "release", "ID", cmd_map_release, "end a map of any process" },
	{ "event", "watch", "fpgaN|memory", cmd_event_watch,
	  "print events of a function or of memory; acknowledges those of groups" },
	{ "event", "stat", "fpgaN|memory", cmd_event_stat, "count events, print positions of groups" },
	{ NULL, "top", "[BUFFER...]", cmd_top, "streams, live: rate, lag, losses, latency" },
	{ "board", "test", "fpgaN", cmd_board_test,
	  "try what the profile of a board promises, and print a report; nothing else may use the board" },
	{ "fpga", "status", "fpgaN", cmd_fpga_status, "registers of the reference interface" },
	{ "fpga", "quiesce", "fpgaN", cmd_fpga_quiesce, "stop all DMA of a function" },
	{ "fpga", "reset", "fpgaN", cmd_fpga_reset, "reset a function, after a stop" },
	{ "fpga", "read", "fpgaN BAR:OFFSET", cmd_fpga_read, "read a register of 32 bits, of any board" },
	{ "fpga", "write", "fpgaN BAR:OFFSET VALUE", cmd_fpga_write,
	  "write a register of 32 bits, print the value read back" },
	{ "fpga", "dump", "fpgaN BAR:OFFSET LENGTH", cmd_fpga_dump, "read a range of registers" },
	{}
};

int main(int argc, char **argv)
{
	return command_run("rashpactl", commands, argc, argv);
}
