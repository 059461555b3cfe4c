/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a detector and a receiver agree upon before images flow. The detector says hello with what
 * it is going to send, and through which queue pairs; the receiver accepts with memory, and its
 * queue pairs; the detector is ready; the receiver says go. See network.rst.
 */
#ifndef CONTRACT_H
#define CONTRACT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "rashpa-network.h"
#include "rashpa-stream-format.h"

#define CONTRACT_PROCESSES	RASHPA_STREAM_PROCESSES

/* What is said by the immediate of a message. */
enum contract_immediate {
	/* each message has one: its number in the queue pair, from @first on, modulo 2^32 */
	CONTRACT_EACH = 0,
	/* the last message of a stack has one: the stack's number. A lost line is not noticed */
	CONTRACT_STACK = 1,
};

enum contract_transport { CONTRACT_ROCE = 0, CONTRACT_UDP = 1 };

/* Where the messages of a process leave, or arrive. */
struct contract_end {
	struct rashpa_net_address address;	/* roce */
	uint32_t port, process;			/* udp: of a receiver, and of its stream */
};

/* A region, and the way that it goes. */
struct contract_process {
	uint32_t x, y, width, height;	/* in the receiver's image, pixels */
	uint32_t origin_x, origin_y;	/* in the detector's */
	uint32_t first;			/* number of the first message */
	struct contract_end end;
};

struct hello {
	uint32_t transport;		/* enum contract_transport */
	uint32_t service;		/* enum rashpa_net_service */
	uint32_t immediate;		/* enum contract_immediate */
	uint32_t mtu;			/* payload of a packet, bytes; udp: as message */
	uint32_t message;		/* most bytes of a message */
	uint32_t adjacent;		/* 1: lines of the detector's regions follow each other */
	uint32_t paced;			/* 1: it waits for credit */
	uint32_t pixel, bunch;
	uint64_t images;		/* 0: endless */
	uint32_t sampling, phase, unit;
	uint32_t dark_every, dataset_images;
	uint64_t dataset_sum;
	char dataset[RASHPA_STREAM_NAME];
	uint32_t processes;
	struct contract_process *process;
};

struct accept {
	uint64_t address;		/* of slot 0; roce */
	uint32_t key;			/* roce */
	uint32_t token;			/* udp: what each packet brings */
	uint32_t slots;
	uint32_t width;			/* of the image, pixels */
	uint32_t mtu;
	uint64_t line_stride, image_stride, slot_stride;
	uint64_t first_stack;
	uint32_t ends;
	struct contract_end *end;	/* of each process */
};

/* How a region of an image is cut into messages: lines of it, or parts of a line. */
struct cut {
	uint32_t lines;			/* a message, if it has whole ones */
	uint32_t parts;			/* messages a line, if not */
	uint32_t messages;		/* an image */
	uint32_t line_bytes, part_bytes, height;
};

struct piece {
	uint32_t y;			/* line of the region */
	uint32_t offset;		/* into it, bytes */
	uint32_t bytes;
};

/* adjacent: the lines of the region follow each other here and there. */
struct cut cut_region(uint32_t width, uint32_t height, uint32_t pixel_bytes, bool adjacent,
		      uint32_t most);
struct piece cut_piece(const struct cut *cut, uint32_t message);
/* width: of the receiver's image */
struct cut cut_of(const struct hello *hello, const struct contract_process *process,
		  uint32_t width);

/* Of a queue pair, as members of an object. false: why tells what is wrong. */
void address_write(struct json_object *to, const struct rashpa_net_address *address);
bool address_read(struct json_object *from, struct rashpa_net_address *address, char *why);

/* As messages of the link. What was read is complete and in range; else -1 and why. */
struct json_object *hello_write(const struct hello *hello);
int hello_read(struct json_object *message, struct hello *hello, char *why);
void hello_free(struct hello *hello);
struct json_object *accept_write(const struct hello *hello, const struct accept *accept);
int accept_read(struct json_object *message, const struct hello *hello, struct accept *accept,
		char *why);
void accept_free(struct accept *accept);

#endif /* CONTRACT_H */
