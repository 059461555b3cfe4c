/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Client side of vfio-user for tests, in the role of QEMU: starts an FPGA, maps
 * memory, reaches registers, answers DMA messages. Any surprise ends the test program.
 */
#ifndef CLIENT_H
#define CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rashpa-fpga.h>
#include "conformance/test.h"

#define CLIENT_MEMORY	(16u << 20)	/* on-board memory of the FPGA under test */
#define CLIENT_VECTORS	4

struct client {
	pid_t pid;			/* process of the program; 0: it has ended */
	const char *option;		/* extra option for the program, or NULL */
	char path[108];
	char control[108];
	int fd;
	uint16_t id;
	uint8_t *memory;		/* BAR 4, or NULL: it is not mapped */
	volatile uint32_t *doorbell;	/* BAR 2, or NULL */
	size_t memory_size;
	int event[16];			/* eventfds of the MSI-X vectors; 0 or -1: none */
	int patience_ms;		/* time limit of an answer; 0: 5 s */

	/* memory without a descriptor: reached by DMA messages, which call() serves */
	uint64_t remote_addr;
	uint8_t *remote;
	size_t remote_size;
	unsigned int remote_messages;
	bool remote_mute;		/* do not answer */

	/* other memory accessed by messages: its local address, or NULL */
	uint8_t *(*reach)(uint64_t addr, uint64_t size, bool write);
};

struct reply {
	uint32_t error;
	size_t size;			/* payload */
	uint8_t data[4096 + 64];
	int fd;
};

void client_spawn(struct client *c, const char *program);
int client_end(struct client *c);	/* SIGTERM; the exit status */
int client_wait(pid_t pid);		/* the exit status; -1: it did not end, and was killed */
void client_connect(struct client *c);	/* socket only */
void client_setup(struct client *c);	/* the same, version, BARs, vectors, bus master */
void client_setup_on(struct client *c);	/* without the socket */
void client_disconnect(struct client *c);
int client_open(const char *path);	/* a UNIX socket */
int client_try(const char *path);	/* or -1 and errno, at once; @path fits, and is not empty */

/* a raw frame, and whatever comes back; false: the server hung up */
void client_send(struct client *c, const void *data, size_t size, const int *fds, unsigned int n);
bool client_receive(struct client *c, struct reply *r);

/* a command; r receives the answer; with NULL an error ends the test */
void client_call(struct client *c, uint16_t command, const void *data, size_t size,
		 const int *fds, unsigned int n, struct reply *r);
void client_serve(struct client *c, int timeout_ms);	/* DMA messages */

uint32_t client_map(struct client *c, uint64_t addr, uint64_t size, uint64_t offset,
		    uint32_t flags, int fd);	/* the answer's errno */
void client_unmap(struct client *c, uint64_t addr, uint64_t size);
void client_reset(struct client *c);
void client_config_write(struct client *c, uint32_t offset, uint32_t value, uint32_t size);
uint32_t client_config_read(struct client *c, uint32_t offset);

uint64_t client_region_size(struct client *c, uint32_t region);
uint64_t client_read(struct client *c, uint32_t region, uint32_t offset, uint32_t count);
void client_write(struct client *c, uint32_t region, uint32_t offset, uint64_t value,
		  uint32_t count);

#endif /* CLIENT_H */
