/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ROMULU_RECEIVER_INTERNAL_H
#define ROMULU_RECEIVER_INTERNAL_H

#include "link/contract.h"
#include "romulu/intake.h"
#include "link/control-link.h"
#include "romulu/receiver.h"
#include "common/say.h"

#define TICK_MS		50

struct sender {
	struct link link;
	struct hello hello;
	uint32_t first_flow;
	bool ended, gone, said_bye;
	uint64_t images;		/* images sent */
};

struct network {
	const struct network_config *config;
	const struct receiving *receiving;
	void *path;			/* private data of the transport */
	const char *buffer;
	const volatile bool *stop;
	struct wire_listener listener;
	struct sender *sender;
	uint32_t senders;
	struct rashpa_stream *stream;
	const struct rashpa_stream_header *about;
	struct rashpa_stream_process *process;
	struct intake in;
	pthread_t links, credit;
	bool armed, have_links, have_credit;
	pthread_mutex_t offering;	/* protects offered */
	uint64_t offered;		/* credit that senders have, in stacks */
	/* halt: threads must end; over: the thread of the links has ended the stream */
	_Atomic bool halt, over;
	char why[WHY_SIZE];		/* failure of the thread of the links */
};

#endif /* ROMULU_RECEIVER_INTERNAL_H */
