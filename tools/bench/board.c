// SPDX-License-Identifier: LGPL-2.1-or-later
/* The reference interface, through this driver, VFIO or UIO: the registers are the same. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/pci_regs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/event.h"
#include "common/say.h"

#define PAGE	4096

static uint32_t reg(const struct board *b, size_t offset)
{
	return *(volatile uint32_t *)(b->regs + offset);
}

static void set(struct board *b, size_t offset, uint32_t value)
{
	*(volatile uint32_t *)(b->regs + offset) = value;
}

static void set64(struct board *b, size_t offset, uint64_t value)
{
	*(volatile uint64_t *)(b->regs + offset) = value;
}

/* whole pages for the payload, and one for the lock record */
static size_t memory_length(size_t room)
{
	return (room + PAGE - 1) / PAGE * PAGE + PAGE;
}

static int check(const struct board *b, const char *name, size_t room, char *why)
{
	const uint32_t need = RFPGA_FEATURE_MSIX | RFPGA_FEATURE_LOCK | RFPGA_FEATURE_FREERUN;
	uint64_t memory = *(volatile uint64_t *)(b->regs + RFPGA_MEMORY_SIZE);

	if (reg(b, RFPGA_ID) != RFPGA_ID_VALUE)
		return because(why, -1, "%s does not have the reference interface", name);
	if ((reg(b, RFPGA_FEATURES) & need) != need)
		return because(why, -1, "%s: needs interrupts, lock records and free running",
			       name);
	if (memory < room)
		return because(why, -1, "%s: %" PRIu64 " bytes on board, but %zu are needed",
			       name, memory, room);
	if (reg(b, RFPGA_DTP(0) + RFPGA_DTP_STATUS) & RFPGA_DTP_RUNNING)
		return because(why, -1, "%s: a stream is running: stop the producer first", name);
	return 0;
}

/* --- this driver --- */

static int buffer(struct board *b, enum rashpa_backend backend, char *why)
{
	struct rashpa_alloc alloc = { .length = b->length, .backend = backend };
	int node = rashpa_memory_open();

	if (node >= 0) {
		b->dmabuf = rashpa_memory_alloc(node, &alloc);
		close(node);
	}
	if (node < 0 || b->dmabuf < 0)
		return because(why, -1, "%s", rashpa_reason());
	b->memory = mmap(NULL, b->length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			 b->dmabuf, 0);
	if (b->memory == MAP_FAILED)
		return because(why, -1, "mmap of a buffer: %s", strerror(errno));
	return 0;
}

/* Entries of the address table. The target ends with the board. */
static int reach(struct board *b, int dmabuf, uint32_t flags, struct rashpa_target_info *info,
		 char *why)
{
	struct rashpa_target *target;

	if (rashpa_board_map(b->ours, RASHPA_BOARD_DTP(0), dmabuf, flags, &target) ||
	    rashpa_target_get_info(target, RASHPA_BOARD_DTP(0), info))
		return because(why, -1, "%s", rashpa_reason());
	return 0;
}

static int ours_memory(struct board *b, size_t room, const char *gpu, char *why)
{
	struct rashpa_target_info info;

	if (buffer(b, RASHPA_BACKEND_AUTO, why) || reach(b, b->dmabuf, 0, &info, why))
		return -1;
	b->first = info.first;
	b->entries = info.entries;
	if (!gpu)
		return 0;
	if (rashpa_gpu_open(gpu, &b->gpu) ||
	    rashpa_gpu_alloc(b->gpu, (room + PAGE - 1) / PAGE * PAGE, &b->payload))
		return because(why, -1, "%s", rashpa_reason());
	return reach(b, rashpa_gpu_dmabuf(b->payload), RASHPA_MAP_DEVICE, &b->payload_at, why);
}

static int ours_open(struct board *b, const char *device, size_t room, const char *gpu, char *why)
{
	struct rashpa_board_view registers, doorbells;
	struct rashpa_device_info info;

	if (rashpa_board_open(device, &b->ours) || rashpa_board_claim(b->ours) ||
	    rashpa_device_get_info(rashpa_board_device(b->ours), &info) ||
	    rashpa_board_window(b->ours, "registers", &registers) ||
	    rashpa_board_window(b->ours, "doorbells", &doorbells))
		return because(why, -1, "%s", rashpa_reason());
	bdf_text(b->bdf, PCI_BDF(info.out_domain, info.out_bus, info.out_devfn));
	b->device = rashpa_board_device(b->ours);
	b->iommu = info.out_flags & RASHPA_DEVICE_IOMMU;
	b->regs = registers.base;
	b->credit = (volatile uint32_t *)(doorbells.base + RFPGA_DB_CREDIT);
	if (check(b, device, room, why))
		return -1;
	return ours_memory(b, room, gpu, why);
}

int board_open_ours(struct board *b, const char *device, size_t room, const char *gpu, char *why)
{
	*b = (struct board)BOARD_NONE;
	b->memory = MAP_FAILED;
	b->bar[0] = b->bar[1] = MAP_FAILED;
	b->length = memory_length(gpu ? 0 : room);
	b->open = !ours_open(b, device, room, gpu, why);
	if (!b->open)
		board_close(b);
	return b->open ? 0 : -1;
}

/* --- VFIO --- */

static void add_entry(struct board *b, uint64_t addr, uint64_t length, uint64_t sum)
{
	const size_t entry = RFPGA_TABLE + b->entries++ * RFPGA_ENTRY_STRIDE;

	set64(b, entry + RFPGA_ENTRY_ADDR, addr);
	set64(b, entry + RFPGA_ENTRY_LEN, length);
	set64(b, entry + RFPGA_ENTRY_SUM, sum);
	set(b, entry + RFPGA_ENTRY_CONTROL, RFPGA_ENTRY_VALID);
}

static int vfio_board_open(struct board *b, const char *bdf, size_t room, char *why)
{
	snprintf(b->bdf, sizeof(b->bdf), "%s", bdf);
	if (vfio_open_device(&b->vfio, bdf, why))
		return -1;
	b->bar[0] = vfio_map_bar(&b->vfio, RFPGA_BAR_REGS, RFPGA_BAR_REGS_SIZE, why);
	if (b->bar[0] == MAP_FAILED)
		return -1;
	b->bar[1] = vfio_map_bar(&b->vfio, RFPGA_BAR_DOORBELL, RFPGA_BAR_DOORBELL_SIZE, why);
	if (b->bar[1] == MAP_FAILED)
		return -1;
	b->regs = b->bar[0];
	b->credit = (volatile uint32_t *)((uint8_t *)b->bar[1] + RFPGA_DB_CREDIT);
	if (check(b, bdf, room, why))
		return -1;
	b->memory = mmap(NULL, b->length, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (b->memory == MAP_FAILED)
		return because(why, -1, "mmap: %s", strerror(errno));
	if (vfio_map_dma(&b->vfio, b->memory, b->length, why))
		return -1;
	add_entry(b, VFIO_IOVA, b->length, 0);
	return 0;
}

int board_open_vfio(struct board *b, const char *bdf, size_t room, char *why)
{
	*b = (struct board)BOARD_NONE;
	b->memory = MAP_FAILED;
	b->bar[0] = b->bar[1] = MAP_FAILED;
	b->length = memory_length(room);
	b->open = !vfio_board_open(b, bdf, room, why);
	if (!b->open)
		board_close(b);
	return b->open ? 0 : -1;
}

/* --- uio_pci_generic --- */

static int uio_bars(struct board *b, char *why)
{
	b->bar[0] = uio_map_bar(b->bdf, RFPGA_BAR_REGS, RFPGA_BAR_REGS_SIZE, why);
	if (b->bar[0] == MAP_FAILED)
		return -1;
	b->bar[1] = uio_map_bar(b->bdf, RFPGA_BAR_DOORBELL, RFPGA_BAR_DOORBELL_SIZE, why);
	if (b->bar[1] == MAP_FAILED)
		return -1;
	b->regs = b->bar[0];
	b->credit = (volatile uint32_t *)((uint8_t *)b->bar[1] + RFPGA_DB_CREDIT);
	return 0;
}

static int uio_board_open(struct board *b, const char *bdf, size_t room, char *why)
{
	uint64_t addr;

	snprintf(b->bdf, sizeof(b->bdf), "%s", bdf);
	if (uio_open(&b->uio, bdf, why) || uio_bars(b, why) || check(b, bdf, room, why) ||
	    /* contig memory does not move, and, unlike CMA memory, shows its physical address */
	    buffer(b, RASHPA_BACKEND_CONTIG, why))
		return -1;
	/* no driver maps it for the function, so enter physical addresses */
	for (size_t at = 0; at < b->length; at += PAGE) {
		if (uio_physical(b->memory + at, &addr, why))
			return -1;
		add_entry(b, addr, PAGE, at);
	}
	return 0;
}

int board_open_uio(struct board *b, const char *bdf, size_t room, char *why)
{
	*b = (struct board)BOARD_NONE;
	b->memory = MAP_FAILED;
	b->bar[0] = b->bar[1] = MAP_FAILED;
	b->length = memory_length(room);
	b->open = !uio_board_open(b, bdf, room, why);
	if (!b->open)
		board_close(b);
	return b->open ? 0 : -1;
}

void board_clear_intx(struct board *b)
{
	set(b, RFPGA_INTX, RFPGA_INTX_PENDING);
}

/* --- all drivers --- */

static void unmap(void *base, size_t size)
{
	if (base != MAP_FAILED)
		munmap(base, size);
}

static unsigned int intx_irq(const struct board *b)
{
	unsigned int irq = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/irq", b->bdf);
	file = fopen(path, "re");
	if (file && fscanf(file, "%u", &irq) != 1)
		irq = 0;
	if (file)
		fclose(file);
	return irq;
}

/* Interrupt of vector 0, which is the lowest number; 0: no interrupt. */
static unsigned int first_irq(const struct board *b)
{
	unsigned int least = 0, number;
	const struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/msi_irqs", b->bdf);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		number = strtoul(entry->d_name, NULL, 10);
		if (number && (!least || number < least))
			least = number;
	}
	if (dir)
		closedir(dir);
	return least;
}

static bool affinity(unsigned int irq, bool write, char *text, size_t size)
{
	char path[64];
	bool good;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/irq/%u/smp_affinity_list", irq);
	file = fopen(path, write ? "we" : "re");
	if (!file)
		return false;
	/* the file is open for reading or for writing only */
	/* cppcheck-suppress IOWithoutPositioning */
	good = write ? fputs(text, file) >= 0 : !!fgets(text, size, file);
	return !fclose(file) && good;
}

int board_pin_interrupt(struct board *b, char *why)
{
	unsigned int irq = b->uio.device >= 0 ? intx_irq(b) : first_irq(b);
	char cpu[16];

	snprintf(cpu, sizeof(cpu), "%d", sched_getcpu());
	if (!irq)
		return because(why, -1, "%s has no interrupt", b->bdf);
	/* VFIO creates its interrupts anew each time */
	if (irq != b->irq && !affinity(irq, false, b->affinity, sizeof(b->affinity)))
		return because(why, -1, "/proc/irq/%u: %s", irq, strerror(errno));
	b->irq = irq;
	if (!affinity(irq, true, cpu, sizeof(cpu)))
		return because(why, -1, "/proc/irq/%u: %s", irq, strerror(errno));
	return 0;
}

int board_interrupt_pin(const struct board *b)
{
	uint8_t pin;
	char path[64];
	bool good;
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/config", b->bdf);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	good = fd >= 0 && pread(fd, &pin, 1, PCI_INTERRUPT_PIN) == 1;
	if (fd >= 0)
		close(fd);
	return good ? pin : -1;
}

/* Closing the function ends its DMA, so close it before the memory. */
void board_close(struct board *b)
{
	if (b->irq)
		affinity(b->irq, true, b->affinity, sizeof(b->affinity));
	uio_close(&b->uio);
	rashpa_board_close(b->ours);
	if (b->dmabuf >= 0)
		close(b->dmabuf);
	rashpa_gpu_free(b->payload);
	rashpa_gpu_close(b->gpu);
	unmap(b->bar[0], RFPGA_BAR_REGS_SIZE);
	unmap(b->bar[1], RFPGA_BAR_DOORBELL_SIZE);
	vfio_close(&b->vfio);
	unmap(b->memory, b->length);
	b->open = false;
}

static void configure(struct board *b, const struct run *run)
{
	const struct rfpga_dtp dtp = {
		.mode = run->mode,
		.pixel_bytes = 8,
		.bunch = 1,
		.slots = 1,
		.src_images = 1,
		.width = run->bytes / 8,
		.height = 1,
		.src_line = run->bytes,
		.src_image = run->bytes,
		.dst_line = run->bytes,
		.dst_image = run->bytes,
		.dst_slot = run->bytes,
		.dst_first = b->payload ? b->payload_at.first : b->first,
		.dst_count = b->payload ? b->payload_at.entries : b->entries,
		.lock_offset = b->length - PAGE,
		.lock_first = b->first,
		.lock_count = b->entries,
		.images = run->stacks,
		.period = run->period / RFPGA_TICK_NS,
	};

	for (uint32_t at = RFPGA_DTP_MODE; at < sizeof(dtp); at += 4)
		set(b, RFPGA_DTP(0) + at, rfpga_dtp_word(&dtp, at));
}

void board_start(struct board *b, const struct run *run)
{
	configure(b, run);
	__atomic_store_n(board_lock(b) + RFPGA_LOCK_STACKS / 8, 0, __ATOMIC_RELEASE);
	set(b, RFPGA_DTP(0) + RFPGA_DTP_CONTROL, RFPGA_DTP_START);
}

void board_stop(struct board *b)
{
	set(b, RFPGA_DTP(0) + RFPGA_DTP_CONTROL, RFPGA_DTP_STOP);
	/* only the register reports the stop; it stays all ones after a loss of the link */
	for (int i = 0; i < 1000; i++) {
		if (!(reg(b, RFPGA_DTP(0) + RFPGA_DTP_STATUS) & RFPGA_DTP_RUNNING))
			break;
		usleep(1000);
	}
}

uint64_t board_counter(const struct board *b, size_t counter)
{
	return *(volatile uint64_t *)(b->regs + RFPGA_DTP(0) + counter);
}

bool board_faulted(const struct board *b, char *why)
{
	uint32_t cause;

	if (!(reg(b, RFPGA_DTP(0) + RFPGA_DTP_STATUS) & RFPGA_DTP_FAULTED))
		return false;
	cause = reg(b, RFPGA_FAULT_CAUSE);
	because(why, -1, "the FPGA stopped by a fault: %s", rashpa_fault_name(cause));
	return true;
}
