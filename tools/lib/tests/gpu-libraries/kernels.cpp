// SPDX-License-Identifier: LGPL-2.1-or-later
/* The kernels of the engine of CUDA, for lanes on processors. */
#include <cmath>
#include <cstring>
#include <sched.h>

#define _Thread_local thread_local
#include "lib/tests/gpu-libraries/lanes.h"

#define __host__
#define __device__
#define __global__ static
#define __shared__ static thread_local
#define __forceinline__ inline

#define RPU_LANE	lanes_lane
#define RPU_GROUP	lanes_group
#define RPU_BARRIER()	lanes_barrier()
#define RPU_ADD(to, n)	__atomic_fetch_add(to, n, __ATOMIC_RELAXED)
#define RPU_WORD(x)	word_of(x)
#define RPU_NUMBER(x)	number_of_word(x)
#define RPU_REST()	sched_yield()
#define RPU_LOAD(word, from)	((word) = __atomic_load_n(from, __ATOMIC_ACQUIRE))
#define RPU_STORE(to, word)	__atomic_store_n(to, word, __ATOMIC_RELEASE)

static unsigned int word_of(float x)
{
	unsigned int word;

	memcpy(&word, &x, sizeof(word));
	return word;
}

static float number_of_word(unsigned int x)
{
	float number;

	memcpy(&number, &x, sizeof(number));
	return number;
}

/* each kernel tells its name */
static struct named {
	const char *name;
	lanes_body body;
	size_t bytes;
} table[32];
static int known;

struct tell {
	tell(const char *name, lanes_body body, size_t bytes)
	{
		table[known++] = { name, body, bytes };
	}
};

#define RPU_KERNEL(name, type) \
static void rpu_##name(const type all); \
static tell tell_##name("rpu_" #name, [](const void *from) \
	{ rpu_##name(*static_cast<const type *>(from)); }, sizeof(type));

#include "processing/cuda.cu"

#define RPU_ROOT(x)	sqrtf(x)
#define RPU_FENCE()	__atomic_thread_fence(__ATOMIC_ACQ_REL)
#include "bench/loop/loop.cu"

static const named *find(const char *name)
{
	for (int i = 0; i < known; i++) {
		if (!strcmp(table[i].name, name))
			return &table[i];
	}
	return nullptr;
}

lanes_body lanes_kernel(const char *name)
{
	const named *found = find(name);

	return found ? found->body : nullptr;
}

size_t lanes_size(const char *name)
{
	const named *found = find(name);

	return found ? found->bytes : 0;
}
