/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* rashpa-bench: what this driver costs, beside what others cost for the same job. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "say.h"
#include "stats.h"

struct json_object;

#define HUGE_PAGE	(UINT64_C(2) << 20)
#define SIZES_MAX	32
#define BENCH_PERCENTILES	5

/* Sub-commands: argv[0] is "rashpa-bench NAME". An exit code. */
int cmd_memory(int argc, char **argv);
int cmd_latency(int argc, char **argv);
int cmd_roundtrip(int argc, char **argv);
int cmd_network(int argc, char **argv);
int cmd_process(int argc, char **argv);
int cmd_gpu(int argc, char **argv);
int cmd_loop(int argc, char **argv);

/* --- main.c --- */

/* SIGINT and SIGTERM end what goes on. */
void catch_signals(void);
/* False when a signal has asked to stop. */
bool going_on(void);

/* --- report.c: what was measured, and what was not --- */

enum unit {
	UNIT_US,		/* time of the whole, microseconds */
	UNIT_NS_EACH,		/* time of one access, nanoseconds */
	UNIT_GBPS,		/* bytes per time, 10^9 bytes a second */
	UNIT_FAULTS,		/* a number of page faults */
	UNIT_CPU,		/* processor time for 10^9 bytes, seconds */
	UNIT_EVENTS,		/* how many for 10^9 bytes */
};

/*
 * A row of the table. Without a peer there is nothing to compare with. Samples are
 * nanoseconds of the whole, or a number.
 */
struct row {
	const char *name;	/* what was measured */
	const char *backend;	/* of ours */
	const char *peer;	/* NULL: ours alone */
	uint64_t size;
	enum unit unit;
	uint64_t accesses;	/* UNIT_NS_EACH: per sample; UNIT_GBPS: bytes per sample */
	bool spread;		/* tell percentiles of ours as well */
	double ours, theirs;
	double percentile[BENCH_PERCENTILES];
	double ratio;		/* 0: of the medians; NAN afterwards if there is none */
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
	int iommu;		/* of the function; -1 if none was used */
	const char *device, *vfio;	/* NULL: none */
	struct progress progress;
};

/* Add a row of medians; a copy of *row whose numbers come from the samples. */
void report_row(struct report *report, const struct row *row, struct samples *ours,
		struct samples *theirs);
/* Tell why something is not in the table; once for the same text. */
__attribute__((format(printf, 3, 4)))
void report_leave_out(struct report *report, const char *what, const char *format, ...);
void report_print(const struct report *report);
void report_print_left_out(const struct report *report);
/* 0, or -1 after a message. */
int report_json(const struct report *report, const char *bench);
/* The part that all measurements have: what, the machine, repetitions. */
struct json_object *report_json_head(const struct report *report, const char *bench);
void report_json_rows(const struct report *report, struct json_object *to);
void report_json_left_out(const struct report *report, struct json_object *to);
void report_free(struct report *report);

const char *unit_name(enum unit unit);

/* --- plot.c --- */

/* Is gnuplot there? 0, or -1 after a message. */
int plot_check(void);
/* What script_of() writes, drawn; false if there is nothing to draw. 0, or -1. */
/* "CPU, Linux RELEASE", for people */
void machine_title(char *text, size_t size);

/* The beginning of a gnuplot script: an SVG of so many pixels, in colours that all can tell. */
void plot_begin(FILE *to, unsigned int width, unsigned int height);
/* Several plots with one title: what is shown, and on which machine. */
void plot_multi(FILE *to, unsigned int rows, const char *what);

int plot_run(bool (*script_of)(FILE *to, const void *what), const void *what, const char *path);
/* Ratios over sizes as SVG. 0, or -1 after a message. */
int plot_svg(const struct report *report, const char *path);

/* --- source.c: memory, whoever it is from --- */

/* All of them answer with a file descriptor that can be mapped; closing it frees. */
struct source {
	const char *name;
	const char *backend;	/* of ours; NULL: a peer */
	unsigned int number;	/* of ours: enum rashpa_backend */
	bool grow;		/* hugetlbfs: the pool grows for each block, and shrinks */
	int node;		/* /dev/rashpa/memory or the heap's; -1 if it is not there */
	uint64_t least;		/* smallest block */
	/* a descriptor, or -1 with the reason in why[WHY_SIZE] */
	int (*alloc)(const struct source *source, uint64_t size, char *why);
	void (*free)(const struct source *source, int fd, uint64_t size);
};

/* The sources that are there; the others are left out. backend: NULL for all. */
size_t sources_open(struct source *sources, struct report *report, const char *backend);
void sources_close(struct source *sources, size_t n);
#define SOURCES_MAX	5

/* Memory that an allocation of size would leave too little of: -1 with the reason. */
int memory_suffices(const struct source *source, uint64_t size, char *why);

/* Give the pool free pages for size; source: only if it needs one. 0, or -1. */
int pool_reserve(const struct source *source, uint64_t size, char *why);
/* Give back what was taken from the machine. */
void pool_restore(void);

/*
 * Map all of fd at an address that is a multiple of 2 MiB, so that huge entries can be
 * used. Page tables are filled at once. ns: of mmap() alone, or NULL. MAP_FAILED with
 * errno.
 */
void *map_aligned(int fd, uint64_t size, uint64_t *ns);

/* --- the measurements --- */

struct bench {
	struct report *report;
	struct source source[SOURCES_MAX];
	size_t sources;
	uint64_t size[SIZES_MAX];
	size_t sizes;
};

/*
 * Who is measured as number i of n in this round: from both ends in turn, because who
 * comes first finds other caches and other free memory.
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
