// SPDX-License-Identifier: LGPL-2.1-or-later
/* Measurements of "rashpa-bench network sweep": groups of trials that take turns. */
#include "bench/network/sweep.h"

#define LIST(...)	(const struct trial[]) { __VA_ARGS__, {} }

#define POLL		.wait = RASHPA_NET_POLL
#define UC		.service = RASHPA_NET_UC
#define RC		.service = RASHPA_NET_RC
#define MANY		100000		/* destinations */

/* Comparison with perftest. All trials poll, as perftest does. */
#define PERFTEST(bytes, chain, queues, of, name_)						\
	{ "peers", LIST(									\
		{ name_, POLL, .plan = { .size = bytes, .linked = chain, .pairs = queues,	\
					 .service = of } },					\
		{ "ib_write_bw " name_, .peer = PEER_WRITE_BW,					\
		  .plan = { .size = bytes, .linked = chain, .pairs = queues, .service = of } }) }

/* Comparison with transports that detectors use without RDMA. */
#define SOCKETS(bytes, places, suffix)								\
	{ "peers", LIST(									\
		{ "uc" suffix, .depth = 256,							\
		  .plan = { .size = bytes, .linked = 64, .solicited = 1,			\
			    .destinations = places } },						\
		{ "UDP sockets", .plan = { .way = WAY_UDP, .size = bytes,			\
					   .destinations = places } },				\
		{ "ZeroMQ push/pull", .plan = { .way = WAY_ZMQ, .size = bytes,			\
						.destinations = places } }) }

#define DATAGRAM(bytes)										\
	{ "peers", LIST(									\
		{ "uc, poll", POLL, .plan = { .size = bytes } },				\
		{ "UD send", .peer = PEER_SEND_BW, .plan = { .size = bytes } }) }

#define SOLICITED(bytes, chain)									\
	{ "C", LIST(										\
		{ "solicited, " #chain, .depth = 256, .receives = 2000,				\
		  .plan = { .size = bytes, .linked = chain, .solicited = 1 } },			\
		{ "unsolicited, " #chain, .depth = 256, .receives = 2000,			\
		  .plan = { .size = bytes, .linked = chain } }) }

/* A low rate, so that the sink is idle between messages, and the goodput is the same. */
#define PACED(bytes, chain)									\
	{ "C", LIST(										\
		{ "solicited, " #chain ", 4 MB/s", .rate = 4000000, .depth = 256,		\
		  .receives = 2000,								\
		  .plan = { .size = bytes, .linked = chain, .solicited = 1 } },			\
		{ "unsolicited, " #chain ", 4 MB/s", .rate = 4000000, .depth = 256,		\
		  .receives = 2000,								\
		  .plan = { .size = bytes, .linked = chain } }) }

#define TEN(bytes)	.plan = { .size = bytes, .linked = 10, .destinations = 10 }

#define PAGES(bytes)										\
	{ "B", LIST(										\
		{ "thp", TEN(bytes) },								\
		{ "2M", .pages = "2M", TEN(bytes) },						\
		{ "1G", .pages = "1G", TEN(bytes) }) }

/* A thread for each pair, or one for all. */
#define THREADS(bytes, queues)									\
	{ "D, E", LIST(										\
		{ "one thread, " #queues, .receives = 2000, .depth = 100,			\
		  .plan = { .size = bytes, .pairs = queues, .linked = 50, .solicited = 1 } },	\
		{ "a thread each, " #queues, .threads = queues, .receives = 200, .depth = 100,	\
		  .plan = { .size = bytes, .pairs = queues, .linked = 50, .solicited = 1 } }) }

#define QUEUES(bytes, queues)									\
	{ "E", LIST(										\
		{ "one thread, " #queues, .receives = 20000, .depth = 20,			\
		  .plan = { .size = bytes, .pairs = queues, .linked = 10, .solicited = 1 } }) }

/*
 * Several writers with many pairs each, or several sinks. The rate is limited, as thousands of
 * queues would start with more data than a card or a line can buffer.
 */
#define MANY_PAIRS(bytes, queues)								\
	.receives = 20000, .depth = 20,								\
	.plan = { .size = bytes, .pairs = queues, .linked = 10, .solicited = 1 }

#define GATHER(bytes, queues)									\
	{ "G, H", LIST(										\
		{ "4 to 1, one thread, 4 x " #queues, .writers = 4, .rate = 5000000,		\
		  MANY_PAIRS(bytes, queues) },							\
		{ "4 to 1, 16 threads, 4 x " #queues, .writers = 4, .rate = 5000000,		\
		  .threads = 16, MANY_PAIRS(bytes, queues) }) }

#define SPREAD(bytes, queues)									\
	{ "J", LIST(										\
		{ "1 to 4, 4 x " #queues, .sinks = 4, .rate = 20000000,				\
		  MANY_PAIRS(bytes, queues) }) }

const struct group experiments[] = {
	PERFTEST(4096, 1, 1, RASHPA_NET_UC, "uc"),
	PERFTEST(4096, 1, 1, RASHPA_NET_RC, "rc"),
	PERFTEST(4096, 64, 8, RASHPA_NET_UC, "uc, 8 pairs, linked"),
	PERFTEST(16384, 1, 1, RASHPA_NET_UC, "uc"),
	PERFTEST(16384, 1, 1, RASHPA_NET_RC, "rc"),
	PERFTEST(65536, 1, 1, RASHPA_NET_UC, "uc"),
	PERFTEST(65536, 1, 1, RASHPA_NET_RC, "rc"),
	PERFTEST(1 << 20, 1, 1, RASHPA_NET_UC, "uc"),
	PERFTEST(1 << 20, 1, 1, RASHPA_NET_RC, "rc"),
	DATAGRAM(2048), DATAGRAM(4096),
	SOCKETS(2048, 1, ""), SOCKETS(4096, 1, ""), SOCKETS(8246, 1, ""),
	SOCKETS(2048, MANY, ", 10^5"), SOCKETS(4096, MANY, ", 10^5"), SOCKETS(8246, MANY, ", 10^5"),
	{ "A", LIST({ "rc", .plan = { .size = 9000, RC } },
		    { "UDP sockets", .plan = { .size = 9000, .way = WAY_UDP } }) },
	{ "A", LIST({ "rc", .plan = { .size = 32768, RC } },
		    { "UDP sockets", .plan = { .size = 32768, .way = WAY_UDP } }) },
	{ "A", LIST({ "rc", .plan = { .size = 65507, RC } },
		    { "UDP sockets", .plan = { .size = 65507, .way = WAY_UDP } }) },
	PAGES(4096), PAGES(65536), PAGES(1 << 20),
	SOLICITED(4096, 5), SOLICITED(4096, 25), SOLICITED(4096, 100),
	SOLICITED(16384, 5), SOLICITED(16384, 25), SOLICITED(16384, 100),
	PACED(4096, 25), PACED(4096, 100), PACED(16384, 25),
	THREADS(4096, 1), THREADS(4096, 8), THREADS(4096, 32),
	THREADS(16384, 1), THREADS(16384, 8), THREADS(16384, 32),
	QUEUES(4096, 100), QUEUES(4096, 750), QUEUES(16384, 100), QUEUES(16384, 750),
	GATHER(8192, 1), GATHER(8192, 10), GATHER(8192, 100), GATHER(8192, 500),
	SPREAD(8192, 1), SPREAD(8192, 100), SPREAD(8192, 500),
};

const unsigned int n_experiments = sizeof(experiments) / sizeof(experiments[0]);
