// SPDX-License-Identifier: GPL-2.0-only
/* The rules that every ioctl keeps, tried on every ioctl. */
#include <limits.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include "../tools/lib/rashpa-fpga.h"
#include "common.h"

/* What is published does not change. */
#define SIZE(name, bytes) \
	_Static_assert(sizeof(struct rashpa_##name) == (bytes), #name)
SIZE(head, 24);
SIZE(alloc, 152);
SIZE(open, 96);
SIZE(remove, 88);
SIZE(permit, 104);
SIZE(pin, 48);
SIZE(query, 184);
SIZE(info, 168);
SIZE(dmabuf, 32);
SIZE(device_info, 104);
SIZE(region_info, 40);
SIZE(profile_window, 64);
SIZE(profile_step, 32);
SIZE(profile, 144);
SIZE(window, 96);
SIZE(map, 120);
SIZE(events, 48);
SIZE(lock, 104);
SIZE(quiesce, 32);
SIZE(reset, 24);
SIZE(segment, 16);
SIZE(table, 24);
SIZE(layout, 40);
SIZE(program, 96);
SIZE(restore, 40);
SIZE(source_add, 96);
SIZE(source_del, 32);
SIZE(eventfd, 40);
SIZE(signal, 32);
SIZE(source_info, 96);
SIZE(member, 8);
SIZE(group, 64);
SIZE(ack, 40);
SIZE(member_info, 56);
SIZE(group_info, 80);
SIZE(ring, 40);
SIZE(consumer, 576);
SIZE(event, 40);

enum node { MEMORY, BUFFER, FPGA, MAP, CHANNEL, NODES };

static const char *const node_names[] = { "memory", "buffer", "fpga", "map", "channel" };
static int nodes[NODES] = { -1, -1, -1, -1, -1 };
static struct fpga fpga;
static bool have_fpga;
static int buffer = -1, window = -1;

/* --- a valid argument for each; what it made is taken away again --- */

static void valid_alloc(void *arg)
{
	((struct rashpa_alloc *)arg)->length = PAGE;
}

static void undo_alloc(void *arg)
{
	close(((struct rashpa_alloc *)arg)->out_fd);
}

static void valid_open(void *arg)
{
	strcpy(((struct rashpa_open *)arg)->name, "st-abi");
}

static void undo_open(void *arg)
{
	close(((struct rashpa_open *)arg)->out_fd);
}

static void valid_remove(void *arg)
{
	strcpy(((struct rashpa_remove *)arg)->name, "st-abi-none");
}

static void valid_permit(void *arg)
{
	strcpy(((struct rashpa_permit *)arg)->name, "st-abi");
}

static void valid_pin(void *arg)
{
	static char page[2 * PAGE];
	struct rashpa_pin *pin = arg;

	pin->address = ((uintptr_t)page + PAGE - 1) & -PAGE;
	pin->length = PAGE;
}

static void undo_pin(void *arg)
{
	close(((struct rashpa_pin *)arg)->out_fd);
}

static void valid_info(void *arg)
{
	((struct rashpa_info *)arg)->fd = buffer;
}

static void valid_buffer_info(void *arg)
{
	((struct rashpa_info *)arg)->fd = -1;
}

static void undo_dmabuf(void *arg)
{
	close(((struct rashpa_dmabuf *)arg)->out_fd);
}

static void valid_window(void *arg)
{
	((struct rashpa_window *)arg)->length = PAGE;
}

static void undo_window(void *arg)
{
	close(((struct rashpa_window *)arg)->out_fd);
}

static void valid_map(void *arg)
{
	((struct rashpa_map *)arg)->fd = buffer;
}

static void undo_map(void *arg)
{
	close(((struct rashpa_map *)arg)->out_fd);
}

static void undo_events(void *arg)
{
	close(((struct rashpa_events *)arg)->out_fd);
}

static void valid_program(void *arg)
{
	struct rashpa_program *p = arg;

	p->window = window;
	p->offset = RFPGA_TABLE;
	p->length = RFPGA_TABLE_SIZE;
	fpga_layout(&p->layout);
}

static void valid_source_add(void *arg)
{
	((struct rashpa_source_add *)arg)->kind = RASHPA_SOURCE_SOFTWARE;
}

static void undo_source_add(void *arg)
{
	struct rashpa_source_del del = { HEAD(del) };

	del.id = ((struct rashpa_source_add *)arg)->out_id;
	ANSWERED(call(nodes[CHANNEL], RASHPA_IOC_SOURCE_DEL, &del), 0, NULL);
}

static void valid_source_del(void *arg)
{
	((struct rashpa_source_del *)arg)->id = 7;
}

static void valid_eventfd(void *arg)
{
	((struct rashpa_eventfd *)arg)->fd = -1;
}

static void valid_lock(void *arg)
{
	((struct rashpa_lock *)arg)->slots = 1;
}

static void undo_lock(void *arg)
{
	close(((struct rashpa_lock *)arg)->out_fd);
}

/* of a source that is not there */
static void valid_group(void *arg)
{
	static const struct rashpa_member member = { .source = 7 };

	((struct rashpa_group *)arg)->members = (uintptr_t)&member;
	((struct rashpa_group *)arg)->n_members = 1;
}

static void valid_nothing(void *arg)
{
	(void)arg;
}

#define R(type, field)	{ offsetof(struct rashpa_##type, field) }
#define END(type, field) \
	(offsetof(struct rashpa_##type, field) + sizeof(((struct rashpa_##type *)0)->field))
/* a struct that has grown: @last was the last field once */
#define GROWN(node, cmd, type, last, flags, valid, undo, ...) \
	{ #cmd, node, RASHPA_IOC_##cmd, sizeof(struct rashpa_##type), END(type, last), \
	  flags, valid, undo, __VA_ARGS__ }
#define OP(node, cmd, type, flags, valid, undo, ...) \
	{ #cmd, node, RASHPA_IOC_##cmd, sizeof(struct rashpa_##type), \
	  sizeof(struct rashpa_##type), flags, valid, undo, __VA_ARGS__ }

static const struct op {
	const char *name;
	enum node node;
	unsigned int cmd;
	uint32_t size;
	uint32_t first;		/* size as first published */
	uint32_t flags;		/* that are defined */
	void (*valid)(void *arg);
	void (*undo)(void *arg);
	struct { size_t at; } reserved[2];
} ops[] = {
	GROWN(MEMORY, ALLOC, alloc, __reserved,
	      RASHPA_ALLOC_NODE | RASHPA_ALLOC_EXCLUSIVE | RASHPA_ALLOC_MODE,
	      valid_alloc, undo_alloc, { R(alloc, __reserved), R(alloc, __reserved2) }),
	OP(MEMORY, OPEN, open, RASHPA_OPEN_EXCLUSIVE | RASHPA_OPEN_READ, valid_open,
	   undo_open, { R(open, __reserved) }),
	OP(MEMORY, REMOVE, remove, 0, valid_remove, NULL, {}),
	GROWN(MEMORY, QUERY, query, __reserved, RASHPA_QUERY_NODE | RASHPA_QUERY_TRY,
	      valid_nothing, NULL, { R(query, __reserved), R(query, __reserved2) }),
	GROWN(MEMORY, INFO, info, out_name, 0, valid_info, NULL, {}),
	OP(MEMORY, PERMIT, permit,
	   RASHPA_PERMIT_UID | RASHPA_PERMIT_GID | RASHPA_PERMIT_MODE, valid_permit, NULL,
	   { R(permit, __reserved) }),
	OP(MEMORY, PIN, pin, 0, valid_pin, undo_pin, {}),
	GROWN(BUFFER, INFO, info, out_name, 0, valid_buffer_info, NULL, {}),
	OP(BUFFER, DMABUF, dmabuf, 0, valid_nothing, undo_dmabuf,
	   { R(dmabuf, __reserved) }),
	GROWN(FPGA, DEVICE_INFO, device_info, out_interrupts, 0, valid_nothing, NULL, {}),
	OP(FPGA, REGION_INFO, region_info, 0, valid_nothing, NULL, {}),
	OP(FPGA, PROFILE, profile, RASHPA_PROFILE_DISCLOSE | RASHPA_PROFILE_TABLE, valid_nothing, NULL,
	   { R(profile, __reserved), R(profile, __reserved2) }),
	OP(FPGA, WINDOW, window, 0, valid_window, undo_window,
	   { R(window, __reserved) }),
	GROWN(FPGA, MAP, map, out_table_size, RASHPA_MAP_DEVICE | RASHPA_MAP_KEEP, valid_map,
	      undo_map, { R(map, __reserved) }),
	GROWN(FPGA, EVENTS, events, out_fd, 0, valid_nothing, undo_events, {}),
	GROWN(FPGA, LOCK, lock, out_length, 0, valid_lock, undo_lock, {}),
	OP(FPGA, QUIESCE, quiesce, 0, valid_nothing, NULL, {}),
	OP(FPGA, RESET, reset, 0, valid_nothing, NULL, {}),
	OP(MAP, PROGRAM, program, 0, valid_program, NULL,
	   { R(program, __reserved), R(program, layout.__reserved) }),
	OP(MAP, RESTORE, restore, 0, valid_nothing, NULL, {}),
	GROWN(CHANNEL, SOURCE_ADD, source_add, __reserved,
	      RASHPA_SOURCE_OF | RASHPA_SOURCE_QUIET | RASHPA_SOURCE_POLL,
	      valid_source_add, undo_source_add, { R(source_add, __reserved) }),
	OP(CHANNEL, SOURCE_DEL, source_del, 0, valid_source_del, NULL,
	   { R(source_del, __reserved) }),
	GROWN(CHANNEL, EVENTFD, eventfd, id, 0, valid_eventfd, NULL, {}),
	OP(CHANNEL, SIGNAL, signal, 0, valid_nothing, NULL, {}),
	OP(CHANNEL, GROUP, group, 0, valid_group, NULL, { R(group, __reserved) }),
	OP(CHANNEL, ACK, ack, 0, valid_nothing, NULL, { R(ack, __reserved) }),
	OP(CHANNEL, SOURCE_INFO, source_info, 0, valid_nothing, NULL, {}),
	OP(CHANNEL, GROUP_INFO, group_info, 0, valid_nothing, NULL,
	   { R(group_info, __reserved) }),
};

/* false: there is no FPGA to make this node of */
static bool open_node(enum node node)
{
	struct rashpa_map map;

	if (node > BUFFER && !have_fpga)
		return false;
	if (nodes[node] >= 0)
		return true;
	switch (node) {
	case MEMORY:
		nodes[node] = memory;
		break;
	case BUFFER:
		nodes[node] = buffer_node("st-abi", O_RDWR);
		break;
	case FPGA:
		nodes[node] = fpga.fd;
		break;
	case MAP:
		window = fpga_window(&fpga, RFPGA_BAR_REGS, 0, RFPGA_BAR_REGS_SIZE, 0);
		nodes[node] = fpga_map(&fpga, buffer, RASHPA_BIDIRECTIONAL, &map);
		break;
	case CHANNEL:
		nodes[node] = fpga_events(&fpga, 0);
		break;
	default:
		break;
	}
	if (nodes[node] < 0)
		tap_bail("no %s node: %s", node_names[node], reason);
	return true;
}

/* room for the largest size that is tried */
static union {
	struct rashpa_head head;
	char bytes[3 * 4096];
} arg;

static void prepare(const struct op *op)
{
	memset(&arg, 0, sizeof(arg));
	op->valid(&arg);
	arg.head.size = op->size;
}

/* Call with @arg as it is; what it made is taken away again. */
static int run(const struct op *op)
{
	int err = call(nodes[op->node], op->cmd, &arg);

	if (!err && op->undo)
		op->undo(&arg);
	return err;
}

static void test_sizes(const struct op *op, int exact)
{
	static const uint32_t large[] = { 4097, 65536, 0x80000000, 0xffffffff };
	uint32_t size;
	size_t i;

	tap_start("%s on %s: a short struct is refused", op->name, node_names[op->node]);
	for (size = 0; size < op->first; size += size < 32 ? 1 : 8) {
		prepare(op);
		arg.head.size = size;
		if (!ANSWERED(run(op), EINVAL, size < 24 ? NULL : "size"))
			break;
	}
	prepare(op);
	arg.head.size = op->first - 1;
	ANSWERED(run(op), EINVAL, op->first - 1 < 24 ? NULL : "size");
	tap_done();

	if (op->first < op->size) {
		tap_start("%s on %s: the struct as first published is understood", op->name,
			  node_names[op->node]);
		prepare(op);
		arg.head.size = op->first;
		/* what the caller does not know of is neither read nor written */
		memset(arg.bytes + op->first, 0xa5, op->size - op->first);
		ANSWERED(run(op), -exact, NULL);
		for (size = op->first; size < op->size; size++)
			if (!CHECK(arg.bytes[size] == (char)0xa5, "byte %u was written", size))
				break;
		tap_done();
	}

	tap_start("%s on %s: a longer struct with a zero tail is understood", op->name,
		  node_names[op->node]);
	prepare(op);
	arg.head.size = op->size + 8;
	ANSWERED(run(op), -exact, NULL);
	prepare(op);
	arg.head.size = 4096;
	ANSWERED(run(op), -exact, NULL);
	tap_done();

	tap_start("%s on %s: a tail that is not zero is refused", op->name,
		  node_names[op->node]);
	prepare(op);
	arg.head.size = op->size + 8;
	arg.bytes[op->size] = 1;
	ANSWERED(run(op), E2BIG, "does not know");
	prepare(op);
	arg.head.size = op->size + 1;
	arg.bytes[op->size] = (char)0x80;
	ANSWERED(run(op), E2BIG, "does not know");
	prepare(op);
	arg.head.size = 4096;
	arg.bytes[4095] = 1;
	ANSWERED(run(op), E2BIG, "does not know");
	tap_done();

	tap_start("%s on %s: a size above a page is refused", op->name,
		  node_names[op->node]);
	for (i = 0; i < ARRAY_SIZE(large); i++) {
		prepare(op);
		arg.head.size = large[i];
		ANSWERED(run(op), E2BIG, NULL);
	}
	tap_done();
}

static void test_fields(const struct op *op)
{
	unsigned int bit;
	size_t i;

	tap_start("%s on %s: undefined flags and reserved fields are refused", op->name,
		  node_names[op->node]);
	for (bit = 0; bit < 32; bit++) {
		if (op->flags & 1U << bit)
			continue;
		prepare(op);
		arg.head.flags = 1U << bit;
		ANSWERED(run(op), EINVAL, "flags 0x");
	}
	prepare(op);
	arg.head.__reserved = 1;
	ANSWERED(run(op), EINVAL, "reserved");
	prepare(op);
	arg.head.__reserved = 0x80000000;
	ANSWERED(run(op), EINVAL, "reserved");
	for (i = 0; i < ARRAY_SIZE(op->reserved) && op->reserved[i].at; i++) {
		prepare(op);
		arg.bytes[op->reserved[i].at] = 1;
		ANSWERED(run(op), EINVAL, "reserved");
		prepare(op);
		arg.bytes[op->reserved[i].at + 3] = (char)0x80;
		ANSWERED(run(op), EINVAL, "reserved");
	}
	tap_done();
}

static void test_pointers(const struct op *op, int exact)
{
	int fd = nodes[op->node];
	char *pages;

	tap_start("%s on %s: a pointer that leads nowhere is EFAULT", op->name,
		  node_names[op->node]);
	pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(pages + PAGE, PAGE);
	CHECK(ioctl(fd, op->cmd, NULL) && errno == EFAULT, "NULL");
	CHECK(ioctl(fd, op->cmd, 8) && errno == EFAULT, "8");
	CHECK(ioctl(fd, op->cmd, pages + PAGE) && errno == EFAULT, "unmapped");
	CHECK(ioctl(fd, op->cmd, -1L) && errno == EFAULT, "-1");
	CHECK(ioctl(fd, op->cmd, LONG_MIN) && errno == EFAULT, "kernel half");
	CHECK(ioctl(fd, op->cmd, pages + PAGE - 2) && errno == EFAULT,
	      "the end is in the size");
	*(uint32_t *)(pages + PAGE - 8) = op->size;
	CHECK(ioctl(fd, op->cmd, pages + PAGE - 8) && errno == EFAULT,
	      "the end is in the head");
	prepare(op);
	memcpy(pages + PAGE - (op->size - 4), &arg, op->size - 4);
	CHECK(ioctl(fd, op->cmd, pages + PAGE - (op->size - 4)) && errno == EFAULT,
	      "the end is 4 bytes early");
	tap_done();

	tap_start("%s on %s: an answer that cannot be stored leaves nothing", op->name,
		  node_names[op->node]);
	memcpy(pages, &arg, op->size);
	mprotect(pages, PAGE, PROT_READ);
	CHECK(ioctl(fd, op->cmd, pages) && (errno == EFAULT || errno == -exact),
	      "read-only struct: %s", strerror(errno));
	munmap(pages, PAGE);
	/* as if it had not been: a second source of a kind would be EEXIST */
	prepare(op);
	ANSWERED(run(op), -exact, NULL);
	tap_done();
}

static void test_op(const struct op *op)
{
	int exact;

	if (!open_node(op->node)) {
		tap_start("%s on %s", op->name, node_names[op->node]);
		tap_skip("no software FPGA");
		tap_done();
		return;
	}
	tap_start("%s on %s: the exact struct is understood", op->name,
		  node_names[op->node]);
	prepare(op);
	exact = run(op);
	CHECK(!exact || exact == -ENOENT, "answer %d, reason \"%s\"", exact, reason);
	prepare(op);
	ANSWERED(run(op), -exact, NULL);
	CHECK(arg.head.size == op->size, "the size was changed to %u", arg.head.size);
	tap_done();
	test_sizes(op, exact);
	test_fields(op);
	test_pointers(op, exact);
}

/* Is @cmd served on @node, as the table says? */
static bool served(enum node node, unsigned int cmd)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ops); i++)
		if (ops[i].node == node && ops[i].cmd == cmd)
			return true;
	return false;
}

static void test_wrong_numbers(enum node node)
{
	unsigned int nr, dir;

	tap_start("other numbers on %s are ENOTTY", node_names[node]);
	if (!open_node(node)) {
		tap_skip("no software FPGA");
		tap_done();
		return;
	}
	for (nr = 0; nr < 256; nr++) {
		for (dir = 0; dir < 4; dir++) {
			unsigned int cmd = _IOC(dir, RASHPA_IOC_TYPE, nr, 0);

			if (served(node, cmd))
				continue;
			memset(&arg, 0, sizeof(arg));
			arg.head.size = 64;
			if (!CHECK(call(nodes[node], cmd, &arg) == -ENOTTY,
				   "number 0x%x", cmd))
				break;
		}
	}
	CHECK(call(nodes[node], _IO('x', 0), &arg) == -ENOTTY, "another type");
	CHECK(call(nodes[node], _IO(0xe6, 0), &arg) == -ENOTTY, "another type");
	CHECK(ioctl(nodes[node], _IOWR(RASHPA_IOC_TYPE, 0, struct rashpa_alloc), NULL) &&
	      errno == ENOTTY, "with a size in the number");
	tap_done();
}

/* --- the sentence --- */

static int fail_with(uint64_t to, uint32_t size)
{
	struct rashpa_open o = { HEAD(o), .name = "st-no-such-buffer" };

	o.head.reason = to;
	o.head.reason_size = size;
	return ioctl(memory, RASHPA_IOC_OPEN, &o) ? -errno : 0;
}

static void test_reason(void)
{
	char text[RASHPA_REASON_SIZE + 1];
	char whole[RASHPA_REASON_SIZE];
	uint32_t size;

	memset(whole, 0x7f, sizeof(whole));
	CHECK(fail_with((uintptr_t)whole, sizeof(whole)) == -ENOENT, "answer");
	CHECK(memchr(whole, 0, sizeof(whole)), "no NUL");
	CHECK(strstr(whole, "st-no-such-buffer"), "\"%s\" names nothing", whole);
	CHECK(whole[strlen(whole) - 1] != '\n', "it ends with a line end");
	for (size = 0; size <= RASHPA_REASON_SIZE; size++) {
		memset(text, 0x7f, sizeof(text));
		CHECK(fail_with((uintptr_t)text, size) == -ENOENT, "answer");
		CHECK(text[size] == 0x7f, "more than %u bytes were written", size);
		if (size && !CHECK(strnlen(text, size) < size &&
				   !strncmp(text, whole, strlen(text)),
				   "size %u: \"%s\"", size, text))
			break;
		CHECK(!size || size > strlen(whole) || strlen(text) == size - 1,
		      "size %u: cut to %zu", size, strlen(text));
	}
	CHECK(fail_with((uintptr_t)whole, UINT32_MAX) == -ENOENT, "answer");
}

static void test_reason_pointer(void)
{
	char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(pages + PAGE, PAGE);
	CHECK(fail_with(0, 256) == -ENOENT, "NULL");
	CHECK(fail_with(8, 256) == -ENOENT, "8");
	CHECK(fail_with(-1, 256) == -ENOENT, "-1");
	CHECK(fail_with(1ULL << 63, 256) == -ENOENT, "kernel half");
	CHECK(fail_with(0xffff888000000000, 256) == -ENOENT, "kernel memory");
	CHECK(fail_with((uintptr_t)(pages + PAGE), 256) == -ENOENT, "unmapped");
	CHECK(fail_with((uintptr_t)(pages + PAGE - 4), 256) == -ENOENT, "partly unmapped");
	mprotect(pages, PAGE, PROT_READ);
	CHECK(fail_with((uintptr_t)pages, 256) == -ENOENT, "read-only");
	munmap(pages, PAGE);
}

static void test_reason_success(void)
{
	char text[RASHPA_REASON_SIZE];
	struct rashpa_query q = { HEAD(q) };

	memset(text, 0x7f, sizeof(text));
	q.head.reason = (uintptr_t)text;
	q.head.reason_size = sizeof(text);
	CHECK(!ioctl(memory, RASHPA_IOC_QUERY, &q), "QUERY");
	CHECK(text[0] == 0x7f, "a sentence without a failure");
}

/* --- what is said in the first reading counts --- */

static struct rashpa_info racing;
static volatile bool racing_done;

static void *change_size(void *unused)
{
	volatile uint32_t *size = &racing.head.size;

	(void)unused;
	while (!racing_done) {
		*size = sizeof(racing);
		*size = 0xffffffff;
		*size = 0;
	}
	return NULL;
}

static void test_size_race(void)
{
	pthread_t thread;
	int i, err;

	racing.fd = buffer;
	racing_done = false;
	pthread_create(&thread, NULL, change_size, NULL);
	for (i = 0; i < 20000; i++) {
		err = ioctl(memory, RASHPA_IOC_INFO, &racing) ? errno : 0;
		if (!CHECK(!err || err == EINVAL || err == E2BIG, "answer %d", err))
			break;
	}
	racing_done = true;
	pthread_join(thread, NULL);
}

static void test_remove_unwritable(void)
{
	struct rashpa_remove *r = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err;

	close(buffer_alloc(PAGE, "st-const"));
	r->head.size = sizeof(*r);
	strcpy(r->name, "st-const");
	mprotect(r, PAGE, PROT_READ);
	err = ioctl(memory, RASHPA_IOC_REMOVE, r) ? -errno : 0;
	munmap(r, PAGE);
	if (err)
		ANSWERED(buffer_remove("st-const"), 0, NULL);
	else
		ANSWERED(buffer_remove("st-const"), ENOENT, NULL);
}

int main(void)
{
	enum node node;
	size_t i;

	common_init();
	buffer = buffer_alloc(PAGE, "st-abi");
	have_fpga = fpga_open(&fpga, 0);
	for (i = 0; i < ARRAY_SIZE(ops); i++)
		test_op(&ops[i]);
	for (node = MEMORY; node < NODES; node++)
		test_wrong_numbers(node);
	tap_run("the reason is a sentence, cut where the room ends", test_reason);
	tap_run("a bad pointer to the reason does not change the errno",
		test_reason_pointer);
	tap_run("a success leaves the reason alone", test_reason_success);
	tap_run("a size that changes meanwhile does no harm", test_size_race);
	tap_run("REMOVE with a read-only struct fails or works, not both",
		test_remove_unwritable);
	for (node = MAP; node < NODES; node++)
		if (nodes[node] >= 0)
			close(nodes[node]);
	close(window);
	close(nodes[BUFFER]);
	close(buffer);
	if (buffer_remove("st-abi"))
		tap_bail("REMOVE: %s", reason);
	if (have_fpga)
		fpga_close(&fpga);
	return tap_exit();
}
