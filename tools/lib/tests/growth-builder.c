// SPDX-License-Identifier: LGPL-2.1-or-later
/* A program that uses librashpa-builder, for growth.sh: as growth.c. TAP. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/rashpa-builder.h"
#include "verbs/rashpa-network.h"
#include "tests/tap.h"

#define BYTE	0xa5
#define BEHIND	512
#define GUARDED(type)	struct { type it; unsigned char behind[BEHIND]; }
#define SPOIL(guarded)	memset(&(guarded), BYTE, sizeof(guarded))

#ifdef GROWN
#define NEW_IS_ZERO(it)	(!(it).grown[0] && !(it).grown[3])
#else
#define NEW_IS_ZERO(it)	true
#endif

static bool untouched(const unsigned char *behind)
{
	for (size_t i = 0; i < BEHIND; i++) {
		if (behind[i] != BYTE)
			return false;
	}
	return true;
}

#define CHECK(guarded, name)							\
	ok(untouched((guarded).behind) && NEW_IS_ZERO((guarded).it),		\
	   name ": the library keeps to the program's %zu bytes", sizeof((guarded).it))

int main(void)
{
	GUARDED(struct rashpa_launch) launch;
	GUARDED(struct rashpa_pool_counts) pool_counts;
	GUARDED(struct rashpa_queue_counts) send, receive;
	GUARDED(struct rashpa_fabric_counts) total;
	struct rashpa_fabric_options options = { .transport = "shm", .cpu = -1, .timeout_ms = 1000 };
	struct rashpa_net_options port = { .gid = -1, .retries = 8 };
	struct rashpa_fabric *f;
	struct rashpa_arena *arena;
	struct rashpa_pool *pool;
	struct rashpa_net *net;

	setenv("RASHPA_RANK", "0", 1);
	setenv("RASHPA_SIZE", "1", 1);
	setenv("RASHPA_JOB", "growth", 1);
	SPOIL(launch);
	ok(!rashpa_launch_read(&launch.it) && launch.it.size == 1 && !strcmp(launch.it.job, "growth"),
	   "launch: %s", rashpa_fabric_reason());
	CHECK(launch, "launch-size");
	options.launch = &launch.it;
	if (rashpa_fabric_open(&options, &f) || rashpa_arena_allocate(f, 1 << 16, &arena) ||
	    rashpa_pool_open(arena, 4096, 4, &pool)) {
		ok(false, "fabric: %s", rashpa_fabric_reason());
		return tap_end();
	}
	ok(rashpa_fabric_size(f) == 1, "fabric: one process");
	SPOIL(pool_counts);
	rashpa_pool_count(pool, &pool_counts.it);
	ok(pool_counts.it.buffers == 4 && pool_counts.it.free == 4, "pool: counts of a pool");
	CHECK(pool_counts, "pool-size");
	SPOIL(send);
	SPOIL(receive);
	ok(!rashpa_fabric_count(f, 0, &send.it, &receive.it) && !send.it.posted &&
	   !receive.it.bytes, "count: counts of a queue");
	CHECK(send, "send-size");
	CHECK(receive, "receive-size");
	SPOIL(total);
	rashpa_fabric_total(f, &total.it);
	ok(!total.it.cpu_ns, "total: counts of all");
	CHECK(total, "total-size");
	rashpa_fabric_close(f);
	/* no card is needed to refuse it */
	ok(rashpa_net_open(&port, &net) < 0 && strstr(rashpa_net_reason(), "out of range"),
	   "port: options of a port: %s", rashpa_net_reason());
	return tap_end();
}
