// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Drive of a Vulkan GPU. Its streams cannot wait for words in memory: they wait for timeline
 * semaphores, one for each word, and the host signals that of the lock. Streams are separate queues
 * if the GPU has enough; else they share one, and a batch waits only for the host or for earlier
 * batches. So a copy of the result follows each image, and a vetoed image gives it no groups.
 */
#include "processing/vulkan.h"

#include <stdlib.h>
#include <string.h>

#include <rashpa.h>
#include "common/say.h"
#include "vulkan-bank.spv.h"
#include "vulkan-decide.spv.h"
#include "vulkan-out.spv.h"
#include "vulkan-poll.spv.h"
#include "vulkan-publish.spv.h"
#include "vulkan-take.spv.h"
#include "vulkan-taken.spv.h"

#define EACH		4	/* semaphores of a batch, to wait for or to signal */
/*
 * A kernel that stays lets go of the GPU before its driver takes it for one that hangs: after so
 * many looks, each up to 2 us over a bus, or so many images.
 */
#define POLLS		(1u << 18)
#define POLL_IMAGES	64u

enum { TAKE, DECIDE, BANK, PUBLISH, OUT, TAKEN, POLL, OWN_KERNELS };

static const struct { const uint32_t *code; size_t bytes; } own_kernels[OWN_KERNELS] = {
	[TAKE] = { vulkan_take, sizeof(vulkan_take) },
	[DECIDE] = { vulkan_decide, sizeof(vulkan_decide) },
	[BANK] = { vulkan_bank, sizeof(vulkan_bank) },
	[PUBLISH] = { vulkan_publish, sizeof(vulkan_publish) },
	[OUT] = { vulkan_out, sizeof(vulkan_out) },
	[TAKEN] = { vulkan_taken, sizeof(vulkan_taken) },
	[POLL] = { vulkan_poll, sizeof(vulkan_poll) },
};

/* What says that a stream has come to its end. */
static const unsigned int last_word[RPU_STREAMS] = {
	[RPU_IN] = RPU_CONTROL_IN, [RPU_COMPUTE] = RPU_CONTROL_DECIDED,
	[RPU_OUT] = RPU_CONTROL_COMPUTED,
};

/* Words that are semaphores. */
static const unsigned int semaphores[] = {
	RPU_CONTROL_IN, RPU_CONTROL_PIECES, RPU_CONTROL_DECIDED, RPU_CONTROL_COMPUTED,
	RPU_CONTROL_LOCK,
};

#define SEMAPHORES	(sizeof(semaphores) / sizeof(semaphores[0]))

/* A batch that is not submitted yet, and its commands. */
struct stream {
	VkQueue queue;
	VkCommandBuffer *commands;
	uint32_t room, next;		/* of them */
	bool records;
	uint32_t waits, signals;
	VkSemaphore wait[EACH], signal[EACH];
	uint64_t wait_value[EACH], signal_value[EACH];
};

struct vulkan_wheel {
	struct rpu_vulkan *g;
	struct stream stream[RPU_STREAMS];
	VkSemaphore word[RPU_CONTROLS];
	uint32_t is[RPU_CONTROLS], becomes[RPU_CONTROLS];	/* of those */
	VkPipeline shader[OWN_KERNELS];
	struct compute_buffer in[2], decision[2], banks, control, results;
	VkDescriptorPool pool[2];
	VkDescriptorSet set[2];		/* of images of an even number, and of an odd one */
	struct rashpa_gpu_memory *lock_page, *ring, *given_page;
	uint64_t lock_at, ring_at, given_at;	/* bytes */
	bool sees_lock;			/* the kernel that stays does, where it is */
	VkResult failed;		/* first error of enqueueing */
};

static struct vulkan_wheel *of(const struct rpu_wheel *w)
{
	return w->own;
}

static void keep(struct vulkan_wheel *v, VkResult result)
{
	if (!v->failed)
		v->failed = result;
	if (result == VK_ERROR_DEVICE_LOST)
		v->g->c.lost = true;
}

/* --- open, close --- */

static int open_stream(struct rpu_wheel *w, unsigned int which, uint32_t room, char *why)
{
	struct vulkan_wheel *v = of(w);
	struct compute *c = &v->g->c;
	struct stream *s = &v->stream[which];

	/* kernels have the engine's queue */
	w->queue[which] = (which + RPU_STREAMS - RPU_COMPUTE) % RPU_STREAMS % c->vk.queues;
	c->GetDeviceQueue(c->device, c->vk.family, w->queue[which], &s->queue);
	s->commands = calloc(room, sizeof(*s->commands));
	if (!s->commands)
		return because(why, -1, "no memory for a drive");
	s->room = room;
	return compute_wrong(c, "commands", compute_commands(c, room, s->commands), why);
}

static int open_memory(const struct rashpa_drive *d, struct vulkan_wheel *v, char *why)
{
	const bool polls = d->plan.way == RASHPA_DRIVE_POLL;
	const size_t banks = d->plan.credits * rpu_bank_bytes(d);
	struct compute *c = &v->g->c;

	for (unsigned int i = 0; i < 2; i++) {
		if (!d->direct && !polls && compute_buffer(c, &v->in[i], d->image_bytes, 0, why))
			return -1;
		if (compute_buffer(c, &v->decision[i], RPU_DECISIONS * sizeof(uint32_t), 0, why))
			return -1;
	}
	/* the kernel that stays has the only queue that there may be: it writes results itself */
	return (!polls && compute_buffer(c, &v->banks, banks, 0, why)) ||
	       compute_buffer(c, &v->control, rpu_control_bytes(d), COMPUTE_HOST, why) ||
	       compute_buffer(c, &v->results, banks, COMPUTE_HOST, why) ? -1 : 0;
}

static int see(const struct rashpa_drive *d, struct rpu_wheel *w, char *why)
{
	const bool polls = d->plan.way == RASHPA_DRIVE_POLL;
	struct vulkan_wheel *v = of(w);

	v->lock_at = RPU_CONTROL_LOCK * sizeof(uint32_t);
	v->sees_lock = polls && d->plan.lock && w->gpu->info.flags & RASHPA_GPU_HOST;
	if (v->sees_lock && rpu_let_see(w->gpu, d->plan.lock, sizeof(uint32_t), false,
					&v->lock_page, &v->lock_at, why))
		return -1;
	if (d->plan.given && rpu_let_see(w->gpu, d->plan.given, sizeof(uint32_t),
					 d->plan.given_is_window, &v->given_page, &v->given_at,
					 why))
		return -1;
	return d->plan.raw ? rpu_let_see(w->gpu, d->plan.raw, d->plan.step * d->plan.slots,
					 false, &v->ring, &v->ring_at, why) : 0;
}

static VkBuffer raw_of(const struct rashpa_drive *d, const struct vulkan_wheel *v, unsigned int i)
{
	if (v->in[i].buffer)
		return v->in[i].buffer;
	return d->direct ? v->g->at[RPU_AT_RAW].buffer :
			   (VkBuffer)rashpa_gpu_vulkan_buffer(v->ring);
}

static VkResult bind(const struct rashpa_drive *d, struct vulkan_wheel *v, unsigned int i)
{
	struct compute *c = &v->g->c;
	const VkResult result = compute_set(c, &v->pool[i], &v->set[i]);
	const VkBuffer buffer[RPU_DRIVEN_PLACES] = {
		[RPU_AT_RAW] = raw_of(d, v, i),
		[RPU_AT_PEDESTAL] = v->g->at[RPU_AT_PEDESTAL].buffer,
		[RPU_AT_GAIN] = v->g->at[RPU_AT_GAIN].buffer,
		[RPU_AT_IMAGE] = v->g->at[RPU_AT_IMAGE].buffer,
		[RPU_AT_TOLD] = v->g->at[RPU_AT_TOLD].buffer,
		[RPU_AT_LOCK] = v->sees_lock ? (VkBuffer)rashpa_gpu_vulkan_buffer(v->lock_page) :
				v->control.buffer,
		[RPU_AT_CONTROL] = v->control.buffer,
		[RPU_AT_DECISION] = v->decision[i].buffer,
		[RPU_AT_BANKS] = v->banks.buffer ? v->banks.buffer : v->results.buffer,
		[RPU_AT_RESULTS] = v->results.buffer,
		[RPU_AT_GIVEN] = v->given_page ? (VkBuffer)rashpa_gpu_vulkan_buffer(v->given_page) :
				 v->control.buffer,
	};

	for (unsigned int k = 0; k < RPU_DRIVEN_PLACES && !result; k++) {
		if (buffer[k])
			compute_bind(c, v->set[i], k, buffer[k]);
	}
	return result;
}

static int open_rest(const struct rashpa_drive *d, struct rpu_wheel *w, char *why)
{
	struct vulkan_wheel *v = of(w);
	/* of all that may be under way, and of one more */
	const uint32_t room = (d->plan.ahead < d->plan.images ? d->plan.ahead : d->plan.images) + 2;
	struct compute *c = &v->g->c;
	VkResult result = VK_SUCCESS;

	for (unsigned int i = 0; i < RPU_STREAMS; i++) {
		if (open_stream(w, i, i == RPU_IN ? room * d->pieces : room, why))
			return -1;
	}
	for (unsigned int i = 0; i < SEMAPHORES && !result; i++)
		result = compute_semaphore(c, &v->word[semaphores[i]]);
	for (unsigned int i = 0; i < 2 && !result; i++)
		result = bind(d, v, i);
	for (unsigned int i = 0; i < OWN_KERNELS && !result; i++) {
		if (compute_shader(c, own_kernels[i].code, own_kernels[i].bytes,
				   (const uint32_t *)&v->g->constants,
				   sizeof(v->g->constants) / sizeof(uint32_t), &v->shader[i], why))
			return -1;
	}
	return compute_wrong(c, "a drive", result, why);
}

static int open_wheel(struct rashpa_drive *d, struct rpu_wheel *w, char *why)
{
	struct vulkan_wheel *v = calloc(1, sizeof(*v));
	const struct compute *c = &((struct rpu_vulkan *)w->gpu)->c;

	if (!v)
		return because(why, -1, "no memory for a drive");
	v->g = (struct rpu_vulkan *)w->gpu;
	w->own = v;
	if (!c->vk.timeline || c->places < RPU_DRIVEN_PLACES)
		return because(why, -1, "%s: a drive wants semaphores with a timeline (Vulkan 1.2) and %u buffers of a shader, and its driver (%s) has less",
			       c->info.name, RPU_DRIVEN_PLACES, c->info.driver);
	if (open_memory(d, v, why))
		return -1;
	memset(v->control.base, 0, v->control.bytes);
	w->control = v->control.base;
	if (see(d, w, why) || open_rest(d, w, why))
		return -1;
	w->results = v->results.base;
	return 0;
}

static void close_wheel(struct rpu_wheel *w)
{
	struct vulkan_wheel *v = of(w);
	struct compute *c = &v->g->c;

	/* a lost GPU may still use this memory, until the process ends */
	if (c->lost)
		return;
	/* a driver's thread may still have what it has signalled */
	c->DeviceWaitIdle(c->device);
	for (unsigned int i = 0; i < RPU_STREAMS; i++) {
		if (v->stream[i].commands)
			c->FreeCommandBuffers(c->device, c->pool, v->stream[i].room,
					      v->stream[i].commands);
		free(v->stream[i].commands);
	}
	for (unsigned int i = 0; i < RPU_CONTROLS; i++) {
		if (v->word[i])
			c->DestroySemaphore(c->device, v->word[i], NULL);
	}
	for (unsigned int i = 0; i < OWN_KERNELS; i++) {
		if (v->shader[i])
			c->DestroyPipeline(c->device, v->shader[i], NULL);
	}
	for (unsigned int i = 0; i < 2; i++) {
		if (v->pool[i])
			c->DestroyDescriptorPool(c->device, v->pool[i], NULL);
		compute_drop(c, &v->in[i]);
		compute_drop(c, &v->decision[i]);
	}
	compute_drop(c, &v->banks);
	compute_drop(c, &v->control);
	compute_drop(c, &v->results);
	rashpa_gpu_free(v->ring);
	rashpa_gpu_free(v->lock_page);
	rashpa_gpu_free(v->given_page);
	free(v);
}

static void abandon(struct rpu_wheel *w)
{
	of(w)->g->c.lost = true;
}

static int enter(struct rpu_wheel *w)
{
	(void)w;	/* any thread has all GPUs */
	return 0;
}

static void leave(struct rpu_wheel *w)
{
	(void)w;
}

/* --- what is enqueued --- */

static void submit(struct vulkan_wheel *v, struct stream *s)
{
	static const VkPipelineStageFlags all[EACH] = {
#define ALL	(VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT | \
		 VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT)
		ALL, ALL, ALL, ALL,
	};
	VkCommandBuffer *commands = &s->commands[(s->next + s->room - 1) % s->room];
	const VkTimelineSemaphoreSubmitInfo values = {
		.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
		.waitSemaphoreValueCount = s->waits, .pWaitSemaphoreValues = s->wait_value,
		.signalSemaphoreValueCount = s->signals, .pSignalSemaphoreValues = s->signal_value,
	};
	const VkSubmitInfo batch = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .pNext = &values,
		.waitSemaphoreCount = s->waits, .pWaitSemaphores = s->wait,
		.pWaitDstStageMask = all, .commandBufferCount = s->records,
		.pCommandBuffers = commands,
		.signalSemaphoreCount = s->signals, .pSignalSemaphores = s->signal,
	};

	if (s->records)
		keep(v, v->g->c.EndCommandBuffer(*commands));
	if (!v->failed)
		keep(v, v->g->c.QueueSubmit(s->queue, 1, &batch, NULL));
	s->records = false;
	s->waits = 0;
	s->signals = 0;
}

static void wait_word(const struct rashpa_drive *d, struct rpu_wheel *w, enum rpu_stream stream,
		      unsigned int word, uint32_t value)
{
	struct stream *s = &of(w)->stream[stream];

	(void)d;
	if (s->records || s->signals)
		submit(of(w), s);
	s->wait[s->waits] = of(w)->word[word];
	s->wait_value[s->waits++] = value;
}

static void write_word(struct rpu_wheel *w, enum rpu_stream stream, unsigned int word,
		       uint32_t value)
{
	struct stream *s = &of(w)->stream[stream];

	s->signal[s->signals] = of(w)->word[word];
	s->signal_value[s->signals++] = value;
	of(w)->becomes[word] = value;
	/* in a shared queue, waits for an image must follow its batch */
	if (word != RPU_CONTROL_PIECES)
		submit(of(w), s);
}

static VkCommandBuffer record(struct vulkan_wheel *v, enum rpu_stream stream)
{
	struct stream *s = &v->stream[stream];

	if (s->signals)
		submit(v, s);
	if (!s->records) {
		s->next = (s->next + 1) % s->room;
		keep(v, compute_begin(&v->g->c, s->commands[(s->next + s->room - 1) % s->room]));
		s->records = true;
	}
	return s->commands[(s->next + s->room - 1) % s->room];
}

static void copy_in(const struct rashpa_drive *d, struct rpu_wheel *w, unsigned int to,
		    uint64_t at, uint64_t from, size_t bytes)
{
	struct vulkan_wheel *v = of(w);
	const VkBufferCopy part = {
		.srcOffset = from + (d->plan.raw ? v->ring_at : 0), .dstOffset = at, .size = bytes,
	};
	const VkCommandBuffer commands = record(v, RPU_IN);

	rpu_vulkan_own(v->g, commands, true);
	compute_barrier(&v->g->c, commands);
	v->g->c.CmdCopyBuffer(commands, d->plan.raw ? (VkBuffer)rashpa_gpu_vulkan_buffer(v->ring) :
			      v->g->at[RPU_AT_RAW].buffer, v->in[to].buffer, 1, &part);
	rpu_vulkan_own(v->g, commands, false);
}

static struct rpu_vulkan_push push_of(const struct rashpa_drive *d, const struct rpu_wheel *w,
				      uint32_t k)
{
	return (struct rpu_vulkan_push) {
		.push = rpu_push_of(d, w, k), .driven = rpu_driven_of(d, w, k),
		.lock_at = of(w)->lock_at / sizeof(uint32_t),
		.given_at = of(w)->given_at / sizeof(uint32_t),
	};
}

/* One kernel, which sees what was done before it. */
static void run(struct vulkan_wheel *v, VkCommandBuffer commands, VkPipeline shader, uint32_t k,
		const struct rpu_vulkan_push *push, uint64_t groups)
{
	compute_barrier(&v->g->c, commands);
	compute_load(&v->g->c, commands, shader, v->set[k & 1], push);
	compute_run(&v->g->c, commands, groups);
}

static void compute(const struct rashpa_drive *d, struct rpu_wheel *w, uint32_t k)
{
	const struct rpu_vulkan_push push = push_of(d, w, k);
	struct vulkan_wheel *v = of(w);
	const VkCommandBuffer commands = record(v, RPU_COMPUTE);
	struct compute *c = &v->g->c;

	if (d->direct)
		rpu_vulkan_own(v->g, commands, true);
	/* the one before has told */
	compute_barrier(c, commands);
	c->CmdFillBuffer(commands, v->g->at[RPU_AT_TOLD].buffer, 0, VK_WHOLE_SIZE, 0);
	run(v, commands, v->shader[TAKE], k, &push, rpu_raw_groups(d, w));
	run(v, commands, v->g->shader[RPU_KERNEL_ABOVE], k, &push,
	    (d->pixels - 1) / RPU_PIECE + 1);
	run(v, commands, v->shader[DECIDE], k, &push, 1);
	run(v, commands, v->shader[BANK], k, &push, (d->pixels - 1) / RPU_LANES + 1);
	run(v, commands, v->shader[PUBLISH], k, &push, 1);
	compute_barrier(c, commands);
	if (d->direct)
		rpu_vulkan_own(v->g, commands, false);
}

static void copy_out(const struct rashpa_drive *d, struct rpu_wheel *w, uint32_t k)
{
	const struct rpu_vulkan_push push = push_of(d, w, k);
	struct vulkan_wheel *v = of(w);
	const VkCommandBuffer commands = record(v, RPU_OUT);

	compute_barrier(&v->g->c, commands);
	compute_load(&v->g->c, commands, v->shader[OUT], v->set[k & 1], &push);
	v->g->c.CmdDispatchIndirect(commands, v->decision[k & 1].buffer,
				    RPU_DECISION_GROUPS * sizeof(uint32_t));
	run(v, commands, v->shader[TAKEN], k, &push, 1);
	compute_barrier(&v->g->c, commands);
}

static void poll_images(const struct rashpa_drive *d, struct rpu_wheel *w, uint32_t k)
{
	struct vulkan_wheel *v = of(w);
	struct rpu_vulkan_push push = push_of(d, w, k);
	const VkCommandBuffer commands = record(v, RPU_COMPUTE);

	push.push.first += v->ring_at / sizeof(uint32_t);
	push.driven.polls = POLLS;
	if (push.driven.images > POLL_IMAGES)
		push.driven.images = POLL_IMAGES;
	if (d->direct)
		rpu_vulkan_own(v->g, commands, true);
	run(v, commands, v->shader[POLL], 0, &push, 1);
	compute_barrier(&v->g->c, commands);
	if (d->direct)
		rpu_vulkan_own(v->g, commands, false);
	write_word(w, RPU_COMPUTE, RPU_CONTROL_DECIDED, v->becomes[RPU_CONTROL_DECIDED] + 1);
}

static int flush(struct rpu_wheel *w, char *why)
{
	return compute_wrong(&of(w)->g->c, "an image", of(w)->failed, why);
}

/* --- words --- */

static bool is_idle(struct rpu_wheel *w, enum rpu_stream stream)
{
	const struct vulkan_wheel *v = of(w);

	return v->failed || v->is[last_word[stream]] >= v->becomes[last_word[stream]];
}

static bool ended(struct rpu_wheel *w)
{
	return is_idle(w, RPU_COMPUTE);
}

static void set(struct rpu_wheel *w, unsigned int word, uint32_t value)
{
	__atomic_store_n(&w->control[word], value, __ATOMIC_RELEASE);
}

/* The lock, for those who cannot see it. */
static void pass_lock(const struct rashpa_drive *d, struct rpu_wheel *w)
{
	const uint32_t lock = atomic_load(d->lock_here);
	struct vulkan_wheel *v = of(w);
	const VkSemaphoreSignalInfo signal = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
		.semaphore = v->word[RPU_CONTROL_LOCK], .value = lock,
	};

	if (d->plan.way == RASHPA_DRIVE_POLL && !v->sees_lock &&
	    (const void *)d->lock_here != &w->control[RPU_CONTROL_LOCK])
		set(w, RPU_CONTROL_LOCK, lock);
	if (d->plan.way != RASHPA_DRIVE_AHEAD || lock <= v->becomes[RPU_CONTROL_LOCK])
		return;
	v->becomes[RPU_CONTROL_LOCK] = lock;
	keep(v, v->g->c.SignalSemaphore(v->g->c.device, &signal));
}

static void look(const struct rashpa_drive *d, struct rpu_wheel *w)
{
	struct vulkan_wheel *v = of(w);
	const bool polls = d->plan.way == RASHPA_DRIVE_POLL;

	for (unsigned int i = 0; i < SEMAPHORES; i++) {
		const unsigned int word = semaphores[i];
		uint64_t value = 0;

		if (!v->becomes[word] || word == RPU_CONTROL_LOCK)
			continue;
		keep(v, v->g->c.GetSemaphoreCounterValue(v->g->c.device, v->word[word], &value));
		v->is[word] = value;
		/* a restart of the polling kernel is no progress */
		if (!polls)
			set(w, word, value);
	}
	/* it writes results where the host has them */
	if (polls)
		set(w, RPU_CONTROL_TAKEN, __atomic_load_n(&w->control[RPU_CONTROL_ACCEPTED],
							  __ATOMIC_ACQUIRE));
	pass_lock(d, w);
}

const struct rpu_drive_way rpu_vulkan_drive = {
	.of = &rpu_vulkan, .by_image = true, .open = open_wheel, .enter = enter, .leave = leave,
	.wait = wait_word, .write = write_word, .copy_in = copy_in, .compute = compute,
	.copy_out = copy_out, .poll = poll_images, .ended = ended, .flush = flush, .look = look,
	.is_idle = is_idle, .close = close_wheel, .abandon = abandon,
};
