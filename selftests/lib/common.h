/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Helpers that all tests share: calls with their reasons, buffers, the software FPGA. */
#ifndef COMMON_H
#define COMMON_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/rashpa.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tap.h"

/* like __u64: printed by %llu */
typedef unsigned long long u64;

#define KIB	(1ULL << 10)
#define MIB	(1ULL << 20)
#define GIB	(1ULL << 30)
#define PAGE	4096ULL

#define HEAD(s)		.head = { .size = sizeof(s) }

/* ------------------------------------------------------------- calls ---- */

/* sentence of the last call, empty if there was none */
extern char reason[RASHPA_REASON_SIZE];
extern int memory;	/* /dev/rashpa/memory, for reading and writing */

/* ioctl with a buffer for the reason. Returns 0 or a negative errno. */
int call(int fd, unsigned long cmd, void *arg);

/*
 * Did a call answer with @want (a positive errno, 0 for success), and does the
 * reason contain all words of @says ("a|b": both)? NULL: the reason is not checked.
 */
bool answered(const char *file, int line, int got, int want, const char *says);
#define ANSWERED(got, want, says) answered(__FILE__, __LINE__, got, want, says)

/*
 * Open /dev/rashpa/memory; check after each test that nothing leaked. If the module is not
 * loaded, the test is skipped. Called before setup().
 */
void common_init(void);
/* Other processes allocate and free memory meanwhile: do not compare the sum of all. */
void not_alone(void);

/* A small file in @buf, as a string; false if it cannot be read. */
bool read_file(const char *path, char *buf, size_t size);

/* Its first line, without the line end. */
bool read_text(const char *path, char *buf, size_t size);
bool read_fdinfo(int fd, char *buf, size_t size);
/* KiB after "@key:", as in /proc/meminfo and /proc/self/status; -1 if it is not there. */
long read_kib(const char *path, const char *key);
/* Returns 0 or a negative errno. */
int write_text(const char *path, const char *text);

#define PARAMETERS	"/sys/module/rashpa/parameters/"
/* limits of drivers/core/origin.h */
#define RASHPA_LISTENERS_VECTOR	64
#define RASHPA_LISTENERS_USER	256
#define RASHPA_LISTENERS_MAX	2048
/* Save and restore all parameters of the module; called around each test. */
void parameters_keep(void);
void parameters_restore(void);
void param_set(const char *name, unsigned int value);
unsigned int fds_open(void);
u64 bytes_allocated(void);
u64 ram_bytes(void);
long page_faults(void);

/* Set the policy for host bridges: newer kernels do not know that the one of QEMU routes. */
void p2p_bridge(const char *policy);

/* Switch to this user, or to the user nobody, without capabilities, for good: in children only. */
void become_user(uid_t uid);
void drop_privileges(void);

/* ----------------------------------------------------------- buffers ---- */

/* The test ends where it fails. @name may be NULL. */
int buffer_alloc(u64 length, const char *name);
/* Returns 0 or a negative errno. */
int buffer_remove(const char *name);
/* Close @fd, and check that @name is removed. */
void buffer_end(int fd, const char *name);
/* The buffer's node with @flags, or -1. */
int buffer_node(const char *name, int flags);
/* A dma-buf of it (EXPORT), or a negative errno. */
int buffer_open(const char *name, int flags);
/* owner and mode of its node; 0 or a negative errno */
int buffer_permit(const char *name, int uid, int gid, int mode);
int buffer_info(int fd, struct rashpa_info *info);
bool cma_here(void);

/* Mapped shared, readable and writable; the test ends where it fails. */
void *map_fd(int fd, u64 length);
/* End the mapping and close @fd. */
void unmap_fd(void *p, u64 length, int fd);
void fill(void *p, size_t length, u64 seed);
/* Does it contain the pattern of fill()? */
bool filled(const void *p, size_t length, u64 seed);
bool all_zero(const void *p, size_t length);
/* Page frame numbers of @n mapped pages, 0 where unknown. */
void pfns_of(const void *p, u64 *pfns, size_t n);
/* Page frame number of one address. */
u64 pfn_of(const void *p);
/*
 * Lock memory of @slots near @fd, a function, or -1 for anywhere. @name may be NULL. Returns
 * 0 or a negative errno.
 */
int lock_alloc(u64 slots, const char *name, struct rashpa_alloc *alloc);
/* A dma-buf of another driver (udmabuf) over @length bytes of memfd, or -1. */
int foreign_dmabuf(u64 length);

/* ------------------------------------------------------------- FPGA ----- */

struct fpga {
	char bdf[16];		/* 0000:01:00.0 */
	int index;		/* N of /dev/rashpa/fpgaN */
	char name[24];		/* fpgaN */
	int fd;			/* open for reading and writing */
};

/*
 * Find the @nth software FPGA, bind it if it is not bound, open its node. False if it does
 * not exist.
 */
bool fpga_open(struct fpga *f, unsigned int nth);
/* The same for the @nth function with these ids: a device that is not ours. */
bool function_open(struct fpga *f, unsigned int vendor, unsigned int device,
		   unsigned int nth);
/* The same, with an empty profile, and watched by fpga_watch(). */
bool fpga_try(struct fpga *f, unsigned int nth);
/* In setup(): open the first one, or skip the test. */
void fpga_need(struct fpga *f);
/* Bind it after an unbind, and open it as fpga_try() does. */
void fpga_again(struct fpga *f);
/* Does an IOMMU translate its addresses? */
bool fpga_iommu(const struct fpga *f);
/* Check after every test that maps, windows and state are as before. */
void fpga_watch(const struct fpga *f);
void fpga_close(struct fpga *f);
/* Through sysfs. Return 0 or a negative errno. */
int fpga_bind(const struct fpga *f);
int fpga_unbind(const struct fpga *f);
int fpga_info(const struct fpga *f, struct rashpa_device_info *info);
bool fpga_is_master(const struct fpga *f);
/* Quiesce by the STOP and BUSY bits; windows as given. Returns 0 or -errno. */
int fpga_profile(const struct fpga *f, uint32_t flags,
		 const struct rashpa_profile_window *windows, uint32_t n);
/* An empty profile. */
int fpga_profile_none(const struct fpga *f);
int fpga_quiesce(const struct fpga *f);
int fpga_reset(const struct fpga *f);
/* fd, or a negative errno. */
int fpga_window(const struct fpga *f, uint32_t bar, u64 offset, u64 length,
		uint32_t cache);
/* The software FPGA's BAR 0, mapped; its window ends with munmap(). The test ends where it fails. */
char *fpga_regs(const struct fpga *f);
int fpga_map(const struct fpga *f, int memory_fd, uint32_t direction,
	     struct rashpa_map_make *map);
/* Its arguments, for all of @fd; out_fd shows whether the driver has written it. */
struct rashpa_map_make default_map(int fd);
/* The map's table; the test ends where it fails. */
const struct rashpa_table *table_of(const struct rashpa_map_make *map);
/* Let the addresses of the map be seen. */
void table_seen(const struct rashpa_map_make *map);
int map_restore(int map);
/* A channel of the memory node that does not block; -1 after a failed check. */
int memory_channel(void);
int fpga_events(const struct fpga *f, uint32_t depth);
/* One that does not block, with a source, whose id is 1: checked. */
int fpga_listen(const struct fpga *f, uint32_t depth, uint32_t kind, uint32_t index);
/* The FPGA's address table: entries from @first on. Returns 0 or -errno. */
int fpga_program(int map, uint32_t first, uint32_t *entries);
/* Layout and place of the software FPGA's table. */
extern const struct rashpa_layout fpga_layout;
extern struct rashpa_profile_table fpga_table;

/* Row of a table: one field of a valid struct is made wrong. */
struct bad_field {
	const char *key;
	int part;		/* of it */
	size_t at, size;
	u64 value;
	int err;
	const char *says;
};

/* Arrays of struct rashpa_profile_set, as initializers. */
#define ARRAY(what, at, n)						\
	.what##s = (uintptr_t)(at), .n_##what##s = (n), .what##_size = sizeof(*(at))
#define STEPS(array)	ARRAY(step, array, ARRAY_SIZE(array))
#define STEP(one)	ARRAY(step, &(one), 1)
#define TABLE(one)	.table = (uintptr_t)&(one), .table_size = sizeof(one)

/* Stop the whole board, and wait for it. */
extern const struct rashpa_profile_step fpga_stop[2];

int source_add(int channel, uint32_t kind, uint32_t index);
/* A source of the first word of @fd: an event for each new value. */
struct rashpa_source_add word_source(int fd, uint32_t flags);
/* SOURCE_ADD: the id, or a negative errno. */
int source_make(int channel, struct rashpa_source_add *add);
/* LOOK: the number of events, or a negative errno. */
int look_at(int fd);
/* Read one record; false: the queue is empty. */
bool next_event(int channel, struct rashpa_event *e);
int source_del(int channel, uint32_t id);
/* Let its software source make an event. */
int signal_one(int channel, u64 value);
/* Wait for @events on @fd at most @ms; returns revents, 0 on time-out. */
int wait_fd(int fd, int events, int ms);

/* RASHPA_IOC_EVENTFD_BIND for source @id, or 0 for all. */
int bind_eventfd(int channel, int fd, uint32_t id);

/* Count of a non-blocking eventfd since it was last read. */
u64 count_of(int event);
/* The same, waiting for @n signals that may come later, as after LOOK. */
u64 eventfd_signals(int event, u64 n);
u64 now_ns(void);
/* The time at which to give up, for loops that poll; longer on slow machines, as wait_fd(). */
u64 end_of_wait(unsigned int ms);

static inline uint32_t reg32(volatile void *regs, uint32_t offset)
{
	return *(volatile uint32_t *)((volatile char *)regs + offset);
}

static inline u64 reg64(volatile void *regs, uint32_t offset)
{
	u64 low = reg32(regs, offset);

	return (u64)reg32(regs, offset + 4) << 32 | low;
}

static inline void set32(volatile void *regs, uint32_t offset, uint32_t value)
{
	*(volatile uint32_t *)((volatile char *)regs + offset) = value;
}

static inline void set64(volatile void *regs, uint32_t offset, u64 value)
{
	set32(regs, offset, (uint32_t)value);
	set32(regs, offset + 4, (uint32_t)(value >> 32));
}

#endif /* COMMON_H */
