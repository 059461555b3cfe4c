# SPDX-License-Identifier: LGPL-2.1-or-later
"""Facts for a fuzzer that uapi/linux/rashpa.h does not contain: see describe.py."""

PREAMBLE = """\
# SPDX-License-Identifier: LGPL-2.1-or-later
# Made by describe.py from uapi/linux/rashpa.h and annotations.py: change those.

include <uapi/linux/rashpa.h>
include <uapi/linux/fcntl.h>

resource fd_rashpa_memory[fd]
resource fd_rashpa_node[fd]
resource fd_rashpa_fpga[fd]
resource fd_rashpa_dmabuf[fd]
resource fd_rashpa_map[fd]
resource fd_rashpa_channel[fd]
resource rashpa_source_id[int32]: 1, 2, 3
resource rashpa_map_id[int32]: 0

openat$rashpa_memory(fd const[AT_FDCWD], file ptr[in, string["/dev/rashpa/memory"]], flags flags[open_flags], mode const[0]) fd_rashpa_memory
openat$rashpa_node(fd const[AT_FDCWD], file ptr[in, string["/dev/rashpa/buffer/syz"]], flags flags[open_flags], mode const[0]) fd_rashpa_node
syz_open_dev$rashpa_fpga(dev ptr[in, string["/dev/rashpa/fpga#"]], id intptr[0:3], flags flags[open_flags]) fd_rashpa_fpga
mmap$rashpa_dmabuf(addr vma, len len[addr], prot flags[mmap_prot], flags flags[mmap_flags], fd fd_rashpa_dmabuf, offset fileoff)
mmap$rashpa_map(addr vma, len len[addr], prot flags[mmap_prot], flags flags[mmap_flags], fd fd_rashpa_map, offset fileoff)
mmap$rashpa_channel(addr vma, len len[addr], prot flags[mmap_prot], flags flags[mmap_flags], fd fd_rashpa_channel, offset fileoff)
read$rashpa_map(fd fd_rashpa_map, data buffer[out], len len[data])
read$rashpa_channel(fd fd_rashpa_channel, data buffer[out], len len[data])

type rashpa_head[SIZE, FLAGS] {
	size		const[SIZE, int32]
	flags		FLAGS
	reason		ptr64[out, array[int8, 256], opt]
	reason_size	const[256, int32]
	__reserved	const[0, int32]
}
"""

# number[@node]: fd, struct
CALLS = {
    "ALLOC": ("fd_rashpa_memory", "alloc"),
    "QUERY": ("fd_rashpa_memory", "query"),
    "INFO": ("fd_rashpa_memory", "info"),
    "LIST": ("fd_rashpa_memory", "list"),
    "LIST@fpga": ("fd_rashpa_fpga", "list"),
    "LIMIT": ("fd_rashpa_memory", "limit"),
    "INFO@node": ("fd_rashpa_node", "info"),
    "LOOK": ("fd_rashpa_memory", "look"),
    "PIN": ("fd_rashpa_memory", "pin"),
    "REMOVE": ("fd_rashpa_node", "remove"),
    "ROLE": ("fd_rashpa_node", "role"),
    "EXPORT": ("fd_rashpa_node", "export"),
    "DEVICE_INFO": ("fd_rashpa_fpga", "device_info"),
    "REGION_INFO": ("fd_rashpa_fpga", "region_info"),
    "ENGINE_INFO": ("fd_rashpa_fpga", "engine_info"),
    "PROFILE_SET": ("fd_rashpa_fpga", "profile_set"),
    "WINDOW_MAKE": ("fd_rashpa_fpga", "window_make"),
    "MAP_MAKE": ("fd_rashpa_fpga", "map_make"),
    "CHANNEL_MAKE": ("fd_rashpa_fpga", "channel_make"),
    "CHANNEL_MAKE@memory": ("fd_rashpa_memory", "channel_make"),
    "QUIESCE": ("fd_rashpa_fpga", "quiesce"),
    "RESET": ("fd_rashpa_fpga", "reset"),
    "PROGRAM": ("fd_rashpa_map", "program"),
    "RESTORE": ("fd_rashpa_map", "restore"),
    "SOURCE_ADD": ("fd_rashpa_channel", "source_add"),
    "SOURCE_DEL": ("fd_rashpa_channel", "source_del"),
    "EVENTFD_BIND": ("fd_rashpa_channel", "eventfd_bind"),
    "SIGNAL": ("fd_rashpa_channel", "signal"),
    "ARM": ("fd_rashpa_channel", "arm"),
    "GROUP_MAKE": ("fd_rashpa_channel", "group_make"),
    "ACK": ("fd_rashpa_channel", "ack"),
    "SOURCE_INFO": ("fd_rashpa_channel", "source_info"),
    "GROUP_INFO": ("fd_rashpa_channel", "group_info"),
}

# flags of struct rashpa_head, by struct
HEAD = {
    "alloc": "rashpa_alloc_flags",
    "query": "rashpa_query_flags",
    "profile_set": "rashpa_profile_flags",
    "window_make": "rashpa_window_flags",
    "map_make": "rashpa_map_flags",
    "quiesce": "rashpa_quiesce_flags",
    "program": "rashpa_program_flags",
    "source_add": "rashpa_source_flags",
}

FLAGS = {
    "rashpa_alloc_flags": ["RASHPA_ALLOC_NODE", "RASHPA_ALLOC_EXCLUSIVE", "RASHPA_ALLOC_MODE",
                           "RASHPA_ALLOC_LOCK"],
    "rashpa_query_flags": ["RASHPA_QUERY_NODE"],
    "rashpa_profile_flags": ["RASHPA_PROFILE_DISCLOSE", "RASHPA_PROFILE_NO_RESET"],
    "rashpa_window_flags": ["RASHPA_WINDOW_BLANK"],
    "rashpa_quiesce_flags": ["RASHPA_QUIESCE_MAP"],
    "rashpa_map_flags": ["RASHPA_MAP_DEVICE", "RASHPA_MAP_PIN"],
    "rashpa_source_flags": ["RASHPA_SOURCE_QUIET", "RASHPA_SOURCE_POLL",
                            "RASHPA_SOURCE_LOOK", "RASHPA_SOURCE_ONE_SHOT", "RASHPA_SOURCE_COUNTER"],
    "rashpa_pengine_flags": ["RASHPA_PENGINE_OPTIONAL"],
    "rashpa_pwindow_flags": ["RASHPA_PWINDOW_USER"],
    "rashpa_fetch_flags": ["RASHPA_FETCH_CLOSED", "RASHPA_FETCH_PUSH", "RASHPA_FETCH_SPREAD"],
    "rashpa_fetch_kinds": ["RASHPA_FETCH_CONSTANT", "RASHPA_FETCH_ADDRESS", "RASHPA_FETCH_LENGTH",
                           "RASHPA_FETCH_SUM", "RASHPA_FETCH_NEXT", "RASHPA_FETCH_INDEX",
                           "RASHPA_FETCH_COUNT", "RASHPA_FETCH_END"],
    "rashpa_field_flags": ["RASHPA_FIELD_MINUS_ONE", "RASHPA_FIELD_FIRST", "RASHPA_FIELD_LAST",
                           "RASHPA_FIELD_NOT_LAST", "RASHPA_FIELD_KEEP", "RASHPA_FIELD_ENTRY"],
    "rashpa_program_flags": ["RASHPA_PROGRAM_AGAIN"],
    "rashpa_roles": ["RASHPA_ROLE_PRODUCER", "RASHPA_ROLE_CONSUMER"],
    "rashpa_backends": ["RASHPA_BACKEND_AUTO", "RASHPA_BACKEND_CMA", "RASHPA_BACKEND_CONTIG",
                        "RASHPA_BACKEND_HUGE"],
    "rashpa_resources": ["RASHPA_RESOURCE_MEMORY", "RASHPA_RESOURCE_NAMES",
                         "RASHPA_RESOURCE_WINDOWS", "RASHPA_RESOURCE_MAPS",
                         "RASHPA_RESOURCE_CHANNELS", "RASHPA_RESOURCE_SOURCES",
                         "RASHPA_RESOURCE_TIMERS"],
    "rashpa_caches": ["RASHPA_CACHE_DEFAULT", "RASHPA_CACHE_CACHED", "RASHPA_CACHE_WC",
                      "RASHPA_CACHE_UC"],
    "rashpa_directions": ["RASHPA_BIDIRECTIONAL", "RASHPA_TO_MEMORY", "RASHPA_FROM_MEMORY"],
    "rashpa_step_flags": ["RASHPA_STEP_RESET"],
    "rashpa_step_ops": ["RASHPA_STEP_WRITE", "RASHPA_STEP_WAIT"],
    "rashpa_sources": ["RASHPA_SOURCE_VECTOR", "RASHPA_SOURCE_DEVICE", "RASHPA_SOURCE_SOFTWARE",
                       "RASHPA_SOURCE_LOCK", "RASHPA_SOURCE_MAP", "RASHPA_SOURCE_GROUP",
                       "RASHPA_SOURCE_OVERRUN", "RASHPA_SOURCE_FULL"],
    "rashpa_conditions": ["RASHPA_CONDITION_CHANGED", "RASHPA_CONDITION_EQUAL",
                          "RASHPA_CONDITION_REACHED"],
}

# Constants that no argument takes: results, sizes, limits.
UNUSED = """
RASHPA_IOC_TYPE RASHPA_NAME_SIZE RASHPA_REASON_SIZE RASHPA_BARS RASHPA_AREA_SIZE
RASHPA_ROLES
RASHPA_KIND_BUFFER RASHPA_KIND_WINDOW RASHPA_KIND_FOREIGN RASHPA_KIND_PINNED RASHPA_KIND_LOCK
RASHPA_INFO_REGISTRABLE RASHPA_INFO_EXCLUSIVE RASHPA_INFO_REVOKED
RASHPA_STATE_READY RASHPA_STATE_STUCK
RASHPA_DEVICE_IOMMU RASHPA_DEVICE_PROFILE RASHPA_DEVICE_DISCLOSE RASHPA_DEVICE_MASTER
RASHPA_DEVICE_FETCH RASHPA_DESCRIPTORS_MAX RASHPA_DESCRIPTOR_SIZE_MAX RASHPA_FETCH_FIELDS_MAX
RASHPA_FETCH_REGISTERS_MAX
RASHPA_REGION_MEMORY RASHPA_REGION_PREFETCH RASHPA_REGION_64BIT
RASHPA_PROFILE_NAME_SIZE RASHPA_PROFILE_WINDOWS_MAX RASHPA_PROFILE_STEPS_MAX
RASHPA_QUIESCE_US_MAX
RASHPA_PROFILE_ENGINES_MAX RASHPA_ENGINE_STEPS_MAX RASHPA_ENGINE_ABSENT
RASHPA_CLASS_HOST RASHPA_CLASS_IOVA RASHPA_CLASS_PEER RASHPA_CLASS_BRIDGE
RASHPA_LAYOUT_UPPER_FIRST RASHPA_LAYOUT_WRITE_ONLY RASHPA_MAPPED_REMAPPED RASHPA_MAPPED_COHERENT RASHPA_LOCK_SLOT RASHPA_LOCK_SLOTS_MAX
RASHPA_MAP_STATE_VALID RASHPA_MAP_STATE_REVOKED
RASHPA_MAP_STATE_PROGRAMMED RASHPA_MAP_STATE_UNPROGRAMMED
RASHPA_DEVICE_EVENT_QUIESCED RASHPA_DEVICE_EVENT_RESET RASHPA_DEVICE_EVENT_STUCK RASHPA_DEVICE_EVENT_GONE
RASHPA_DEVICE_EVENT_ERROR RASHPA_DEVICE_EVENT_ENGINE RASHPA_PERIOD_MIN RASHPA_PERIOD_MAX RASHPA_MEMBERS_MAX
RASHPA_SOURCES_MAX
RASHPA_FULL_NEVER
RASHPA_HOLDING_ORPHAN RASHPA_HOLDING_PROGRAMMED RASHPA_HOLDING_TOLD
RASHPA_COMM_SIZE RASHPA_HOLDINGS_MAX
""".split()

NAME = 'string["syz", 64]'

# struct.field: type; all others are plain integers, reserved ones 0
FIELDS = {
    "alloc.backend": "flags[rashpa_backends, int32]",
    "alloc.cache": "flags[rashpa_caches, int32]",
    "alloc.out_fd": "fd_rashpa_dmabuf",
    "alloc.length": "int64[0:4194304]",
    "alloc.name": NAME,
    "pin.address": "vma64",
    "pin.length": "int64[0:4194304]",
    "pin.out_fd": "fd_rashpa_dmabuf",
    "query.backend": "flags[rashpa_backends, int32]",
    "info.fd": "fd_rashpa_dmabuf",
    "list.holdings": "ptr64[out, array[rashpa_holding]]",
    "list.n_holdings": "len[holdings, int32]",
    "limit.resource": "flags[rashpa_resources, int32]",
    "role.take": "flags[rashpa_roles, int32]",
    "role.drop": "flags[rashpa_roles, int32]",
    "export.out_fd": "fd_rashpa_dmabuf",
    "region_info.bar": "int32[0:6]",
    "profile_window.name": 'string["w", 32]',
    "profile_window.flags": "flags[rashpa_pwindow_flags, int32]",
    "profile_window.cache": "flags[rashpa_caches, int32]",
    "profile_step.flags": "flags[rashpa_step_flags, int32]",
    "profile_step.op": "flags[rashpa_step_ops, int32]",
    "profile_set.windows": "ptr64[in, array[rashpa_profile_window]]",
    "profile_set.steps": "ptr64[in, array[rashpa_profile_step]]",
    "profile_set.table": "ptr64[in, rashpa_profile_table, opt]",
    "profile_set.n_windows": "len[windows, int32]",
    "profile_set.n_steps": "len[steps, int32]",
    "profile_set.window_size": "const[64, int32]",
    "profile_set.step_size": "const[32, int32]",
    "profile_set.table_size": "const[48, int32]",
    "profile_engine.name": 'string["e", 32]',
    "profile_engine.flags": "flags[rashpa_pengine_flags, int32]",
    "profile_engine.steps": "ptr64[in, array[rashpa_profile_step]]",
    "profile_engine.n_steps": "len[steps, int32]",
    "profile_engine.step_size": "const[32, int32]",
    "profile_set.engines": "ptr64[in, array[rashpa_profile_engine]]",
    "profile_set.n_engines": "len[engines, int32]",
    "profile_set.engine_size": "const[80, int32]",
    "engine_info.index": "int32[0:64]",
    "profile_table.layout": "ptr64[in, rashpa_layout, opt]",
    "profile_table.layout_size": "const[48, int32]",
    "profile_table.fetch": "ptr64[in, rashpa_fetch, opt]",
    "profile_table.fetch_size": "const[56, int32]",
    "fetch.flags": "flags[rashpa_fetch_flags, int32]",
    "fetch.fields": "ptr64[in, array[rashpa_fetch_field]]",
    "fetch.registers": "ptr64[in, array[rashpa_fetch_field]]",
    "fetch.n_fields": "len[fields, int32]",
    "fetch.field_size": "const[48, int32]",
    "fetch.n_registers": "len[registers, int32]",
    "fetch.register_size": "const[48, int32]",
    "fetch_field.kind": "flags[rashpa_fetch_kinds, int32]",
    "fetch_field.flags": "flags[rashpa_field_flags, int32]",
    "fetch_field.bits": "int32[32:64]",
    "window_make.cache": "flags[rashpa_caches, int32]",
    "window_make.name": 'string["w", 32]',
    "window_make.out_fd": "fd_rashpa_dmabuf",
    "map_make.fd": "fd_rashpa_dmabuf",
    "map_make.direction": "flags[rashpa_directions, int32]",
    "map_make.out_fd": "fd_rashpa_map",
    "map_make.out_id": "rashpa_map_id",
    "look.fd": "fd_rashpa_dmabuf",
    "channel_make.depth": "int32[0:65536]",
    "channel_make.sources": "int32[0:2048]",
    "channel_make.out_fd": "fd_rashpa_channel",
    "quiesce.map": "rashpa_map_id",
    "source_add.kind": "flags[rashpa_sources, int32]",
    "source_add.out_id": "rashpa_source_id",
    "source_add.device": "fd_rashpa_fpga",
    "source_add.memory": "fd_rashpa_dmabuf",
    "source_add.condition": "flags[rashpa_conditions, int32]",
    "source_del.id": "rashpa_source_id",
    "source_info.id": "rashpa_source_id",
    "eventfd_bind.fd": "fd_event",
    "eventfd_bind.id": "rashpa_source_id",
    "member.source": "rashpa_source_id",
    "group_make.members": "ptr64[in, array[rashpa_member]]",
    "group_make.n_members": "len[members, int32]",
    "group_make.member_size": "const[8, int32]",
    "group_make.out_id": "rashpa_source_id",
    "ack.id": "rashpa_source_id",
    "group_info.members": "ptr64[out, array[rashpa_member_info]]",
    "group_info.id": "rashpa_source_id",
    "group_info.n_members": "len[members, int32]",
    "group_info.member_size": "const[32, int32]",
}
