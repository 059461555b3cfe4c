// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Calls the driver with what no program would: fuzz [--seed N] [--calls N] [--seconds N]
 * [--threads N] [--first N]. A child makes the steps, this process watches it and the
 * kernel's log, and shows the last steps when something is found.
 */
#include <dirent.h>
#include <getopt.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <time.h>

#include "calls.h"

#define HANG_SECONDS	90
#define TICK_MS		20	/* period of signals, which interrupt blocked calls */
#define RANGE		(1UL << 28)	/* bytes of the addresses of a thread */
#define RANGES		(1UL << 44)
#define LOG_EVERY	2048	/* steps; where a panic leaves nothing else */
#define SWEEP_EVERY	256

struct run run = { .threads = 1, .calls = 20000 };

/* -------------------------------------------------------------- steps ---- */

static void kernel_log(const char *text)
{
	int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, text, strlen(text)) < 0)
		perror("kmsg");
	close(fd);
}

void note(struct thread *t, const char *fmt, ...)
{
	struct note *n = &t->ring->note[t->step % RING];
	va_list args;

	va_start(args, fmt);
	n->step = t->step;
	vsnprintf(n->text, sizeof(n->text), fmt, args);
	va_end(args);
}

void finding(struct thread *t, const char *fmt, ...)
{
	char text[256];
	int n = snprintf(text, sizeof(text), "<3>fuzz: thread %u, step %llu: ", t->number,
			 (unsigned long long)t->step);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, args);
	va_end(args);
	kernel_log(text);
	printf("# %s\n", text + 3);
	fflush(stdout);
	_exit(1);
}

void step(struct thread *t)
{
	static const struct {
		void (*run)(struct thread *t);
		uint32_t weight;
	} steps[] = {
		{ step_ioctl, 500 }, { step_open, 50 }, { step_close, 25 }, { step_dup, 15 },
		{ step_mmap, 80 }, { step_munmap, 50 }, { step_change, 60 }, { step_touch, 80 },
		{ step_file, 90 }, { step_dmabuf, 20 }, { step_fork, 3 }, { step_sysfs, 2 },
	};
	uint32_t total = 0, at, i;

	for (i = 0; i < ARRAY_SIZE(steps); i++)
		total += steps[i].weight;
	at = below(&t->rng, total);
	for (i = 0; at >= steps[i].weight; i++)
		at -= steps[i].weight;
	steps[i].run(t);
}

static void on_tick(int number)
{
}

/* A signal for this thread, again and again, whatever it waits for. */
static void start_ticks(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM };
	struct itimerspec every = { { 0, TICK_MS * 1000000 }, { 0, TICK_MS * 1000000 } };
	struct sigaction action = { .sa_handler = on_tick };
	timer_t timer;

	sigaction(SIGALRM, &action, NULL);
	event._sigev_un._tid = gettid();
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &every, NULL))
		tap_bail("timer: %s", strerror(errno));
}

/*
 * Pages, and behind them one that cannot be reached. All are in a wide range without anything
 * else, and more than a bit away from those of other threads: a pointer with a bit turned
 * around leads to nothing of the fuzzer.
 */
static char *pages(char **range, unsigned int number, unsigned int n, int prot)
{
	char *p;

	if (!*range) {
		*range = (char *)(RANGES + number * (3UL << 36));
		p = mmap(*range, RANGE, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		if (p != *range)
			tap_bail("mmap: %s", strerror(errno));
	}
	p = *range;
	*range += 16 * PAGE;
	if (mprotect(p, n * PAGE, prot))
		tap_bail("mprotect: %s", strerror(errno));
	return p;
}

/* Each step holds it for reading. A child of fork() does not take it. */
static pthread_rwlock_t in_step = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

/*
 * Close descriptors outside the pool. With several threads these come from calls whose answer
 * another thread overwrote: a map among them would keep the profile for ever.
 */
static void sweep(struct thread *t)
{
	int fd;

	pthread_rwlock_wrlock(&in_step);
	for (fd = run.first_fd; fd < OWN_FD; fd++) {
		if (pool_kind(fd) != K_NONE || fcntl(fd, F_GETFD) < 0)
			continue;
		if (run.threads == 1)
			finding(t, "fd %d is open, and no step made it", fd);
		close(fd);
	}
	pthread_rwlock_unlock(&in_step);
}

static void *thread_main(void *arg)
{
	unsigned int number = (unsigned int)(uintptr_t)arg;
	struct thread t = { .number = number, .ring = &run.rings[number], .step = run.first };
	uint64_t end = run.seconds ? now_ns() + run.seconds * 1000000000ULL : UINT64_MAX;
	char text[96], *range = NULL;

	t.arg = pages(&range, number, 1, PROT_READ | PROT_WRITE);
	t.arg_ro = pages(&range, number, 1, PROT_READ);
	t.side = pages(&range, number, 2, PROT_READ | PROT_WRITE);
	t.sentence = pages(&range, number, 1, PROT_READ | PROT_WRITE);
	guard_thread(&t);
	start_ticks();
	for (; t.step - run.first < run.calls && now_ns() < end; t.step++) {
		t.rng.state = run.seed ^ (uint64_t)number << 56 ^ t.step * 0xd1342543de82ef95ULL;
		t.ring->step = t.step;
		if (t.step % SWEEP_EVERY == 0)
			sweep(&t);
		pthread_rwlock_rdlock(&in_step);
		if (t.step % LOG_EVERY == 0) {
			snprintf(text, sizeof(text), "<6>fuzz: seed %#llx, thread %u, step %llu",
				 (unsigned long long)run.seed, number,
				 (unsigned long long)t.step);
			kernel_log(text);
		}
		step(&t);
		pthread_rwlock_unlock(&in_step);
	}
	return NULL;
}

static void make_steps(void)
{
	pthread_t thread[THREADS_MAX];
	char *range = NULL;
	unsigned int i;

	/* else memory of malloc() could end up where maps.c has a hole for a moment */
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_ARENA_MAX, 1);
	run.first_fd = next_fd();
	close_range((unsigned int)run.first_fd, ~0U, 0);	/* inherited descriptors */
	pool_init();
	maps_init();
	run.shared_arg = pages(&range, THREADS_MAX, 1, PROT_READ | PROT_WRITE);
	for (i = 1; i < run.threads; i++)
		if (pthread_create(&thread[i], NULL, thread_main, (void *)(uintptr_t)i))
			tap_bail("no thread");
	thread_main(NULL);
	for (i = 1; i < run.threads; i++)
		pthread_join(thread[i], NULL);
	_exit(0);
}

/* -------------------------------------------------------------- watch ---- */

/* Lines as in selftests/lab/patterns that always mean a bug. */
static bool is_bug(const char *line)
{
	static const char * const words[] = {
		"BUG:", "WARNING:", "Oops", "general protection", "UBSAN", "KASAN", "Bad page",
		"refcount_t:", "possible circular", "suspicious RCU", "blocked for more than",
		"fuzz: thread", "fuzz: the fuzzer",
	};
	size_t i;

	/*
	 * CONFIG_DMA_API_DEBUG counts at most seven maps of a page at a time, and logs that. It
	 * still reports pages that are never unmapped when the driver goes.
	 */
	if (strstr(line, "add_dma_entry"))
		return false;
	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (strstr(line, words[i]))
			return true;
	return false;
}

static void show_rings(const char *why)
{
	char text[160];
	unsigned int n, i;

	snprintf(text, sizeof(text), "<4>fuzz: %s; seed %#llx, %u threads, the last steps:", why,
		 (unsigned long long)run.seed, run.threads);
	kernel_log(text);
	printf("# %s\n", text + 3);
	for (n = 0; n < run.threads; n++) {
		const struct ring *r = &run.rings[n];

		for (i = 1; i <= RING; i++) {
			const struct note *note = &r->note[(r->step + i) % RING];

			snprintf(text, sizeof(text), "<4>fuzz: %u/%llu %.55s", n,
				 (unsigned long long)note->step, note->text);
			kernel_log(text);
			printf("# %s\n", text + 9);
		}
	}
	fflush(stdout);
}

static void show_stacks(pid_t pid)
{
	char command[160];

	snprintf(command, sizeof(command),
		 "for t in /proc/%d/task/*; do echo \"fuzz: $t\"; cat $t/stack; done | tee /dev/kmsg",
		 pid);
	fflush(stdout);
	if (system(command))
		puts("# no stacks");
}

static uint64_t steps_so_far(void)
{
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < run.threads; i++)
		n += run.rings[i].step - run.first;
	return n;
}

/* Check new lines since the last call; true: a bug. */
static bool log_is_bad(int kmsg)
{
	bool bad = false;
	char line[1024];
	ssize_t n;

	while ((n = read(kmsg, line, sizeof(line) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		line[n > 0 ? n : 0] = '\0';
		if (!is_bug(line))
			continue;
		printf("# kernel: %s", line);
		bad = true;
	}
	return bad;
}

/* 0: the child has made its steps, and nothing was found. */
static int watch(pid_t pid, int kmsg)
{
	uint64_t last = 0, moved = now_ns();
	int status, bad = 0;
	bool shown = false;

	while (!waitpid(pid, &status, WNOHANG)) {
		usleep(50000);
		if (steps_so_far() != last) {
			last = steps_so_far();
			moved = now_ns();
		}
		if (!shown && log_is_bad(kmsg)) {
			show_rings("the kernel's log has a finding");
			shown = true;
			bad = 1;
		}
		if (now_ns() - moved > HANG_SECONDS * 1000000000ULL) {
			show_rings("no step for a long time");
			show_stacks(pid);
			kill(pid, SIGKILL);
			return 1;
		}
	}
	bad |= log_is_bad(kmsg);
	if (status) {
		printf("# the child ended with status %#x\n", status);
		bad = 1;
	}
	if (bad && !shown)
		show_rings("something was found");
	return bad;
}

/* ---------------------------------------------------------- afterwards ---- */

static void remove_names(void)
{
	DIR *dir = opendir("/dev/rashpa/buffer");
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			buffer_remove(entry->d_name);
	if (dir)
		closedir(dir);
}

/* The driver's worker may still be at it. */
static bool board_is_free(struct fpga *f, uint64_t end)
{
	struct rashpa_device_info info;
	struct rashpa_quiesce quiesce;

	do {
		quiesce = (struct rashpa_quiesce){ HEAD(quiesce) };
		call(f->fd, RASHPA_IOC_QUIESCE, &quiesce);	/* ends maps that were kept */
		if (fpga_info(f, &info)) {
			printf("# %s: INFO: %s\n", f->name, strerror(errno));
			return false;
		}
		if (!info.out_maps && !info.out_windows)
			return true;
	} while (now_ns() < end);
	printf("# %s: %u maps, %u windows are left\n", f->name, info.out_maps, info.out_windows);
	return false;
}

/* All functions that are bound: the child opened every node, other tests bind other devices. */
static int all_are_free(uint64_t end)
{
	DIR *dir = opendir("/dev/rashpa");
	struct dirent *entry;
	int bad = 0;

	while (dir && (entry = readdir(dir))) {
		struct fpga f = { 0 };

		if (strncmp(entry->d_name, "fpga", 4))
			continue;
		snprintf(f.name, sizeof(f.name), "%.20s", entry->d_name);
		f.fd = openat(dirfd(dir), entry->d_name, O_RDWR | O_CLOEXEC);
		if (f.fd < 0) {
			/* it may have gone since the folder was read */
			if (errno != ENODEV && errno != ENXIO && errno != ENOENT) {
				printf("# %s: open: %s\n", f.name, strerror(errno));
				bad = 1;
			}
			continue;
		}
		bad |= !board_is_free(&f, end);
		close(f.fd);
	}
	if (dir)
		closedir(dir);
	return bad;
}

/* The child is dead: nothing of it may be left. */
static int leftovers(void)
{
	const uint64_t end = end_of_wait(5000);
	struct fpga f = { 0 };
	int bad = all_are_free(end);
	unsigned int i;

	for (i = 0; i < run.boards && fpga_open(&f, i); i++) {
		fpga_close(&f);
		fpga_unbind(&f);	/* the next user's profile is not ours; not stuck */
	}
	remove_names();			/* a map that was kept has held them until now */
	/* the driver's worker frees memory soon */
	while (bytes_allocated() && now_ns() < end)
		;
	if (bytes_allocated()) {
		printf("# %llu bytes of buffers are left\n",
		       (unsigned long long)bytes_allocated());
		bad = 1;
	}
	return bad;
}

/* A call that never succeeds is fuzzed at its door only. */
static void report_calls(void)
{
	uint32_t tried, served;
	unsigned int c, i;

	for (c = 0; c < n_calls; c++) {
		for (tried = served = i = 0; i < run.threads; i++) {
			tried += run.rings[i].tried[c];
			served += run.rings[i].served[c];
		}
		printf("# %-12s %7u tried, %7u served\n", calls[c].name, tried, served);
	}
}

static void report(uint64_t began, int bad)
{
	uint64_t ioctls = 0, good = 0, faults = 0, ms = (now_ns() - began) / 1000000;
	unsigned int i;

	for (i = 0; i < run.threads; i++) {
		ioctls += run.rings[i].calls;
		good += run.rings[i].good;
		faults += run.rings[i].faults;
	}
	report_calls();
	printf("# {\"seed\": %llu, \"threads\": %u, \"steps\": %llu, \"ioctls\": %llu, "
	       "\"succeeded\": %llu, \"faults\": %llu, \"ms\": %llu, \"findings\": %d}\n",
	       (unsigned long long)run.seed, run.threads, (unsigned long long)steps_so_far(),
	       (unsigned long long)ioctls, (unsigned long long)good, (unsigned long long)faults,
	       (unsigned long long)ms, bad);
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "calls", required_argument, NULL, 'c' },
		{ "seconds", required_argument, NULL, 't' },
		{ "threads", required_argument, NULL, 'n' },
		{ "first", required_argument, NULL, 'f' },
		{ 0 },
	};
	int option;

	run.seed = now_ns();
	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		uint64_t value = optarg ? strtoull(optarg, NULL, 0) : 0;

		switch (option) {
		case 's':
			run.seed = value;
			break;
		case 'c':
			run.calls = value;
			break;
		case 't':
			run.seconds = (unsigned int)value;
			run.calls = UINT64_MAX;
			break;
		case 'n':
			run.threads = value && value <= THREADS_MAX ? (unsigned int)value : 1;
			break;
		case 'f':
			run.first = value;
			break;
		default:
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	int kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC), bad;
	uint64_t began = now_ns();
	pid_t pid;

	parse(argc, argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	common_init();
	check_udmabuf();
	parameters_keep();
	param_set("limit_mib", 96);
	run.iommu = getenv("RASHPA_IOMMU") && !strcmp(getenv("RASHPA_IOMMU"), "on");
	while (run.boards < ARRAY_SIZE(run.board) &&
	       fpga_open(&run.board[run.boards], run.boards)) {
		close(run.board[run.boards].fd);
		run.boards++;
	}
	lseek(kmsg, 0, SEEK_END);
	run.rings = mmap(NULL, THREADS_MAX * sizeof(*run.rings), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	printf("# seed %llu, %u threads, %u boards\n", (unsigned long long)run.seed, run.threads,
	       run.boards);
	close(memory);			/* the child opens its own; no other may be open */
	fflush(stdout);
	/* forks of forks may outlive the child: they are of its group, and end up here */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = fork();
	setpgid(pid, 0);
	if (!pid)
		make_steps();
	bad = watch(pid, kmsg);
	kill(-pid, SIGKILL);
	while (waitpid(-pid, NULL, 0) > 0)
		;
	common_init();
	parameters_restore();
	bad |= leftovers();
	report(began, bad);
	return bad;
}
