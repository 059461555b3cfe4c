// SPDX-License-Identifier: LGPL-2.1-or-later
/* Stages on a GPU, independent of its API. */
#include "processing/gpu.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rashpa.h>
#include "common/say.h"

#define OFFERED		(UINT64_C(64) << 20)	/* bytes, by default */

/* Address of the offered memory: for processors, in CUDA's space, which is theirs too, or a reserved one. */
static const uint8_t *offered_at(const struct rpu_gpu *g)
{
	void *const gpu = (void *)(uintptr_t)rashpa_gpu_address(g->offered);

	return rashpa_gpu_base(g->offered) ?: gpu ?: g->addresses;
}

int rpu_gpu_offer(struct rpu_gpu *g, const void **base, uint64_t *length, char *why)
{
	const uint64_t page = sysconf(_SC_PAGESIZE);
	const uint64_t wanted = *length ? (*length + page - 1) / page * page : OFFERED;

	if (rashpa_gpu_alloc(g->gpu, wanted, &g->offered))
		return because(why, -1, "memory for raw images: %s", rashpa_reason());
	g->offered_bytes = *length = wanted;
	*base = offered_at(g);
	if (!*base) {
		/* only to say where an image is */
		g->addresses = mmap(NULL, wanted, PROT_NONE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (g->addresses == MAP_FAILED) {
			g->addresses = NULL;
			return because(why, -1, "memory for raw images: no addresses for %" PRIu64
				       " bytes", wanted);
		}
		*base = g->addresses;
	}
	return rashpa_gpu_dmabuf(g->offered);
}

/* --- begin --- */

/* Images are words for a shader. */
static int take_ring(struct rpu_gpu *g, const struct rashpa_raw_ring *ring, uint64_t image,
		     char *why)
{
	if (ring->step < image || ring->step % 4 || ring->offset % 4)
		return because(why, -1, "%s: slots of %" PRIu64 " bytes at steps of %" PRIu64
			       " from offset %" PRIu64 ": step and offset must be multiples of 4",
			       g->info.name, image, ring->step, ring->offset);
	if (ring->offset > g->offered_bytes || image > g->offered_bytes - ring->offset ||
	    ring->slots - 1 > (g->offered_bytes - ring->offset - image) / ring->step)
		return because(why, -1, "%s: raw images reach out of the memory that was offered",
			       g->info.name);
	if (ring->offset + (ring->slots - 1) * ring->step + image > RPU_RING_BYTES)
		return because(why, -1, "%s: raw images end at byte %" PRIu64
			       " in offered memory, and a GPU reads up to %" PRIu64
			       ": use fewer slots", g->info.name,
			       ring->offset + (ring->slots - 1) * ring->step + image,
			       RPU_RING_BYTES);
	g->ring = *ring;
	g->by->use(g, g->offered, g->offered_bytes);
	return 0;
}

/* A plane each, one behind the other. */
static int store_planes(struct rpu_gpu *g, enum rpu_place at, float * const *plane,
			unsigned int planes, uint64_t bytes, char *why)
{
	for (unsigned int k = 0; k < planes; k++) {
		if (g->by->store(g, at, k * bytes, plane[k], bytes, why))
			return -1;
	}
	return 0;
}

int rpu_gpu_begin(struct rpu_gpu *g, const struct rpu_calibration *c,
		  const struct rashpa_raw_ring *ring, char *why)
{
	const unsigned int gains = c->jungfrau ? RPU_GAINS : 1;
	const uint64_t pixels = (uint64_t)c->width * c->height, plane = pixels * sizeof(float);
	const struct rpu_constants constants = {
		.pixel_bytes = 1u << (c->pixel - RASHPA_PIXEL_U8), .jungfrau = c->jungfrau,
		.whole = c->whole,
	};

	g->raw_bytes = constants.pixel_bytes;
	g->width = c->width;
	g->height = c->height;
	if (ring->slots && take_ring(g, ring, pixels * g->raw_bytes, why))
		return -1;
	/* no board streams into the offered memory: images are copied by the host */
	if (!ring->slots) {
		rashpa_gpu_free(g->offered);
		g->offered = NULL;
		if (g->by->make(g, RPU_AT_RAW, pixels * g->raw_bytes, true, why))
			return -1;
	}
	if (g->by->make(g, RPU_AT_PEDESTAL, gains * plane, false, why) ||
	    g->by->make(g, RPU_AT_GAIN, gains * plane, false, why) ||
	    g->by->make(g, RPU_AT_TOLD, RPU_TOLDS * sizeof(uint32_t), true, why) ||
	    store_planes(g, RPU_AT_PEDESTAL, c->pedestal, gains, plane, why) ||
	    store_planes(g, RPU_AT_GAIN, c->per_gain, gains, plane, why))
		return -1;
	return g->by->kernel(g, RPU_KERNEL_PRETREAT, &constants, why) ||
	       g->by->kernel(g, RPU_KERNEL_DARK, &constants, why) ||
	       g->by->kernel(g, RPU_KERNEL_ABOVE, &constants, why) ? -1 : 0;
}

int rpu_gpu_begin_compress(struct rpu_gpu *g, uint32_t height, uint32_t capacity, char *why)
{
	static const struct rpu_constants constants = { .pixel_bytes = 4 };

	return g->by->make(g, RPU_AT_ROW, (height + 1ull) * sizeof(uint32_t), true, why) ||
	       g->by->make(g, RPU_AT_COLUMN, capacity * 4ull, true, why) ||
	       g->by->make(g, RPU_AT_VALUE, capacity * 4ull, true, why) ||
	       g->by->kernel(g, RPU_KERNEL_ROWS, &constants, why) ||
	       g->by->kernel(g, RPU_KERNEL_SCAN, &constants, why) ||
	       g->by->kernel(g, RPU_KERNEL_KEEP, &constants, why) ? -1 : 0;
}

int rpu_gpu_begin_integrate(struct rpu_gpu *g, const struct rpu_matrix *m, size_t pixels,
			    char *why)
{
	const struct {
		enum rpu_place at;
		const void *from;
		uint64_t bytes;
	} table[] = {
		{ RPU_AT_START, m->start, (m->bins + 1ull) * sizeof(*m->start) },
		{ RPU_AT_ELEMENT, m->pixel, m->start[m->bins] * sizeof(*m->pixel) },
		{ RPU_AT_PART, m->part, m->part ? m->start[m->bins] * sizeof(*m->part) : 0 },
		{ RPU_AT_NORM, m->norm, pixels * sizeof(*m->norm) },
	};
	const struct rpu_constants constants = { .pixel_bytes = 4, .parts = !!m->part };

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		/* a shader has something everywhere */
		if (g->by->make(g, table[i].at, table[i].bytes ? table[i].bytes : 4, false, why) ||
		    (table[i].bytes &&
		     g->by->store(g, table[i].at, 0, table[i].from, table[i].bytes, why)))
			return -1;
	}
	return g->by->make(g, RPU_AT_PROFILE, 2ull * m->bins * sizeof(float), true, why) ||
	       g->by->kernel(g, RPU_KERNEL_INTEGRATE, &constants, why) ? -1 : 0;
}

int rpu_gpu_ready(struct rpu_gpu *g, size_t pixels, char *why)
{
	if (g->by->make(g, RPU_AT_IMAGE, pixels * sizeof(float), false, why))
		return -1;
	g->by->ready(g);
	return 0;
}

/* --- images --- */

/* Where the raw image begins, words; it is brought, unless it is there. */
static int bring(struct rpu_gpu *g, const struct rpu_raw *raw, uint32_t *first, char *why)
{
	const size_t row = (size_t)g->width * g->raw_bytes;
	const uint8_t *line = raw->data, *base;
	uint64_t at;

	*first = 0;
	if (!g->offered) {
		for (uint32_t y = 0; y < g->height && raw->line_stride != row; y++)
			if (g->by->store(g, RPU_AT_RAW, y * row,
					 line + y * raw->line_stride, row, why))
				return -1;
		return raw->line_stride != row ? 0 :
		       g->by->store(g, RPU_AT_RAW, 0, line, row * g->height, why);
	}
	base = offered_at(g);
	at = line - base - g->ring.offset;
	if (at % g->ring.step || at / g->ring.step >= g->ring.slots || raw->line_stride != row)
		return because(why, -1, "%s: an image is not in a slot of the offered memory",
			       g->info.name);
	*first = (g->ring.offset + at) / 4;
	return 0;
}

static int of_raw(struct rpu_gpu *g, const struct rpu_calibration *c, const struct rpu_raw *raw,
		  enum rpu_kernel kernel, char *why)
{
	const uint32_t each = 4 / g->raw_bytes;
	struct rpu_push push = {
		.width = c->width, .height = c->height, .pixels = c->width * c->height,
		.saturated = c->saturated, .weight = c->dark_weight,
	};

	if (bring(g, raw, &push.first, why) || g->by->begin(g, why))
		return -1;
	g->by->run(g, kernel, &push, (push.pixels - 1ull) / (each * RPU_LANES) + 1);
	return g->by->finish(g, why);
}

int rpu_gpu_pretreat(struct rpu_gpu *g, const struct rpu_calibration *c, const struct rpu_raw *raw,
		     char *why)
{
	return of_raw(g, c, raw, RPU_KERNEL_PRETREAT, why);
}

int rpu_gpu_dark(struct rpu_gpu *g, const struct rpu_calibration *c, const struct rpu_raw *raw,
		 char *why)
{
	return of_raw(g, c, raw, RPU_KERNEL_DARK, why);
}

int rpu_gpu_above(struct rpu_gpu *g, size_t pixels, float threshold, uint64_t *above, char *why)
{
	const struct rpu_push push = { .pixels = pixels, .number = threshold };
	uint32_t told[RPU_TOLDS];

	if (g->by->begin(g, why))
		return -1;
	g->by->clear(g, RPU_AT_TOLD);
	g->by->barrier(g);
	g->by->run(g, RPU_KERNEL_ABOVE, &push, (pixels - 1) / RPU_PIECE + 1);
	if (g->by->finish(g, why) || g->by->load(g, RPU_AT_TOLD, 0, told, sizeof(told), why))
		return -1;
	*above = told[RPU_TOLD_ABOVE];
	return 0;
}

int rpu_gpu_compress(struct rpu_gpu *g, uint32_t width, uint32_t height, float threshold,
		     struct rpu_csr *csr, char *why)
{
	const struct rpu_push push = {
		.width = width, .height = height, .pixels = width * height,
		.capacity = csr->capacity, .number = threshold,
	};
	uint32_t told[RPU_TOLDS];

	if (g->by->begin(g, why))
		return -1;
	g->by->run(g, RPU_KERNEL_ROWS, &push, height);
	g->by->barrier(g);
	g->by->run(g, RPU_KERNEL_SCAN, &push, 1);
	g->by->barrier(g);
	g->by->run(g, RPU_KERNEL_KEEP, &push, height);
	if (g->by->finish(g, why) || g->by->load(g, RPU_AT_TOLD, 0, told, sizeof(told), why))
		return -1;
	csr->count = told[RPU_TOLD_KEPT];
	if (csr->count > csr->capacity)
		return 0;
	return g->by->load(g, RPU_AT_ROW, 0, csr->row, (height + 1ull) * sizeof(*csr->row),
			   why) ||
	       g->by->load(g, RPU_AT_COLUMN, 0, csr->column,
			   csr->count * sizeof(*csr->column), why) ||
	       g->by->load(g, RPU_AT_VALUE, 0, csr->value,
			   csr->count * sizeof(*csr->value), why) ? -1 : 0;
}

int rpu_gpu_integrate(struct rpu_gpu *g, const struct rpu_matrix *m, float *intensity,
		      float *sigma, char *why)
{
	const struct rpu_push push = {
		.width = m->bins, .capacity = sigma ? m->error : RPU_ERROR_NONE,
	};
	const size_t bytes = m->bins * sizeof(*intensity);

	if (g->by->begin(g, why))
		return -1;
	g->by->run(g, RPU_KERNEL_INTEGRATE, &push, m->bins);
	if (g->by->finish(g, why) ||
	    g->by->load(g, RPU_AT_PROFILE, 0, intensity, bytes, why))
		return -1;
	return sigma ? g->by->load(g, RPU_AT_PROFILE, bytes, sigma, bytes, why) : 0;
}

int rpu_gpu_load(struct rpu_gpu *g, size_t pixels, float *image, char *why)
{
	return g->by->load(g, RPU_AT_IMAGE, 0, image, pixels * sizeof(*image),
			   why);
}

int rpu_gpu_store(struct rpu_gpu *g, size_t pixels, const float *image, char *why)
{
	return g->by->store(g, RPU_AT_IMAGE, 0, image, pixels * sizeof(*image),
			    why);
}

void rpu_gpu_end(struct rpu_gpu *g)
{
	if (!g)
		return;
	if (g->addresses)
		munmap(g->addresses, g->offered_bytes);
	g->by->end(g);
}
