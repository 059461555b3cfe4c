# SPDX-License-Identifier: LGPL-2.1-or-later
"""Declarations of librashpa for cffi; tools/python/tests/abi.py compares them with the C headers.

An installed package needs no compiler. Padding by the alignment of the headers is declared as
fields whose names begin with "_pad".
"""
import os

import cffi

STREAM = """
#define RASHPA_STREAM_NAME 64
#define RASHPA_STREAM_STAGES 16
#define RASHPA_STREAM_WORD 16
#define RASHPA_STREAM_OBSERVE 1
#define RASHPA_STREAM_FROM_START 2
#define RASHPA_STREAM_LATEST 4
#define RASHPA_STREAM_FRESH 8
#define RASHPA_STREAM_WRITE 16
#define RASHPA_STREAM_NO_DATA 32
#define RASHPA_STACK_INCOMPLETE 1
#define RASHPA_STACK_WRONG 2
#define RASHPA_STACK_ROLES 4
#define RASHPA_PLAN_META 1
#define RASHPA_PLAN_RESUME 2

enum rashpa_stream_state {
	RASHPA_STREAM_IDLE = 0,
	RASHPA_STREAM_RUNNING = 1,
	RASHPA_STREAM_DRAINING = 2,
	RASHPA_STREAM_ENDED = 3,
};

enum rashpa_stream_policy {
	RASHPA_STREAM_WAIT = 0,
	RASHPA_STREAM_OVERWRITE = 1,
	RASHPA_STREAM_DROP = 2,
};

enum rashpa_pixel {
	RASHPA_PIXEL_U8 = 1,
	RASHPA_PIXEL_U16 = 2,
	RASHPA_PIXEL_U32 = 3,
	RASHPA_PIXEL_U64 = 4,
	RASHPA_PIXEL_I8 = 5,
	RASHPA_PIXEL_I16 = 6,
	RASHPA_PIXEL_I32 = 7,
	RASHPA_PIXEL_I64 = 8,
	RASHPA_PIXEL_F32 = 9,
	RASHPA_PIXEL_F64 = 10,
};

enum rashpa_stream_unit {
	RASHPA_STREAM_IMAGES = 0,
	RASHPA_STREAM_STACKS = 1,
};

enum rashpa_image_role {
	RASHPA_IMAGE_SIGNAL = 0,
	RASHPA_IMAGE_DARK = 1,
};

enum rashpa_stream_content {
	RASHPA_CONTENT_IMAGE = 0,
	RASHPA_CONTENT_PROFILE = 1,
	RASHPA_CONTENT_PEAKS = 2,
};

enum rashpa_result_word {
	RASHPA_RESULT_IMAGES = 0,
	RASHPA_RESULT_KEPT = 1,
	RASHPA_RESULT_ABOVE = 2,
	RASHPA_RESULT_PEAKS = 3,
};

enum rashpa_stage_kind {
	RASHPA_STAGE_PROCESS = 0,
	RASHPA_STAGE_SINK = 1,
};

struct rashpa_stream_stage {
	char name[RASHPA_STREAM_WORD];
	uint32_t kind;
	uint32_t __reserved;
	uint64_t images;
	uint64_t lost;
	uint64_t ns;
	uint64_t bytes_in, bytes_out;
};

struct rashpa_stream_work {
	uint32_t sequence;
	uint32_t run;
	uint64_t time_ns;
	char engine[RASHPA_STREAM_WORD];
	uint64_t images;
	uint64_t dark;
	uint64_t vetoed;
	uint64_t overflow;
	uint64_t lost;
	uint32_t queue;
	uint32_t queue_fill;
	uint32_t queue_most;
	uint32_t stages;
	uint64_t queue_full;
	struct rashpa_stream_stage stage[RASHPA_STREAM_STAGES];
	uint64_t late;
};

struct rashpa_stream_header {
	uint64_t magic;
	uint32_t header_size;
	uint32_t process_size;
	uint64_t generation;
	uint32_t run;
	uint32_t state;
	uint64_t start_ns;
	uint32_t width, height;
	uint32_t pixel;
	uint32_t bit_depth;
	uint32_t big_endian;
	uint32_t bunch;
	uint32_t slots;
	uint32_t policy;
	uint64_t data_offset;
	uint64_t line_stride, image_stride, slot_stride;
	uint64_t images;
	uint64_t first_stack;
	uint32_t sampling, phase;
	uint32_t unit;
	uint32_t live;
	uint32_t dataset_images;
	uint32_t dark_every;
	uint64_t dataset_sum;
	char dataset[RASHPA_STREAM_NAME];
	uint32_t processes, modules, locks;
	uint32_t module_size;
	uint64_t process_offset;
	uint64_t module_offset;
	uint64_t lock_offset;
	char lock_name[RASHPA_STREAM_NAME];
	char payload_name[RASHPA_STREAM_NAME];
	uint64_t meta_offset;
	uint64_t meta_slot;
	uint64_t record_offset;
	uint64_t record_size;
	uint64_t map_offset;
	uint64_t map_slot;
	uint32_t segments, map_class;
	uint64_t sent;
	uint64_t dropped;
	uint64_t lost;
	uint64_t missed;
	uint64_t _pad_consumed[5];
	uint64_t consumed;
	uint64_t credit;
	uint64_t _pad_waiting[6];
	uint32_t waiting;
	uint32_t content;
	uint64_t work_offset;
	uint64_t __reserved[6];
};

struct rashpa_stream_process {
	uint32_t function;
	uint32_t fpga;
	uint32_t number;
	uint32_t vector;
	uint32_t x, y, width, height;
	uint32_t origin_x, origin_y;
	uint32_t module;
	uint32_t lock;
	uint64_t doorbell_offset;
	uint32_t message, messages;
	uint32_t message_lines;
	uint32_t line_messages;
};

struct rashpa_stream_module {
	uint32_t x, y, width, height;
	uint32_t number;
	uint32_t __reserved[3];
};

struct rashpa_stack {
	void *data;
	uint64_t number;
	uint64_t frame;
	uint32_t images;
	uint32_t flags;
	uint32_t width;
	uint32_t height;
	uint32_t pixel;
	uint32_t pixel_bytes;
	uint64_t line_stride;
	uint64_t image_stride;
	uint32_t slot;
	uint32_t run;
	uint64_t lost;
	uint64_t skipped;
	uint64_t missing;
	uint64_t time_ns;
	uint64_t event_ns;
	uint64_t woken_ns;
	uint64_t user[8];
	struct rashpa_stream *stream;
};

struct rashpa_image {
	void *data;
	uint64_t frame;
	uint64_t trigger;
	uint64_t time;
	uint32_t role;
	uint32_t missing_lines;
	uint32_t known;
	uint32_t wrong;
};

struct rashpa_stream_stat {
	uint64_t stacks;
	uint64_t frames;
	uint64_t lost;
	uint64_t skipped;
	uint64_t incomplete;
	uint64_t held;
	uint64_t behind;
	uint64_t waits;
	uint64_t events;
	uint64_t events_lost;
	uint64_t overruns;
	uint64_t consumed;
	uint32_t state;
	int32_t producer;
	int32_t consumer;
	uint32_t __reserved;
};

struct rashpa_stream_plan {
	struct rashpa_stream_header header;
	const struct rashpa_stream_process *process;
	const struct rashpa_stream_module *module;
	uint32_t processes;
	uint32_t modules;
	uint32_t flags;
	uint32_t close_after;
	uint64_t close_ns;
	uint64_t __reserved[3];
};

int rashpa_stream_accept(struct rashpa_stream *stream, const char *name);
int rashpa_stream_open(const char *buffer, unsigned int flags, struct rashpa_stream **stream);
void rashpa_stream_close(struct rashpa_stream *stream);
int rashpa_stream_begin(struct rashpa_stream *stream, int64_t timeout_ns);
int rashpa_stream_next_sized(struct rashpa_stream *stream, struct rashpa_stack *stack,
			     int64_t timeout_ns, size_t size);
int rashpa_stream_release(struct rashpa_stream *stream, const struct rashpa_stack *stack);
int rashpa_stream_done(struct rashpa_stream *stream, const struct rashpa_stack *stack);
int rashpa_stream_payload(struct rashpa_stream *stream);
int rashpa_stack_intact(const struct rashpa_stack *stack);
int rashpa_stack_image_sized(const struct rashpa_stack *stack, uint32_t index,
			     struct rashpa_image *image, size_t size);
int rashpa_stack_missing(const struct rashpa_stack *stack, uint32_t process, uint32_t message);
int rashpa_stream_fd(struct rashpa_stream *stream);
void rashpa_stream_wake(struct rashpa_stream *stream);
void rashpa_stream_get_stat_sized(struct rashpa_stream *stream, struct rashpa_stream_stat *stat,
				size_t size);
int rashpa_stream_told_sized(struct rashpa_stream *stream, struct rashpa_stream_work *work,
			     size_t size);
const struct rashpa_stream_header *rashpa_stream_get_header(const struct rashpa_stream *stream);
int rashpa_stream_await_end_sized(struct rashpa_stream *stream, struct rashpa_stream_header *count,
			       int64_t timeout_ns, size_t size);
int rashpa_stream_create_sized(const char *buffer, const struct rashpa_stream_plan *plan,
			       struct rashpa_stream **stream, size_t plan_size,
			       size_t header_size, size_t process_size, size_t module_size);
int rashpa_stream_start(struct rashpa_stream *stream, uint32_t segments, uint32_t map_class);
int rashpa_stream_slot_sized(struct rashpa_stream *stream, struct rashpa_stack *stack,
			     int64_t timeout_ns, size_t size);
int rashpa_stack_describe_sized(const struct rashpa_stack *stack, uint32_t process, uint32_t index,
				const struct rashpa_image *image, size_t size);
int rashpa_stream_publish(struct rashpa_stream *stream, const struct rashpa_stack *stack);
"""

EVENTS = """
#define RASHPA_IOC_SOURCE_ADD 59200
#define RASHPA_SOURCE_LOOK 4
#define RASHPA_SOURCE_ONE_SHOT 8

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

struct rashpa_head {
	uint32_t size;
	uint32_t flags;
	uint64_t reason;
	uint32_t reason_size;
	uint32_t __reserved;
};

struct rashpa_source_add {
	struct rashpa_head head;
	uint32_t kind;
	uint32_t index;
	uint32_t out_id;
	uint32_t __reserved;
	int32_t device;
	int32_t memory;
	uint64_t offset;
	uint64_t mask;
	uint64_t value;
	uint64_t step;
	uint32_t condition;
	uint32_t bits;
	uint32_t period_us;
	uint32_t budget;
};

struct rashpa_event {
	uint64_t sequence;
	uint64_t time_ns;
	uint32_t source;
	uint32_t kind;
	uint64_t value;
	uint64_t lost;
};

int rashpa_memory_open(void);
int rashpa_device_open(unsigned int number);
int rashpa_buffer_dmabuf(int buffer);
int rashpa_memory_look(int memory, int fd);
int rashpa_channel_open(int node, unsigned int depth);
int rashpa_ioctl(int fd, unsigned long request, void *arg, size_t size);
int rashpa_channel_arm(int channel, unsigned int id);
"""

BUFFERS = """
const char *rashpa_reason(void);
const char *rashpa_version(void);
int rashpa_buffer_open(const char *name, int flags);
int rashpa_buffer_list(char ***names);
void rashpa_buffer_list_free(char **names, int count);
int rashpa_mmap(int fd, uint64_t offset, uint64_t length, int prot, void **address);
"""

ffi = cffi.FFI()
ffi.cdef(STREAM + EVENTS + BUFFERS + """
int munmap(void *address, size_t length);
void *aligned_alloc(size_t alignment, size_t size);
void free(void *memory);
""")
try:
    lib = ffi.dlopen(os.environ.get("RASHPA_LIBRARY") or "librashpa.so.0")
except OSError as failure:
    raise ImportError(f"{failure}: install it, run ldconfig, or set RASHPA_LIBRARY "
                      "to its path") from None
libc = ffi.dlopen(None)

# struct rashpa_stream_header is aligned to a line of the cache, and so is what has one
LINE = 64
new_aligned = ffi.new_allocator(lambda size: libc.aligned_alloc(LINE, -(-size // LINE) * LINE),
                                libc.free)


def names_of(enum, prefix):
    """Names of an enum's numbers in Python: {0: "wait", ...}."""
    elements = ffi.typeof("enum " + enum).elements
    return {value: name.removeprefix(prefix).lower() for value, name in elements.items()}


def size_of(struct):
    """Bytes of a struct as declared here, for functions named ..._sized."""
    return ffi.sizeof(ffi.typeof(struct).item)


def shown(text):
    """Escape the text of another program as the tools do: see tools/common/shown.h."""
    text = text.decode(errors="backslashreplace")
    return "".join(c if c.isprintable() else "".join(f"\\x{byte:02x}" for byte in c.encode()) for c in text)


def plain(struct):
    """The fields of a struct as a dict of Python's own types."""
    fields = {}
    for name, field in struct_fields(struct):
        value = getattr(struct, name)
        if field.type.kind == "array":
            value = shown(ffi.string(value)) if field.type.item.cname == "char" else tuple(value)
        fields[name] = value
    return fields


def struct_fields(struct):
    kind = ffi.typeof(struct)
    kind = kind.item if kind.kind == "pointer" else kind
    return [(name, field) for name, field in kind.fields if not name.startswith("_")]
