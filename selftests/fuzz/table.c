// SPDX-License-Identifier: LGPL-2.1-or-later
/* Every ioctl with values of its fields that succeed. calls.c modifies them. */
#include "calls.h"

#define F(s, f, t, a)	\
	{ offsetof(struct rashpa_##s, f), sizeof(((struct rashpa_##s *)0)->f), t, a }
#define CALL(c, s)	.name = #c, .cmd = RASHPA_IOC_##c, .size = sizeof(struct rashpa_##s)
#define MAKES(s, k)	.makes = k, .out_fd = offsetof(struct rashpa_##s, out_fd)

const struct call calls[] = {
	{ CALL(ALLOC, alloc), .weight = 30, .on = K_MEMORY, MAKES(alloc, K_BUFFER),
	  .flags = RASHPA_ALLOC_NODE | RASHPA_ALLOC_EXCLUSIVE | RASHPA_ALLOC_MODE |
		   RASHPA_ALLOC_LOCK, .fields = {
		F(alloc, length, T_LENGTH, 0), F(alloc, alignment, T_POWER, 0),
		F(alloc, backend, T_BELOW, 3), F(alloc, cache, T_RARE, 4),
		F(alloc, dma_bits, T_RARE, 66),
		F(alloc, name, T_NAME, 3), F(alloc, mode, T_BELOW, 0667),
		F(alloc, out_fd, T_OUT, 0), F(alloc, out_length, T_OUT, 0) } },
	{ CALL(PIN, pin), .weight = 15, .on = K_MEMORY, MAKES(pin, K_BUFFER), .fields = {
		F(pin, address, T_ADDRESS, 0), F(pin, length, T_LENGTH, 0) } },
	{ CALL(QUERY, query), .weight = 8, .on = K_MEMORY,
	  .flags = RASHPA_QUERY_NODE, .fields = {
		F(query, node, T_RARE, 3), F(query, backend, T_BELOW, 3),
		F(query, out_largest, T_OUT, 0) } },
	{ CALL(INFO, info), .weight = 10, .on = K_MEMORY, .fields = {
		F(info, fd, T_FD, K_BUFFER), F(info, out_name, T_OUT, 0) } },
	{ CALL(LIST, list), .weight = 8, .on = K_MEMORY, .fields = {
		F(list, holdings, T_MEMBERS, 0), F(list, n_holdings, T_BELOW, 34),
		F(list, holding_size, T_SIZE, sizeof(struct rashpa_holding)),
		F(list, after, T_RARE, 1000) } },
	{ CALL(LIST, list), .weight = 3, .on = K_FPGA, .fields = {
		F(list, holdings, T_MEMBERS, 0), F(list, n_holdings, T_BELOW, 34),
		F(list, holding_size, T_SIZE, sizeof(struct rashpa_holding)) } },
	{ CALL(LIMIT, limit), .weight = 5, .on = K_MEMORY, .fields = {
		F(limit, resource, T_BELOW, 9), F(limit, out_used, T_OUT, 0) } },
	{ CALL(INFO, info), .weight = 3, .on = K_NODE, .fields = {
		F(info, fd, T_MAYBE_FD, K_BUFFER) } },
	{ CALL(EXPORT, export), .weight = 10, .on = K_NODE, MAKES(export, K_BUFFER), .fields = {
		F(export, out_fd, T_OUT, 0) } },
	{ CALL(ROLE, role), .weight = 8, .on = K_NODE, .fields = {
		F(role, take, T_BELOW, 5), F(role, drop, T_BELOW, 5),
		F(role, out_mine, T_OUT, 0) } },
	{ CALL(REMOVE, remove), .weight = 2, .on = K_NODE, .fields = { { 0 } } },
	{ CALL(DEVICE_INFO, device_info), .weight = 5, .on = K_FPGA, .fields = {
		F(device_info, out_vendor, T_OUT, 0) } },
	{ CALL(REGION_INFO, region_info), .weight = 3, .on = K_FPGA, .fields = {
		F(region_info, bar, T_BELOW, 7) } },
	{ CALL(ENGINE_INFO, engine_info), .weight = 3, .on = K_FPGA, .fields = {
		F(engine_info, index, T_BELOW, 5), F(engine_info, out_name, T_OUT, 0) } },
	{ CALL(PROFILE_SET, profile_set), .weight = 8, .on = K_FPGA,
	  .flags = RASHPA_PROFILE_DISCLOSE | RASHPA_PROFILE_NO_RESET, .fields = {
		F(profile_set, windows, T_WINDOWS, 0), F(profile_set, steps, T_STEPS, 0),
		F(profile_set, n_windows, T_BELOW, 6), F(profile_set, n_steps, T_BELOW, 5),
		F(profile_set, dma_bits, T_RARE, 64), F(profile_set, max_segment, T_POWER, 0),
		F(profile_set, boundary, T_POWER, 0), F(profile_set, alignment, T_POWER, 0),
		F(profile_set, table, T_TABLES, 0),
		F(profile_set, quiesce_us, T_RARE, 100000),
		F(profile_set, engines, T_ENGINES, 0), F(profile_set, n_engines, T_RARE, 3),
		F(profile_set, engine_size, T_SIZE, sizeof(struct rashpa_profile_engine)),
		F(profile_set, window_size, T_SIZE, sizeof(struct rashpa_profile_window)),
		F(profile_set, step_size, T_SIZE, sizeof(struct rashpa_profile_step)),
		F(profile_set, table_size, T_SIZE, sizeof(struct rashpa_profile_table)) } },
	{ CALL(WINDOW_MAKE, window_make), .weight = 20, .on = K_FPGA,
	  MAKES(window_make, K_WINDOW), .flags = RASHPA_WINDOW_BLANK, .fields = {
		F(window_make, bar, T_BAR, 0), F(window_make, cache, T_RARE, 4),
		F(window_make, offset, T_OFFSET, 0), F(window_make, length, T_LENGTH, 0),
		F(window_make, name, T_WINDOW_NAME, 0) } },
	{ CALL(MAP_MAKE, map_make), .weight = 40, .on = K_FPGA, MAKES(map_make, K_MAP),
	  .flags = RASHPA_MAP_DEVICE | RASHPA_MAP_PIN, .fields = {
		F(map_make, fd, T_FD, K_BUFFER), F(map_make, direction, T_BELOW, 3),
		F(map_make, offset, T_OFFSET, 0), F(map_make, length, T_MAYBE_LENGTH, 0),
		F(map_make, max_segment, T_POWER, 0), F(map_make, boundary, T_POWER, 0),
		F(map_make, alignment, T_POWER, 0) } },
	{ CALL(MAP_MAKE, map_make), .weight = 10, .on = K_FPGA, MAKES(map_make, K_MAP), .fields = {
		F(map_make, fd, T_FD, K_WINDOW), F(map_make, direction, T_BELOW, 3),
		F(map_make, offset, T_RARE, 4) } },
	{ CALL(CHANNEL_MAKE, channel_make), .weight = 15, .on = K_FPGA,
	  MAKES(channel_make, K_CHANNEL), .fields = {
		F(channel_make, depth, T_RARE, 1024), F(channel_make, sources, T_RARE, 2048),
		F(channel_make, record_size, T_RARE, 48) } },
	{ CALL(CHANNEL_MAKE, channel_make), .weight = 5, .on = K_MEMORY,
	  MAKES(channel_make, K_CHANNEL), .fields = {
		F(channel_make, depth, T_RARE, 1024), F(channel_make, sources, T_RARE, 2048),
		F(channel_make, record_size, T_RARE, 48) } },
	{ CALL(LOOK, look), .weight = 20, .on = K_MEMORY, .fields = {
		F(look, fd, T_FD, K_BUFFER), F(look, out_events, T_OUT, 0) } },
	{ CALL(QUIESCE, quiesce), .weight = 6, .on = K_FPGA, .fields = {
		F(quiesce, out_time_ns, T_OUT, 0) } },
	{ CALL(QUIESCE, quiesce), .weight = 6, .on = K_FPGA, .flags = RASHPA_QUIESCE_MAP,
	  .fields = { F(quiesce, map, T_RARE, 300) } },
	{ CALL(RESET, reset), .weight = 1, .on = K_FPGA, .fields = { { 0 } } },
	{ CALL(PROGRAM, program), .weight = 20, .on = K_MAP, .flags = RASHPA_PROGRAM_AGAIN,
	  .fields = { F(program, first, T_BELOW, 1200) } },
	{ CALL(RESTORE, restore), .weight = 5, .on = K_MAP, .fields = {
		F(restore, out_class, T_OUT, 0) } },
	{ CALL(SOURCE_ADD, source_add), .weight = 30, .on = K_CHANNEL,
	  .flags = RASHPA_SOURCE_QUIET | RASHPA_SOURCE_ONE_SHOT,
	  .fields = {
		F(source_add, kind, T_BELOW, 10), F(source_add, index, T_BELOW, 9),
		F(source_add, device, T_MAYBE_FD, K_FPGA), F(source_add, memory, T_FD, K_BUFFER) } },
	{ CALL(SOURCE_ADD, source_add), .weight = 30, .on = K_CHANNEL,
	  .flags = RASHPA_SOURCE_QUIET | RASHPA_SOURCE_POLL |
		   RASHPA_SOURCE_LOOK | RASHPA_SOURCE_ONE_SHOT | RASHPA_SOURCE_COUNTER,
	  .fields = {
		F(source_add, kind, T_BELOW, 5), F(source_add, index, T_BELOW, 8),
		F(source_add, device, T_MAYBE_FD, K_FPGA), F(source_add, memory, T_FD, K_BUFFER),
		F(source_add, offset, T_LINE, 0), F(source_add, mask, T_RARE, 65536),
		F(source_add, value, T_RARE, 16), F(source_add, step, T_RARE, 4),
		F(source_add, condition, T_BELOW, 4), F(source_add, bits, T_WIDTH, 0),
		F(source_add, period_us, T_PERIOD, 0), F(source_add, budget, T_RARE, 1000) } },
	{ CALL(SOURCE_DEL, source_del), .weight = 10, .on = K_CHANNEL, .fields = {
		F(source_del, id, T_ID, 0) } },
	{ CALL(EVENTFD_BIND, eventfd_bind), .weight = 15, .on = K_CHANNEL, .fields = {
		F(eventfd_bind, fd, T_FD, K_EVENTFD), F(eventfd_bind, id, T_ID, 0) } },
	{ CALL(SIGNAL, signal), .weight = 20, .on = K_CHANNEL, .fields = {
		F(signal, value, T_WORD, 0) } },
	{ CALL(ARM, arm), .weight = 15, .on = K_CHANNEL, .fields = {
		F(arm, id, T_ID, 0) } },
	{ CALL(GROUP_MAKE, group_make), .weight = 15, .on = K_CHANNEL, .fields = {
		F(group_make, members, T_MEMBERS, 0), F(group_make, n_members, T_BELOW, 4),
		F(group_make, member_size, T_BELOW, 17), F(group_make, slots, T_RARE, 8),
		F(group_make, full, T_RARE, 8), F(group_make, first, T_RARE, 4) } },
	{ CALL(ACK, ack), .weight = 8, .on = K_CHANNEL, .fields = {
		F(ack, id, T_ID, 0), F(ack, position, T_WORD, 0) } },
	{ CALL(SOURCE_INFO, source_info), .weight = 5, .on = K_CHANNEL, .fields = {
		F(source_info, id, T_ID, 0) } },
	{ CALL(GROUP_INFO, group_info), .weight = 8, .on = K_CHANNEL, .fields = {
		F(group_info, members, T_MEMBERS, 0), F(group_info, id, T_ID, 0),
		F(group_info, n_members, T_BELOW, 34), F(group_info, member_size, T_BELOW, 65) } },
};

const unsigned int n_calls = ARRAY_SIZE(calls);
