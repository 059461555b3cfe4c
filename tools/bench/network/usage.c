// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bench/network/usage.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "common/json-out.h"
#include "common/say.h"

static uint64_t clock_of(clockid_t clock)
{
	struct timespec t = {};

	clock_gettime(clock, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

/* The first line, "cpu", has ticks of all processors: user nice system idle iowait irq softirq */
static void read_machine(struct usage *u)
{
	const uint64_t tick = 1000000000 / sysconf(_SC_CLK_TCK);
	uint64_t user, nice, system, irq, softirq;
	FILE *file = fopen("/proc/stat", "re");

	if (file && fscanf(file, "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %*u %*u %" SCNu64
			   " %" SCNu64, &user, &nice, &system, &irq, &softirq) == 5) {
		u->user_ns = (user + nice) * tick;
		u->system_ns = system * tick;
		u->irq_ns = irq * tick;
		u->softirq_ns = softirq * tick;
	}
	if (file)
		fclose(file);
}

uint64_t usage_process(void)
{
	return clock_of(CLOCK_PROCESS_CPUTIME_ID) - clock_of(CLOCK_THREAD_CPUTIME_ID);
}

void usage_now(struct usage *u)
{
	*u = (struct usage) {
		.ns = now_ns(),
		.process_ns = usage_process(),
	};
	read_machine(u);
}

uint64_t usage_thread(pthread_t thread)
{
	clockid_t clock;

	return pthread_getcpuclockid(thread, &clock) ? 0 : clock_of(clock);
}

void usage_put(struct json_object *to, const struct usage *a, const struct usage *b, uint64_t bytes)
{
	const uint64_t kinds[] = {
		b->user_ns - a->user_ns, b->system_ns - a->system_ns, b->irq_ns - a->irq_ns,
		b->softirq_ns - a->softirq_ns,
	};
	static const char *const names[] = { "user_s", "system_s", "irq_s", "softirq_s" };
	struct json_object *machine = json_object_new_object();
	uint64_t busy = 0;

	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		put_real(machine, names[i], kinds[i] / 1e9);
		busy += kinds[i];
	}
	put_real(machine, "busy_s", busy / 1e9);
	put_real(to, "cpu_s", (b->process_ns - a->process_ns) / 1e9);
	json_object_object_add(to, "machine_cpu", machine);
	if (!bytes)
		return;
	put_real(to, "cpu_s_per_gb", (double)(b->process_ns - a->process_ns) / bytes);
	put_real(to, "machine_cpu_s_per_gb", (double)busy / bytes);
}
