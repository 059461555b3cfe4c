// SPDX-License-Identifier: GPL-2.0-only
/* Memories and life of the software FPGA. */
#include "fpga.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Memory that the host maps too. Sealed: a client must not be able to cut it off. */
static uint8_t *shared_memory(const char *name, uint64_t size, int *fd)
{
	void *map = MAP_FAILED;

	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return NULL;
	if (!ftruncate(*fd, (off_t)size) &&
	    !fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (map != MAP_FAILED)
		return map;
	close(*fd);
	*fd = -1;
	return NULL;
}

static void unmap_shared(uint8_t *memory, uint64_t size, int fd)
{
	if (!memory)
		return;
	munmap(memory, size);
	close(fd);
}

void fpga_reset_registers(struct fpga *fpga)
{
	fault_reset(fpga);
	engine_quiesce(fpga);
	engine_reset(fpga);
	source_reset(fpga);
	regs_reset(fpga);
	memset(fpga->doorbell, 0, RFPGA_BAR_DOORBELL_SIZE);
}

void fpga_reset(struct fpga *fpga)
{
	fpga_reset_registers(fpga);
	pci_reset(fpga);
}

static void free_memories(struct fpga *fpga)
{
	unmap_shared(fpga->doorbell, RFPGA_BAR_DOORBELL_SIZE, fpga->doorbell_fd);
	unmap_shared(fpga->memory, fpga->memory_size, fpga->memory_fd);
}

static uint64_t tai_at_tick_0(void)
{
	struct timespec now;

	clock_gettime(CLOCK_TAI, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec -
	       fpga_ticks() * RFPGA_TICK_NS;
}

/* What is fixed after the start is set by the caller, all else is zero. */
int fpga_init(struct fpga *fpga)
{
	int err = -ENOMEM;

	fpga->memory = shared_memory("rashpa-fpga-memory", fpga->memory_size,
				     &fpga->memory_fd);
	fpga->doorbell = shared_memory("rashpa-fpga-doorbell", RFPGA_BAR_DOORBELL_SIZE,
				       &fpga->doorbell_fd);
	fpga->vfu = vfu_new(fpga);
	if (fpga->memory && fpga->doorbell && fpga->vfu)
		err = host_init(&fpga->host, fpga->vfu);
	if (!err) {
		bus_init(&fpga->bus, &fpga->host, fpga->entries);
		pci_init(fpga);
		slow_init(fpga);
		build_init(fpga);
		fpga->tai = tai_at_tick_0();
		err = engine_init(fpga);
		if (!err) {
			err = fault_init(fpga);
			if (!err)
				return 0;
			engine_destroy(fpga);
		}
		host_destroy(&fpga->host);
	}
	if (fpga->vfu)
		vfu_free(fpga->vfu);
	free_memories(fpga);
	return err;
}

void fpga_destroy(struct fpga *fpga)
{
	vfu_disconnect(fpga->vfu);
	fault_destroy(fpga);
	engine_destroy(fpga);
	vfu_free(fpga->vfu);
	host_destroy(&fpga->host);
	free_memories(fpga);
}
