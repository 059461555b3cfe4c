/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* rashpa-bench: cost of this driver compared with other drivers for the same job. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/say.h"
#include "common/stats.h"

struct json_object;

#define HUGE_PAGE	(UINT64_C(2) << 20)
#define SIZES_MAX	32
#define BENCH_PERCENTILES	5

/* Sub-commands: argv[0] is "rashpa-bench NAME". An exit code. */
int cmd_memory(int argc, char **argv);
int cmd_event(int argc, char **argv);
int cmd_latency(int argc, char **argv);
int cmd_roundtrip(int argc, char **argv);
int cmd_network_sink(int argc, char **argv);
int cmd_network_write(int argc, char **argv);
int cmd_process(int argc, char **argv);
int cmd_sizing(int argc, char **argv);
int cmd_stream(int argc, char **argv);
int cmd_gpu(int argc, char **argv);
int cmd_loop(int argc, char **argv);
int cmd_paper(int argc, char **argv);
int cmd_validate(int argc, char **argv);
int cmd_network_sweep(int argc, char **argv);

/* --- settings.c --- */

/* Make SIGINT and SIGTERM stop measurements. */
void catch_signals(void);
/* False when a signal has asked to stop. */
bool going_on(void);

/* --- report.c: results, and measurements that were left out --- */

enum unit {
	UNIT_US,		/* total time, microseconds */
	UNIT_NS_EACH,		/* time of one access, nanoseconds */
	UNIT_GBPS,		/* rate, 10^9 bytes a second */
	UNIT_FAULTS,		/* number of page faults */
};

/*
 * A row of the table. Samples are total times in nanoseconds, or numbers.
 */
struct row {
	const char *name;	/* name of the measurement */
	const char *backend;	/* backend of this driver */
	const char *peer;	/* other driver to compare with; NULL: none */
	uint64_t size;
	enum unit unit;
	uint64_t accesses;	/* UNIT_NS_EACH: per sample; UNIT_GBPS: bytes per sample */
	bool spread;		/* report percentiles of this driver, too */
	double ours, theirs;
	double percentile[BENCH_PERCENTILES];
	double ratio;		/* of the medians, or NAN */
};

/* 50, 90, 99, 99.9 and the largest */
extern const double bench_percentiles[BENCH_PERCENTILES];

struct left_out {
	char *what, *reason;
};

struct report {
	struct row *row;
	size_t rows, rows_room;
	struct left_out *left_out;
	size_t left_outs;
	unsigned int repeat;
	int iommu;		/* 1: an IOMMU translates for the function; -1: no function used */
	const char *device, *vfio;	/* NULL: not used */
	struct progress progress;
};

/* Add a row: a copy of *row, with the medians of the samples. */
void report_row(struct report *report, const struct row *row, struct samples *ours,
		struct samples *theirs);
/* Record why a measurement is not in the table. Equal texts are recorded once. */
__attribute__((format(printf, 3, 4)))
void report_leave_out(struct report *report, const char *what, const char *format, ...);
void report_print(const struct report *report);
void report_print_left_out(const struct report *report);
/* 0, or -1 after a message. */
int report_json(const struct report *report, const char *bench);
/* The part that is common to all measurements: name, machine, repetitions. */
struct json_object *report_json_head(const struct report *report, const char *bench);
void report_json_rows(const struct report *report, struct json_object *to);
void report_json_left_out(const struct report *report, struct json_object *to);
void report_free(struct report *report);

const char *unit_name(enum unit unit);

/* --- source.c: memory of this driver and of others --- */

/* All return a file descriptor that can be mapped; closing it frees the memory. */
struct source {
	const char *name;
	const char *backend;	/* backend of this driver; NULL: memory of another one */
	unsigned int number;	/* this driver: enum rashpa_backend */
	bool grow;		/* hugetlbfs: the pool grows and shrinks with each block */
	int node;		/* /dev/rashpa/memory or dma-heap; -1: not open */
	uint64_t least;		/* smallest block, bytes */
	/* a descriptor, or -1 with the reason in why[WHY_SIZE] */
	int (*alloc)(const struct source *source, uint64_t size, char *why);
	void (*free)(const struct source *source, int fd, uint64_t size);
};

/* Open all usable sources, and leave the others out. backend: NULL for all. */
size_t sources_open(struct source *sources, struct report *report, const char *backend);
void sources_close(struct source *sources, size_t n);
#define SOURCES_MAX	5

/* -1 with the reason if an allocation would leave too little memory. */
int memory_suffices(const struct source *source, uint64_t size, char *why);

/* Make sure that the hugetlbfs pool, if the source uses it, has free pages for size. 0, or -1. */
int pool_reserve(const struct source *source, uint64_t size, char *why);
/* Return the added pages of the pool to the system. */
void pool_restore(void);

/*
 * Map all of fd at a multiple of 2 MiB, so that page tables can use huge entries, and fill the page
 * tables. ns: time of mmap() alone, or NULL. MAP_FAILED with errno.
 */
void *map_aligned(int fd, uint64_t size, uint64_t *ns);

/* --- process.c --- */

/* A calibration file: three planes of n numbers, one for each gain of a JUNGFRAU. An exit code. */
int planes_write(const char *folder, const char *name, size_t n, float value);
/* Remove a folder with what measurements write there. */
void folder_remove(const char *folder);

/* --- the measurements --- */

struct bench {
	struct report *report;
	struct source source[SOURCES_MAX];
	size_t sources;
	uint64_t size[SIZES_MAX];
	size_t sizes;
};

/*
 * Index of the i-th of n measurements in this round. The order alternates, as the first one finds
 * other caches and other free memory.
 */
static inline size_t turn(unsigned int round, size_t i, size_t n)
{
	return round % 2 ? n - 1 - i : i;
}

void bench_alloc(struct bench *bench, uint64_t size);
void bench_access(struct bench *bench, uint64_t size);
/* device: fpgaN; vfio: a function bound to vfio-pci, or NULL */
void bench_maps(struct bench *bench, const char *device, const char *vfio);

#endif /* BENCH_H */
