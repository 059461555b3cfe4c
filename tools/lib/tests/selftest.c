// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * librashpa against a running driver: TAP. Argument: N of a bound function, for tests that need
 * one. Tests without a driver are in common/selftest.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rashpa-board.h>
#define TAP_WHY rashpa_reason()
#include "tests/tap.h"

#define NAME	"librashpa-selftest"
#define HUGE	(UINT64_C(2) << 20)
#define LENGTH	(4 * HUGE)

/* Was it refused with this errno, and a sentence that holds this word? */
static void refused(int got, int error, const char *word, const char *what)
{
	ok(got == -error && strstr(rashpa_reason(), word), "refused: %s: %d, \"%s\"", what, got,
	   rashpa_reason());
}

static void test_leases(int memory, int first)
{
	struct rashpa_info info = { .fd = first };
	char holder[64];
	int a, b, node;

	ok(!rashpa_memory_get_info(memory, &info) && info.out_flags & RASHPA_INFO_EXCLUSIVE &&
	   info.out_leases == 1, "buffer-exclusive-lease: a buffer is made with an exclusive lease");
	snprintf(holder, sizeof(holder), "process %d of user %d", getpid(), getuid());
	refused(rashpa_open(NAME, O_RDWR), EBUSY, holder, "no other process gets one");
	refused(rashpa_buffer_open(NAME, O_RDONLY), EBUSY, "exclusive", "nor the node");
	close(first);

	a = rashpa_open(NAME, O_RDWR);
	b = rashpa_open(NAME, O_RDONLY);
	info = (struct rashpa_info) { .fd = b };
	ok(a >= 0 && b >= 0 && !rashpa_memory_get_info(memory, &info) && info.out_leases == 2,
	   "two-share: two share it");
	ok(mmap(NULL, LENGTH, PROT_WRITE, MAP_SHARED, b, 0) == MAP_FAILED && errno == EACCES,
	   "opened-reading-cannot: a buffer opened for reading cannot be written");
	refused(rashpa_open(NAME, O_RDWR | O_EXCL), EBUSY, NAME,
		"no exclusive lease while others have one");
	refused(rashpa_buffer_open(NAME, O_RDWR | O_EXCL), EBUSY, "no other process",
		"nor by the node");
	close(a);
	close(b);
	node = rashpa_buffer_open(NAME, O_RDWR | O_EXCL);
	ok(node >= 0 && rashpa_open(NAME, O_RDWR) == -EBUSY, "node-leased-exclusively: the node can be leased exclusively");
	close(node);
	refused(rashpa_open("nosuch", O_RDWR), ENOENT, "nosuch", "a buffer that is not there");
	refused(rashpa_buffer_remove("nosuch"), ENOENT, "nosuch", "nor can it be removed");
}

static void test_mapping(void)
{
	int fd = rashpa_open(NAME, O_RDWR);
	volatile char *p, *q;

	if (!ok(!rashpa_mmap(fd, 0, LENGTH, PROT_READ | PROT_WRITE, (void **)&p) &&
		!((uintptr_t)p % HUGE), "dma-buf-mapped-huge: a dma-buf is mapped where huge entries can be"))
		return;
	ok(!rashpa_mmap(fd, HUGE, HUGE, PROT_READ, (void **)&q) && !((uintptr_t)q % HUGE),
	   "part: and a part of it");
	ok(!rashpa_sync_begin(fd, PROT_READ | PROT_WRITE), "sync-begin: sync begin");
	p[HUGE] = 42;
	ok(!rashpa_sync_end(fd, PROT_READ | PROT_WRITE) && q[0] == 42, "sync-end: sync end");
	munmap((void *)q, HUGE);
	munmap((void *)p, LENGTH);
	close(fd);
}

static void test_pin(int memory)
{
	const long page = sysconf(_SC_PAGESIZE);
	struct rashpa_pin pin = { .length = 4 * page };
	struct rashpa_info info;
	char *p = mmap(NULL, pin.length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	int fd;

	pin.address = (uintptr_t)p;
	fd = rashpa_memory_pin(memory, &pin);
	if (ok(fd >= 0, "memory-process-pinned: memory of a process is pinned")) {
		info = (struct rashpa_info) { .fd = fd };
		ok(!rashpa_memory_get_info(memory, &info) && info.out_length == pin.length &&
		   !strcmp(rashpa_kind_name(info.out_kind), "pinned"), "and-is-that: and is that");
		close(fd);
	}
	pin.address++;
	refused(rashpa_memory_pin(memory, &pin), EINVAL, "address", "an address in a page");
	munmap(p, pin.length);
	pin.address = (uintptr_t)p;
	refused(rashpa_memory_pin(memory, &pin), EFAULT, "", "memory that is not mapped");
}

static void test_query(int memory)
{
	struct rashpa_query query = {};

	ok(!rashpa_memory_query(memory, &query) && query.out_total && query.out_backend, "query: query");
}

static void test_map(unsigned int number)
{
	int device = rashpa_device_open(number), fd = rashpa_open(NAME, O_RDWR), map;
	struct rashpa_map_make arg = { .fd = fd, .max_segment = HUGE };
	const struct rashpa_table *table;
	struct rashpa_table *copy;
	struct rashpa_restore restore = {};
	uint64_t bytes = 0;

	map = rashpa_device_map(device, &arg);
	if (!ok(map >= 0, "map: a map"))
		return;
	copy = calloc(1, sizeof(*copy) + arg.out_segments * sizeof(copy->segment[0]));
	if (!ok(copy, "room-table: room for its table"))
		return;
	ok(!rashpa_table_map(map, arg.out_table_size, &table), "table-mapped: its table is mapped");
	ok(rashpa_table_read(table, copy, arg.out_segments) == (int)arg.out_segments &&
	   copy->generation == arg.out_generation && copy->state == RASHPA_MAP_STATE_VALID &&
	   copy->map_class == arg.out_class, "read: and read");
	for (unsigned int i = 0; i < copy->count; i++)
		bytes += copy->segment[i].length;
	ok(bytes == LENGTH, "segments-buffer: its segments are the buffer");
	ok(!rashpa_map_restore(map, &restore) && restore.out_generation == arg.out_generation &&
	   restore.out_segments == arg.out_segments && restore.out_class == arg.out_class,
	   "restoring-valid-map: restoring a valid map changes nothing");
	rashpa_table_unmap(table, arg.out_table_size);
	free(copy);
	close(map);
	close(fd);
	close(device);
}

/* --- events --- */

/* A word of lock memory, looked at by a timer: its id. */
static int add_word(int channel, int memory, uint64_t offset, uint32_t flags)
{
	struct rashpa_source_add add = {
		.head.flags = RASHPA_SOURCE_POLL | flags, .kind = RASHPA_SOURCE_LOCK,
		.memory = memory, .offset = offset, .condition = RASHPA_CONDITION_CHANGED,
		.bits = 64, .period_us = 1000, .device = -1,
	};

	return rashpa_channel_listen(channel, &add);
}

static void test_group(struct rashpa_queue *queue, int memory, volatile uint64_t *word)
{
	struct rashpa_member member[2] = {};
	struct rashpa_member_info members[2];
	struct rashpa_group_make group = {
		.members = (uintptr_t)member, .n_members = 2,
		.member_size = sizeof(member[0]), .slots = 4, .full = RASHPA_FULL_NEVER,
	};
	struct rashpa_group_info info = {
		.members = (uintptr_t)members, .n_members = 2, .member_size = sizeof(members[0]),
	};
	struct rashpa_event e = {};
	int id;

	member[0].source = add_word(queue->channel, memory, 0, RASHPA_SOURCE_QUIET);
	member[1].source = add_word(queue->channel, memory, 64, RASHPA_SOURCE_QUIET);
	id = rashpa_channel_group(queue->channel, &group);
	if (!ok(id > 0, "group-two-words: a group of two words"))
		return;
	word[0] = 3;
	ok(rashpa_ring_wait(queue, 50000000) == -ETIMEDOUT, "no-event-one: makes no event when one has changed");
	word[8] = 2;
	ok(!rashpa_ring_wait(queue, 5000000000) && rashpa_ring_next(queue, &e) &&
	   e.kind == RASHPA_SOURCE_GROUP && e.source == (uint32_t)id && e.value == 2,
	   "but-when-both/smaller-one: but when both have: the smaller one");
	rashpa_ring_ack(queue, id, 2);
	word[0] = 7;
	ok(!rashpa_ring_wait(queue, 5000000000) && rashpa_ring_next(queue, &e) &&
	   e.kind == RASHPA_SOURCE_OVERRUN && e.source == member[0].source && e.value == 7,
	   "laps-consumer: a member that laps the consumer is reported");
	info.id = id;
	ok(!rashpa_group_get_info(queue->channel, &info) && info.out_ack == 2 &&
	   info.out_position == 2 && info.out_overruns == 1 && members[0].position == 7, "counted: and counted");
	ok(!rashpa_channel_ack(queue->channel, id, 5) && queue->consumer->ack[id - 1] == 5,
	   "acknowledging-call-same: acknowledging by a call is the same as by the page");
	refused(rashpa_channel_del(queue->channel, member[0].source), EBUSY, "group",
		"a member cannot go");
	rashpa_channel_del(queue->channel, id);
	rashpa_channel_del(queue->channel, member[0].source);
	rashpa_channel_del(queue->channel, member[1].source);
}

static void test_signals(struct rashpa_queue *queue)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), id;
	struct rashpa_source_info info = {};
	struct rashpa_event e = {};
	uint64_t signals = 0;

	id = rashpa_channel_add(queue->channel, RASHPA_SOURCE_SOFTWARE, 0);
	ok(id > 0 && !rashpa_channel_eventfd(queue->channel, id, fd),
	   "eventfd-bound: an eventfd for a source");
	for (int i = 0; i < 7; i++)
		rashpa_channel_signal(queue->channel, i);
	ok(read(fd, &signals, sizeof(signals)) == sizeof(signals) && signals == 7,
	   "seven-signals: seven events signal it seven times");
	signals = 1;
	info.id = id;
	ok(!rashpa_source_get_info(queue->channel, &info) && info.out_events == 7 &&
	   info.out_value == 6, "source-counted-seven: the source has counted seven");
	while (rashpa_ring_next(queue, &e))
		signals += e.kind == RASHPA_SOURCE_SOFTWARE && e.value + 1 == signals;
	ok(signals == 8, "ring-all: and the ring has them all");
	close(fd);
}

static void test_word(struct rashpa_queue *queue, int memory, volatile uint64_t *word)
{
	/* shared: the other process writes when this one has given up spinning */
	struct rashpa_wait *wait = mmap(NULL, sizeof(*wait), PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t seen = 0;
	int id = add_word(queue->channel, memory, 0, 0);
	pid_t child;

	if (wait == MAP_FAILED) {
		ok(0, "mmap: mmap");
		return;
	}
	*wait = (struct rashpa_wait) {
		.word = word, .bits = 64, .condition = RASHPA_CONDITION_CHANGED, .value = 5,
		.queue = queue,
	};
	word[0] = 5;
	child = fork();
	if (!child) {
		while (!__atomic_load_n(&wait->slept, __ATOMIC_ACQUIRE))
			sched_yield();
		word[0] = 6;
		_exit(0);
	}
	ok(child > 0 && !rashpa_lock_wait(wait, 10000000000, &seen) && seen == 6 && wait->value == 6 &&
	   wait->slept == 1, "word-another-process: a word that another process writes ends the wait");
	waitpid(child, NULL, 0);
	refused(rashpa_lock_wait(wait, 20000000, &seen), ETIMEDOUT, "in time", "and if it does not");
	rashpa_channel_del(queue->channel, id);
	munmap(wait, sizeof(*wait));
}

static void test_events(int node, unsigned int number)
{
	int device = rashpa_device_open(number), channel, memory;
	struct rashpa_channel_make events = { .depth = 100 };
	struct rashpa_alloc lock = {
		.head.flags = RASHPA_ALLOC_LOCK, .length = 2 * RASHPA_LOCK_SLOT,
	};
	struct rashpa_queue queue;
	void *word;

	memory = rashpa_memory_alloc_for(node, device, &lock);
	if (!ok(memory >= 0 &&
		!rashpa_mmap(memory, 0, lock.out_length, PROT_READ | PROT_WRITE, &word),
		"lock-memory: lock memory"))
		return;
	channel = rashpa_channel_create(device, &events);
	if (!ok(channel >= 0 && !rashpa_ring_map(channel, &events, &queue),
		"channel-ring: a channel, and its ring"))
		return;
	test_group(&queue, memory, word);
	test_signals(&queue);
	test_word(&queue, memory, word);
	rashpa_ring_unmap(&queue);
	munmap(word, lock.out_length);
	close(channel);
	close(memory);
	close(device);
}

/* Places of two targets in the address table, and what a place becomes when its target ends. */
static void test_targets(struct rashpa_board *board)
{
	struct rashpa_target *target[3] = {};
	struct rashpa_target_info place[3] = {};
	const int fd = rashpa_open(NAME, O_RDWR);

	for (unsigned int i = 0; i < 3; i++) {
		/* the third one comes when the first one has gone */
		if (i == 2)
			rashpa_target_close(target[0]);
		ok(!rashpa_board_map(board, RASHPA_BOARD_DTP(0), fd, 0, &target[i]) &&
		   !rashpa_target_get_info(target[i], RASHPA_BOARD_DTP(0), &place[i]) &&
		   place[i].entries, "target-mapped: target %u is mapped for DTP 0", i);
	}
	ok(place[1].first >= place[0].first + place[0].entries,
	   "target-apart: two targets have different entries");
	ok(place[2].first == place[0].first, "target-again: entries of a closed target are free");
	refused(rashpa_target_get_info(target[1], RASHPA_BOARD_DTP(1), &place[0]), EINVAL,
		"not mapped", "the place of another user");
	rashpa_target_close(target[2]);
	rashpa_target_close(target[1]);
	close(fd);
}

static void test_board(const char *name)
{
	const struct rfpga_dtp nonsense = { .pixel_bytes = 3 };
	struct rashpa_board_view memory = {}, again = {};
	struct rashpa_board_info info = {}, older = { .dtps = 0xa5 };
	struct rashpa_dtp_stat counts = {};
	struct rashpa_board *board, *second;
	struct rashpa_block block;
	uint32_t any = 0;

	refused(rashpa_board_open("fpga", &board), EINVAL, "fpgaN", "a board without a number");
	if (!ok(!rashpa_board_open(name, &board) && !rashpa_board_claim(board) &&
		!rashpa_board_get_info(board, &info) && info.dtps && info.tick_rate,
		"board-opened: a board is opened and claimed"))
		return;
	rashpa_board_get_info_sized(board, &older, offsetof(struct rashpa_board_info, dtps));
	ok(older.version == info.version && older.dtps == 0xa5,
	   "board-older: a program with a shorter struct gets no more than that");
	ok(!rashpa_board_open(name, &second), "board-second: a second program opens it");
	refused(rashpa_board_claim(second), EBUSY, "has claimed it", "a second claim");
	rashpa_board_close(second);
	ok(!rashpa_board_window(board, "memory", &memory) &&
	   !rashpa_board_window(board, "memory", &again) && memory.base == again.base &&
	   memory.length && memory.length <= rashpa_board_read64(board, RFPGA_MEMORY_SIZE),
	   "board-window: a window is mapped once");
	refused(rashpa_board_window(board, "nowhere", &again), ENOENT, "nowhere", "no such window");
	refused(rashpa_board_window(board, "doorbell0x", &again), ENOENT, "doorbell0x", "no number");
	ok(!rashpa_board_find_block(board, RFPGA_BLOCK_DTP, 0x200, &block) &&
	   block.base == RFPGA_DTP(0) && block.count == info.dtps, "board-block: blocks are found");
	refused(rashpa_board_find_block(board, 0xffff, 4, &block), ENOENT, "ended",
		"blocks of no type");
	test_targets(board);
	rashpa_board_configure(board, 0, &nonsense);
	refused(rashpa_board_start(board, RASHPA_BOARD_DTP(0)), EIO, "config", "a wrong DTP");
	ok(rashpa_board_status(board, RASHPA_BOARD_DTP(0), &any, NULL) == -EIO &&
	   any & RFPGA_DTP_FAULTED && !rashpa_board_get_stat(board, RASHPA_BOARD_DTP(0), &counts) &&
	   counts.faults == 1 && !counts.images, "board-fault: its fault is reported and counted");
	ok(!rashpa_board_stop(board, RASHPA_BOARD_DTP(0), 0), "board-stop: it has stopped");
	rashpa_board_close(board);
}

int main(int argc, char **argv)
{
	struct rashpa_alloc alloc = {
		.head.flags = RASHPA_ALLOC_EXCLUSIVE, .length = LENGTH, .name = NAME,
	};
	int memory, fd;

	puts("TAP version 13");
	memory = rashpa_memory_open();
	fd = memory < 0 ? memory : rashpa_memory_alloc(memory, &alloc);
	if (!ok(fd >= 0, "buffer: a buffer")) {
		tap_end();
		return 1;
	}
	test_leases(memory, fd);
	test_mapping();
	test_pin(memory);
	test_query(memory);
	if (argc > 1) {
		test_map(strtoul(argv[1], NULL, 10));
		test_events(memory, strtoul(argv[1], NULL, 10));
		test_board(argv[1]);
	} else {
		ok(true, "maps-events-skip: maps, events # SKIP no function was given");
	}
	ok(!rashpa_buffer_remove(NAME), "remove: remove");
	close(memory);
	return tap_end();
}
