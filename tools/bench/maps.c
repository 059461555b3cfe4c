// SPDX-License-Identifier: LGPL-2.1-or-later
/* Cost of mapping memory for a function, and of unmapping it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/bench.h"
#include "common/fpga.h"
#include <rashpa-board.h>
#include "common/parse.h"
#include <rashpa.h>
#include "rashpa_bare.h"
#include "common/vfio.h"

#define MAP		"map"
#define MAP_UNMAP	"map + unmap (closing stops the function)"
#define BARE		"bare dma-buf"
#define BARE_KERNEL	"bare dma-buf, inside the kernel"
#define VFIO		"VFIO type1"

struct maps {
	struct bench *bench;
	const struct source *source;
	struct fpga fpga;
	int channel;		/* keeps bus mastering enabled between maps */
	int bare;		/* file of RASHPA_BARE_PATH; -1: not available */
	struct vfio vfio;	/* container -1: not used */
};

enum what { OURS_MAP, OURS_BOTH, BARE_MAP, BARE_BOTH, KERNEL_MAP, KERNEL_BOTH, VFIO_MAP,
	    VFIO_BOTH, QUIESCE, WHATS };

/* --- peers --- */

static int bare_once(struct maps *m, int dmabuf, struct samples *samples, char *why)
{
	struct rashpa_bare arg = {
		.fd = dmabuf, .repeat = 1,
		.bdf = m->fpga.info.out_domain << 16 | m->fpga.info.out_bus << 8 |
		       m->fpga.info.out_devfn,
	};
	uint64_t ns, start = now_ns();

	if (ioctl(m->bare, RASHPA_BARE_MAP, &arg))
		return because(why, -1, "%s: %s", RASHPA_BARE_PATH, strerror(errno));
	ns = now_ns() - start;
	/* the system call is part of map and unmap, but its cost occurs once */
	samples_add(&samples[BARE_MAP], ns > arg.out_unmap_ns ? ns - arg.out_unmap_ns : 0);
	samples_add(&samples[BARE_BOTH], ns);
	samples_add(&samples[KERNEL_MAP], arg.out_map_ns);
	samples_add(&samples[KERNEL_BOTH], arg.out_map_ns + arg.out_unmap_ns);
	return 0;
}

static int vfio_once(struct maps *m, void *base, uint64_t size, struct samples *samples,
		     char *why)
{
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map), .flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
		.vaddr = (uintptr_t)base, .iova = VFIO_IOVA, .size = size,
	};
	struct vfio_iommu_type1_dma_unmap unmap = {
		.argsz = sizeof(unmap), .iova = VFIO_IOVA, .size = size,
	};
	uint64_t mapped, start = now_ns();

	if (ioctl(m->vfio.container, VFIO_IOMMU_MAP_DMA, &map))
		return because(why, -1, "VFIO_IOMMU_MAP_DMA: %s", strerror(errno));
	mapped = now_ns();
	if (ioctl(m->vfio.container, VFIO_IOMMU_UNMAP_DMA, &unmap))
		return because(why, -1, "VFIO_IOMMU_UNMAP_DMA: %s", strerror(errno));
	samples_add(&samples[VFIO_BOTH], now_ns() - start);
	samples_add(&samples[VFIO_MAP], mapped - start);
	return 0;
}

/* --- this driver --- */

static int ours_once(struct maps *m, int dmabuf, struct samples *samples, char *why)
{
	uint64_t mapped, stopped, start = now_ns();
	struct rashpa_map_make map = { .fd = dmabuf };
	int fd = rashpa_device_map(m->fpga.device, &map);

	mapped = now_ns();
	if (fd < 0)
		return because(why, -1, "%s", rashpa_reason());
	close(fd);
	samples_add(&samples[OURS_BOTH], now_ns() - start);
	samples_add(&samples[OURS_MAP], mapped - start);
	/* the channel keeps bus mastering enabled, so there is something to stop */
	if (!rashpa_device_quiesce(m->fpga.device, &stopped))
		samples_add(&samples[QUIESCE], stopped);
	return 0;
}

static void row(struct maps *m, uint64_t size, const char *name, const char *peer,
		struct samples *ours, struct samples *theirs)
{
	const struct row r = {
		.name = name, .backend = m->source->backend, .peer = peer, .size = size,
		.unit = UNIT_US,
	};

	if (ours->count && (!theirs || theirs->count))
		report_row(m->bench->report, &r, ours, theirs);
}

static void rows(struct maps *m, uint64_t size, struct samples *s)
{
	row(m, size, MAP, BARE, &s[OURS_MAP], &s[BARE_MAP]);
	row(m, size, MAP, BARE_KERNEL, &s[OURS_MAP], &s[KERNEL_MAP]);
	row(m, size, MAP, VFIO, &s[OURS_MAP], &s[VFIO_MAP]);
	row(m, size, MAP_UNMAP, BARE, &s[OURS_BOTH], &s[BARE_BOTH]);
	row(m, size, MAP_UNMAP, BARE_KERNEL, &s[OURS_BOTH], &s[KERNEL_BOTH]);
	row(m, size, MAP_UNMAP, VFIO, &s[OURS_BOTH], &s[VFIO_BOTH]);
	if (!s[BARE_MAP].count && !s[VFIO_MAP].count) {
		row(m, size, MAP, NULL, &s[OURS_MAP], NULL);
		row(m, size, MAP_UNMAP, NULL, &s[OURS_BOTH], NULL);
	}
	row(m, size, "stopping the function, once", NULL, &s[QUIESCE], NULL);
}

/* A peer that fails once is not measured again. */
static void peers_once(struct maps *m, int dmabuf, void *base, uint64_t size,
		       struct samples *samples, bool out[2])
{
	struct report *report = m->bench->report;
	char why[WHY_SIZE], text[SIZE_TEXT];

	if (m->bare >= 0 && !out[0] && bare_once(m, dmabuf, samples, why)) {
		report_leave_out(report, BARE, "%s: %s", format_size(text, size), why);
		out[0] = true;
	}
	if (m->vfio.container >= 0 && !out[1] && vfio_once(m, base, size, samples, why)) {
		report_leave_out(report, VFIO, "%s: %s", format_size(text, size), why);
		out[1] = true;
	}
}

static void measure(struct maps *m, uint64_t size)
{
	struct report *report = m->bench->report;
	struct samples samples[WHATS] = {}, cold[WHATS] = {};
	char why[WHY_SIZE], text[SIZE_TEXT];
	void *base = MAP_FAILED;
	bool out[2] = {};
	int dmabuf = -1, failed = 0;

	if (!memory_suffices(m->source, size, why))
		dmabuf = m->source->alloc(m->source, size, why);
	if (dmabuf >= 0) {
		base = map_aligned(dmabuf, size, NULL);
		if (base == MAP_FAILED)
			because(why, -1, "mmap: %s", strerror(errno));
	}
	if (base == MAP_FAILED)
		report_leave_out(report, MAP, "%s: %s", format_size(text, size), why);
	/* round 0 warms up: its samples do not count */
	for (unsigned int r = 0; base != MAP_FAILED && !failed && r <= report->repeat && going_on();
	     r++) {
		progress_show(&report->progress, "map: %s, round %u of %u",
			      format_size(text, size), r, report->repeat);
		for (size_t i = 0; i < 2 && !failed; i++) {
			if (turn(r, i, 2))
				peers_once(m, dmabuf, base, size, r ? samples : cold, out);
			else
				failed = ours_once(m, dmabuf, r ? samples : cold, why);
		}
	}
	if (failed)
		report_leave_out(report, MAP, "%s: %s", format_size(text, size), why);
	rows(m, size, samples);
	if (base != MAP_FAILED)
		munmap(base, size);
	if (dmabuf >= 0)
		m->source->free(m->source, dmabuf, size);
	for (enum what w = 0; w < WHATS; w++) {
		samples_free(&samples[w]);
		samples_free(&cold[w]);
	}
}

/* --- set-up --- */

static int device_open(struct maps *m, const char *device, char *why)
{
	unsigned int number;

	if (!parse_fpga(device, &number))
		return because(why, -1, "\"%s\" is not fpgaN: see rashpactl list", device);
	if (fpga_open(&m->fpga, number, why))
		return -1;
	if (rashpa_device_claim(m->fpga.device))
		return because(why, -1, "%s", rashpa_reason());
	m->channel = rashpa_channel_open(m->fpga.device, 0);
	if (m->channel < 0)
		return because(why, -1, "fpga%u: %s", number, rashpa_reason());
	m->bench->report->iommu = !!(m->fpga.info.out_flags & RASHPA_DEVICE_IOMMU);
	return 0;
}

static void peers_open(struct maps *m, const char *vfio)
{
	struct report *report = m->bench->report;
	char why[WHY_SIZE];

	m->bare = open(RASHPA_BARE_PATH, O_RDWR | O_CLOEXEC);
	if (m->bare < 0)
		report_leave_out(report, BARE, "%s: %s: load the module rashpa_bare (selftests/modules)",
				 RASHPA_BARE_PATH, strerror(errno));
	if (!vfio) {
		report_leave_out(report, VFIO, "give --vfio BDF: a spare function bound to vfio-pci");
		return;
	}
	if (!vfio_open(&m->vfio, vfio, why)) {
		report->vfio = vfio;
		return;
	}
	report_leave_out(report, VFIO, "%s", why);
}

void bench_maps(struct bench *bench, const char *device, const char *vfio)
{
	struct maps m = {
		.bench = bench, .fpga = FPGA_NONE, .channel = -1, .bare = -1,
		.vfio = VFIO_NONE,
	};
	char why[WHY_SIZE];

	for (size_t i = 0; i < bench->sources && !m.source; i++)
		if (bench->source[i].backend)
			m.source = &bench->source[i];
	if (!device)
		report_leave_out(bench->report, MAP,
				 "give --fpga fpgaN, an unused bound function");
	else if (!m.source)
		report_leave_out(bench->report, MAP, "there is no buffer to map");
	else if (device_open(&m, device, why))
		report_leave_out(bench->report, MAP, "%s", why);
	else {
		bench->report->device = device;
		peers_open(&m, vfio);
		for (size_t i = 0; i < bench->sizes && going_on(); i++)
			measure(&m, bench->size[i]);
	}
	vfio_close(&m.vfio);
	if (m.bare >= 0)
		close(m.bare);
	if (m.channel >= 0)
		close(m.channel);
	fpga_close(&m.fpga);
}
