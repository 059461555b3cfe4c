// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Drive GPUs: drive WAY OPTION=VALUE..., as images=40 gpus=2 credits=3 ahead=4 slots=8 vulkan=1
 * (the GPU of Vulkan; else those of CUDA) window=BYTES (payload in memory of the GPU, of which
 * BYTES are exposed) direct=1 (all of it) own=1 (a lock of ours) stop=N (the producer ends before
 * image N) hold=N (results are held, N at a time, and not overwritten) close=N (end after N
 * results) die=N (the same, by SIGKILL) vain=N (end after N seconds without a result)
 * step=BYTES (from image to image) same=1 (one pipeline for all GPUs) again=1 (another drive of it)
 * other=1 saturated=1 (pipelines have other vetoes, or saturated pixels) bunch=N (the lock counts
 * stacks of N images) owner=1 (only the kernel gives slots back to the producer) apart=1 (and this
 * program does nothing until all images were produced). One of three images is vetoed. Prints the
 * results, or the error.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rashpa-processing.h>

#define WIDTH	64
#define HEIGHT	9
#define PIXELS	(WIDTH * HEIGHT)
#define GPUS	4

static struct { const char *name; unsigned long value; } option[] = {
	{ "images", 40 }, { "gpus", 1 }, { "credits", 30 }, { "ahead", 4 }, { "slots", 8 },
	{ "window", 0 }, { "direct", 0 }, { "own", 0 }, { "stop", 1000000 }, { "hold", 1 },
	{ "close", 1000000 }, { "die", 1000000 }, { "patience", 20000 }, { "vulkan", 0 },
	{ "vain", 1000000 }, { "same", 0 }, { "again", 0 }, { "other", 0 }, { "saturated", 0 },
	{ "step", PIXELS * 2 }, { "bunch", 1 }, { "owner", 0 }, { "apart", 0 },
};

static unsigned long get(const char *name)
{
	for (size_t i = 0; i < sizeof(option) / sizeof(option[0]); i++) {
		if (!strcmp(option[i].name, name))
			return option[i].value;
	}
	abort();
}

static struct rashpa_pipeline *pipeline[GPUS];
static struct rashpa_drive *drive;
static uint8_t *ring;
static _Atomic uint32_t *lock, *given;
static atomic_bool end;

static bool is_accepted(uint32_t s)
{
	return s % 3 != 1;
}

static uint16_t pixel(uint32_t s, uint32_t i)
{
	return is_accepted(s) && i % 50 == s % 50 ? 1000 + s : i % 7;
}

/* Wait until pieces or slots may be written. */
static bool free_from(uint32_t number, uint32_t room)
{
	while (!end) {
		const uint32_t taken = given ? atomic_load(given) * get("bunch") :
				       rashpa_drive_taken(drive);

		if ((int32_t)(number - taken) < (int32_t)room)
			break;
		sched_yield();
	}
	return !end;
}

static void tell(uint32_t arrived)
{
	if (lock)
		atomic_store(lock, arrived / get("bunch"));
	else
		rashpa_drive_arrived(drive, arrived);
}

static void *produce(void *unused)
{
	const uint64_t step = get("step");
	const uint32_t bytes = PIXELS * 2, window = get("window"), slots = get("slots");
	const uint32_t piece = window ? window / 2 / 4 * 4 : bytes;
	const uint32_t pieces = (bytes + piece - 1) / piece;
	uint16_t image[PIXELS];

	(void)unused;
	for (uint32_t s = 0; s < get("images") && s < get("stop"); s++) {
		for (uint32_t i = 0; i < PIXELS; i++)
			image[i] = pixel(s, i);
		for (uint32_t q = 0; q < pieces; q++) {
			const uint32_t at = q * piece, number = s * pieces + q;
			const uint32_t n = bytes - at < piece ? bytes - at : piece;

			if (!free_from(number, window ? 2 : slots))
				return NULL;
			memcpy(ring + (window ? number % 2 * piece : s % slots * step),
			       (uint8_t *)image + at, n);
			tell(number + 1);
		}
	}
	return NULL;
}

static bool is_right(const struct rashpa_driven *r)
{
	for (uint32_t i = 0; i < PIXELS; i++) {
		if (r->image[i] != pixel(r->frame, i))
			return false;
	}
	return is_accepted(r->frame) && r->gpu == r->frame % get("gpus");
}

/* Nobody copies anything there while it is held, not even the same once more. */
static void spoil(const struct rashpa_driven *r)
{
	*(float *)r->image = -1;
}

static bool is_untouched(const struct rashpa_driven *r)
{
	return *r->image == -1;
}

static int begin(bool in_gpu, uint64_t *length)
{
	struct rashpa_geometry g = {
		.width = WIDTH, .height = HEIGHT, .pixel = RASHPA_PIXEL_U16, .bunch = 1,
	};
	const void *base;
	int fd;

	for (unsigned int i = 0; i < get("gpus"); i++) {
		char name[16], config[128];

		snprintf(config, sizeof(config),
			 "{\"pretreat\": {\"saturated\": %lu}, \"veto\": {\"threshold\": %lu, \"pixels\": 2}}",
			 60000 + i * get("saturated"), 900 + i * get("other"));
		snprintf(name, sizeof(name), get("vulkan") ? "vulkan" : "cuda:%u", i);
		if (rashpa_pipeline_open(config, name, &pipeline[i]))
			return -1;
		if (in_gpu) {
			fd = rashpa_pipeline_offer(pipeline[i], &base, length);
			if (fd < 0)
				return -1;
			ring = mmap(NULL, *length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
			g.ring.step = get("step");
			g.ring.slots = get("slots");
		}
		if (rashpa_pipeline_begin(pipeline[i], &g))
			return -1;
	}
	return 0;
}

/* Print one line about the results. */
static int run(void)
{
	struct rashpa_driven held[64];
	struct rashpa_drive_stat stat;
	unsigned int results = 0, wrong = 0, vain = 0, holding = 0, most = 0;
	int got = 0;

	while (results < get("close") && vain < get("vain")) {
		got = rashpa_drive_next(drive, &held[holding], 1000000000);
		if (got != 1 && got != -ETIMEDOUT)
			break;
		vain += got < 0;
		rashpa_drive_get_stat(drive, &stat);
		most = stat.copies_ahead > most ? stat.copies_ahead : most;
		if (got == 1) {
			results++;
			if (results == get("die"))
				raise(SIGKILL);
			wrong += !is_right(&held[holding]);
			spoil(&held[holding++]);
		}
		if (holding < get("hold"))
			continue;
		for (unsigned int i = 0; i < holding; i++) {
			wrong += !is_untouched(&held[i]);
			rashpa_drive_release(drive, &held[i]);
		}
		holding = 0;
	}
	for (unsigned int i = 0; i < holding; i++)
		wrong += !is_untouched(&held[i]);
	rashpa_drive_get_stat(drive, &stat);
	printf("%s: %llu images, %u results, %u wrong, %llu vetoed, lost %s, copies ahead %s\n",
	       got == -EIO ? rashpa_reason() : got ? "stopped" : "all",
	       (unsigned long long)stat.images,
	       results, wrong, (unsigned long long)stat.vetoed,
	       stat.accepted + stat.dropped + stat.vetoed == stat.images ? "none" : "some",
	       most <= get("credits") * get("gpus") ? "in credit" : "too many");
	return 0;
}

/* A drive of pipelines that have one, or had one. */
static void open_again(const char *when, const struct rashpa_drive_plan *plan)
{
	struct rashpa_drive *other;

	if (rashpa_drive_open(pipeline, 1, plan, &other))
		printf("%s: %s\n", when, rashpa_reason());
	else
		printf("%s: opened\n", when);
	rashpa_drive_close(other);
}

static void *pages(size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

int main(int argc, char **argv)
{
	static const char * const ways[] = { "launch", "ahead", "poll" };
	const size_t page = 4096;
	struct rashpa_pipeline *driven[GPUS] = {};
	struct rashpa_drive_plan plan = {};
	uint64_t length;
	pthread_t producer;
	bool in_gpu;

	for (unsigned int i = 0; i < 3 && argc > 1; i++) {
		if (!strcmp(argv[1], ways[i]))
			plan.way = i;
	}
	for (int k = 2; k < argc; k++) {
		for (size_t i = 0; i < sizeof(option) / sizeof(option[0]); i++) {
			const size_t n = strlen(option[i].name);

			if (!strncmp(argv[k], option[i].name, n) && argv[k][n] == '=')
				option[i].value = strtoul(argv[k] + n + 1, NULL, 0);
		}
	}
	length = get("step") * get("slots");
	in_gpu = get("direct") || get("window");
	if (!in_gpu)
		ring = pages((get("step") * get("slots") + page - 1) / page * page);
	if (!get("own"))
		lock = pages(page);
	if (get("owner"))
		given = pages(page);
	plan.images = get("images");
	plan.raw = in_gpu ? NULL : ring;
	plan.step = get("step");
	plan.slots = get("slots");
	plan.lock = (const uint32_t *)lock;
	plan.lock_images = get("bunch");
	plan.given = (uint32_t *)given;
	plan.credits = get("credits");
	plan.ahead = get("ahead");
	plan.window_bytes = get("window");
	plan.patience_ns = get("patience") * 1000000;
	if (begin(in_gpu, &length)) {
		printf("refused: %s\n", rashpa_reason());
		return 1;
	}
	for (unsigned int i = 0; i < get("gpus"); i++)
		driven[i] = pipeline[get("same") ? 0 : i];
	if (rashpa_drive_open(driven, get("gpus"), &plan, &drive)) {
		printf("refused: %s\n", rashpa_reason());
		return 1;
	}
	if (get("again"))
		open_again("beside it", &plan);
	/* the kernel is started */
	if (get("apart") && rashpa_drive_next(drive, &(struct rashpa_driven) {}, 0) != -ETIMEDOUT)
		return 1;
	if (pthread_create(&producer, NULL, produce, NULL))
		return 1;
	if (get("apart"))
		pthread_join(producer, NULL);
	run();
	end = true;
	if (!get("apart"))
		pthread_join(producer, NULL);
	if (given)
		printf("given back: %u stacks\n", atomic_load(given));
	if (rashpa_drive_close(drive))
		printf("%s\n", rashpa_reason());
	if (get("again"))
		open_again("then", &plan);
	for (unsigned int i = 0; i < get("gpus"); i++)
		rashpa_pipeline_close(pipeline[i]);
	return 0;
}
