// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: needs=gpu kernel=6.1,any seconds=11 */
/* test: needs=gpu-unbound iommu=on seconds=8 */
/*
 * Memory of a GPU as destination (rashpa-gpu.h): of the lab's GPU, which is QEMU's virtio-gpu with
 * Vulkan, and whose memory is a PCI BAR.
 */
#include <glob.h>

#include <rashpa-gpu.h>
#include "foreign.h"
#include "rig.h"

#define SIZE		(4 * MIB)
#define GPU_VENDOR	0x1af4
#define GPU_DEVICE	0x1050
#define DRIVERS		"/usr/share/vulkan/icd.d/"

static struct fpga f;
static bool behind_switch, iommu;
static const char *no_liar;	/* why there is no exporter that revokes, or NULL */

/* Below the lab's switch, where the GPU is as well if there is one. */
static bool is_behind_switch(void)
{
	char path[64], device[8] = "";
	FILE *above;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/../device", f.bdf);
	above = fopen(path, "re");
	if (!CHECK(above, "%s", path))
		return false;
	CHECK(fgets(device, sizeof(device), above), "%s is empty", path);
	fclose(above);
	return !strcmp(device, "0x8233\n") || !strcmp(device, "0x8233");
}

static const struct { const char *key; unsigned int nth; } functions[] = {
	{ "first", 0 }, { "second", 1 },
};

/* Of both FPGAs: at a root port, and below a switch together with the GPU (--topology both). */
#define TEST_WHERE(name, text)					\
	static void where_##name(void);				\
	TEST_EACH(name, functions, text " (the %s FPGA)")	\
	{							\
		if (is_there(row->nth))				\
			where_##name();				\
	}							\
	static void where_##name(void)

static bool is_there(unsigned int nth)
{
	fpga_close(&f);
	if (!rig_try(&f, nth)) {
		rig_try(&f, 0);
		tap_skip("only one software FPGA");
		return false;
	}
	iommu = fpga_iommu(&f);
	behind_switch = is_behind_switch();
	return true;
}

/* A GPU, memory of it, and the software FPGA that writes there. */
struct stand {
	struct rashpa_gpu *gpu;
	struct rashpa_gpu_memory *memory;
	struct rig rig;
	int dmabuf;
	char *own;		/* the dma-buf, mapped by us */
};

static bool open_gpu(struct stand *s)
{
	*s = (struct stand) { .rig = { .window = -1, .channel = -1, .buffer = -1, .map = -1 },
			      .dmabuf = -1 };
	return CHECK(!rashpa_gpu_open("vulkan", &s->gpu), "%s", rashpa_reason());
}

static bool begin(struct stand *s)
{
	if (!open_gpu(s) ||
	    !CHECK(!rashpa_gpu_alloc(s->gpu, SIZE, &s->memory), "%s", rashpa_reason()))
		return false;
	s->dmabuf = fcntl(rashpa_gpu_dmabuf(s->memory), F_DUPFD_CLOEXEC, 0);
	s->own = map_fd(s->dmabuf, SIZE);
	rig_up(&s->rig, &f, s->dmabuf, RASHPA_MAP_DEVICE, 0);
	return true;
}

static void end(struct stand *s)
{
	rig_down(&s->rig);
	if (s->own)
		munmap(s->own, SIZE);
	if (s->dmabuf >= 0)
		close(s->dmabuf);
	rashpa_gpu_free(s->memory);
	rashpa_gpu_close(s->gpu);
}

static void stream_once(const struct rig *r)
{
	rig_stream(r, 0, r->made.out_segments, IMAGES);
	CHECK(reg64(rig_dtp(r, 0), RFPGA_DTP_C_BYTES) == IMAGES * IMAGE, "%llu bytes",
	      (unsigned long long)reg64(rig_dtp(r, 0), RFPGA_DTP_C_BYTES));
	rig_is_idle(r->regs, 0);
}

/* The lab's GPU, in the form of a map's out_peer; 0: there is no GPU. */
static uint64_t gpu_address(char *bdf, size_t size)
{
	unsigned int domain, bus, device, function;
	char line[64] = "";
	FILE *list = popen("lspci -Dnd 1af4:1050", "r");

	if (!list)
		return 0;
	if (!fgets(line, sizeof(line), list))
		line[0] = '\0';
	pclose(list);
	if (sscanf(line, "%x:%x:%x.%u", &domain, &bus, &device, &function) != 4)
		return 0;
	snprintf(bdf, size, "%.12s", line);
	return (uint64_t)domain << 16 | bus << 8 | device << 3 | function;
}

TEST(about, "the GPU's name, address and memory")
{
	struct rashpa_gpu_info info;
	struct stand s;
	char bdf[16];

	REQUIRE(open_gpu(&s), "no GPU");
	rashpa_gpu_get_info(s.gpu, &info);
	tap_note("%s (%s), %llu MiB", info.name, info.driver,
		 (unsigned long long)(info.memory_bytes >> 20));
	CHECK(strstr(info.name, "Venus"), "it is \"%s\"", info.name);
	CHECK(info.flags == (RASHPA_GPU_EXPORTS | RASHPA_GPU_IMPORTS) ||
	      info.flags == RASHPA_GPU_EXPORTS, "flags %x", info.flags);
	CHECK(info.pci == RASHPA_GPU_NOWHERE || info.pci == gpu_address(bdf, sizeof(bdf)),
	      "it is at %llx", (unsigned long long)info.pci);
	CHECK(info.memory_bytes, "it has no memory");
	end(&s);
}

TEST(names, "names that are not those of GPUs")
{
	static const struct {
		const char *name;
		int error;
		const char *says;
	} tried[] = {
		{ "vulkan:99", ENODEV, "vulkan:99" }, { "vulkan:", EINVAL, "no GPU" },
		{ "vulkan:-1", EINVAL, "no GPU" }, { "vulkan:1x", EINVAL, "no GPU" },
		{ "cuda", EOPNOTSUPP, "libcuda" }, { "rocm", EOPNOTSUPP, "ROCm" },
		{ "cuda0", EINVAL, "no GPU" }, { "", EINVAL, "no GPU" },
	};
	struct rashpa_gpu *gpu;

	for (size_t i = 0; i < ARRAY_SIZE(tried); i++) {
		CHECK(rashpa_gpu_open(tried[i].name, &gpu) == -tried[i].error && !gpu &&
		      strstr(rashpa_reason(), tried[i].says), "%s: %s", tried[i].name,
		      rashpa_reason());
	}
}

TEST(lengths, "invalid lengths")
{
	struct rashpa_gpu_memory *none;
	struct stand s;

	REQUIRE(open_gpu(&s), "no GPU");
	CHECK(rashpa_gpu_alloc(s.gpu, 0, &none) == -EINVAL && !none, "%s", rashpa_reason());
	CHECK(rashpa_gpu_alloc(s.gpu, UINT64_MAX, &none) == -EINVAL && !none, "%s",
	      rashpa_reason());
	end(&s);
}

/* The FPGA writes into the BAR, without a copy. */
TEST_WHERE(stream, "the FPGA streams into it")
{
	struct rashpa_map_make map = {};
	uint64_t address;
	struct stand s;
	char bdf[16];
	int fd;

	REQUIRE(begin(&s), "nothing to write to: %s", rashpa_reason());
	address = gpu_address(bdf, sizeof(bdf));
	CHECK(s.rig.made.out_class == (behind_switch && !iommu ? RASHPA_CLASS_PEER :
				       RASHPA_CLASS_BRIDGE), "class %u", s.rig.made.out_class);
	CHECK(s.rig.made.out_peer == address, "peer %llx, and the GPU is %llx",
	      (unsigned long long)s.rig.made.out_peer, (unsigned long long)address);
	memset(s.own, 0, SIZE);
	stream_once(&s.rig);
	CHECK(filled(s.own, IMAGES * IMAGE, SEED), "by the dma-buf the data differ");
	CHECK(rashpa_gpu_base(s.memory) && filled(rashpa_gpu_base(s.memory), IMAGES * IMAGE, SEED),
	      "by Vulkan the data differ");
	CHECK(all_zero(s.own + IMAGES * IMAGE, SIZE - IMAGES * IMAGE), "it wrote elsewhere, too");
	fd = rashpa_gpu_map(f.fd, s.memory, &map);
	CHECK(fd >= 0 && map.out_peer == address, "%s", rashpa_reason());
	if (fd >= 0)
		close(fd);
	end(&s);
}

/* Vulkan has let go of it, and so has the GPU: the map keeps the pages. */
TEST_WHERE(freed, "memory that is freed under a map")
{
	struct stand s;

	REQUIRE(begin(&s), "nothing to write to: %s", rashpa_reason());
	rashpa_gpu_free(s.memory);
	rashpa_gpu_close(s.gpu);
	s.memory = NULL;
	s.gpu = NULL;
	memset(s.own, 0, SIZE);
	stream_once(&s.rig);
	CHECK(filled(s.own, IMAGES * IMAGE, SEED), "the data differ");
	end(&s);
}

static void victim(void *arg)
{
	struct stand s;

	if (!begin(&s))
		return;
	rig_run(&s.rig, 0, s.rig.made.out_segments);
	tap_fork_hold();
}

/* The FPGA stops before the kernel frees map and memory. */
TEST_WHERE(killed, "a program that is killed while the FPGA streams")
{
	char *regs;

	tap_fork_kill(tap_fork_held(victim, NULL));
	regs = fpga_regs(&f);
	rig_is_idle(regs, 0);
	munmap(regs, RFPGA_BAR_REGS_SIZE);
}

/* The FPGA does not write any more, and has no address of the memory. */
static void is_at_rest(const struct stand *s)
{
	rig_is_idle(s->rig.regs, 0);
	rig_entries_clear(s->rig.regs, s->rig.made.out_segments);
	memset(s->own, 0, SIZE);
	rig_is_idle(s->rig.regs, 0);
	CHECK(all_zero(s->own, SIZE), "the FPGA still writes");
}

/* The map stays, but not in the FPGA, which writes nothing until it is programmed again. */
TEST_WHERE(reset, "the FPGA is reset while it streams")
{
	struct stand s;

	REQUIRE(begin(&s), "nothing to write to: %s", rashpa_reason());
	rig_run(&s.rig, 0, s.rig.made.out_segments);
	ANSWERED(fpga_reset(&f), 0, NULL);
	is_at_rest(&s);
	ANSWERED(fpga_program(s.rig.map, 0, NULL), 0, NULL);
	stream_once(&s.rig);
	CHECK(filled(s.own, IMAGES * IMAGE, SEED), "the data differ");
	end(&s);
}

/* The function's BAR with this address, and the offset in it; -1: no BAR. */
static int bar_of(const char *bdf, uint64_t address, __u64 *offset)
{
	unsigned long long first = 0, last;
	char path[64];
	FILE *bars;
	int bar = 0;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/resource", bdf);
	bars = fopen(path, "re");
	while (bars && bar < 6 && fscanf(bars, "%llx %llx %*x", &first, &last) == 2 &&
	       (address < first || address > last))
		bar++;
	if (bars)
		fclose(bars);
	*offset = address - first;
	return bars && bar < 6 ? bar : -1;
}

/* The same pages, from an exporter that revokes them, which virtio_gpu never does. */
static bool begin_revoking(struct stand *s, struct rashpa_liar_export *arg)
{
	uint64_t address;
	char bdf[16];
	int bar;

	if (!begin(s))
		return false;
	address = reg64(s->rig.regs, RFPGA_TABLE + RFPGA_ENTRY_ADDR);
	rig_down(&s->rig);
	*arg = (struct rashpa_liar_export) {
		.kind = RASHPA_LIAR_BAR, .error = ENODEV, .length = SIZE,
		.bdf = gpu_address(bdf, sizeof(bdf)),
	};
	bar = bar_of(bdf, address, &arg->offset);
	if (!CHECK(bar >= 0, "%llx is in no BAR of %s", (unsigned long long)address, bdf))
		return false;
	arg->bar = bar;
	if (liar_export(arg) < 0)
		return false;
	rig_up(&s->rig, &f, arg->out_fd, RASHPA_MAP_DEVICE, 0);
	return true;
}

TEST_WHERE(revoked, "the memory is taken back while the FPGA streams")
{
	struct rashpa_liar_export arg = {};
	struct stand s;

	SKIP_IF(no_liar, "%s", no_liar);
	SKIP_IF(iommu, "with an IOMMU the table does not show where in its BAR the memory is");
	arg.out_fd = -1;
	if (begin_revoking(&s, &arg)) {
		rig_run(&s.rig, 0, s.rig.made.out_segments);
		liar_tell(RASHPA_LIAR_REVOKE, arg.out_fd, 0);
		is_at_rest(&s);
		ANSWERED(fpga_program(s.rig.map, 0, NULL), ESTALE, "revoked");
		ANSWERED(map_restore(s.rig.map), ENODEV, "exporter");
		liar_tell(RASHPA_LIAR_ALLOW, arg.out_fd, RASHPA_LIAR_BAR);
		ANSWERED(map_restore(s.rig.map), 0, NULL);
		ANSWERED(fpga_program(s.rig.map, 0, NULL), 0, NULL);
		stream_once(&s.rig);
		CHECK(filled(s.own, IMAGES * IMAGE, SEED), "the data differ");
	}
	end(&s);
	if (arg.out_fd >= 0)
		close(arg.out_fd);
}

/* A Vulkan device on the CPU (lavapipe) has host memory, whatever its name. */
TEST(host, "memory of the host is refused")
{
	struct rashpa_map_make map = {};
	struct rashpa_gpu_info info;
	struct stand s;

	setenv("VK_DRIVER_FILES", DRIVERS "lvp_icd.json", 1);
	REQUIRE(open_gpu(&s), "no lavapipe");
	rashpa_gpu_get_info(s.gpu, &info);
	CHECK(info.flags & RASHPA_GPU_SOFTWARE, "%s: flags %x", info.name, info.flags);
	if (!(info.flags & RASHPA_GPU_EXPORTS) || rashpa_gpu_alloc(s.gpu, SIZE, &s.memory)) {
		tap_note("%s: %s", info.name, rashpa_reason());
		CHECK(access("/dev/udmabuf", R_OK | W_OK), "with udmabuf there are dma-bufs");
	} else {
		CHECK(rashpa_gpu_map(f.fd, s.memory, &map) == -EREMOTEIO, "%s", rashpa_reason());
	}
	end(&s);
	setenv("VK_DRIVER_FILES", DRIVERS "virtio_icd.json", 1);
}

/* A Vulkan device that can import our memory: lavapipe. */
TEST(import, "a buffer for a GPU")
{
	int buffer = buffer_alloc(SIZE, NULL), other = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct rashpa_gpu_memory *none = NULL;
	struct rashpa_gpu_info info;
	struct stand s;
	int error;

	setenv("VK_DRIVER_FILES", DRIVERS "lvp_icd.json", 1);
	REQUIRE(open_gpu(&s), "no lavapipe");
	rashpa_gpu_get_info(s.gpu, &info);
	error = rashpa_gpu_import(s.gpu, buffer, &s.memory);
	if (info.flags & RASHPA_GPU_IMPORTS) {
		CHECK(!error && rashpa_gpu_dmabuf(s.memory) != buffer &&
		      rashpa_gpu_vulkan_buffer(s.memory), "%s", rashpa_reason());
		CHECK(rashpa_gpu_import(s.gpu, other, &none) < 0 && !none, "/dev/null is memory");
	} else {
		CHECK(error == -EOPNOTSUPP, "%d", error);
	}
	end(&s);
	close(buffer);
	close(other);
	setenv("VK_DRIVER_FILES", DRIVERS "virtio_icd.json", 1);
}

/* Does the GPU have its render node? */
static bool wait_node(void)
{
	const uint64_t give_up = end_of_wait(20000);
	struct pollfd none = {};
	glob_t nodes;
	int missing;

	do {
		poll(&none, 0, 10);
		missing = glob("/dev/dri/renderD*", 0, NULL, &nodes);
		globfree(&nodes);
	} while (missing && now_ns() < give_up);
	return !missing;
}

/* No report of the kernel names a function of our driver. */
static void log_is_others(void)
{
	int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char line[1024];
	ssize_t n;

	while ((n = read(log, line, sizeof(line) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		line[n > 0 ? n : 0] = '\0';
		if (!CHECK(!strstr(line, "[rashpa]"), "%s", line))
			break;
	}
	close(log);
}

/*
 * The driver of the GPU goes while the FPGA writes there. It does not revoke its memory, so the map
 * stays, and the FPGA writes into the BAR. This program has closed the GPU: with Vulkan open, it
 * would end with SIGBUS.
 */
TEST(unbound, "the GPU's driver goes while the FPGA streams")
{
	char bdf[16];
	struct stand s;

	SKIP_IF(!getenv("RASHPA_GPU_UNBIND"),
		"virtio_gpu warns of memory that it leaves: only with RASHPA_GPU_UNBIND");
	REQUIRE(begin(&s) && gpu_address(bdf, sizeof(bdf)), "nothing to write to: %s",
		rashpa_reason());
	rig_run(&s.rig, 0, s.rig.made.out_segments);
	rashpa_gpu_free(s.memory);
	rashpa_gpu_close(s.gpu);
	s.memory = NULL;
	s.gpu = NULL;
	CHECK(!write_text("/sys/bus/pci/drivers/virtio-pci/unbind", bdf), "unbind");
	CHECK(rig_wait_bytes(&s.rig, 0, 2 * IMAGE), "it does not go on");
	set32(rig_dtp(&s.rig, 0), RFPGA_DTP_CONTROL, RFPGA_DTP_STOP);
	rig_wait_stopped(&s.rig, 0);
	rig_is_idle(s.rig.regs, 0);
	end(&s);
	log_is_others();
}

static bool has_gpu(void)
{
	const char *gpus = getenv("RASHPA_GPUS");

	if (!gpus || !strcmp(gpus, "0"))
		return false;
	CHECK(!system("modprobe virtio-gpu"), "no virtio-gpu");
	CHECK(wait_node(), "the GPU has no render node");
	return true;
}

void setup(void)
{
	if (!has_gpu())
		tap_skip_all("no GPU in this guest (lab run --gpu)");
	rig_need(&f);
	p2p_bridge("allow");
	setenv("VK_DRIVER_FILES", DRIVERS "virtio_icd.json", 1);
	no_liar = module_load("liar", &liar);
}

void teardown_all(void)
{
	module_unload("liar");
}
