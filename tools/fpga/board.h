/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Models of DMA engines of others: their registers, as the manuals describe them, before a detector
 * that makes a packet every BOARD_NS. A model says where the next packet goes; board.c moves it.
 */
#ifndef BOARD_H
#define BOARD_H

#include <pthread.h>

#include "fpga/device.h"

#define BOARD_BAR	0x10000u	/* bytes of BAR 0, which has all registers */
#define BOARD_NS	20000000

/* A packet on its way to the host: all words of 16 bits are its number, except in one of the engine. */
struct packet {
	uint64_t address;
	uint32_t length;
	int vector;		/* after it; -1: no interrupt */
	uint64_t number;
	void *own;		/* the engine sends these bytes instead */
	bool fetch;		/* or fetches them from the host */
};

struct board;

/* Called with board.lock, all but reset by board.c. */
struct model {
	const char *name;
	uint16_t id;		/* device ID; the vendor is 1234 */
	uint32_t (*read)(struct board *board, uint32_t offset);
	void (*write)(struct board *board, uint32_t offset, uint32_t value);
	/* Where does the next packet go? False: there is no place. */
	bool (*next)(struct board *board, struct packet *packet);
	/* It has arrived, or not. */
	void (*done)(struct board *board, const struct packet *packet, bool arrived);
};

struct board {
	const struct model *model;
	struct device device;
	struct host *host;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t idle;
	bool over, resetting, flying;	/* flying: a packet is on its way */
	bool defect;			/* commanded: it does not stop as it says */
	uint64_t packets;		/* since the reset */
	uint32_t reg[BOARD_BAR / 4];
	/* a FIFO of descriptors */
	struct { uint64_t address; uint32_t length; bool quiet; } fifo[256];
	uint32_t first, level, index, count;
	/* a descriptor from the host, and the address of the next one */
	uint32_t own[8];
	uint64_t next;
};

static inline uint64_t board_reg64(const struct board *board, uint32_t low)
{
	return board->reg[low / 4] | (uint64_t)board->reg[low / 4 + 1] << 32;
}

extern const struct model litepcie, wupper, verilog_pcie, xilinx_xdma, xilinx_xdma_stream;

/* The model of a name, or NULL. */
const struct model *board_find(const char *name);

/* Serve it until a signal comes. Return: an exit status. */
int board_run(struct server *server, const struct model *model, const struct device_options *options);

#endif /* BOARD_H */
