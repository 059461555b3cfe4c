// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A pipeline processes the frames. A writer thread takes the results of each stack and then
 * releases the stack, so that a later receiver gets every stack that was not written.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "romulu/driven.h"
#include "common/json-out.h"
#include "romulu/offer.h"
#include <rashpa.h>
#include <rashpa-processing.h>
#include "romulu/romulu.h"
#include "common/say.h"

#define DEPTH	4u	/* stacks that are processed and not written yet, at most */
#define TELL_NS	100000000ull	/* interval of reports to observers */
#define STOP_NS	2000000000ull	/* time after a signal in which a sink must take a stack */

/* A stack and the results of its images. */
struct batch {
	struct rashpa_stack stack;
	struct rashpa_result **result;	/* [bunch] */
	uint32_t kept;			/* with workers: all, put() leaves out what is not kept */
	uint64_t deadline_ns;		/* of results of this stack; 0: none */
	bool processed;
};

/* A thread that processes whole stacks. */
struct worker {
	struct run *run;
	struct rashpa_pipeline *pipeline;
	pthread_t thread;
};

struct processing {
	struct rashpa_pipeline *pipeline;
	struct rashpa_stream *stream;
	const struct rashpa_stage_stat *sinks;	/* the pipeline's; who puts results changes them */
	uint32_t n_sinks;
	struct offer *offer;		/* offer of the engine's memory, or NULL */
	const uint8_t *there;		/* raw images in that memory; NULL: in the stream */
	size_t image_bytes;
	uint8_t *copy;			/* [depth * bunch] images, NULL if they are not overwritten */
	struct driven *driven;		/* with --drive, from the first stack on */
	pthread_t collector;
	bool collects;			/* that thread runs */
	uint32_t bunch, depth;
	struct batch *batch;		/* [depth], one after the other */
	int near;			/* threads that are bound to the buffer's NUMA node */
	struct worker *worker;		/* NULL: all processors share each image */
	uint32_t workers;		/* those that run */

	pthread_t writer;
	bool have_writer;
	/* of what follows */
	pthread_mutex_t lock;
	pthread_cond_t change;
	uint64_t put, written;		/* batches */
	uint64_t begun, processed;	/* likewise, by workers or a drive */
	struct rashpa_drive_stat drove;	/* after the last stack that was processed */
	bool alone;			/* one of them changes the calibration */
	bool over;
	_Atomic int failed;		/* exit status, of the writer, the collector or a worker */
	uint64_t lost;			/* results */
	uint64_t full, most;		/* stacks that found no room; batches at a time */
	uint64_t late;			/* results after the deadline */
	/* as the writer saw them last: */
	struct rashpa_stage_stat sink[RASHPA_STREAM_STAGES];
	struct rashpa_pipeline_stat stat;	/* with workers */
	struct rashpa_stage_stat stage[RASHPA_STREAM_STAGES];

	uint64_t told_ns;		/* when the last word was */
};

/* Who streams into the engine's memory asks for it before there is a stream. */
static int offer_memory(struct run *r, struct processing *p)
{
	uint64_t length = r->config->offer_bytes;
	int dmabuf = rashpa_pipeline_offer(p->pipeline, &r->offered, &length);

	if (dmabuf < 0)
		return fail("%s", rashpa_reason());
	p->there = r->offered;
	return offer_open(r->config->offer, dmabuf, &p->offer);
}

static int process_open(struct run *r)
{
	struct processing *p = calloc(1, sizeof(*p));

	if (!p)
		return fail("no memory to process images");
	r->data = p;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->change, NULL);
	if (rashpa_pipeline_open(r->config->pipeline, r->config->engine, &p->pipeline))
		return fail("%s", rashpa_reason());
	return r->config->offer ? offer_memory(r, p) : 0;
}

/* --- what was processed is written --- */

/* 0; or a sink has lost something, and must not. */
static int lost(struct processing *p, int result)
{
	if (!result)
		return 0;
	say("%s", rashpa_reason());
	pthread_mutex_lock(&p->lock);
	p->lost++;
	if (result < 0)
		p->failed = EXIT_FAILED;
	pthread_mutex_unlock(&p->lock);
	return result < 0;
}

/*
 * The stack of what failed is the next receiver's. A receiver that began at stacks which were given back
 * before (from-start) may have lost one while it was processed: its results are not reliable.
 */
static void write_batch(struct processing *p, struct batch *b)
{
	for (uint32_t i = 0; i < b->kept; i++) {
		if (lost(p, rashpa_pipeline_put(p->pipeline, b->result[i])))
			return;
	}
	if (!p->copy && !rashpa_stack_intact(&b->stack)) {
		say("stack %" PRIu64 " was overwritten before its results were written", b->stack.number);
		pthread_mutex_lock(&p->lock);
		p->lost += b->kept;
		pthread_mutex_unlock(&p->lock);
	}
	if (!lost(p, rashpa_pipeline_flush(p->pipeline)))
		rashpa_stream_release(p->stream, &b->stack);
}

/* The next one in order. */
static bool is_processed(const struct processing *p)
{
	return p->written < p->put && p->batch[p->written % p->depth].processed;
}

static void see_stages(struct processing *p)
{
	if (!p->worker)
		return;		/* the main thread changes them */
	rashpa_pipeline_get_stat(p->pipeline, &p->stat);
	memcpy(p->stage, p->stat.stage, p->stat.stages * sizeof(*p->stage));
	p->stat.stage = p->stage;
}

static void *writer(void *argument)
{
	struct processing *p = argument;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		while (!is_processed(p) && !p->over)
			pthread_cond_wait(&p->change, &p->lock);
		if (!is_processed(p))
			break;
		pthread_mutex_unlock(&p->lock);
		if (!p->failed)
			write_batch(p, &p->batch[p->written % p->depth]);
		pthread_mutex_lock(&p->lock);
		memcpy(p->sink, p->sinks, p->n_sinks * sizeof(*p->sink));
		see_stages(p);
		p->written++;
		pthread_cond_broadcast(&p->change);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* --- reports to observers --- */

/* With the lock, if the writer runs. */
static void get_status(const struct processing *p, struct rashpa_pipeline_stat *stat)
{
	if (p->worker)
		*stat = p->stat;
	else
		rashpa_pipeline_get_stat(p->pipeline, stat);
	if (!p->driven)
		return;
	stat->images = p->drove.images - p->drove.dark;
	stat->dark = p->drove.dark;
	stat->vetoed = p->drove.vetoed;
	stat->overflow += p->drove.dropped;
}

static void add_stages(struct rashpa_stream_work *w, const struct rashpa_stage_stat *s, uint32_t n,
		       uint32_t kind)
{
	for (uint32_t i = 0; i < n && w->stages < RASHPA_STREAM_STAGES; i++) {
		struct rashpa_stream_stage *to = &w->stage[w->stages];

		if (!s[i].images)
			continue;
		w->stages++;
		snprintf(to->name, sizeof(to->name), "%s", s[i].name);
		to->kind = kind;
		to->images = s[i].images;
		to->lost = s[i].lost;
		to->ns = s[i].ns;
		to->bytes_in = s[i].bytes_in;
		to->bytes_out = s[i].bytes_out;
	}
}

/* Report progress to observers; a report that fails is dropped. */
static void say_how_it_goes(struct run *r, struct processing *p)
{
	struct rashpa_stream_work work = { .queue = p->depth };
	struct rashpa_pipeline_stat stat;

	pthread_mutex_lock(&p->lock);
	get_status(p, &stat);
	snprintf(work.engine, sizeof(work.engine), "%s",
		 r->config->engine ? r->config->engine : "cpu");
	work.images = stat.images;
	work.dark = stat.dark;
	work.vetoed = stat.vetoed;
	work.overflow = stat.overflow;
	work.late = p->late;
	add_stages(&work, stat.stage, stat.stages, RASHPA_STAGE_PROCESS);
	work.lost = p->lost;
	work.queue_fill = p->put - p->written;
	work.queue_most = p->most;
	work.queue_full = p->full;
	add_stages(&work, p->sink, p->n_sinks, RASHPA_STAGE_SINK);
	pthread_mutex_unlock(&p->lock);
	p->told_ns = now_ns();
	rashpa_stream_tell(p->stream, &work);
}

static void go_near(struct run *r, struct processing *p)
{
	struct rashpa_info info = { .fd = -1 };

	/* a payload that is elsewhere may be on another node: it is not asked */
	if (*r->about->payload_name ||
	    rashpa_memory_get_info(rashpa_stream_buffer(r->stream), &info))
		return;
	p->near = rashpa_pipeline_near(info.out_node);
	if (p->near < 0) {
		say("%s", rashpa_reason());
		p->near = 0;
	}
}

/* The stream is in the engine's memory, as the engine takes it. */
static int find_ring(struct run *r, struct processing *p, struct rashpa_raw_ring *ring)
{
	const struct rashpa_stream_header *h = r->about;
	const char *offer = r->config->offer, *buffer = r->config->opt.buffer;

	if (strcmp(h->payload_name, offer))
		return fail("buffer %s: its images are not in memory %s: stream with --payload %s",
			    buffer, offer, offer);
	if (h->policy == RASHPA_STREAM_OVERWRITE)
		return fail("buffer %s: its images may be overwritten while %s processes them: stream with --policy wait",
			    buffer, r->config->engine);
	if (h->bunch > 1 && h->slot_stride != h->bunch * h->image_stride)
		return fail("buffer %s: there are gaps between its stacks, which %s does not take: stream with --bunch 1",
			    buffer, r->config->engine);
	*ring = (struct rashpa_raw_ring) {
		.offset = h->data_offset,
		.step = h->bunch > 1 ? h->image_stride : h->slot_stride,
		.slots = h->slots < UINT32_MAX / h->bunch ? h->slots * h->bunch : UINT32_MAX,
	};
	p->there += h->data_offset;
	return 0;
}

/* One for each image of a stack; process_close() frees them. 0, or -1: no memory. */
static int make_results(const struct processing *p, struct batch *b)
{
	b->result = calloc(p->bunch, sizeof(*b->result));
	if (!b->result)
		return -1;
	for (uint32_t k = 0; k < p->bunch; k++) {
		b->result[k] = rashpa_result_new(p->pipeline);
		if (!b->result[k])
			return -1;
	}
	return 0;
}

/* Pedestals move and images are counted: part of another stack must not be taken for one. */
static const void *own(struct run *r, const struct batch *b, const struct rashpa_stack *st, uint32_t i,
		       const void *data)
{
	struct processing *p = r->data;
	uint8_t *copy;

	if (p->there)
		return p->there + st->number % r->about->slots * r->about->slot_stride +
		       i * r->about->image_stride;
	if (!p->copy)
		return data;
	copy = p->copy + ((b - p->batch) * p->bunch + i) * p->image_bytes;
	memcpy(copy, data, (st->height - 1) * st->line_stride +
	       (size_t)st->width * st->pixel_bytes);
	return rashpa_stack_intact(st) ? copy : NULL;
}

/* Images of a stack, one after the other. What workers have begun they finish: it is counted. */
static int run_images(struct run *r, struct rashpa_pipeline *pipeline,
		      const struct rashpa_stack *st, struct batch *b, uint64_t *late)
{
	struct processing *p = r->data;
	struct rashpa_image image;
	int result;

	for (uint32_t k = 0; k < st->images; k++) {
		/* a dark image before its signal */
		const uint32_t i = r->config->pairs && (k | 1) < st->images ? k ^ 1 : k;
		struct rashpa_result *to = b->result[b->kept];
		const void *data;

		if (rashpa_stack_image(st, i, &image))
			break;

		if (*r->stop && !p->worker)
			return -EINTR;
		if (image.wrong)
			continue;
		data = own(r, b, st, i, image.data);
		if (!data)
			break;
		to->frame = image.frame;
		to->role = image.role;
		result = rashpa_pipeline_run(pipeline, data, st->line_stride, to);
		if (result < 0)
			return fail("%s", rashpa_reason());
		b->kept += p->worker ? 1 : result;
		*late += result && b->deadline_ns && now_ns() > b->deadline_ns;
	}
	return 0;
}

/* --- workers --- */

/* The next stack, or NULL. One with dark images waits for all before it, and those after it for that one. */
static struct batch *next_batch(const struct processing *p)
{
	struct batch *b = &p->batch[p->begun % p->depth];

	if (p->begun == p->put || p->alone)
		return NULL;
	return b->stack.flags & RASHPA_STACK_ROLES && p->processed < p->begun ? NULL : b;
}

static void *work(void *argument)
{
	struct worker *w = argument;
	struct processing *p = w->run->data;
	uint64_t late;
	int result;

	pthread_mutex_lock(&p->lock);
	while (!p->over || p->begun < p->put) {
		struct batch *b = next_batch(p);

		if (!b) {
			pthread_cond_wait(&p->change, &p->lock);
			continue;
		}
		p->begun++;
		p->alone = b->stack.flags & RASHPA_STACK_ROLES;
		pthread_mutex_unlock(&p->lock);
		late = 0;
		result = run_images(w->run, w->pipeline, &b->stack, b, &late);
		pthread_mutex_lock(&p->lock);
		p->late += late;
		if (result)
			p->failed = result;
		b->processed = true;
		p->processed++;
		p->alone = false;
		pthread_cond_broadcast(&p->change);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* They run where this thread does: on the buffer's NUMA node. */
static int start_workers(struct run *r, struct processing *p)
{
	int error;

	p->worker = calloc(r->config->workers, sizeof(*p->worker));
	if (!p->worker)
		return fail("no memory for workers");
	for (; p->workers < r->config->workers; p->workers++) {
		struct worker *w = &p->worker[p->workers];

		w->run = r;
		if (rashpa_pipeline_worker(p->pipeline, &w->pipeline))
			return fail("%s", rashpa_reason());
		error = pthread_create(&w->thread, NULL, work, w);
		if (error) {
			rashpa_pipeline_close(w->pipeline);
			return fail("cannot make a thread: %s", strerror(error));
		}
	}
	return 0;
}

static int process_begin(struct run *r)
{
	const struct rashpa_stream_header *h = r->about;
	struct rashpa_geometry geometry = {
		.width = h->width, .height = h->height, .pixel = h->pixel, .bunch = h->bunch,
	};
	const uint32_t most = r->config->workers ? 2 * r->config->workers : DEPTH;
	struct processing *p = r->data;
	struct rashpa_pipeline_stat stat;
	int error;

	if (r->config->workers && h->policy == RASHPA_STREAM_OVERWRITE)
		return fail("buffer %s: its images may be overwritten while workers have them: stream with --policy wait or drop, or without --tune workers",
			    r->config->opt.buffer);
	if (r->config->pairs && h->bunch % 2)
		return fail("buffer %s: --tune pairs requires an even --bunch, not %" PRIu32,
			    r->config->opt.buffer, h->bunch);
	if (h->big_endian)
		return fail("buffer %s: pixels are big-endian, which no engine takes",
			    r->config->opt.buffer);
	go_near(r, p);
	if (p->offer && find_ring(r, p, &geometry.ring))
		return EXIT_FAILED;
	if (rashpa_pipeline_begin(p->pipeline, &geometry))
		return fail("%s", rashpa_reason());
	rashpa_pipeline_get_stat(p->pipeline, &stat);
	p->sinks = stat.sink;
	p->n_sinks = stat.sinks < RASHPA_STREAM_STAGES ? stat.sinks : RASHPA_STREAM_STAGES;
	p->stream = r->stream;
	p->bunch = h->bunch;
	/* one slot at least is being filled meanwhile */
	p->depth = h->slots > 2 ? h->slots - 1 : 1;
	if (p->depth > most)
		p->depth = most;
	p->batch = calloc(p->depth, sizeof(*p->batch));
	p->image_bytes = h->height * h->line_stride;
	if (h->policy == RASHPA_STREAM_OVERWRITE)
		p->copy = malloc(p->depth * p->bunch * p->image_bytes);
	if (!p->batch || (h->policy == RASHPA_STREAM_OVERWRITE && !p->copy))
		return fail("no memory to process images");
	for (uint32_t i = 0; i < p->depth; i++) {
		if (make_results(p, &p->batch[i]))
			return fail("no memory for results of %" PRIu32 " stacks of %" PRIu32
				    " images: use a smaller --bunch", p->depth, p->bunch);
	}
	error = pthread_create(&p->writer, NULL, writer, p);
	if (error)
		return fail("cannot make a thread: %s", strerror(error));
	p->have_writer = true;
	return r->config->workers ? start_workers(r, p) : 0;
}

/* The writer has done something; or it is that late. */
static int await_change(struct processing *p, uint64_t at)
{
	const struct timespec end = { at / 1000000000, at % 1000000000 };

	return pthread_cond_clockwait(&p->change, &p->lock, CLOCK_MONOTONIC, &end);
}

/* Wait until there is room for one more. 0, an exit status, or -EINTR. */
static int await_room(struct run *r, struct processing *p)
{
	uint64_t waiting;
	bool told = false;
	int result;

	pthread_mutex_lock(&p->lock);
	if (p->put - p->written == p->depth)
		p->full++;
	while (p->put - p->written == p->depth && !p->failed && !*r->stop) {
		const uint64_t since = told ? now_ns() : p->told_ns;

		if (await_change(p, since + TELL_NS) == ETIMEDOUT && !told) {
			/* a sink may block for long: report before the wait */
			pthread_mutex_unlock(&p->lock);
			say_how_it_goes(r, p);
			told = true;
			pthread_mutex_lock(&p->lock);
		}
	}
	waiting = p->put - p->written;
	if (waiting < p->depth && p->most <= waiting)
		p->most = waiting + 1;
	result = p->failed;
	if (!result && waiting >= p->depth)
		result = -EINTR;
	pthread_mutex_unlock(&p->lock);
	return result;
}

/* --- a GPU that is driven --- */

/* Collect the results of one stack after the other; the GPU has those after it meanwhile. */
static void *collect(void *argument)
{
	struct processing *p = argument;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		struct batch *b = &p->batch[p->processed % p->depth];
		uint64_t late = 0;
		int result;

		while (p->processed == p->put && !p->over)
			pthread_cond_wait(&p->change, &p->lock);
		if (p->processed == p->put)
			break;
		pthread_mutex_unlock(&p->lock);
		result = p->failed ? 0 : driven_stack(p->driven, &b->stack, b->deadline_ns,
						      b->result, &b->kept, &late);
		pthread_mutex_lock(&p->lock);
		p->late += late;
		if (result)
			p->failed = result;
		driven_status(p->driven, &p->drove);
		b->processed = true;
		p->processed++;
		pthread_cond_broadcast(&p->change);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static int begin_drive(struct run *r, struct processing *p, const struct rashpa_stack *first)
{
	struct rashpa_image image;
	int error;

	if (rashpa_stack_image(first, 0, &image))
		return fail("%s", rashpa_reason());
	error = driven_open(r, p->pipeline, first, p->there ? NULL : image.data, p->depth,
			    &p->driven);
	if (error)
		return error;
	error = pthread_create(&p->collector, NULL, collect, p);
	if (error)
		return fail("cannot make a thread: %s", strerror(error));
	p->collects = true;
	return 0;
}

/*
 * Deadline of a stack's results, counted from its event, or from the record of a program that
 * completed it. Stacks that were complete before the wait have no known time: count from now.
 */
static uint64_t deadline_of(const struct run *r, const struct rashpa_stack *st)
{
	const uint64_t since = st->event_ns ?: st->time_ns ?: now_ns();

	return r->config->deadline_us ? since + r->config->deadline_us * UINT64_C(1000) : 0;
}

static int process_look(struct run *r, const struct rashpa_stack *st)
{
	struct processing *p = r->data;
	struct batch *b = &p->batch[p->put % p->depth];
	int result;

	result = await_room(r, p);
	if (result)
		return result;
	/* also where all stacks are overwritten before they are processed */
	if (now_ns() - p->told_ns >= TELL_NS)
		say_how_it_goes(r, p);
	b->kept = 0;
	b->deadline_ns = deadline_of(r, st);
	if (r->config->driven)
		return p->driven ? 0 : begin_drive(r, p, st);
	return p->worker ? 0 : run_images(r, p->pipeline, st, b, &p->late);
}

static int process_stack(struct run *r, const struct rashpa_stack *st)
{
	struct processing *p = r->data;
	struct batch *b = &p->batch[p->put % p->depth];
	const int result = p->driven ? driven_tell(p->driven, r, st) : 0;

	if (result)
		return result;
	b->stack = *st;
	b->processed = !p->worker && !p->driven;
	pthread_mutex_lock(&p->lock);
	p->put++;
	pthread_cond_broadcast(&p->change);
	pthread_mutex_unlock(&p->lock);
	return 0;
}

/* --- the end --- */

static struct json_object *stat_json(const struct rashpa_stage_stat *s, uint32_t n)
{
	struct json_object *array = json_object_new_array();

	for (uint32_t i = 0; i < n; i++) {
		struct json_object *o;

		if (!s[i].images)
			continue;
		o = json_object_new_object();
		put_text(o, "name", s[i].name);
		put_u64(o, "images", s[i].images);
		put_u64(o, "lost", s[i].lost);
		put_real(o, "seconds", s[i].ns / 1e9);
		put_u64(o, "bytes_in", s[i].bytes_in);
		put_u64(o, "bytes_out", s[i].bytes_out);
		json_object_array_add(array, o);
	}
	return array;
}

static void tell(struct run *r, const struct processing *p)
{
	struct json_object *o = json_object_new_object(), *queue = json_object_new_object();
	struct rashpa_pipeline_stat stat;

	get_status(p, &stat);
	put_text(o, "engine", r->config->engine ? r->config->engine : "cpu");
	put_text(o, "drive", r->config->driven ? driven_name(r->config->way) : NULL);
	put_u64(o, "images", stat.images);
	put_u64(o, "dark", stat.dark);
	put_u64(o, "vetoed", stat.vetoed);
	put_u64(o, "overflow", stat.overflow);
	put_u64(o, "lost", p->lost);
	put_u64(o, "late", p->late);
	put_u64(o, "deadline_us", r->config->deadline_us);
	put_int(o, "bound_threads", p->near);
	put_int(o, "workers", p->workers);
	put_bool(o, "in_place", !!p->there);
	put_u64(queue, "stacks", p->depth);
	put_u64(queue, "most", p->most);
	put_u64(queue, "full", p->full);
	json_object_object_add(o, "queue", queue);
	json_object_object_add(o, "stages", stat_json(stat.stage, stat.stages));
	json_object_object_add(o, "sinks", stat_json(stat.sink, stat.sinks));
	r->report->processing = o;
	r->report->unkept = p->lost + stat.overflow;
}

/* All that was put is written, or refused: after a signal, a write to a pipe that is full ends. */
static void await_writer(struct run *r, struct processing *p)
{
	uint64_t written = p->written, since = now_ns();

	while (p->written < p->put) {
		await_change(p, now_ns() + TELL_NS);
		if (!*r->stop || p->written != written)
			since = now_ns();
		else if (now_ns() - since > STOP_NS)
			pthread_kill(p->writer, SIGTERM);
		written = p->written;
	}
}

static int process_close(struct run *r)
{
	struct processing *p = r->data;
	int result = 0;

	if (!p)
		return 0;
	if (p->have_writer) {
		pthread_mutex_lock(&p->lock);
		await_writer(r, p);
		p->over = true;
		pthread_cond_broadcast(&p->change);
		pthread_mutex_unlock(&p->lock);
		pthread_join(p->writer, NULL);
		if (p->collects)
			pthread_join(p->collector, NULL);
		for (uint32_t i = 0; i < p->workers; i++) {
			pthread_join(p->worker[i].thread, NULL);
			rashpa_pipeline_close(p->worker[i].pipeline);
		}
		/* only a complete run may finish its files */
		if (!p->failed && !r->failed && rashpa_pipeline_finish(p->pipeline))
			p->failed = fail("%s", rashpa_reason());
		say_how_it_goes(r, p);
		tell(r, p);
		result = p->failed;
	}
	for (uint32_t i = 0; p->batch && i < p->depth; i++) {
		for (uint32_t k = 0; p->batch[i].result && k < p->bunch; k++)
			rashpa_result_free(p->batch[i].result[k]);
		free(p->batch[i].result);
	}
	free(p->batch);
	free(p->worker);
	free(p->copy);
	driven_close(p->driven);
	offer_close(p->offer);
	rashpa_pipeline_close(p->pipeline);
	pthread_cond_destroy(&p->change);
	pthread_mutex_destroy(&p->lock);
	free(p);
	r->data = NULL;
	return result;
}

/* While it runs, or of the report when it is closed. */
static void process_count(struct run *r, struct done *done)
{
	const struct json_object *told = r->report->processing;
	struct processing *p = r->data;
	struct rashpa_pipeline_stat stat = {};
	uint64_t unkept = r->report->unkept;

	if (p && p->have_writer) {
		pthread_mutex_lock(&p->lock);
		get_status(p, &stat);
		unkept = p->lost + stat.overflow;
		pthread_mutex_unlock(&p->lock);
	} else if (told) {
		stat.images = json_object_get_uint64(json_object_object_get(told, "images"));
		stat.vetoed = json_object_get_uint64(json_object_object_get(told, "vetoed"));
	}
	done->processes = true;
	done->processed = stat.images;
	done->kept = stat.images - stat.vetoed;
	done->unkept = unkept;
}

const struct use use_process = {
	.name = "process",
	.count = process_count,
	.open = process_open,
	.begin = process_begin,
	.look = process_look,
	.stack = process_stack,
	.keeps = true,
	.close = process_close,
};
