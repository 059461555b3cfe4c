// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fpga/board.h"

#include <errno.h>
#include <linux/pci_regs.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fpga/log.h"

#define VENDOR		0x1234
#define MSIX_BAR	4

static const struct model *const models[] = {
	&litepcie, &wupper, &verilog_pcie, &xilinx_xdma, &xilinx_xdma_stream
};

const struct model *board_find(const char *name)
{
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
		if (!strcmp(models[i]->name, name))
			return models[i];
	return NULL;
}

/* ------------------------------------------------------------ packets --- */

static bool move(struct board *b, const struct packet *p)
{
	static uint16_t pixels[HOST_BURST / sizeof(uint16_t)];
	char *data = p->own ? p->own : pixels;
	_Atomic uint64_t sent = 0;
	uint32_t at, n;
	bool arrived = true;

	for (at = 0; at < sizeof(pixels) / sizeof(pixels[0]); at++)
		pixels[at] = (uint16_t)p->number;
	for (at = 0; at < p->length && arrived; at += n) {
		n = p->length - at < HOST_BURST ? p->length - at : HOST_BURST;
		host_begin(b->host);
		arrived = host_access(b->host, p->fetch ? HOST_READ : HOST_WRITE, p->address + at,
				      data, n, NULL) == HOST_DONE;
		host_end(b->host);
	}
	if (arrived && p->vector >= 0) {
		host_begin(b->host);
		host_interrupt(b->host, (uint32_t)p->vector, &sent);
		host_end(b->host);
	}
	return arrived;
}

/* The detector. The lock is given away during a transfer, in which registers are served. */
static void *detect(void *arg)
{
	const struct timespec pause = { .tv_nsec = BOARD_NS };
	struct board *b = arg;
	struct packet p;
	bool arrived;

	pthread_mutex_lock(&b->lock);
	while (!b->over) {
		p = (struct packet){ .vector = -1, .number = b->packets };
		if (!b->resetting && b->model->next(b, &p)) {
			b->flying = true;
			pthread_mutex_unlock(&b->lock);
			arrived = move(b, &p);
			pthread_mutex_lock(&b->lock);
			b->flying = false;
			b->packets += arrived && !p.own;
			b->model->done(b, &p, arrived);
			pthread_cond_broadcast(&b->idle);
		}
		pthread_mutex_unlock(&b->lock);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&b->lock);
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

/* ------------------------------------------------------------- device --- */

/* Hosts access whole registers; of anything else each register that it touches is read or written. */
static void board_read(void *self, unsigned int bar, uint64_t offset, uint8_t *data, uint32_t count)
{
	struct board *b = self;
	uint32_t value = 0;

	(void)bar;	/* only BAR 0 has registers */
	pthread_mutex_lock(&b->lock);
	for (uint32_t i = 0; i < count; i++) {
		if (!i || (offset + i) % 4 == 0)
			value = b->model->read(b, (uint32_t)(offset + i) & ~3u);
		data[i] = (uint8_t)(value >> (offset + i) % 4 * 8);
	}
	pthread_mutex_unlock(&b->lock);
}

static void board_write(void *self, unsigned int bar, uint64_t offset, const uint8_t *data,
			uint32_t count)
{
	struct board *b = self;
	uint32_t value;

	(void)bar;
	pthread_mutex_lock(&b->lock);
	for (; offset % 4 == 0 && count >= 4; offset += 4, data += 4, count -= 4) {
		memcpy(&value, data, sizeof(value));
		b->model->write(b, (uint32_t)offset, value);
	}
	pthread_mutex_unlock(&b->lock);
}

static void board_reset(void *self, enum device_reset why)
{
	struct board *b = self;

	(void)why;
	host_abort(b->host, true);
	pthread_mutex_lock(&b->lock);
	b->resetting = true;
	while (b->flying)
		pthread_cond_wait(&b->idle, &b->lock);
	memset(b->reg, 0, sizeof(b->reg));
	b->first = b->level = b->index = b->count = 0;
	b->packets = 0;
	b->resetting = false;
	pthread_mutex_unlock(&b->lock);
	host_abort(b->host, false);
}

static bool board_command(void *self, const char *line, char *answer)
{
	struct board *b = self;

	if (!line || (strcmp(line, "defect on") && strcmp(line, "defect off")))
		return false;
	pthread_mutex_lock(&b->lock);
	b->defect = !strcmp(line, "defect on");
	pthread_mutex_unlock(&b->lock);
	strcpy(answer, "ok");
	return true;
}

int board_run(struct server *server, const struct model *model, const struct device_options *options)
{
	static const struct device_ops ops = {
		.read = board_read, .write = board_write, .reset = board_reset,
		.command = board_command,
	};
	static struct board board;
	int err, status;

	board.model = model;
	board.host = server_host(server);
	board.device = (struct device){
		.ops = &ops, .self = &board, .vendor = VENDOR, .id = model->id, .class = 0x118000,
		.bar[0] = { .size = BOARD_BAR }, .bar[MSIX_BAR] = { .size = DEVICE_MSIX_SIZE },
		.msix_bar = MSIX_BAR, .vectors = options->vectors,
	};
	pthread_mutex_init(&board.lock, NULL);
	pthread_cond_init(&board.idle, NULL);
	err = pthread_create(&board.thread, NULL, detect, &board);
	if (err) {
		log_msg("cannot start: %s", strerror(err));
		return EXIT_FAILURE;
	}
	status = server_run(server, &board.device);
	pthread_mutex_lock(&board.lock);
	board.over = true;
	pthread_mutex_unlock(&board.lock);
	pthread_join(board.thread, NULL);
	return status;
}
