// SPDX-License-Identifier: LGPL-2.1-or-later

#include "rig.h"

char *rig_dtp(const struct rig *r, unsigned int n)
{
	return r->regs + RFPGA_DTP(n);
}

void rig_load(const struct fpga *fpga)
{
	int win = fpga_window(fpga, RFPGA_BAR_MEMORY, 0, IMAGES * IMAGE, RASHPA_CACHE_WC);
	void *p = map_fd(win, IMAGES * IMAGE);

	close(win);
	fill(p, IMAGES * IMAGE, SEED);
	munmap(p, IMAGES * IMAGE);
}

bool rig_try(struct fpga *fpga, unsigned int nth)
{
	if (!fpga_try(fpga, nth))
		return false;
	rig_load(fpga);
	return true;
}

void rig_need(struct fpga *fpga)
{
	if (!rig_try(fpga, 0))
		tap_skip_all("no software FPGA");
}

void rig_need_control(struct fpga *fpga)
{
	rig_need(fpga);
	if (!rig_tell(0, "honest"))
		tap_skip_all("no way to reach the FPGA's control socket");
}

#define FIELD(_kind, _offset, _bits, _shift, _width, ...) \
	{ .kind = RASHPA_FETCH_##_kind, .offset = _offset, .bits = _bits, .shift = _shift, \
	  .width = _width, __VA_ARGS__ }

const struct rashpa_profile_table *rig_chain(void)
{
	static const struct rashpa_fetch_field fields[] = {
		FIELD(CONSTANT, 0, 32, 16, 16, .value = RFPGA_CHAIN_MAGIC),
		FIELD(LENGTH, 4, 32, 0, 28), FIELD(SUM, 8, 64, 0, 64),
		FIELD(ADDRESS, 16, 64, 0, 64), FIELD(NEXT, 24, 64, 0, 64),
	}, registers[] = {
		FIELD(ADDRESS, RFPGA_FETCH_BASE, 64, 0, 64),
		FIELD(COUNT, RFPGA_FETCH_COUNT, 32, 0, 32),
		FIELD(COUNT, RFPGA_FETCH_TAIL, 32, 0, 32),
		FIELD(CONSTANT, RFPGA_FETCH_CONTROL, 32, 0, 32, .value = RFPGA_FETCH_VALID),
	};
	static struct rashpa_fetch fetch;
	static struct rashpa_profile_table table;

	fetch = (struct rashpa_fetch) {
		.stride = RFPGA_ENTRY_STRIDE, .flags = RASHPA_FETCH_CLOSED,
		.descriptor_size = RFPGA_CHAIN_SIZE,
		.fields = (uintptr_t)fields, .n_fields = ARRAY_SIZE(fields),
		.field_size = sizeof(fields[0]),
		.registers = (uintptr_t)registers, .n_registers = ARRAY_SIZE(registers),
		.register_size = sizeof(registers[0]),
	};
	table = (struct rashpa_profile_table) {
		.bar = RFPGA_BAR_REGS, .offset = RFPGA_TABLE, .length = RFPGA_TABLE_SIZE,
		.fetch = (uintptr_t)&fetch,
		.fetch_size = sizeof(fetch),
	};
	return &table;
}

void rig_end_map(struct rig *r)
{
	close(r->map);
	r->map = -1;
}

void rig_down(struct rig *r)
{
	if (r->memory)
		munmap(r->memory, IMAGES * IMAGE);
	if (r->map >= 0)
		close(r->map);
	if (r->buffer >= 0)
		close(r->buffer);
	if (r->channel >= 0)
		close(r->channel);
	if (r->regs)
		munmap(r->regs, RFPGA_BAR_REGS_SIZE);
	if (r->window >= 0)
		close(r->window);
}

void rig_map(struct rig *r, const struct fpga *fpga, int memory_fd, uint32_t flags, u64 max_segment)
{
	memset(r, 0, sizeof(*r));
	r->fpga = fpga;
	r->window = fpga_window(fpga, RFPGA_BAR_REGS, 0, RFPGA_BAR_REGS_SIZE, 0);
	r->regs = map_fd(r->window, RFPGA_BAR_REGS_SIZE);
	r->channel = fpga_listen(fpga, 0, RASHPA_SOURCE_VECTOR, 1);
	r->buffer = memory_fd < 0 ? buffer_alloc(IMAGES * IMAGE, NULL) :
				    fcntl(memory_fd, F_DUPFD_CLOEXEC, 0);
	if (memory_fd < 0)
		r->memory = map_fd(r->buffer, IMAGES * IMAGE);
	r->made = (struct rashpa_map_make) { .head = { .size = sizeof(r->made), .flags = flags },
					.fd = r->buffer,
					/* the flush before an event reads back */
					.direction = RASHPA_BIDIRECTIONAL,
					.max_segment = max_segment };
	if (call(fpga->fd, RASHPA_IOC_MAP_MAKE, &r->made))
		tap_bail("MAP_MAKE: %s", reason);
	r->map = r->made.out_fd;
	set32(r->regs, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
}

void rig_up(struct rig *r, const struct fpga *fpga, int memory_fd, uint32_t flags, u64 max_segment)
{
	rig_map(r, fpga, memory_fd, flags, max_segment);
	if (fpga_program(r->map, 0, NULL))
		tap_bail("PROGRAM: %s", reason);
}

void rig_configure(const struct rig *r, unsigned int n, uint32_t mode, uint32_t first,
		   uint32_t count, u64 images)
{
	const struct rfpga_dtp dtp = {
		.mode = mode,
		.vector = 1,
		.pixel_bytes = 4,
		.bunch = 1,
		.slots = IMAGES,
		.src_images = IMAGES,
		.width = WIDTH,
		.height = HEIGHT,
		.src_line = LINE,
		.src_image = IMAGE,
		.dst_line = LINE,
		.dst_image = IMAGE,
		.dst_slot = IMAGE,
		.dst_first = first,
		.dst_count = count,
		.images = images,
		.index_step = 1,
	};

	for (uint32_t at = RFPGA_DTP_MODE; at < sizeof(dtp); at += 4)
		set32(rig_dtp(r, n), at, rfpga_dtp_word(&dtp, at));
}

void rig_start(const struct rig *r, unsigned int n)
{
	set32(rig_dtp(r, n), RFPGA_DTP_CONTROL, RFPGA_DTP_START);
}

void rig_wait_stopped(const struct rig *r, unsigned int n)
{
	while (reg32(rig_dtp(r, n), RFPGA_DTP_STATUS) & RFPGA_DTP_RUNNING)
		;
}

bool rig_run(const struct rig *r, uint32_t first, uint32_t count)
{
	rig_configure(r, 0, RFPGA_MODE_FREERUN, first, count, 0);
	rig_start(r, 0);
	return CHECK(rig_wait_bytes(r, 0, 20 * IMAGE), "it does not run");
}

void rig_stream(const struct rig *r, uint32_t first, uint32_t count, u64 images)
{
	rig_configure(r, 0, RFPGA_MODE_FREERUN | RFPGA_MODE_FLUSH, first, count, images);
	rig_start(r, 0);
	rig_wait_stopped(r, 0);
}

void rig_streams(const struct rig *r, uint32_t first, uint32_t count)
{
	const char *d = rig_dtp(r, 0);

	memset(r->memory, 0, IMAGES * IMAGE);
	rig_stream(r, first, count, 3 * IMAGES);
	CHECK(reg32((void *)d, RFPGA_DTP_STATUS) == RFPGA_DTP_DONE, "status 0x%x, cause %u",
	      reg32((void *)d, RFPGA_DTP_STATUS), reg32((void *)d, RFPGA_DTP_FAULT_CAUSE));
	CHECK(filled(r->memory, IMAGES * IMAGE, SEED), "the data differ");
}

bool rig_send_image(const struct rig *r, unsigned int i, struct rashpa_event *e)
{
	char *d = rig_dtp(r, 0);

	rig_configure(r, 0, RFPGA_MODE_FREERUN | RFPGA_MODE_MSIX | RFPGA_MODE_FLUSH, 0,
		      r->made.out_segments, 1);
	set64(d, RFPGA_DTP_SRC_BASE, (u64)i * IMAGE);
	set32(d, RFPGA_DTP_SRC_IMAGES, 1);
	set32(d, RFPGA_DTP_INDEX_STEP, 0);
	set64(d, RFPGA_DTP_DST_BASE, (u64)i * IMAGE);
	rig_start(r, 0);
	return CHECK(wait_fd(r->channel, POLLIN, 5000), "no event %u", i) &&
	       CHECK(read(r->channel, e, sizeof(*e)) == sizeof(*e), "read");
}

/*
 * The order of interrupts of two vectors is not kept: the emulator polls all vectors in rounds. So
 * the second marker comes after all interrupts sent before the first one. Each processor handles
 * its pending interrupts before a program continues there.
 */
void rig_settle(const struct rig *r)
{
	const unsigned int dtp = (reg32(r->regs, RFPGA_CAPS) & 0xff) - 1;
	struct rashpa_device_info info;
	struct rashpa_event e;
	cpu_set_t all, one;
	int ch, i;

	fpga_info(r->fpga, &info);
	ch = fpga_listen(r->fpga, 0, RASHPA_SOURCE_VECTOR, info.out_vectors - 1);
	for (i = 0; i < RIG_SETTLE; i++) {
		rig_configure(r, dtp, RFPGA_MODE_FREERUN | RFPGA_MODE_MSIX, 0,
			      r->made.out_segments, 1);
		/* one pixel, with the value that is already there */
		set32(rig_dtp(r, dtp), RFPGA_DTP_WIDTH, 1);
		set32(rig_dtp(r, dtp), RFPGA_DTP_HEIGHT, 1);
		set32(rig_dtp(r, dtp), RFPGA_DTP_VECTOR, info.out_vectors - 1);
		rig_start(r, dtp);
		CHECK(wait_fd(ch, POLLIN, 20000) && read(ch, &e, sizeof(e)) == sizeof(e),
		      "no interrupt");
		rig_wait_stopped(r, dtp);
	}
	close(ch);
	sched_getaffinity(0, sizeof(all), &all);
	for (i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(i, &one);
		sched_setaffinity(0, sizeof(one), &one);
	}
	sched_setaffinity(0, sizeof(all), &all);
}

bool rig_wait_bytes(const struct rig *r, unsigned int n, u64 bytes)
{
	u64 end = end_of_wait(5000);

	while (reg64(rig_dtp(r, n), RFPGA_DTP_C_BYTES) < bytes)
		if (now_ns() > end)
			return false;
	return true;
}

void rig_is_idle(const char *regs, unsigned int n)
{
	const char *d = regs + RFPGA_DTP(n);
	u64 bytes, i;

	CHECK(!(reg32((void *)regs, RFPGA_STATUS) & RFPGA_STATUS_BUSY), "busy");
	CHECK(!(reg32((void *)d, RFPGA_DTP_STATUS) & RFPGA_DTP_RUNNING), "running");
	bytes = reg64((void *)regs, RFPGA_BYTES);
	for (i = 0; i < 50; i++)	/* a register is read in some 100 us */
		if (!CHECK(reg64((void *)regs, RFPGA_BYTES) == bytes, "bytes are still moving"))
			break;
	CHECK(!reg64((void *)regs, RFPGA_FAULTS),
	      "%llu refused transactions, the last at 0x%llx, cause %u", reg64((void *)regs,
									       RFPGA_FAULTS),
	      reg64((void *)regs, RFPGA_FAULT_ADDR), reg32((void *)regs, RFPGA_FAULT_CAUSE));
}

bool rig_ask(unsigned int n, const char *command, char *answer, size_t size)
{
	char path[40];
	size_t have = 0;
	ssize_t got = 0;
	int fd;

	snprintf(path, sizeof(path), "/dev/virtio-ports/fpga%u", n);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (dprintf(fd, "%s\n", command) > 0) {
		do {
			if (!wait_fd(fd, POLLIN, 30000))
				break;
			got = read(fd, answer + have, size - 1 - have);
			have += got > 0 ? (size_t)got : 0;
		} while (got > 0 && have < size - 1 && answer[have - 1] != '\n');
	}
	close(fd);
	answer[have] = '\0';
	return have >= 2 && !memcmp(answer, "ok", 2);
}

bool rig_tell(unsigned int n, const char *command)
{
	char answer[512];

	return rig_ask(n, command, answer, sizeof(answer));
}

void rig_do(const char *command)
{
	CHECK(rig_tell(0, command), "the board does not know \"%s\"", command);
}

void rig_nobody_writes(void *p)
{
	int i;

	memset(p, 0, IMAGES * IMAGE);
	for (i = 0; i < 20; i++)
		if (!CHECK(all_zero(p, IMAGES * IMAGE), "the memory is still written"))
			break;
}

void rig_entries_clear(const char *regs, uint32_t n)
{
	uint32_t i, at;

	for (i = 0; i < n; i++) {
		at = RFPGA_TABLE + i * RFPGA_ENTRY_STRIDE;
		CHECK(!reg64((void *)regs, at + RFPGA_ENTRY_ADDR) &&
		      !reg64((void *)regs, at + RFPGA_ENTRY_LEN) &&
		      !reg64((void *)regs, at + RFPGA_ENTRY_SUM) &&
		      !reg32((void *)regs, at + RFPGA_ENTRY_CONTROL), "entry %u was left", i);
	}
}
