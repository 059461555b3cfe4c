// SPDX-License-Identifier: LGPL-2.1-or-later
/* Draws ratios with gnuplot. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"

/* Run gnuplot with these files as standard input and output. Its exit status or -errno */
static int gnuplot(int in, int out)
{
	char *const argv[] = { "gnuplot", "-", NULL };
	posix_spawn_file_actions_t actions;
	int error, status;
	pid_t pid;

	if (posix_spawn_file_actions_init(&actions))
		return -ENOMEM;
	error = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	if (!error)
		error = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (!error)
		error = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error)
		return -error;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
}

int plot_check(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int result = null < 0 ? -errno : gnuplot(null, null);

	if (null >= 0)
		close(null);
	if (result == -ENOENT)
		say("--svg needs gnuplot, which is not installed: apt install gnuplot-nox");
	else if (result)
		say("--svg: gnuplot cannot be run: %s",
		    result < 0 ? strerror(-result) : "it failed");
	return result ? -1 : 0;
}

void plot_begin(FILE *to, unsigned int width, unsigned int height)
{
	/* colours of Okabe and Ito without yellow, which is too light for a line */
	static const char *const colours[] = {
		"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000",
	};
	const unsigned int n = sizeof(colours) / sizeof(colours[0]);

	/* noenhanced: underscores in names are not subscripts */
	fprintf(to, "set terminal svg noenhanced size %u,%u font 'sans,11' background 'white'\n",
		width, height);
	for (unsigned int i = 0; i < n; i++)
		fprintf(to, "set linetype %u lc rgb '%s' lw 1.5 pt %u\n", i + 1, colours[i],
			2 * (i % 5) + 5);
	fprintf(to, "set linetype cycle %u\n", n);
}

void plot_multi(FILE *to, unsigned int rows, const char *what)
{
	char machine[256];

	machine_title(machine, sizeof(machine));
	/* replace quotes and backslashes, as the text goes into a gnuplot string */
	for (char *c = machine; *c; c++)
		*c = *c == '"' || *c == '\\' ? '\'' : *c;
	fprintf(to, "set multiplot layout %u,2 title \"%s\\n%s\"\n", rows, what, machine);
}

/* Do two rows belong to the same line, with different sizes? */
static bool same_line(const struct row *a, const struct row *b)
{
	return !strcmp(a->name, b->name) && !strcmp(a->backend, b->backend) &&
	       !strcmp(a->peer, b->peer);
}

static bool has_point(const struct row *r)
{
	return r->peer && !isnan(r->ratio);
}

/* Is this the first row of its line? */
static bool first_of_line(const struct report *report, size_t i)
{
	if (!has_point(&report->row[i]))
		return false;
	for (size_t j = 0; j < i; j++)
		if (has_point(&report->row[j]) && same_line(&report->row[j], &report->row[i]))
			return false;
	return true;
}

static void write_data(FILE *to, const struct report *report)
{
	for (size_t i = 0; i < report->rows; i++) {
		if (!first_of_line(report, i))
			continue;
		fprintf(to, "$D%zu << END\n", i);
		for (size_t j = i; j < report->rows; j++) {
			const struct row *r = &report->row[j];

			if (has_point(r) && same_line(r, &report->row[i]))
				fprintf(to, "%" PRIu64 " %.6g\n", r->size, r->ratio);
		}
		fputs("END\n", to);
	}
}

static unsigned int write_panel(FILE *to, const struct report *report, const char *name)
{
	unsigned int lines = 0;

	for (size_t i = 0; i < report->rows; i++) {
		const struct row *r = &report->row[i];

		if (strcmp(r->name, name) || !first_of_line(report, i))
			continue;
		if (!lines++) {
			/* ratios of bandwidths are near 1, those of times may be far from it */
			fputs(r->unit == UNIT_GBPS ?
			      "unset logscale y\nset yrange [0:1.2<*]\nset key bottom\n" :
			      "set logscale y 10\nset yrange [*<0.5:2<*]\nset key top\n", to);
			fprintf(to, "set title \"%s (%s is better)\"\nplot 1 with lines lc 'black' dt 2 notitle",
				name, r->unit == UNIT_GBPS ? "more" : "less");
		}
		fprintf(to, ", $D%zu using 1:2 with linespoints title \"%s / %s\"", i, r->backend,
			r->peer);
	}
	fputs(lines ? "\n" : "", to);
	return lines;
}

/* Collect the names of panels, in the order of rows. Returns their number. */
static size_t panels(const struct report *report, const char **names, size_t room)
{
	size_t n = 0, j;

	for (size_t i = 0; i < report->rows; i++) {
		if (!has_point(&report->row[i]))
			continue;
		for (j = 0; j < n && strcmp(names[j], report->row[i].name); j++)
			;
		if (j == n && n < room)
			names[n++] = report->row[i].name;
	}
	return n;
}

/* Label sizes with units: 4K, 32K ... 2G */
static void write_sizes(FILE *to)
{
	static const char *const units[] = { "", "K", "M", "G", "T" };

	for (unsigned int shift = 3; shift < 50; shift += 3)
		fprintf(to, "%s\"%u%s\" %" PRIu64, shift == 3 ? "set xtics (" : ", ",
			1u << shift % 10, units[shift / 10], UINT64_C(1) << shift);
	fputs(")\n", to);
}

static bool write_script(FILE *to, const void *what)
{
	const struct report *report = what;
	const char *names[12];
	size_t n = panels(report, names, sizeof(names) / sizeof(names[0]));

	if (!n)
		return false;
	plot_begin(to, 1100, (n + 1) / 2 * 340 + 40);
	write_data(to, report);
	plot_multi(to, (n + 1) / 2, "time or bandwidth of ours / theirs");
	fputs("set logscale x 2\nset grid\nset key font ',9' samplen 1\n"
	      "set xlabel 'size, bytes'\nset ylabel 'ratio'\n"
	      "set offsets graph 0.03, graph 0.03, graph 0.15, 0\n", to);
	write_sizes(to);
	for (size_t i = 0; i < n; i++)
		write_panel(to, report, names[i]);
	fputs("unset multiplot\n", to);
	return true;
}

int plot_run(bool (*script_of)(FILE *to, const void *what), const void *what, const char *path)
{
	FILE *script = tmpfile();
	int out = -1, result;

	if (!script) {
		say("--svg: cannot create a temporary file: %s", strerror(errno));
		return -1;
	}
	if (!script_of(script, what) || fflush(script)) {
		say("--svg: there is nothing to draw");
		fclose(script);
		return -1;
	}
	out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (out < 0) {
		say("cannot write %s: %s", path, strerror(errno));
		fclose(script);
		return -1;
	}
	/* rewind() does not report errors */
	result = fseek(script, 0, SEEK_SET) ? -errno : gnuplot(fileno(script), out);
	if (result)
		say("--svg: gnuplot failed: %s", result < 0 ? strerror(-result) : "see above");
	close(out);
	fclose(script);
	return result ? -1 : 0;
}

int plot_svg(const struct report *report, const char *path)
{
	return plot_run(write_script, report, path);
}
