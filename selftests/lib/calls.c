// SPDX-License-Identifier: LGPL-2.1-or-later
/* Every call of the driver in one table. */
#include <ctype.h>
#include <dirent.h>
#include <sys/eventfd.h>

#include <rashpa-fpga.h>
#include "calls.h"

#define NAME		"st-calls"
#define NAME_GONE	"st-calls-gone"	/* for REMOVE, and made again */
#define DOOMED_FD	900		/* its node */

struct calls calls;

const char *const node_names[] = { "memory", "doomed", "buffer", "fpga", "map", "channel" };

const char *const fd_names[] = {
	[FD_NONE] = "-1",
	[FD_CLOSED] = "closed",
	[FD_PATH] = "O_PATH",
	[FD_FILE] = "a file",
	[FD_PIPE] = "a pipe",
	[FD_EVENTFD] = "an eventfd",
	[FD_MEMORY] = "the memory node",
	[FD_NODE] = "a buffer's node",
	[FD_BUFFER] = "a buffer",
	[FD_PINNED] = "pinned memory",
	[FD_FOREIGN] = "memory of another driver",
	[FD_LOCK] = "lock memory",
	[FD_WINDOW] = "a window",
	[FD_FPGA] = "a function",
	[FD_FPGA_READ] = "a function, read-only",
	[FD_MAP] = "a map",
	[FD_CHANNEL] = "a channel",
};

/* ids in the channel that calls_open() makes */
enum { SOURCE_SOFTWARE = 1, SOURCE_DEVICE, SOURCE_GROUP, SOURCE_ONE_SHOT, SOURCE_MEMBER };

#define HOST_MEMORY	(1U << FD_BUFFER | 1U << FD_PINNED | 1U << FD_LOCK)
#define SOURCE_FLAGS	(RASHPA_SOURCE_QUIET | RASHPA_SOURCE_POLL | \
			 RASHPA_SOURCE_LOOK | RASHPA_SOURCE_ONE_SHOT | RASHPA_SOURCE_COUNTER)
#define DMABUFS		(HOST_MEMORY | 1U << FD_FOREIGN | 1U << FD_WINDOW)

/* --- a valid argument for each call, and how to undo the call --- */

static void valid_alloc(void *arg)
{
	((struct rashpa_alloc *)arg)->length = PAGE;
}

static void valid_alloc_named(void *arg)
{
	valid_alloc(arg);
	strcpy(((struct rashpa_alloc *)arg)->name, NAME "-new");
}

static void undo_alloc_named(void *arg)
{
	buffer_remove(NAME "-new");
}

static void valid_alloc_lock(void *arg)
{
	struct rashpa_alloc *alloc = arg;

	alloc->length = RASHPA_LOCK_SLOT;
	alloc->head.flags = RASHPA_ALLOC_LOCK;
}

/* Node of the buffer that REMOVE takes, with the same file descriptor each time. */
static void open_doomed(void *arg)
{
	int node = buffer_node(NAME_GONE, O_ACCMODE);

	if (node < 0)
		return;
	dup3(node, DOOMED_FD, O_CLOEXEC);
	close(node);
}

static void make_doomed(void *arg)
{
	struct rashpa_alloc a = { HEAD(a), .length = PAGE, .name = NAME_GONE };

	if (call(memory, RASHPA_IOC_ALLOC, &a))
		return;
	close(a.out_fd);
	open_doomed(arg);
}

static char pinned_pages[2 * PAGE];

static void valid_pin(void *arg)
{
	struct rashpa_pin *pin = arg;

	pin->address = ((uintptr_t)pinned_pages + PAGE - 1) & -PAGE;
	pin->length = PAGE;
}

static void valid_info(void *arg)
{
	((struct rashpa_info *)arg)->fd = calls.fds[FD_BUFFER];
}

static void valid_limit(void *arg)
{
	((struct rashpa_limit *)arg)->resource = RASHPA_RESOURCE_TIMERS;
}

static void valid_list(void *arg)
{
	/* several threads may have it filled */
	static struct rashpa_holding holdings[4];
	struct rashpa_list *list = arg;

	list->holdings = (uintptr_t)holdings;
	list->n_holdings = ARRAY_SIZE(holdings);
	list->holding_size = sizeof(*holdings);
}

static void valid_list_one(void *arg)
{
	valid_list(arg);
	((struct rashpa_list *)arg)->n_holdings = 1;
}

static void valid_buffer_info(void *arg)
{
	((struct rashpa_info *)arg)->fd = -1;
}

static void valid_no_bar(void *arg)
{
	((struct rashpa_region_info *)arg)->bar = RASHPA_BARS - 1;
}

static void valid_profile(void *arg)
{
	static const struct rashpa_profile_window window = {
		.name = "doorbell", .bar = RFPGA_BAR_DOORBELL, .length = PAGE,
		.flags = RASHPA_PWINDOW_USER,
	};
	/* bounds outside all windows of these tests: on-board memory keeps what is written */
	static struct rashpa_profile_engine engine = {
		.name = "all", .bar = RFPGA_BAR_MEMORY, .first_offset = MIB,
		.limit_offset = MIB + 4, .count = RFPGA_TABLE_SIZE / RFPGA_ENTRY_STRIDE,
		.n_steps = ARRAY_SIZE(fpga_stop), .step_size = sizeof(fpga_stop[0]),
	};
	struct rashpa_profile_set *p = arg;

	engine.steps = (uintptr_t)fpga_stop;
	p->engines = (uintptr_t)&engine;
	p->n_engines = 1;
	p->engine_size = sizeof(engine);
	p->windows = (uintptr_t)&window;
	p->n_windows = 1;
	p->window_size = sizeof(window);
	p->steps = (uintptr_t)fpga_stop;
	p->n_steps = ARRAY_SIZE(fpga_stop);
	p->step_size = sizeof(fpga_stop[0]);
	p->table = (uintptr_t)&fpga_table;
	p->table_size = sizeof(fpga_table);
}

static void valid_window(void *arg)
{
	((struct rashpa_window_make *)arg)->length = PAGE;
}

static void valid_map(void *arg)
{
	((struct rashpa_map_make *)arg)->fd = calls.fds[FD_BUFFER];
}

static struct rashpa_source_add *source_of_kind(void *arg, uint32_t kind)
{
	struct rashpa_source_add *add = arg;

	add->kind = kind;
	add->device = -1;
	add->memory = -1;
	return add;
}

static void valid_source_add(void *arg)
{
	source_of_kind(arg, RASHPA_SOURCE_VECTOR)->index = 1;
}

static void valid_source_lock(void *arg)
{
	struct rashpa_source_add *add = source_of_kind(arg, RASHPA_SOURCE_LOCK);

	add->memory = calls.fds[FD_LOCK];
	add->condition = RASHPA_CONDITION_CHANGED;
	add->bits = 64;
}

static void valid_source_poll(void *arg)
{
	struct rashpa_source_add *add = arg;

	valid_source_lock(arg);
	add->head.flags = RASHPA_SOURCE_POLL;
	add->period_us = RASHPA_PERIOD_MAX;
}

static void valid_source_look(void *arg)
{
	valid_source_lock(arg);
	((struct rashpa_source_add *)arg)->head.flags = RASHPA_SOURCE_LOOK;
}

static void valid_look(void *arg)
{
	((struct rashpa_look *)arg)->fd = calls.fds[FD_LOCK];
}

static void valid_source_of(void *arg)
{
	source_of_kind(arg, RASHPA_SOURCE_MAP)->device = calls.fpga.fd;
}

static void undo_source_add(void *arg)
{
	source_del(calls.nodes[CHANNEL], ((struct rashpa_source_add *)arg)->out_id);
}

static void valid_source_del(void *arg)
{
	((struct rashpa_source_del *)arg)->id = SOURCE_DEVICE;
}

/* the lowest free id is given: it gets the same one */
static void make_source(void *arg)
{
	source_add(calls.nodes[CHANNEL], RASHPA_SOURCE_DEVICE, 0);
}

static void valid_eventfd(void *arg)
{
	((struct rashpa_eventfd_bind *)arg)->fd = calls.fds[FD_EVENTFD];
}

static void undo_eventfd(void *arg)
{
	bind_eventfd(calls.nodes[CHANNEL], -1, ((struct rashpa_eventfd_bind *)arg)->id);
}

static const struct rashpa_member members[] = { { .source = SOURCE_MEMBER } };

static void valid_group(void *arg)
{
	struct rashpa_group_make *group = arg;

	group->members = (uintptr_t)members;
	group->n_members = ARRAY_SIZE(members);
	group->member_size = sizeof(members[0]);
}

static void undo_group(void *arg)
{
	source_del(calls.nodes[CHANNEL], ((struct rashpa_group_make *)arg)->out_id);
}

static void valid_ack(void *arg)
{
	((struct rashpa_ack *)arg)->id = SOURCE_GROUP;
}

static void valid_source_info(void *arg)
{
	((struct rashpa_source_info *)arg)->id = SOURCE_SOFTWARE;
}

static void valid_arm(void *arg)
{
	((struct rashpa_arm *)arg)->id = SOURCE_ONE_SHOT;
}

static void valid_group_info(void *arg)
{
	/* several threads may have it filled, with the same */
	static struct rashpa_member_info info[RASHPA_MEMBERS_MAX];
	struct rashpa_group_info *group = arg;

	group->id = SOURCE_GROUP;
	group->members = (uintptr_t)info;
	group->n_members = ARRAY_SIZE(info);
	group->member_size = sizeof(info[0]);
}

#define AT(type, field)	offsetof(struct rashpa_##type, field)
#define END(type, field) \
	(offsetof(struct rashpa_##type, field) + sizeof(((struct rashpa_##type *)0)->field))
#define OP(at, call, type, ...) {					\
	.name = #call, .tag = #type, .node = (at), .cmd = RASHPA_IOC_##call, \
	.size = sizeof(struct rashpa_##type),				\
	.first = sizeof(struct rashpa_##type), __VA_ARGS__ }

#define ALLOC_FLAGS	(RASHPA_ALLOC_NODE | RASHPA_ALLOC_EXCLUSIVE | RASHPA_ALLOC_MODE | \
			 RASHPA_ALLOC_LOCK)

const struct op ops[] = {
	OP(MEMORY, ALLOC, alloc, .write = true, .flags = ALLOC_FLAGS,
	   .valid = valid_alloc, .out_fd = AT(alloc, out_fd)),
	OP(MEMORY, ALLOC, alloc, .write = true, .variant = "named", .flags = ALLOC_FLAGS,
	   .valid = valid_alloc_named, .out_fd = AT(alloc, out_fd),
	   .undo = undo_alloc_named),
	OP(MEMORY, ALLOC, alloc, .write = true, .variant = "of lock memory", .flags = ALLOC_FLAGS,
	   .valid = valid_alloc_lock, .out_fd = AT(alloc, out_fd)),
	OP(MEMORY, QUERY, query, .flags = RASHPA_QUERY_NODE, .reserved = { AT(query, __reserved) }),
	OP(MEMORY, INFO, info, .valid = valid_info,
	   .fds = { { AT(info, fd), DMABUFS, "not a dma-buf" } }),
	OP(MEMORY, PIN, pin, .write = true, .valid = valid_pin, .out_fd = AT(pin, out_fd),
	   .pointers = { { AT(pin, address), PAGE, true, true, 0, EFAULT } }),
	OP(MEMORY, LIST, list, .valid = valid_list_one,
	   .pointers = { { AT(list, holdings), sizeof(struct rashpa_holding),
			   true, false, 0, EFAULT } }),
	OP(MEMORY, LIST, list, .variant = "of four", .valid = valid_list),
	OP(MEMORY, LIMIT, limit, .valid = valid_limit,
	   .reserved = { AT(limit, __reserved) }),
	OP(MEMORY, LOOK, look, .valid = valid_look,
	   .fds = { { AT(look, fd), HOST_MEMORY, "" } }),
	OP(MEMORY, CHANNEL_MAKE, channel_make, .write = true, .out_fd = AT(channel_make, out_fd)),
	/* another process may have removed it and made the next one */
	OP(DOOMED, REMOVE, remove, .valid = open_doomed, .undo = make_doomed),
	OP(BUFFER, INFO, info, .valid = valid_buffer_info,
	   .fds = { { AT(info, fd), 1U << FD_NONE, "must be -1" } }),
	OP(BUFFER, EXPORT, export, .out_fd = AT(export, out_fd),
	   .reserved = { AT(export, __reserved) }),
	OP(BUFFER, ROLE, role),
	OP(FPGA, DEVICE_INFO, device_info),
	OP(FPGA, REGION_INFO, region_info),
	OP(FPGA, REGION_INFO, region_info, .variant = "without a BAR", .valid = valid_no_bar),
	OP(FPGA, ENGINE_INFO, engine_info),
	OP(FPGA, LIST, list, .valid = valid_list_one,
	   .pointers = { { AT(list, holdings), sizeof(struct rashpa_holding),
			   true, false, 0, EFAULT } }),
	OP(FPGA, PROFILE_SET, profile_set, .write = true, .idle = true,
	   .flags = RASHPA_PROFILE_DISCLOSE | RASHPA_PROFILE_NO_RESET,
	   .valid = valid_profile,
	   .pointers = {
		{ AT(profile_set, engines), sizeof(struct rashpa_profile_engine), false, false, 0,
		  EFAULT },
		{ AT(profile_set, windows), sizeof(struct rashpa_profile_window), false, false,
		  offsetof(struct rashpa_profile_window, __reserved), EFAULT },
		{ AT(profile_set, steps), 2 * sizeof(struct rashpa_profile_step), false, false,
		  offsetof(struct rashpa_profile_step, flags), EFAULT },
		{ AT(profile_set, table), sizeof(struct rashpa_profile_table), false, false,
		  offsetof(struct rashpa_profile_table, __reserved), EINVAL } },
	   .reserved = { AT(profile_set, __reserved) }),
	OP(FPGA, WINDOW_MAKE, window_make, .write = true, .valid = valid_window,
	   .flags = RASHPA_WINDOW_BLANK,
	   .out_fd = AT(window_make, out_fd), .reserved = { AT(window_make, __reserved) }),
	OP(FPGA, MAP_MAKE, map_make, .write = true,
	   .flags = RASHPA_MAP_DEVICE | RASHPA_MAP_PIN, .valid = valid_map,
	   .out_fd = AT(map_make, out_fd),
	   .fds = { { AT(map_make, fd), HOST_MEMORY | 1U << FD_FOREIGN, "" } }),
	OP(FPGA, CHANNEL_MAKE, channel_make, .write = true, .out_fd = AT(channel_make, out_fd)),
	OP(FPGA, QUIESCE, quiesce, .write = true, .flags = RASHPA_QUIESCE_MAP,
	   .apart = RASHPA_QUIESCE_MAP, .reserved = { AT(quiesce, __reserved) }),
	OP(FPGA, RESET, reset, .write = true),
	OP(MAP, PROGRAM, program, .flags = RASHPA_PROGRAM_AGAIN),
	OP(MAP, RESTORE, restore),
	OP(CHANNEL, SOURCE_ADD, source_add,
	   .flags = SOURCE_FLAGS,
	   .valid = valid_source_add, .undo = undo_source_add,
	   .reserved = { AT(source_add, __reserved) }),
	OP(CHANNEL, SOURCE_ADD, source_add, .variant = "word",
	   .flags = SOURCE_FLAGS,
	   .valid = valid_source_lock, .undo = undo_source_add,
	   .fds = { { AT(source_add, memory), HOST_MEMORY, "" } }),
	OP(CHANNEL, SOURCE_ADD, source_add, .variant = "polled word",
	   .flags = SOURCE_FLAGS,
	   .valid = valid_source_poll, .undo = undo_source_add,
	   .fds = { { AT(source_add, memory), HOST_MEMORY, "" } }),
	OP(CHANNEL, SOURCE_ADD, source_add, .variant = "word for LOOK",
	   .flags = SOURCE_FLAGS, .valid = valid_source_look, .undo = undo_source_add,
	   .fds = { { AT(source_add, memory), HOST_MEMORY, "" } }),
	OP(CHANNEL, SOURCE_ADD, source_add, .variant = "function",
	   .flags = SOURCE_FLAGS,
	   .valid = valid_source_of, .undo = undo_source_add,
	   .fds = { { AT(source_add, device), 1U << FD_FPGA | 1U << FD_NONE, "device: fd" } }),
	OP(CHANNEL, SOURCE_DEL, source_del, .valid = valid_source_del,
	   .undo = make_source, .reserved = { AT(source_del, __reserved) }),
	OP(CHANNEL, EVENTFD_BIND, eventfd_bind, .valid = valid_eventfd,
	   .undo = undo_eventfd,
	   .fds = { { AT(eventfd_bind, fd), 1U << FD_EVENTFD | 1U << FD_NONE,
			 "not an eventfd" } }),
	OP(CHANNEL, SIGNAL, signal),
	OP(CHANNEL, GROUP_MAKE, group_make, .valid = valid_group, .undo = undo_group,
	   .reserved = { AT(group_make, __reserved) },
	   .pointers = { { AT(group_make, members), sizeof(members), false, false,
			   offsetof(struct rashpa_member, __reserved), EFAULT } }),
	OP(CHANNEL, ARM, arm, .valid = valid_arm, .reserved = { AT(arm, __reserved) }),
	OP(CHANNEL, ACK, ack, .valid = valid_ack, .reserved = { AT(ack, __reserved) }),
	OP(CHANNEL, SOURCE_INFO, source_info, .valid = valid_source_info),
	OP(CHANNEL, GROUP_INFO, group_info, .valid = valid_group_info,
	   .pointers = { { AT(group_info, members), sizeof(struct rashpa_member_info),
			   true, false, 0, EINVAL } }),
};

const size_t n_ops = ARRAY_SIZE(ops);

/* all fields of the header that are named out_, see Makefile */
#define OUT(type, field)	{ #type, AT(type, field), END(type, field) },
static const struct { const char *tag; size_t at, end; } outs[] = {
#include "outs.h"
};

_Static_assert(ARRAY_SIZE(outs) > 50, "the header is not understood");

/* -------------------------------------------------------- requirements --- */

static void node_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void need(int fd, const char *what)
{
	if (fd < 0)
		tap_bail("no %s: %s", what, reason);
}

static int map_new(void)
{
	struct rashpa_map_make map;

	return fpga_map(&calls.fpga, calls.fds[FD_BUFFER], RASHPA_BIDIRECTIONAL, &map);
}

/* A channel with the sources and the group that arguments name. */
static int channel_new(void)
{
	const struct rashpa_member software = { .source = SOURCE_SOFTWARE };
	struct rashpa_group_make group = { HEAD(group) };
	struct rashpa_source_add one_shot = { HEAD(one_shot) };
	int fd = fpga_events(&calls.fpga, 0);

	if (fd < 0)
		return fd;
	valid_source_look(&one_shot);
	one_shot.head.flags |= RASHPA_SOURCE_ONE_SHOT;
	valid_group(&group);
	group.members = (uintptr_t)&software;
	if (source_add(fd, RASHPA_SOURCE_SOFTWARE, 0) != SOURCE_SOFTWARE ||
	    source_add(fd, RASHPA_SOURCE_DEVICE, 0) != SOURCE_DEVICE ||
	    call(fd, RASHPA_IOC_GROUP_MAKE, &group) || group.out_id != SOURCE_GROUP ||
	    call(fd, RASHPA_IOC_SOURCE_ADD, &one_shot) || one_shot.out_id != SOURCE_ONE_SHOT ||
	    source_add(fd, RASHPA_SOURCE_VECTOR, 0) != SOURCE_MEMBER) {
		close(fd);
		return -ENODEV;
	}
	return fd;
}

static void function_idle(void)
{
	node_close(&calls.fds[FD_WINDOW]);
	node_close(&calls.nodes[MAP]);
	calls.fds[FD_MAP] = -1;
}

static void function_busy(void)
{
	if (calls.nodes[MAP] >= 0)
		return;
	calls.fds[FD_WINDOW] = fpga_window(&calls.fpga, RFPGA_BAR_REGS, 0, RFPGA_BAR_REGS_SIZE, 0);
	need(calls.fds[FD_WINDOW], "window");
	calls.nodes[MAP] = map_new();
	need(calls.nodes[MAP], "map");
	calls.fds[FD_MAP] = calls.nodes[MAP];
}

void calls_function_idle(bool idle)
{
	if (!calls.have_fpga)
		return;
	if (idle)
		function_idle();
	else
		function_busy();
}

void calls_function_open(void)
{
	struct rashpa_profile_set p = { HEAD(p) };
	struct rashpa_alloc lock;
	char path[48];

	calls.have_fpga = fpga_open(&calls.fpga, 0);
	if (!calls.have_fpga)
		return;
	valid_profile(&p);
	if (call(calls.fpga.fd, RASHPA_IOC_PROFILE_SET, &p))
		tap_bail("profile: %s", reason);
	calls.fds[FD_FPGA] = calls.fpga.fd;
	calls.nodes[FPGA] = calls.fpga.fd;
	snprintf(path, sizeof(path), "/dev/rashpa/%s", calls.fpga.name);
	calls.fds[FD_FPGA_READ] = open(path, O_RDONLY | O_CLOEXEC);
	need(calls.fds[FD_FPGA_READ], "read-only function");
	if (!lock_alloc(1, NULL, &lock))
		calls.fds[FD_LOCK] = lock.out_fd;
	need(calls.fds[FD_LOCK], "lock memory");
	calls.nodes[CHANNEL] = channel_new();
	need(calls.nodes[CHANNEL], "channel");
	calls.fds[FD_CHANNEL] = calls.nodes[CHANNEL];
	function_busy();
	fpga_watch(&calls.fpga);
}

void calls_function_close(void)
{
	if (!calls.have_fpga)
		return;
	function_idle();
	node_close(&calls.nodes[CHANNEL]);
	calls.fds[FD_CHANNEL] = -1;
	node_close(&calls.fds[FD_LOCK]);
	node_close(&calls.fds[FD_FPGA_READ]);
	fpga_close(&calls.fpga);
	calls.fds[FD_FPGA] = -1;
	calls.nodes[FPGA] = -1;
}

void calls_function_again(void)
{
	int err;

	calls_function_close();
	err = fpga_bind(&calls.fpga);
	if (err)
		tap_bail("bind: %s", strerror(-err));
	calls_function_open();
}

void calls_open(void)
{
	struct rashpa_pin pin = { HEAD(pin) };
	int pipes[2], i;

	for (i = 0; i < NODES; i++)
		calls.nodes[i] = -1;
	for (i = 0; i < FD_KINDS; i++)
		calls.fds[i] = -1;
	calls.nodes[MEMORY] = memory;
	calls.fds[FD_MEMORY] = memory;
	calls.fds[FD_BUFFER] = buffer_alloc(PAGE, NAME);
	need(calls.fds[FD_BUFFER], "buffer");
	make_doomed(NULL);
	calls.nodes[DOOMED] = DOOMED_FD;
	calls.nodes[BUFFER] = buffer_node(NAME, O_RDWR);
	need(calls.nodes[BUFFER], "node of a buffer");
	calls.fds[FD_NODE] = calls.nodes[BUFFER];
	valid_pin(&pin);
	if (!call(memory, RASHPA_IOC_PIN, &pin))
		calls.fds[FD_PINNED] = pin.out_fd;
	need(calls.fds[FD_PINNED], "pinned memory");
	calls.fds[FD_FOREIGN] = foreign_dmabuf(PAGE);
	calls.fds[FD_PATH] = open("/dev/rashpa/memory", O_PATH | O_CLOEXEC);
	calls.fds[FD_FILE] = memfd_create("file", MFD_CLOEXEC);
	calls.fds[FD_EVENTFD] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (pipe2(pipes, O_CLOEXEC))
		tap_bail("pipe: %s", strerror(errno));
	close(pipes[1]);
	calls.fds[FD_PIPE] = pipes[0];
	/* far above all open file descriptors */
	calls.fds[FD_CLOSED] = 1000;
	calls_function_open();
}

void calls_close(void)
{
	static const enum fd_kind kinds[] = {
		FD_PATH, FD_FILE, FD_PIPE, FD_EVENTFD, FD_NODE, FD_BUFFER, FD_PINNED,
		FD_FOREIGN,
	};
	size_t i;

	calls_function_close();
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		node_close(&calls.fds[kinds[i]]);
	/* a call may have been killed between REMOVE and the new one */
	buffer_remove(NAME_GONE);
	node_close(&calls.nodes[DOOMED]);
	if (buffer_remove(NAME))
		tap_bail("REMOVE: %s", reason);
}

int calls_node(enum node node)
{
	char path[48];
	int fd;

	switch (node) {
	case MEMORY:
		fd = open("/dev/rashpa/memory", O_RDWR | O_CLOEXEC);
		break;
	case DOOMED:
		fd = buffer_node(NAME_GONE, O_ACCMODE);
		break;
	case BUFFER:
		fd = buffer_node(NAME, O_RDWR);
		break;
	case FPGA:
		snprintf(path, sizeof(path), "/dev/rashpa/%s", calls.fpga.name);
		fd = open(path, O_RDWR | O_CLOEXEC);
		break;
	case MAP:
		return map_new();
	default:
		return channel_new();
	}
	return fd < 0 ? -errno : fd;
}

/* ------------------------------------------------------------- calling -- */

const char *op_name(const struct op *op)
{
	static char name[64];

	snprintf(name, sizeof(name), "%s%s%s on %s", op->name, op->variant ? " " : "",
		 op->variant ?: "", node_names[op->node]);
	return name;
}

const char *op_key(const struct op *op)
{
	static char key[64];
	char *p;

	snprintf(key, sizeof(key), "%s", op_name(op));
	for (p = key; *p; p++)
		*p = *p == ' ' || *p == ',' ? '-' : tolower(*p);
	return key;
}

void op_test(const struct op *op, void (*test)(const struct op *op))
{
	if ((op->node >= FPGA || op->function) && !calls.have_fpga) {
		tap_skip("no software FPGA");
		return;
	}
	calls_function_idle(op->idle);
	test(op);
	calls_function_idle(false);
}

bool op_served(enum node node, unsigned int cmd)
{
	size_t i;

	for (i = 0; i < n_ops; i++)
		if (ops[i].cmd == cmd && (ops[i].node == node ||
					  (ops[i].node == BUFFER && node == DOOMED) ||
					  (ops[i].node == DOOMED && node == BUFFER)))
			return true;
	return false;
}

bool op_out(const struct op *op, size_t at)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(outs); i++)
		if (!strcmp(outs[i].tag, op->tag) && at >= outs[i].at && at < outs[i].end)
			return true;
	return false;
}

bool op_stays(const struct op *op)
{
	return op->undo && op_answers(op);
}

bool op_answers(const struct op *op)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(outs); i++)
		if (!strcmp(outs[i].tag, op->tag))
			return true;
	return false;
}

void op_prepare(const struct op *op, union call_arg *arg)
{
	memset(arg, 0, op->size + 4096);
	if (op->valid)
		op->valid(arg);
	arg->head.size = op->size;
}

void op_undo(const struct op *op, union call_arg *arg)
{
	if (op->out_fd)
		close(op_fd(op, arg));
	if (op->undo)
		op->undo(arg);
}

void op_lost(const struct op *op, union call_arg *arg)
{
	uint32_t id;

	if (!op_stays(op))
		return;
	if (op->node == CHANNEL)
		for (id = SOURCE_MEMBER + 1; id <= SOURCE_MEMBER + 8; id++)
			source_del(calls.nodes[CHANNEL], id);
	else
		op->undo(arg);
}

int op_run(const struct op *op, int fd, union call_arg *arg)
{
	int err = call(fd, op->cmd, arg);

	if (!err)
		op_undo(op, arg);
	return err;
}

/* ----------------------------------------------------------- leftovers --- */

static unsigned int count_names(void)
{
	DIR *dir = opendir("/sys/class/rashpa");
	struct dirent *entry;
	unsigned int n = 0;

	if (!dir)
		tap_bail("/sys/class/rashpa cannot be read");
	while ((entry = readdir(dir)))
		n += !strncmp(entry->d_name, "buffer!", 7);
	closedir(dir);
	return n;
}

/* number of holdings that are charged to a user */
static unsigned int count_holdings(void)
{
	struct rashpa_list list = { HEAD(list) };

	if (ioctl(memory, RASHPA_IOC_LIST, &list))
		tap_bail("LIST: %s", strerror(errno));
	return list.out_count;
}

static unsigned int count_sources(void)
{
	struct rashpa_source_info info = { HEAD(info) };
	unsigned int n = 0;

	/* the lowest free id is given */
	for (info.id = 1; info.id <= 16; info.id++)
		n += !ioctl(calls.nodes[CHANNEL], RASHPA_IOC_SOURCE_INFO, &info);
	return n;
}

void calls_state_get(struct calls_state *s)
{
	struct rashpa_device_info device = { HEAD(device) };
	struct rashpa_info info = { HEAD(info), .fd = calls.fds[FD_BUFFER] };

	memset(s, 0, sizeof(*s));
	s->fds = fds_open();
	s->names = count_names();
	s->holdings = count_holdings();
	s->pinned = read_kib("/proc/self/status", "VmPin");
	if (ioctl(memory, RASHPA_IOC_INFO, &info))
		tap_bail("INFO: %s", strerror(errno));
	s->importers = info.out_importers;
	s->mappings = info.out_mappings;
	if (!calls.have_fpga || calls.nodes[FPGA] < 0)
		return;
	s->sources = count_sources();
	if (ioctl(calls.fpga.fd, RASHPA_IOC_DEVICE_INFO, &device))
		tap_bail("DEVICE_INFO: %s", strerror(errno));
	s->maps = device.out_maps;
	s->windows = device.out_windows;
}

bool calls_state_same(const struct calls_state *before, const char *what)
{
	struct calls_state now;
	bool same = true;

	calls_state_get(&now);
#define SAME(field)							\
	same &= CHECK(now.field == before->field, "%s: %llu " #field " before, %llu after", \
		      what, (u64)before->field, (u64)now.field)
	SAME(fds);
	SAME(names);
	SAME(holdings);
	SAME(sources);
	SAME(importers);
	SAME(mappings);
	SAME(maps);
	SAME(windows);
	SAME(pinned);
#undef SAME
	return same;
}
