// SPDX-License-Identifier: LGPL-2.1-or-later
/* Output of rows, as a table and as JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench/bench.h"
#include "common/iommu.h"
#include "common/json-out.h"
#include "common/parse.h"
#include "common/shown.h"

const char *unit_name(enum unit unit)
{
	static const char *const names[] = {
		[UNIT_US] = "us", [UNIT_NS_EACH] = "ns", [UNIT_GBPS] = "GB/s",
		[UNIT_FAULTS] = "faults",
	};

	return names[unit];
}

static const char *better(enum unit unit)
{
	return unit == UNIT_GBPS ? "higher" : "lower";
}

const double bench_percentiles[BENCH_PERCENTILES] = { 50, 90, 99, 99.9, 100 };

static double nth(const struct row *row, struct samples *samples, double p)
{
	double ns;

	samples_sort(samples);
	ns = percentile(samples->value, samples->count, p);
	switch (row->unit) {
	case UNIT_US:
		return ns / 1e3;
	case UNIT_NS_EACH:
		return ns / row->accesses;
	case UNIT_GBPS:
		return row->accesses / ns;
	default:
		return ns;
	}
}

void report_row(struct report *report, const struct row *row, struct samples *ours,
		struct samples *theirs)
{
	struct row *r;

	if (report->rows == report->rows_room) {
		size_t room = report->rows_room ? 2 * report->rows_room : 64;

		r = realloc(report->row, room * sizeof(*r));
		if (!r) {
			say("no memory for a row of the table: %s", row->name);
			return;
		}
		report->row = r;
		report->rows_room = room;
	}
	r = &report->row[report->rows++];
	*r = *row;
	r->ours = nth(row, ours, 50);
	r->theirs = theirs ? nth(row, theirs, 50) : NAN;
	for (unsigned int i = 0; i < BENCH_PERCENTILES && row->spread; i++)
		r->percentile[i] = nth(row, ours, bench_percentiles[i]);
	r->ratio = theirs && r->theirs > 0 ? r->ours / r->theirs : NAN;
}

void report_leave_out(struct report *report, const char *what, const char *format, ...)
{
	struct left_out *l, new = {};
	va_list args;

	va_start(args, format);
	if (vasprintf(&new.reason, format, args) < 0)
		new.reason = NULL;
	va_end(args);
	new.what = strdup(what);
	for (size_t i = 0; new.what && new.reason && i < report->left_outs; i++)
		if (!strcmp(report->left_out[i].what, new.what) &&
		    !strcmp(report->left_out[i].reason, new.reason))
			goto out_free;
	l = realloc(report->left_out, (report->left_outs + 1) * sizeof(*l));
	if (l)
		report->left_out = l;
	if (!l || !new.what || !new.reason)
		goto out_free;
	l[report->left_outs++] = new;
	return;

out_free:
	free(new.what);
	free(new.reason);
}

/* --- the machine --- */

static void cpu_name(char *buf, size_t size, bool *virtual)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	char *line = NULL, *colon;
	size_t room = 0;

	snprintf(buf, size, "?");
	*virtual = false;
	while (file && getline(&line, &room, file) > 0 && *line != '\n') {
		colon = strchr(line, ':');
		if (colon && !strncmp(line, "model name", 10))
			snprintf(buf, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
		if (colon && !strncmp(line, "flags", 5))
			*virtual = strstr(colon, " hypervisor");
	}
	free(line);
	if (file)
		fclose(file);
}

/* Does an IOMMU of this machine translate addresses? */
static bool iommu_present(void)
{
	struct iommu iommu;

	iommu_look(&iommu, "");
	return iommu.translated;
}

static struct json_object *machine_json(const struct report *report)
{
	struct json_object *o = json_object_new_object();
	struct utsname name = {};
	char cpu[128];
	bool virtual;

	uname(&name);
	cpu_name(cpu, sizeof(cpu), &virtual);
	put_text(o, "kernel", name.release);
	put_text(o, "cpu", cpu);
	put_int(o, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
	put_u64(o, "memory_bytes", (uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
	put_bool(o, "virtual", virtual);
	put_bool(o, "iommu", report->iommu < 0 ? iommu_present() : report->iommu);
	put_text(o, "device", report->device);
	put_text(o, "vfio", report->vfio);
	return o;
}

/* --- printing --- */

static void put_number(struct json_object *to, const char *key, double value)
{
	if (isnan(value))
		json_object_object_add(to, key, NULL);
	else
		put_real(to, key, value);
}

struct json_object *report_json_head(const struct report *report, const char *bench)
{
	struct json_object *o = json_object_new_object();

	put_text(o, "bench", bench);
	put_text(o, "version", RASHPA_VERSION);
	json_object_object_add(o, "machine", machine_json(report));
	put_int(o, "repetitions", report->repeat);
	return o;
}

void report_json_left_out(const struct report *report, struct json_object *to)
{
	struct json_object *list = json_object_new_array(), *e;

	for (size_t i = 0; i < report->left_outs; i++) {
		e = json_object_new_object();
		put_text(e, "name", report->left_out[i].what);
		put_text(e, "reason", report->left_out[i].reason);
		json_object_array_add(list, e);
	}
	json_object_object_add(to, "left_out", list);
}

static void put_percentiles(struct json_object *to, const struct row *r)
{
	static const char * const names[BENCH_PERCENTILES] = {
		"p50", "p90", "p99", "p99.9", "max",
	};
	struct json_object *o = json_object_new_object();

	for (unsigned int i = 0; i < BENCH_PERCENTILES; i++)
		put_number(o, names[i], r->percentile[i]);
	json_object_object_add(to, "percentiles", o);
}

void report_json_rows(const struct report *report, struct json_object *to)
{
	struct json_object *list = json_object_new_array(), *e;

	for (size_t i = 0; i < report->rows; i++) {
		const struct row *r = &report->row[i];

		e = json_object_new_object();
		put_text(e, "name", r->name);
		put_text(e, "backend", r->backend);
		put_text(e, "peer", r->peer);
		put_u64(e, "size_bytes", r->size);
		put_number(e, "ours", r->ours);
		put_number(e, "theirs", r->theirs);
		put_number(e, "ratio", r->ratio);
		if (r->spread)
			put_percentiles(e, r);
		put_text(e, "unit", unit_name(r->unit));
		put_text(e, "better", better(r->unit));
		json_object_array_add(list, e);
	}
	json_object_object_add(to, "rows", list);
}

int report_json(const struct report *report, const char *bench)
{
	struct json_object *o = report_json_head(report, bench);

	report_json_rows(report, o);
	report_json_left_out(report, o);
	return json_finish(o);
}

static void print_number(double value)
{
	if (isnan(value))
		printf(" %11s", "-");
	else
		printf(" %11.*f", value < 100 ? 2 + 2 * (value < 1) : 0, value);
}

static void print_row(const struct row *r)
{
	char size[SIZE_TEXT];

	printf("%8s  %-7s %-32s", r->size ? format_size(size, r->size) : "-", r->backend, r->peer ? r->peer : "-");
	print_number(r->ours);
	print_number(r->theirs);
	if (isnan(r->ratio))
		printf(" %7s\n", "-");
	else
		printf(" %7.2f\n", r->ratio);
	if (r->spread)
		printf("%53s p90 %.2f, p99 %.2f, p99.9 %.2f, most %.2f\n", "", r->percentile[1],
		       r->percentile[2], r->percentile[3], r->percentile[4]);
}

/* Rows are ordered by size, but printed by measurement. Was the name of this row printed before? */
static bool named_before(const struct report *report, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (!strcmp(report->row[j].name, report->row[i].name))
			return true;
	return false;
}

void report_print_left_out(const struct report *report)
{
	for (size_t i = 0; i < report->left_outs; i++)
		printf("%snot measured: %s: %s\n", i ? "" : "\n", report->left_out[i].what,
		       SHOWN(report->left_out[i].reason));
}

void report_print(const struct report *report)
{
	for (size_t i = 0; i < report->rows; i++) {
		const struct row *r = &report->row[i];

		if (named_before(report, i))
			continue;
		printf("%s%s: %s, %s is better\n%8s  %-7s %-32s %11s %11s %7s\n", i ? "\n" : "",
		       r->name, unit_name(r->unit), better(r->unit),
		       "size", "backend", "peer", "ours", "theirs", "ratio");
		for (size_t j = i; j < report->rows; j++)
			if (!strcmp(report->row[j].name, r->name))
				print_row(&report->row[j]);
	}
	report_print_left_out(report);
}

void report_free(struct report *report)
{
	for (size_t i = 0; i < report->left_outs; i++) {
		free(report->left_out[i].what);
		free(report->left_out[i].reason);
	}
	free(report->left_out);
	free(report->row);
}
