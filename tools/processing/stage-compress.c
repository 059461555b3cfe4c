// SPDX-License-Identifier: LGPL-2.1-or-later
/* Keep pixels above a threshold, as rows of a sparse matrix (CSR). */
#include <omp.h>
#include <stdlib.h>

#include "processing/pipeline.h"
#include "common/say.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

RPU_READS(u32, read_capacity, 1, INT32_MAX)

static int compress_read(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_pipeline *p = to;
	const struct json_key keys[] = {
		{ "threshold", true, json_read_real, &p->compress.threshold },
		{ "capacity", false, read_capacity, &p->compress.capacity },
	};

	return json_read_object(at, value, keys, ARRAY_SIZE(keys));
}

void rpu_bench_free(struct rpu_bench *bench)
{
	if (!bench)
		return;
	free(bench->column);
	free(bench->value);
	free(bench->sum);
	free(bench);
}

struct rpu_bench *rpu_bench_new(uint32_t width, uint32_t capacity)
{
	struct rpu_bench *bench = calloc(1, sizeof(*bench));

	if (!bench)
		return NULL;
	bench->places = omp_get_max_threads();
	bench->room = (size_t)capacity + width + 16;
	/* not cleared: unused pages take no memory */
	bench->column = malloc(bench->places * bench->room * sizeof(*bench->column));
	bench->value = malloc(bench->places * bench->room * sizeof(*bench->value));
	bench->sum = rpu_memory(bench->places, sizeof(*bench->sum));
	if (bench->column && bench->value && bench->sum)
		return bench;
	rpu_bench_free(bench);
	return NULL;
}

static int compress_begin(struct rashpa_pipeline *p, char *why)
{
	if (!p->compress.capacity)
		p->compress.capacity = (rpu_pixels(p) + 7) / 8;
	/* no image has more: room for them would only be cleared */
	if (p->compress.capacity > rpu_pixels(p))
		p->compress.capacity = rpu_pixels(p);
	if (p->gpu)
		return rpu_gpu_begin_compress(p->gpu, p->height, p->compress.capacity, why);
	return 0;
}

static int compress_scratch(struct rashpa_pipeline *p, char *why)
{
	p->compress.bench = p->gpu ? NULL : rpu_bench_new(p->width, p->compress.capacity);
	return p->compress.bench || p->gpu ? 0 : because(why, -1, "no memory to compress images");
}

static void compress_end(struct rashpa_pipeline *p)
{
	rpu_bench_free(p->compress.bench);
}

static int compress_room(const struct rashpa_pipeline *p, struct rpu_work *w)
{
	w->csr.capacity = p->compress.capacity;
	w->csr.row = rpu_memory(p->height + 1, sizeof(*w->csr.row));
	w->csr.column = rpu_memory(w->csr.capacity, sizeof(*w->csr.column));
	w->csr.value = rpu_memory(w->csr.capacity, sizeof(*w->csr.value));
	return w->csr.row && w->csr.column && w->csr.value ? 0 : -1;
}

static int compress_run(struct rashpa_pipeline *p, struct rpu_work *w)
{
	struct rashpa_stage_stat *stat = &p->stage_stat[RPU_COMPRESS];
	struct rpu_csr *csr = &w->csr;

	csr->bench = p->compress.bench;
	if (!p->gpu)
		p->engine->compress(w->image, p->width, p->height, p->compress.threshold, csr);
	else if (rpu_gpu_compress(p->gpu, p->width, p->height, p->compress.threshold, csr,
				      p->why))
		return -1;
	stat->bytes_in += rpu_pixels(p) * sizeof(*w->image);
	w->result.elements = csr->count;
	if (csr->count > csr->capacity) {
		p->stat.overflow++;
		return 1;
	}
	stat->bytes_out += csr->count * (sizeof(*csr->column) + sizeof(*csr->value)) +
			   (p->height + 1ull) * sizeof(*csr->row);
	w->result.row = csr->row;
	w->result.column = csr->column;
	w->result.value = csr->value;
	return 1;
}

const struct rpu_stage rpu_stage_compress = {
	.name = "compress", .on_gpu = true, .read = compress_read, .begin = compress_begin,
	.scratch = compress_scratch, .room = compress_room, .run = compress_run, .end = compress_end,
};
