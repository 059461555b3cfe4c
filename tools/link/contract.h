/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages of a detector and a receiver: their agreement before images flow, and their accounts. The detector sends hello, with the
 * layout of its data and its queue pairs. The receiver sends accept, with its memory and its queue
 * pairs. The detector sends ready, and the receiver sends go. See network.rst.
 */
#ifndef CONTRACT_H
#define CONTRACT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "link/transport.h"
#include "verbs/verbs.h"
#include <rashpa-stream-format.h>

#define CONTRACT_PROCESSES	RASHPA_STREAM_PROCESSES

/* Meaning of the immediate of a message. */
enum contract_immediate {
	/* each message has one: its number in the queue pair, starting at @first, modulo 2^32 */
	CONTRACT_EACH = 0,
	/* only the last message of a stack has one: stack number. Lost lines are not detected */
	CONTRACT_STACK = 1,
};

/* Source or destination of the messages of a DTP. */
struct contract_end {
	struct rashpa_net_address address;	/* RDMA */
	uint32_t port, process;			/* datagrams, receiver only: port, DTP in its stream */
};

/* Region of a DTP, and its source. */
struct contract_process {
	uint32_t x, y, width, height;	/* in the image of the receiver, pixels */
	uint32_t origin_x, origin_y;	/* in the image of the detector, pixels */
	uint32_t first;			/* number of the first message */
	struct contract_end end;
};

struct hello {
	const struct transport *transport;
	uint32_t service;		/* enum rashpa_net_service */
	uint32_t immediate;		/* enum contract_immediate */
	uint32_t mtu;			/* payload of a packet, bytes; datagrams: same as message */
	uint32_t message;		/* maximum message size, bytes */
	uint32_t adjacent;		/* 1: no gaps between lines of the detector's regions */
	uint32_t paced;			/* 1: the detector waits for credit */
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
	uint64_t address;		/* RDMA: address of slot 0 */
	uint32_t key;			/* RDMA */
	uint32_t token;			/* datagrams: token in the header of each one */
	uint32_t slots;
	uint32_t width;			/* image width, pixels */
	uint32_t mtu;
	uint64_t line_stride, image_stride, slot_stride;
	uint64_t first_stack;
	uint32_t ends;
	struct contract_end *end;	/* by DTP */
};

/* Division of a region of an image into messages: whole lines, or parts of a line. */
struct cut {
	uint32_t lines;			/* lines per message, or 0 */
	uint32_t parts;			/* messages per line, if lines is 0 */
	uint32_t messages;		/* messages per image */
	uint32_t line_bytes, part_bytes, height;
};

struct piece {
	uint32_t y;			/* line of the region */
	uint32_t offset;		/* in the line, bytes */
	uint32_t bytes;
};

/* adjacent: no gaps between lines of the region at either end; most: maximum message size. */
struct cut cut_region(uint32_t width, uint32_t height, uint32_t pixel_bytes, bool adjacent,
		      uint32_t most);
struct piece cut_piece(const struct cut *cut, uint32_t message);
/* width: image width at the receiver, pixels */
struct cut cut_of(const struct hello *hello, const struct contract_process *process,
		  uint32_t width);

/* Address of a queue pair, as members of an object. false: the reason is in why. */
void address_write(struct json_object *to, const struct rashpa_net_address *address);
bool address_read(struct json_object *from, struct rashpa_net_address *address, char *why);

/*
 * Conversion to and from messages of the link. 0: all members are present and in range; -1: the
 * reason is in why.
 */
struct json_object *hello_write(const struct hello *hello);
int hello_read(struct json_object *message, struct hello *hello, char *why);
void hello_free(struct hello *hello);
struct json_object *accept_write(const struct hello *hello, const struct accept *accept);
int accept_read(struct json_object *message, const struct hello *hello, struct accept *accept,
		char *why);
void accept_free(struct accept *accept);

/* Kinds of all other messages: of the sender, and of the receiver. */
#define CONTRACT_HELLO		"hello"
#define CONTRACT_READY		"ready"		/* the contract is accepted */
#define CONTRACT_PROGRESS	"progress"	/* messages sent so far */
#define CONTRACT_END		"end"		/* the same: no more follow */
#define CONTRACT_ACCEPT		"accept"
#define CONTRACT_GO		"go"		/* with the first credit */
#define CONTRACT_CREDIT		"credit"
#define CONTRACT_STOP		"stop"
#define CONTRACT_BYE		"bye"		/* after the end: missing messages */

/* sent: messages of each process, as numbers; it is taken over */
struct json_object *sent_write(const char *kind, uint64_t images, struct json_object *sent);
/* Images in these limits. sent: the list of so many processes, for sent_element() */
int sent_read(struct json_object *message, uint32_t processes, uint64_t least, uint64_t most,
	      uint64_t *images, struct json_object **sent, char *why);
int sent_element(struct json_object *sent, uint32_t process, uint64_t least, uint64_t most,
		 uint64_t *messages, char *why);
/* stacks: number of the first one without credit */
struct json_object *credit_write(const char *kind, uint64_t stacks);
int credit_read(struct json_object *message, uint64_t *stacks, char *why);
struct json_object *bye_write(uint64_t missing, uint64_t incomplete);
int bye_read(struct json_object *message, uint64_t *missing, uint64_t *incomplete, char *why);

#endif /* CONTRACT_H */
