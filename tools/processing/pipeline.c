// SPDX-License-Identifier: LGPL-2.1-or-later
/* Stages one behind the other, for each image. */
#include "processing/pipeline.h"

#include <errno.h>
#include <inttypes.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/say.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define ALIGNED		64

static const struct rpu_engine * const engines[] = { &rpu_cpu, &rpu_reference };

#ifdef RPU_NO_SHADERS
static int no_vulkan(const char *name, struct rpu_gpu **gpu, char *why)
{
	(void)gpu;
	return because(why, -1, "engine %s: this program was built without %s", name,
		       RPU_NO_SHADERS);
}

const struct rpu_gpu_driver rpu_vulkan = { .name = "vulkan", .open = no_vulkan };
#endif

#ifdef RPU_NO_CUDA
static int no_cuda(const char *name, struct rpu_gpu **gpu, char *why)
{
	(void)gpu;
	return because(why, -1, "engine %s: this program was built without %s", name, RPU_NO_CUDA);
}

const struct rpu_gpu_driver rpu_cuda = { .name = "cuda", .open = no_cuda };
#endif

static const struct rpu_gpu_driver * const gpu_drivers[] = { &rpu_vulkan, &rpu_cuda };

void *rpu_memory(size_t n, size_t size)
{
	const size_t bytes = (n * size + ALIGNED - 1) / ALIGNED * ALIGNED;
	void *memory = aligned_alloc(ALIGNED, bytes ? bytes : ALIGNED);

	return memory ? memset(memory, 0, bytes) : NULL;
}

/* --- the configuration --- */

int rpu_read_path(struct json_place *at, struct json_object *value, void *to)
{
	char name[RPU_PATH];
	const char *slash = strrchr(at->path, '/');
	int n;

	if (json_read_text(at, value, name, sizeof(name)))
		return -1;
	if (*name == '/' || !slash)
		n = snprintf(to, RPU_PATH, "%s", name);
	else
		n = snprintf(to, RPU_PATH, "%.*s/%s", (int)(slash - at->path), at->path, name);
	return n < RPU_PATH ? 0 : json_wrong(at, "the path is too long");
}

int rpu_read_input(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_pipeline *p = at->context;

	if (rpu_read_path(at, value, to))
		return -1;
	if (p->inputs == RPU_INPUTS)
		return json_wrong(at, "a pipeline reads at most %d files", RPU_INPUTS);
	p->input[p->inputs].path = to;
	snprintf(p->input[p->inputs].key, sizeof(p->input->key), "%s", at->key);
	p->inputs++;
	return 0;
}

int rpu_read_real(struct json_place *at, struct json_object *value, double min, double max,
		  double *to)
{
	if (json_read_real(at, value, to))
		return -1;
	return *to >= min && *to <= max ? 0 : json_wrong(at, "%g is not %g to %g", *to, min, max);
}

int rpu_read_u32(struct json_place *at, struct json_object *value, uint32_t min, uint32_t max,
		 uint32_t *to)
{
	if (json_read_u32(at, value, to))
		return -1;
	return *to >= min && *to <= max ? 0 :
	       json_wrong(at, "%" PRIu32 " is not %" PRIu32 " to %" PRIu32, *to, min, max);
}

/* At least the numbers become floating ones, unless no stage or sink takes them. */
static bool takes_images(const struct rashpa_pipeline *p)
{
	bool raw = false;

	for (unsigned int i = 0; i < RPU_STAGES; i++) {
		if (p->used[i])
			return true;
	}
	for (unsigned int i = 0; i < RPU_SINKS; i++) {
		if (p->sink[i].state && !p->sink[i].only_raw)
			return true;
		raw |= p->sink[i].only_raw;
	}
	return !raw;
}

static int read_pipeline(struct json_place *at, struct json_object *value,
			 struct rashpa_pipeline *p)
{
	struct json_key keys[RPU_STAGES + 2] = {};

	for (unsigned int i = 0; i < RPU_STAGES; i++) {
		keys[i] = (struct json_key) { rpu_stages[i]->name, false, rpu_stages[i]->read, p };
		p->used[i] = json_object_object_get_ex(value, rpu_stages[i]->name, NULL);
	}
	keys[RPU_STAGES] = (struct json_key) { "description", false, json_read_comment, NULL };
	keys[RPU_STAGES + 1] = (struct json_key) { "sinks", false, rpu_sinks_read, p };
	if (json_read_object(at, value, keys, ARRAY_SIZE(keys)))
		return -1;
	p->used[RPU_PRETREAT] = takes_images(p);
	return 0;
}

int rashpa_pipeline_open(const char *config, const char *engine,
			 struct rashpa_pipeline **pipeline)
{
	char why[WHY_SIZE] = "";
	const bool inside = config[strspn(config, " \t\r\n")] == '{';
	const char *name = engine ? engine : "cpu";
	struct rashpa_pipeline *p = calloc(1, sizeof(*p));
	struct json_place at = { .path = inside ? "pipeline" : config, .why = why, .context = p };
	struct json_object *root;
	int result;

	if (!p)
		return rashpa_fail(ENOMEM, "no memory for a pipeline");
	p->process = getpid();
	for (size_t i = 0; i < ARRAY_SIZE(engines); i++) {
		if (!strcmp(engines[i]->name, name))
			p->engine = engines[i];
	}
	if (!p->engine && rpu_is_board(name) && strlen(name) < sizeof(p->board_name)) {
		/* the CPU does all other stages */
		p->engine = &rpu_cpu;
		strcpy(p->board_name, name);
	}
	for (size_t i = 0; i < ARRAY_SIZE(gpu_drivers) && strlen(name) < sizeof(p->gpu_name); i++) {
		const size_t n = strlen(gpu_drivers[i]->name);

		if (strncmp(name, gpu_drivers[i]->name, n) || (name[n] && name[n] != ':'))
			continue;
		/* the CPU does all other stages */
		p->engine = &rpu_cpu;
		p->gpu_driver = gpu_drivers[i];
		strcpy(p->gpu_name, name);
	}
	if (!p->engine) {
		free(p);
		return rashpa_fail(EINVAL,
				   "\"%s\" is not an engine: use cpu, reference, GPUs as vulkan, vulkan:1 or cuda, and boards as fpga0",
				   name);
	}
	if (!inside)
		snprintf(p->config, sizeof(p->config), "%s", config);
	root = inside ? json_parse_text(at.path, config, strlen(config), why) :
	       json_parse_file(config, why);
	result = root ? read_pipeline(&at, root, p) : -1;
	json_object_put(root);
	if (result) {
		rashpa_pipeline_close(p);
		return rashpa_fail(EINVAL, "%s", why);
	}
	for (unsigned int i = 0; i < RPU_STAGES; i++)
		p->stage_stat[i].name = rpu_stages[i]->name;
	*pipeline = p;
	return 0;
}

int rashpa_pipeline_offer(struct rashpa_pipeline *p, const void **base, uint64_t *length)
{
	char why[WHY_SIZE];
	int fd;

	if (!*p->board_name && !p->gpu_driver)
		return rashpa_fail(EOPNOTSUPP, "engine %s has no memory to offer: use a GPU, as vulkan, or a board, as fpga0",
				   p->engine->name);
	if (p->board || p->gpu)
		return rashpa_fail(EBUSY, "%s: its memory is offered already, or it has begun",
				   p->gpu ? p->gpu_name : p->board_name);
	if (p->gpu_driver ? p->gpu_driver->open(p->gpu_name, &p->gpu, why) :
			    rpu_board_open(p->board_name, &p->board, why))
		return rashpa_fail(EIO, "%s", why);
	fd = p->gpu ? rpu_gpu_offer(p->gpu, base, length, why) :
		      rpu_board_offer(p->board, base, length, why);
	return fd < 0 ? rashpa_fail(EIO, "%s", why) : fd;
}

/* --- images --- */

/*
 * A forked child lacks the threads of OpenMP, which would wait for them for ever. So remember the
 * first process that uses them, and refuse its forks. A single thread works in forks, too.
 */
int rpu_threads(void)
{
	static _Atomic pid_t process;
	const pid_t now = getpid();
	pid_t first = 0;

	if (omp_get_max_threads() < 2 || atomic_compare_exchange_strong(&process, &first, now) ||
	    first == now)
		return 0;
	return rashpa_fail(EBUSY,
			   "OpenMP has run in process %d, of which this one is a fork without its threads: start processes with spawn or forkserver",
			   (int)first);
}

/* Of the image before it is assembled, or after. */
static size_t most_pixels(const struct rashpa_pipeline *p)
{
	const size_t before = (size_t)p->geometry.width * p->geometry.height;

	return before > rpu_pixels(p) ? before : rpu_pixels(p);
}

int rashpa_pipeline_begin_sized(struct rashpa_pipeline *p, const struct rashpa_geometry *from,
				size_t size)
{
	struct rashpa_geometry all, *geometry = &all;
	int result;

	sized_copy(&all, sizeof(all), from, size);
	if (p->state != RPU_OPEN || rpu_is_elsewhere(p))
		return rpu_unready(p);
	if (!geometry->width || !geometry->height || geometry->pixel < RASHPA_PIXEL_U8 ||
	    geometry->pixel > RASHPA_PIXEL_U32 ||
	    (uint64_t)geometry->width * geometry->height > INT32_MAX)
		return rashpa_fail(EINVAL, "images of %" PRIu32 " x %" PRIu32
				   " pixels of type %" PRIu32
				   " are not processed: u8, u16 or u32, and less than 2^31 pixels",
				   geometry->width, geometry->height, geometry->pixel);
	if (geometry->ring.slots && !p->board && !p->gpu)
		return rashpa_fail(EINVAL, "no engine offered memory for raw images");
	result = rpu_threads();
	if (result)
		return result;
	p->geometry = *geometry;
	p->width = geometry->width;
	p->height = geometry->height;
	p->state = RPU_BROKEN;
	for (unsigned int i = 0; i < RPU_STAGES; i++) {
		if (!p->used[i])
			continue;
		if ((rpu_stages[i]->begin && rpu_stages[i]->begin(p, p->refused)) ||
		    (rpu_stages[i]->scratch && rpu_stages[i]->scratch(p, p->refused)))
			return rashpa_fail(EINVAL, "%s", p->refused);
	}
	if (p->gpu && rpu_gpu_ready(p->gpu, most_pixels(p), p->refused))
		return rashpa_fail(EINVAL, "%s", p->refused);
	if (rpu_sinks_open(p, p->refused))
		return rashpa_fail(EINVAL, "%s", p->refused);
	p->state = RPU_BEGUN;
	return 0;
}

/* A worker has no sinks, and its own scratch. */
int rashpa_pipeline_worker(const struct rashpa_pipeline *p, struct rashpa_pipeline **worker)
{
	const int threads = omp_get_max_threads();
	struct rashpa_pipeline *w;
	int failed = 0;

	if (p->state != RPU_BEGUN || p->of || p->gpu || p->board || rpu_is_elsewhere(p))
		return rashpa_fail(EINVAL, "only a pipeline that has begun, with engine cpu or reference, has workers");
	w = malloc(sizeof(*w));
	if (!w)
		return rashpa_fail(ENOMEM, "no memory for a worker");
	*w = *p;
	w->of = p;
	w->used[RPU_ACCUMULATE] = false;	/* put() does that, in the order of images */
	memset(w->sink, 0, sizeof(w->sink));
	memset(w->file, 0, sizeof(w->file));
	omp_set_num_threads(1);
	for (unsigned int i = 0; i < RPU_STAGES; i++) {
		if (w->used[i] && rpu_stages[i]->scratch)
			failed |= rpu_stages[i]->scratch(w, w->why);
	}
	omp_set_num_threads(threads);
	if (failed) {
		rashpa_fail(ENOMEM, "%s", w->why);
		rashpa_pipeline_close(w);
		return -ENOMEM;
	}
	*worker = w;
	return 0;
}

struct rashpa_result *rashpa_result_new_sized(const struct rashpa_pipeline *p, size_t size)
{
	const size_t more = size > sizeof(struct rashpa_result) ? size - sizeof(struct rashpa_result) : 0;
	struct rpu_work *w = p->state == RPU_BEGUN ? calloc(1, sizeof(*w) + more) : NULL;

	if (!w)
		return NULL;
	w->pipeline = p;
	for (unsigned int i = 0; i < RPU_STAGES; i++) {
		if (p->used[i] && rpu_stages[i]->room && rpu_stages[i]->room(p, w)) {
			rashpa_result_free(&w->result);
			return NULL;
		}
	}
	return &w->result;
}

void rashpa_result_free(struct rashpa_result *result)
{
	struct rpu_work *w;

	if (!result)
		return;
	w = rpu_work_of(result);
	free(w->pretreated);
	free(w->assembled);
	free(w->csr.row);
	free(w->csr.column);
	free(w->csr.value);
	free(w->peak);
	free(w->intensity);
	free(w->sigma);
	free(w->mean);
	free(w->deviation);
	rpu_packer_free(w->packer);
	free(w);
}

void rashpa_pipeline_get_stat_sized(const struct rashpa_pipeline *p,
				    struct rashpa_pipeline_stat *to, size_t size)
{
	struct rashpa_pipeline_stat stat = p->stat;

	stat.stage = p->stage_stat;
	stat.stages = RPU_STAGES;
	stat.sink = p->sink_stat;
	stat.sinks = RPU_SINKS;
	sized_copy(to, size, &stat, sizeof(stat));
}

void rashpa_pipeline_close(struct rashpa_pipeline *p)
{
	/* files and boards are not the fork's, and would be written by both */
	if (!p || rpu_is_elsewhere(p))
		return;
	for (unsigned int i = 0; i < RPU_STAGES; i++) {
		if (p->geometry.width && rpu_stages[i]->end && (!p->of || rpu_stages[i]->scratch))
			rpu_stages[i]->end(p);
	}
	rpu_board_end(p->board);
	rpu_gpu_end(p->gpu);
	rpu_sinks_end(p);
	free(p);
}
