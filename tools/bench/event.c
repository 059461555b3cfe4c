// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * rashpa-bench event: cost of an event for the processor, from the interrupt until the program has
 * the event. The processor sends itself the interrupt, so no time of a board is in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "bench/event.h"
#include "rashpa_bare.h"
#include "bench/settings.h"

#define EVENTS	500	/* of a round */

static const unsigned int compared[] = { PATH_READ, PATH_EVENTFD, PATH_RING, PATH_VFIO };

#define COMPARED	(sizeof(compared) / sizeof(compared[0]))

struct config {
	struct settings settings;
	int bare;		/* file of RASHPA_BARE_PATH */
	struct board board[OWNERS];
	struct samples samples[COMPARED];
};

static const struct argp_option options[] = {
	OPTION_FPGA("an unused bound function with the reference interface"),
	{ "vfio", OPT_VFIO, "BDF", 0,
	  "compare with vfio-pci, by a spare function bound to it", 0 },
	{ "repeat", 'r', "N", 0, "rounds, 1 to 1000 (default: 5)", 0 },
	OPTION_JSON,
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct config *c = state->input;

	if (key == ARGP_KEY_END)
		settings_need_device(&c->settings, state);
	return settings_parse(&c->settings, key, arg, state);
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Measure the cost of an event for the processor, compared with vfio-pci: interrupt, "
	       "wake-up, and the program that takes the event. The module rashpa_bare makes the "
	       "processor send the interrupt itself. Results are medians of rounds. Needs root.",
};

/* The program: takes all events, each as soon as it comes. */
static void *take_all(void *arg)
{
	struct path *p = arg;

	for (uint64_t n = 0; n < EVENTS;)
		n += p->kind->wait(p);
	return NULL;
}

/* Time of EVENTS interrupts number irq; 0 if one cannot be sent. */
static uint64_t fire(const struct config *c, struct path *p, unsigned int irq)
{
	uint64_t start = now_ns();

	for (unsigned int i = 0; i < EVENTS; i++) {
		if (ioctl(c->bare, RASHPA_BARE_FIRE, irq))
			return 0;
		/* the ring has the event now; all others wake the thread that waits */
		if (irq && p->kind == &path_kinds[PATH_RING])
			p->kind->wait(p);
	}
	return now_ns() - start;
}

/* The thread shares the processor with the interrupts, and runs before them as soon as it wakes. */
static int taker_start(struct path *p, pthread_t *taker)
{
	const struct sched_param first = { .sched_priority = 1 };
	pthread_attr_t attr;
	int error;

	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &first);
	error = pthread_create(taker, &attr, take_all, p);
	pthread_attr_destroy(&attr);
	return error;
}

static int once(struct config *c, unsigned int i, char *why)
{
	struct path p = { .kind = &path_kinds[compared[i]] };
	const bool ring = p.kind == &path_kinds[PATH_RING];
	uint64_t call, all;
	pthread_t taker;
	int error;

	p.board = &c->board[p.kind->owner];
	if (path_open(&p, why))
		return -1;
	call = fire(c, &p, 0);
	error = ring ? 0 : taker_start(&p, &taker);
	all = error ? 0 : fire(c, &p, p.board->irq);
	if (error)
		because(why, -1, "pthread_create: %s", strerror(error));
	else if (!all)
		because(why, -1, "%s: interrupt %u: %s", RASHPA_BARE_PATH, p.board->irq,
			strerror(errno));
	if (!ring && !error) {
		if (!all)
			pthread_cancel(taker);
		pthread_join(taker, NULL);
	}
	path_close(&p);
	if (!all)
		return -1;
	samples_add(&c->samples[i], all > call ? (all - call) / EVENTS : 0);
	return 0;
}

static void measure(struct config *c)
{
	struct report *report = c->settings.report;
	struct samples *theirs = &c->samples[COMPARED - 1];
	bool out[COMPARED] = {};
	char why[WHY_SIZE];

	for (unsigned int r = 0; r < report->repeat; r++) {
		for (size_t i = 0; i < COMPARED && going_on(); i++) {
			size_t k = turn(r, i, COMPARED);
			const struct path_kind *kind = &path_kinds[compared[k]];

			progress_show(&report->progress, "event: round %u of %u, %s", r + 1,
				      report->repeat, kind->name);
			if (out[k] || !c->board[kind->owner].open || !once(c, k, why))
				continue;
			report_leave_out(report, kind->name, "%s", why);
			out[k] = true;
		}
	}
	for (size_t i = 0; i < COMPARED - 1; i++) {
		const struct row row = {
			.name = "event", .backend = strchr(path_kinds[compared[i]].name, ' ') + 1,
			.peer = theirs->count ? path_kinds[PATH_VFIO].name : NULL, .unit = UNIT_US,
		};

		if (c->samples[i].count)
			report_row(report, &row, &c->samples[i], theirs->count ? theirs : NULL);
	}
	progress_end(&report->progress);
}

static void boards_open(struct config *c)
{
	const struct settings *s = &c->settings;
	char why[WHY_SIZE];

	if (board_open_ours(&c->board[OURS], s->device, 64, NULL, why))
		report_leave_out(s->report, s->device, "%s", why);
	else
		s->report->iommu = c->board[OURS].iommu;
	if (!s->vfio)
		report_leave_out(s->report, path_kinds[PATH_VFIO].name,
				 "give --vfio BDF: a spare function bound to vfio-pci");
	else if (board_open_vfio(&c->board[VFIO], s->vfio, 64, why))
		report_leave_out(s->report, path_kinds[PATH_VFIO].name, "%s", why);
	report_leave_out(s->report, path_kinds[PATH_UIO].name,
			 "its handler asks the board's status, which only the board sets");
	s->report->device = s->device;
	s->report->vfio = s->vfio;
}

int cmd_event(int argc, char **argv)
{
	struct report report = { .repeat = 5, .iommu = -1 };
	struct config c = {
		.settings.report = &report, .board = { BOARD_NONE, BOARD_NONE, BOARD_NONE },
	};
	bool bad = false;

	argp_parse(&argp, argc, argv, 0, NULL, &c);
	c.bare = open(RASHPA_BARE_PATH, O_RDWR | O_CLOEXEC);
	if (c.bare < 0)
		return fail("%s: %s: load the module rashpa_bare (selftests/modules)",
			    RASHPA_BARE_PATH, strerror(errno));
	catch_signals();
	stay_on_cpu();
	progress_init(&report.progress, true);
	boards_open(&c);
	measure(&c);
	if (settings_text(&c.settings))
		report_print(&report);
	if (c.settings.json)
		bad = report_json(&report, "event");
	for (unsigned int i = 0; i < OWNERS; i++)
		if (c.board[i].open)
			board_close(&c.board[i]);
	for (size_t i = 0; i < COMPARED; i++)
		samples_free(&c.samples[i]);
	close(c.bare);
	bad = measured(report.rows, bad);
	report_free(&report);
	return bad;
}
