/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
#ifndef _UAPI_LINUX_RASHPA_H
#define _UAPI_LINUX_RASHPA_H
#include <linux/const.h>
#include <linux/ioctl.h>
#include <linux/types.h>
#define RASHPA_IOC_TYPE		0xE7
#define RASHPA_NAME_SIZE		64
#define RASHPA_AREA_SIZE		64
#define RASHPA_PROFILE_NAME_SIZE	32
#define RASHPA_COMM_SIZE		16
#define RASHPA_REASON_SIZE		256
#define RASHPA_BARS			6
struct rashpa_head {
	__u32 size;
	__u32 flags;
	__aligned_u64 reason;
	__u32 reason_size;
	__u32 __reserved;
};
enum rashpa_backend {
	RASHPA_BACKEND_AUTO = 0,
	RASHPA_BACKEND_CMA = 1,
	RASHPA_BACKEND_CONTIG = 2,
	RASHPA_BACKEND_HUGE = 3,
};
enum rashpa_cache {
	RASHPA_CACHE_DEFAULT = 0,
	RASHPA_CACHE_CACHED = 1,
	RASHPA_CACHE_WC = 2,
	RASHPA_CACHE_UC = 3,
};
#define RASHPA_ALLOC_NODE	_BITUL(0)
#define RASHPA_ALLOC_EXCLUSIVE	_BITUL(1)
#define RASHPA_ALLOC_MODE	_BITUL(2)
#define RASHPA_ALLOC_LOCK	_BITUL(3)
#define RASHPA_LOCK_SLOT	64
#define RASHPA_LOCK_SLOTS_MAX	65536
struct rashpa_alloc {
	struct rashpa_head head;
	__aligned_u64 length;
	__aligned_u64 alignment;
	__u32 node;
	__u32 backend;
	__u32 cache;
	__u32 dma_bits;
	char name[RASHPA_NAME_SIZE];
	__u32 mode;
	__s32 out_fd;
	__aligned_u64 out_length;
	__u32 out_segments;
	__u32 out_backend;
	__s32 out_node;
	__s32 memfd;
};
struct rashpa_pin {
	struct rashpa_head head;
	__aligned_u64 address;
	__aligned_u64 length;
	__s32 out_fd;
	__u32 out_segments;
};
#define RASHPA_QUERY_NODE	_BITUL(0)
struct rashpa_query {
	struct rashpa_head head;
	__u32 node;
	__u32 backend;
	__u32 out_backend;
	__u32 __reserved;
	__aligned_u64 out_total;
	__aligned_u64 out_free;
	__aligned_u64 out_largest;
	char out_area[RASHPA_AREA_SIZE];
};
enum rashpa_kind {
	RASHPA_KIND_BUFFER = 1,
	RASHPA_KIND_WINDOW = 2,
	RASHPA_KIND_FOREIGN = 3,
	RASHPA_KIND_PINNED = 4,
	RASHPA_KIND_LOCK = 5,
};
#define RASHPA_INFO_REGISTRABLE	_BITUL(0)
#define RASHPA_INFO_EXCLUSIVE	_BITUL(1)
#define RASHPA_INFO_REVOKED	_BITUL(2)
struct rashpa_info {
	struct rashpa_head head;
	__s32 fd;
	__u32 out_kind;
	__aligned_u64 out_length;
	__u32 out_backend;
	__u32 out_cache;
	__s32 out_node;
	__u32 out_segments;
	__u32 out_importers;
	__u32 out_mappings;
	char out_name[RASHPA_NAME_SIZE];
	__u32 out_flags;
	__u32 out_leases;
	__u32 out_lease_uid;
	__s32 out_lease_pid;
	__u32 out_uid;
	__s32 out_pid;
	__s32 out_bar;
	__u32 __reserved;
	__aligned_u64 out_bdf;
	__aligned_u64 out_page_size;
};
enum rashpa_resource {
	RASHPA_RESOURCE_MEMORY = 1,
	RASHPA_RESOURCE_NAMES = 2,
	RASHPA_RESOURCE_WINDOWS = 3,
	RASHPA_RESOURCE_MAPS = 4,
	RASHPA_RESOURCE_CHANNELS = 5,
	RASHPA_RESOURCE_SOURCES = 6,
	RASHPA_RESOURCE_TIMERS = 7,
};
#define RASHPA_HOLDING_ORPHAN		_BITUL(0)
#define RASHPA_HOLDING_PROGRAMMED	_BITUL(1)
#define RASHPA_HOLDING_TOLD		_BITUL(2)
struct rashpa_holding {
	__u32 resource;
	__s32 device;
	__u32 uid;
	__s32 pid;
	__aligned_u64 serial;
	__aligned_u64 amount;
	__aligned_u64 memory;
	__aligned_u64 since_ns;
	__u32 id;
	__u32 flags;
	char comm[RASHPA_COMM_SIZE];
	char name[RASHPA_NAME_SIZE];
};
#define RASHPA_HOLDINGS_MAX	1024
struct rashpa_list {
	struct rashpa_head head;
	__aligned_u64 holdings;
	__u32 n_holdings;
	__u32 holding_size;
	__aligned_u64 after;
	__u32 out_holdings;
	__u32 out_count;
};
struct rashpa_limit {
	struct rashpa_head head;
	__u32 resource;
	__u32 __reserved;
	__aligned_u64 out_used;
	__aligned_u64 out_limit;
	__aligned_u64 out_shared_used;
	__aligned_u64 out_shared_limit;
	__aligned_u64 out_user_used;
	__aligned_u64 out_user_limit;
};
struct rashpa_look {
	struct rashpa_head head;
	__s32 fd;
	__u32 out_events;
};
#define RASHPA_ROLE_PRODUCER	_BITUL(0)
#define RASHPA_ROLE_CONSUMER	_BITUL(1)
#define RASHPA_ROLES		2
struct rashpa_role {
	struct rashpa_head head;
	__u32 take;
	__u32 drop;
	__u32 out_mine;
	__u32 out_held;
	__u32 out_uid[RASHPA_ROLES];
	__s32 out_pid[RASHPA_ROLES];
};
struct rashpa_export {
	struct rashpa_head head;
	__s32 out_fd;
	__u32 __reserved;
};
struct rashpa_remove {
	struct rashpa_head head;
};
enum rashpa_state {
	RASHPA_STATE_READY = 0,
	RASHPA_STATE_STUCK = 1,
};
#define RASHPA_DEVICE_IOMMU	_BITUL(0)
#define RASHPA_DEVICE_PROFILE	_BITUL(1)
#define RASHPA_DEVICE_DISCLOSE	_BITUL(2)
#define RASHPA_DEVICE_MASTER	_BITUL(3)
#define RASHPA_DEVICE_FETCH	_BITUL(4)
struct rashpa_device_info {
	struct rashpa_head head;
	__u32 out_vendor;
	__u32 out_device;
	__u32 out_subvendor;
	__u32 out_subdevice;
	__u32 out_domain;
	__u32 out_bus;
	__u32 out_devfn;
	__u32 out_vectors;
	__s32 out_node;
	__u32 out_dma_bits;
	__u32 out_flags;
	__u32 out_state;
	__u32 out_maps;
	__u32 out_windows;
	__aligned_u64 out_quiesces;
	__aligned_u64 out_interrupts;
	__u32 out_engines;
	__u32 __reserved;
	__aligned_u64 out_engine_stops;
};
#define RASHPA_REGION_MEMORY	_BITUL(0)
#define RASHPA_REGION_PREFETCH	_BITUL(1)
#define RASHPA_REGION_64BIT	_BITUL(2)
struct rashpa_region_info {
	struct rashpa_head head;
	__u32 bar;
	__u32 out_flags;
	__aligned_u64 out_length;
};
#define RASHPA_PROFILE_WINDOWS_MAX	64
#define RASHPA_PROFILE_STEPS_MAX	32
#define RASHPA_QUIESCE_US_MAX		10000000
#define RASHPA_PROFILE_ENGINES_MAX	64
#define RASHPA_ENGINE_STEPS_MAX		8
#define RASHPA_PWINDOW_USER	_BITUL(0)
struct rashpa_profile_window {
	char name[RASHPA_PROFILE_NAME_SIZE];
	__u32 bar;
	__u32 flags;
	__aligned_u64 offset;
	__aligned_u64 length;
	__u32 cache;
	__u32 __reserved;
};
enum rashpa_step_op {
	RASHPA_STEP_WRITE = 1,
	RASHPA_STEP_WAIT = 2,
};
struct rashpa_profile_step {
	__u32 op;
	__u32 bar;
	__aligned_u64 offset;
	__u32 value;
	__u32 mask;
	__u32 timeout_us;
	__u32 __reserved;
};
#define RASHPA_LAYOUT_UPPER_FIRST	_BITUL(0)
#define RASHPA_LAYOUT_WRITE_ONLY	_BITUL(1)
struct rashpa_layout {
	__u32 stride;
	__u32 address_offset;
	__u32 address_bits;
	__u32 length_offset;
	__u32 length_bits;
	__u32 control_offset;
	__u32 control_bits;
	__u32 control_set;
	__u32 control_clear;
	__u32 flags;
	__aligned_u64 segment_size;
	__u32 sum_offset;
	__u32 sum_bits;
};
#define RASHPA_DESCRIPTORS_MAX		16777216
#define RASHPA_DESCRIPTOR_SIZE_MAX	256
#define RASHPA_FETCH_FIELDS_MAX		32
#define RASHPA_FETCH_REGISTERS_MAX	16
enum rashpa_fetch_kind {
	RASHPA_FETCH_CONSTANT = 1,
	RASHPA_FETCH_ADDRESS = 2,
	RASHPA_FETCH_LENGTH = 3,
	RASHPA_FETCH_SUM = 4,
	RASHPA_FETCH_NEXT = 5,
	RASHPA_FETCH_INDEX = 6,
	RASHPA_FETCH_COUNT = 7,
};
#define RASHPA_FIELD_MINUS_ONE	_BITUL(0)
#define RASHPA_FIELD_FIRST	_BITUL(1)
#define RASHPA_FIELD_LAST	_BITUL(2)
#define RASHPA_FIELD_NOT_LAST	_BITUL(3)
struct rashpa_fetch_field {
	__u32 kind;
	__u32 flags;
	__u32 offset;
	__u32 bits;
	__u32 shift;
	__u32 width;
	__u32 unit;
	__u32 __reserved;
	__aligned_u64 value;
	__aligned_u64 clear;
};
#define RASHPA_FETCH_CLOSED	_BITUL(0)
struct rashpa_fetch {
	__u32 stride;
	__u32 flags;
	__u32 descriptor_size;
	__u32 max_descriptors;
	__aligned_u64 segment_size;
	__aligned_u64 fields;
	__aligned_u64 registers;
	__u32 n_fields;
	__u32 field_size;
	__u32 n_registers;
	__u32 register_size;
};
struct rashpa_profile_table {
	__u32 bar;
	__u32 __reserved;
	__aligned_u64 offset;
	__aligned_u64 length;
	__aligned_u64 layout;
	__aligned_u64 fetch;
	__u32 layout_size;
	__u32 fetch_size;
};
#define RASHPA_PENGINE_OPTIONAL	_BITUL(0)
struct rashpa_profile_engine {
	char name[RASHPA_PROFILE_NAME_SIZE];
	__u32 flags;
	__u32 bar;
	__aligned_u64 first_offset;
	__aligned_u64 limit_offset;
	__u32 first;
	__u32 count;
	__aligned_u64 steps;
	__u32 n_steps;
	__u32 step_size;
};
#define RASHPA_PROFILE_DISCLOSE	_BITUL(0)
#define RASHPA_PROFILE_NO_RESET	_BITUL(1)
struct rashpa_profile_set {
	struct rashpa_head head;
	__aligned_u64 windows;
	__aligned_u64 steps;
	__aligned_u64 table;
	__u32 n_windows;
	__u32 window_size;
	__u32 n_steps;
	__u32 step_size;
	__u32 table_size;
	__u32 engine_size;
	__u32 dma_bits;
	__u32 quiesce_us;
	__aligned_u64 max_segment;
	__aligned_u64 boundary;
	__aligned_u64 alignment;
	__aligned_u64 engines;
	__u32 n_engines;
	__u32 __reserved;
};
#define RASHPA_ENGINE_ABSENT	_BITUL(0)
struct rashpa_engine_info {
	struct rashpa_head head;
	__u32 index;
	__u32 out_flags;
	char out_name[RASHPA_PROFILE_NAME_SIZE];
	__u32 out_first;
	__u32 out_count;
	__u32 out_maps;
	__u32 __reserved;
	__aligned_u64 out_stops;
	__aligned_u64 out_failures;
};
#define RASHPA_WINDOW_BLANK	_BITUL(0)
struct rashpa_window_make {
	struct rashpa_head head;
	__u32 bar;
	__u32 cache;
	__aligned_u64 offset;
	__aligned_u64 length;
	char name[RASHPA_PROFILE_NAME_SIZE];
	__aligned_u64 out_length;
	__s32 out_fd;
	__u32 __reserved;
};
enum rashpa_direction {
	RASHPA_BIDIRECTIONAL = 0,
	RASHPA_TO_MEMORY = 1,
	RASHPA_FROM_MEMORY = 2,
};
enum rashpa_class {
	RASHPA_CLASS_HOST = 1,
	RASHPA_CLASS_IOVA = 2,
	RASHPA_CLASS_PEER = 3,
	RASHPA_CLASS_BRIDGE = 4,
};
#define RASHPA_MAP_DEVICE	_BITUL(0)
#define RASHPA_MAP_PIN		_BITUL(2)
#define RASHPA_MAPPED_REMAPPED	_BITUL(0)
#define RASHPA_MAPPED_COHERENT	_BITUL(1)
struct rashpa_map_make {
	struct rashpa_head head;
	__s32 fd;
	__u32 direction;
	__aligned_u64 offset;
	__aligned_u64 length;
	__aligned_u64 max_segment;
	__aligned_u64 boundary;
	__aligned_u64 alignment;
	__s32 out_fd;
	__u32 out_class;
	__aligned_u64 out_generation;
	__u32 out_segments;
	__u32 out_id;
	__aligned_u64 out_table_size;
	__aligned_u64 out_peer;
	__s32 out_peer_bar;
	__u32 out_flags;
};
#define RASHPA_QUIESCE_MAP	_BITUL(0)
struct rashpa_quiesce {
	struct rashpa_head head;
	__u32 map;
	__u32 __reserved;
	__aligned_u64 out_time_ns;
};
struct rashpa_reset {
	struct rashpa_head head;
};
struct rashpa_segment {
	__aligned_u64 address;
	__aligned_u64 length;
};
enum rashpa_map_state {
	RASHPA_MAP_STATE_VALID = 1,
	RASHPA_MAP_STATE_REVOKED = 2,
	RASHPA_MAP_STATE_PROGRAMMED = 3,
	RASHPA_MAP_STATE_UNPROGRAMMED = 4,
};
struct rashpa_table {
	__aligned_u64 generation;
	__u32 state;
	__u32 map_class;
	__u32 count;
	__u32 segment_size;
	__aligned_u64 __reserved[5];
	struct rashpa_segment segment[];
};
#define RASHPA_PROGRAM_AGAIN	_BITUL(0)
struct rashpa_program {
	struct rashpa_head head;
	__u32 first;
	__u32 out_entries;
	__aligned_u64 out_descriptors;
};
struct rashpa_restore {
	struct rashpa_head head;
	__aligned_u64 out_generation;
	__u32 out_class;
	__u32 out_segments;
};
#define RASHPA_SOURCES_MAX	2048
struct rashpa_channel_make {
	struct rashpa_head head;
	__u32 depth;
	__u32 sources;
	__u32 record_size;
	__s32 out_fd;
	__aligned_u64 out_ring_size;
	__aligned_u64 out_consumer;
	__aligned_u64 out_consumer_size;
};
enum rashpa_source {
	RASHPA_SOURCE_VECTOR = 1,
	RASHPA_SOURCE_DEVICE = 2,
	RASHPA_SOURCE_SOFTWARE = 3,
	RASHPA_SOURCE_LOCK = 4,
	RASHPA_SOURCE_MAP = 5,
	RASHPA_SOURCE_GROUP = 6,
	RASHPA_SOURCE_OVERRUN = 7,
	RASHPA_SOURCE_FULL = 8,
};
enum rashpa_condition {
	RASHPA_CONDITION_CHANGED = 1,
	RASHPA_CONDITION_EQUAL = 2,
	RASHPA_CONDITION_REACHED = 3,
};
enum rashpa_device_event {
	RASHPA_DEVICE_EVENT_QUIESCED = 1,
	RASHPA_DEVICE_EVENT_RESET = 2,
	RASHPA_DEVICE_EVENT_STUCK = 3,
	RASHPA_DEVICE_EVENT_GONE = 4,
	RASHPA_DEVICE_EVENT_ERROR = 5,
	RASHPA_DEVICE_EVENT_ENGINE = 6,
};
#define RASHPA_SOURCE_QUIET	_BITUL(0)
#define RASHPA_SOURCE_POLL	_BITUL(1)
#define RASHPA_SOURCE_LOOK	_BITUL(2)
#define RASHPA_SOURCE_ONE_SHOT	_BITUL(3)
#define RASHPA_PERIOD_MIN	20
#define RASHPA_PERIOD_MAX	1000000
struct rashpa_source_add {
	struct rashpa_head head;
	__u32 kind;
	__u32 index;
	__u32 out_id;
	__u32 __reserved;
	__s32 device;
	__s32 memory;
	__aligned_u64 offset;
	__aligned_u64 mask;
	__aligned_u64 value;
	__aligned_u64 step;
	__u32 condition;
	__u32 bits;
	__u32 period_us;
	__u32 budget;
};
struct rashpa_source_del {
	struct rashpa_head head;
	__u32 id;
	__u32 __reserved;
};
struct rashpa_source_info {
	struct rashpa_head head;
	__u32 id;
	__u32 out_kind;
	__u32 out_index;
	__s32 out_device;
	__aligned_u64 out_events;
	__aligned_u64 out_lost;
	__aligned_u64 out_value;
	__aligned_u64 out_looks;
	__aligned_u64 out_look_ns;
	__aligned_u64 out_since_ns;
	__aligned_u64 out_period_ns;
};
struct rashpa_arm {
	struct rashpa_head head;
	__u32 id;
	__u32 out_events;
	__aligned_u64 __reserved;
};
struct rashpa_eventfd_bind {
	struct rashpa_head head;
	__s32 fd;
	__u32 id;
};
#define RASHPA_MEMBERS_MAX	1024
#define RASHPA_FULL_NEVER	0xffffffffffffffffULL
struct rashpa_member {
	__u32 source;
	__u32 __reserved;
};
struct rashpa_group_make {
	struct rashpa_head head;
	__aligned_u64 members;
	__u32 n_members;
	__u32 member_size;
	__aligned_u64 slots;
	__aligned_u64 full;
	__aligned_u64 first;
	__u32 out_id;
	__u32 __reserved;
};
struct rashpa_ack {
	struct rashpa_head head;
	__u32 id;
	__u32 __reserved;
	__aligned_u64 position;
};
struct rashpa_member_info {
	__u32 source;
	__u32 __reserved;
	__aligned_u64 position;
	__aligned_u64 overruns;
	__aligned_u64 time_ns;
};
struct rashpa_group_info {
	struct rashpa_head head;
	__aligned_u64 members;
	__u32 id;
	__u32 n_members;
	__u32 member_size;
	__u32 out_members;
	__aligned_u64 out_position;
	__aligned_u64 out_ack;
	__aligned_u64 out_events;
	__aligned_u64 out_overruns;
};
struct rashpa_signal {
	struct rashpa_head head;
	__aligned_u64 value;
};
struct rashpa_event {
	__aligned_u64 sequence;
	__aligned_u64 time_ns;
	__u32 source;
	__u32 kind;
	__aligned_u64 value;
	__aligned_u64 lost;
};
struct rashpa_ring {
	__aligned_u64 head;
	__aligned_u64 lost;
	__u32 record;
	__u32 record_size;
	__u32 slots;
	__u32 depth;
	__u32 gone;
	__u32 __reserved;
};
struct rashpa_consumer {
	__aligned_u64 tail;
	__aligned_u64 __reserved[7];
	__aligned_u64 ack[];
};
#define RASHPA_IOC_ALLOC	_IO(RASHPA_IOC_TYPE, 0x00)
#define RASHPA_IOC_PIN		_IO(RASHPA_IOC_TYPE, 0x01)
#define RASHPA_IOC_QUERY	_IO(RASHPA_IOC_TYPE, 0x02)
#define RASHPA_IOC_INFO		_IO(RASHPA_IOC_TYPE, 0x04)
#define RASHPA_IOC_LIST		_IO(RASHPA_IOC_TYPE, 0x05)
#define RASHPA_IOC_LIMIT	_IO(RASHPA_IOC_TYPE, 0x06)
#define RASHPA_IOC_LOOK		_IO(RASHPA_IOC_TYPE, 0x07)
#define RASHPA_IOC_CHANNEL_MAKE	_IO(RASHPA_IOC_TYPE, 0x08)
#define RASHPA_IOC_EXPORT	_IO(RASHPA_IOC_TYPE, 0x10)
#define RASHPA_IOC_REMOVE	_IO(RASHPA_IOC_TYPE, 0x11)
#define RASHPA_IOC_ROLE		_IO(RASHPA_IOC_TYPE, 0x12)
#define RASHPA_IOC_DEVICE_INFO	_IO(RASHPA_IOC_TYPE, 0x20)
#define RASHPA_IOC_REGION_INFO	_IO(RASHPA_IOC_TYPE, 0x21)
#define RASHPA_IOC_PROFILE_SET	_IO(RASHPA_IOC_TYPE, 0x22)
#define RASHPA_IOC_WINDOW_MAKE	_IO(RASHPA_IOC_TYPE, 0x23)
#define RASHPA_IOC_MAP_MAKE		_IO(RASHPA_IOC_TYPE, 0x24)
#define RASHPA_IOC_QUIESCE	_IO(RASHPA_IOC_TYPE, 0x25)
#define RASHPA_IOC_RESET	_IO(RASHPA_IOC_TYPE, 0x26)
#define RASHPA_IOC_ENGINE_INFO	_IO(RASHPA_IOC_TYPE, 0x27)
#define RASHPA_IOC_PROGRAM	_IO(RASHPA_IOC_TYPE, 0x30)
#define RASHPA_IOC_RESTORE	_IO(RASHPA_IOC_TYPE, 0x31)
#define RASHPA_IOC_SOURCE_ADD	_IO(RASHPA_IOC_TYPE, 0x40)
#define RASHPA_IOC_SOURCE_DEL	_IO(RASHPA_IOC_TYPE, 0x41)
#define RASHPA_IOC_EVENTFD_BIND	_IO(RASHPA_IOC_TYPE, 0x42)
#define RASHPA_IOC_SIGNAL	_IO(RASHPA_IOC_TYPE, 0x43)
#define RASHPA_IOC_GROUP_MAKE	_IO(RASHPA_IOC_TYPE, 0x44)
#define RASHPA_IOC_ACK		_IO(RASHPA_IOC_TYPE, 0x45)
#define RASHPA_IOC_SOURCE_INFO	_IO(RASHPA_IOC_TYPE, 0x46)
#define RASHPA_IOC_GROUP_INFO	_IO(RASHPA_IOC_TYPE, 0x47)
#define RASHPA_IOC_ARM		_IO(RASHPA_IOC_TYPE, 0x48)
#endif
