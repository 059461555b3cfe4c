/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Layout of a named buffer, or a file, that receives a stream of detector data: see Documentation/stream.rst.
 *
 * The producer writes the header at offset 0, so a consumer needs only the name of the buffer.
 * librashpa reads and writes all of this (rashpa-stream.h); these structs are for producers and
 * consumers without it. All numbers are little-endian, all offsets bytes from the beginning of the
 * buffer. Other processes and hardware write here: check every number before using it.
 */
#ifndef RASHPA_STREAM_FORMAT_H
#define RASHPA_STREAM_FORMAT_H

#include <stdint.h>

#define RASHPA_PAYLOAD_MAGIC	0x3159415048534152ull	/* "RASHPAY1" */
#define RASHPA_STREAM_MAGIC	0x3354535048534152ull	/* "RASHPST3" */
#define RASHPA_PLACES_MAGIC	0x31434c5048534152ull	/* "RASHPLC1" */
#define RASHPA_STREAM_PAGE	4096
#define RASHPA_STREAM_TABLE	4096	/* offset of struct rashpa_stream_table */
#define RASHPA_STREAM_TABLES	12288	/* all that follows begins here, or later */
#define RASHPA_STREAM_FILE	4032	/* offset of struct rashpa_stream_file */
#define RASHPA_STREAM_NAME	64	/* bytes of a name, the final NUL included */
#define RASHPA_STREAM_PROCESSES	1024	/* most of them, and of modules */
#define RASHPA_STREAM_LOCKS	64	/* most lock records */
#define RASHPA_STREAM_STAGES	16	/* most stages in a consumer's report */
#define RASHPA_STREAM_WORD	16	/* bytes of a stage's name, the final NUL included */
#define RASHPA_STREAM_PLACES	16	/* places for consumers */
#define RASHPA_STREAM_WORKERS	63	/* most workers of a place */
#define RASHPA_PLACE_NAME	32	/* bytes of a place's name, the final NUL included */

/** enum rashpa_stream_state - life of a stream; valid only while the producer's lease exists */
enum rashpa_stream_state {
	RASHPA_STREAM_IDLE = 0,		/* a stream is being prepared, and not valid yet */
	RASHPA_STREAM_RUNNING = 1,	/* stacks come */
	RASHPA_STREAM_DRAINING = 2,	/* no more stacks come; complete ones can still be taken */
	RASHPA_STREAM_ENDED = 3,	/* likewise, and the producer's counts are valid */
};

/** enum rashpa_place_state - life of a consumer's place */
enum rashpa_place_state {
	RASHPA_PLACE_FREE = 0,
	RASHPA_PLACE_WAITS = 1,		/* its consumer waits for the next stream */
	RASHPA_PLACE_JOINS = 2,		/* its consumer is about to take part: no credit meanwhile */
	RASHPA_PLACE_ACTIVE = 3,	/* it takes part; its consumer may have died, or left */
	RASHPA_PLACE_GIVEN_UP = 4,	/* it had no consumer for longer than it is kept */
	RASHPA_PLACE_LEFT = 5,		/* its consumers closed it; one that comes back goes on there */
};

/** enum rashpa_claim_state - life of a stack in a place */
enum rashpa_claim_state {
	RASHPA_CLAIM_TAKEN = 1,		/* a worker has it, or had it (RASHPA_STREAM_WORKERS) */
	RASHPA_CLAIM_DONE = 2,		/* likewise, and no worker asks for it again */
	RASHPA_CLAIM_RELEASED = 3,
};

/** enum rashpa_stream_policy - treatment of a stack without a free slot */
enum rashpa_stream_policy {
	RASHPA_STREAM_WAIT = 0,		/* the producer waits; a live source loses images */
	RASHPA_STREAM_OVERWRITE = 1,	/* the oldest one is overwritten */
	RASHPA_STREAM_DROP = 2,		/* it is left out */
};

/** enum rashpa_pixel - type of a pixel */
enum rashpa_pixel {
	RASHPA_PIXEL_U8 = 1,
	RASHPA_PIXEL_U16 = 2,
	RASHPA_PIXEL_U32 = 3,
	RASHPA_PIXEL_U64 = 4,
	RASHPA_PIXEL_I8 = 5,
	RASHPA_PIXEL_I16 = 6,
	RASHPA_PIXEL_I32 = 7,
	RASHPA_PIXEL_I64 = 8,
	RASHPA_PIXEL_F32 = 9,
	RASHPA_PIXEL_F64 = 10,
};

/** enum rashpa_stream_unit - unit of the sampling, 1 of N */
enum rashpa_stream_unit {
	RASHPA_STREAM_IMAGES = 0,
	RASHPA_STREAM_STACKS = 1,
};

/** enum rashpa_image_role - what an image shows; the detector's own roles follow */
enum rashpa_image_role {
	RASHPA_IMAGE_SIGNAL = 0,
	RASHPA_IMAGE_DARK = 1,
};

/** enum rashpa_stream_content - meaning of an image's pixels; programs may define others */
enum rashpa_stream_content {
	RASHPA_CONTENT_IMAGE = 0,
	/* line 0: positions of bins (dataset: their unit), 1: their values, 2: their errors */
	RASHPA_CONTENT_PROFILE = 1,
	/* a line each: x, y, sum, background, snr, pixels; a NaN ends the list */
	RASHPA_CONTENT_PEAKS = 2,
};

/** enum rashpa_result_word - the record's user words, in streams of a pipeline's results */
enum rashpa_result_word {
	RASHPA_RESULT_IMAGES = 0,	/* signal images so far, including this one */
	RASHPA_RESULT_KEPT = 1,		/* signal images that the veto kept */
	RASHPA_RESULT_ABOVE = 2,	/* pixels above the veto's threshold */
	RASHPA_RESULT_PEAKS = 3,	/* peaks found, including those that did not fit */
};

/** enum rashpa_stream_function - kind of mover of a process's data */
enum rashpa_stream_function {
	RASHPA_STREAM_SOFTWARE = 0,	/* a program stores lock records, and calls LOOK */
	RASHPA_STREAM_FPGA = 1,		/* a function of this driver, which sends interrupts */
};

/**
 * struct rashpa_stream_header - at offset 0 of the buffer, one page
 *
 * The producer writes all but @credit before the run, @magic last. While it changes the header
 * @magic is 0; afterwards @generation is different. During a run only @state, @waiting, the clock and
 * the producer's counts change. Later fields replaced padding, so they are 0 from older producers.
 */
struct rashpa_stream_header {
	uint64_t magic;
	uint32_t header_size;		/* sizeof(struct rashpa_stream_header): grows */
	uint32_t process_size;		/* sizeof(struct rashpa_stream_process): grows */
	uint64_t generation;		/* counts the streams of this buffer */
	uint32_t run;			/* in all records of this run; random, not 0 */
	uint32_t state;			/* enum rashpa_stream_state */
	uint64_t start_ns;		/* CLOCK_MONOTONIC when the run began */

	/* the images */
	uint32_t width, height;		/* pixels */
	uint32_t pixel;			/* enum rashpa_pixel */
	uint32_t bit_depth;		/* bits of a pixel that mean something; 0: all of them */
	uint32_t big_endian;		/* 1: bytes of a pixel are the other way round */
	uint32_t bunch;			/* images per stack */
	uint32_t slots;			/* number of slots, a stack each */
	uint32_t policy;		/* enum rashpa_stream_policy */
	uint64_t data_offset;		/* offset of slot 0 in the payload's memory */
	uint64_t line_stride, image_stride, slot_stride;

	/* which of them */
	uint64_t images;		/* images of this run, 0: endless */
	uint64_t first_stack;		/* number of the first stack of this run */
	uint32_t sampling, phase;	/* 1 of `sampling`, after `phase` others */
	uint32_t unit;			/* enum rashpa_stream_unit */
	uint32_t live;			/* 1: images come from a live source */
	uint32_t dataset_images;	/* images of the dataset that is repeated; 0: no dataset */
	uint32_t dark_every;		/* N: the last of every N images is dark; 0: none */
	uint64_t dataset_sum;		/* checksum that identifies the dataset; 0: not known */
	char dataset[RASHPA_STREAM_NAME];	/* its name, for display only */

	/* tables after the header */
	uint32_t processes, modules, locks;
	uint32_t module_size;		/* sizeof(struct rashpa_stream_module): grows */
	uint64_t process_offset;
	uint64_t module_offset;
	uint64_t lock_offset;		/* lock record i: 64 bytes at lock_offset + i * 64 */
	char lock_name[RASHPA_STREAM_NAME];	/* memory with the records; empty: this buffer */
	char payload_name[RASHPA_STREAM_NAME];	/* memory with the slots; empty: this buffer */

	/* metadata, records and maps of messages; 0: not kept */
	uint64_t meta_offset;
	uint64_t meta_slot;		/* bytes of metadata, for a slot of a process */
	uint64_t record_offset;
	uint64_t record_size;		/* from one struct rashpa_stream_record to the next */
	uint64_t map_offset;
	uint64_t map_slot;		/* bytes of the map of a slot */
	uint32_t segments, map_class;	/* the DMA map, for display only */

	/* the producer's counts, written before state becomes ENDED */
	uint64_t sent;			/* images */
	uint64_t dropped;		/* stacks */
	uint64_t lost;			/* images of a live source that found no room */
	uint64_t missed;		/* images that the live source's detector did not deliver */

	/*
	 * Bits 0 to 41: stacks whose slots are given back; 42 to 63: changes with every place that
	 * joins. Consumers write it, see "Credit" in stream.rst.
	 */
	uint64_t __reserved1[5];
	uint64_t credit;
	/* written by a producer that is a program: 1: call LOOK after credit has grown */
	uint64_t __reserved2[7];
	uint32_t waiting;

	uint32_t content;		/* enum rashpa_stream_content */
	uint64_t work_offset;		/* struct rashpa_stream_work; 0: no room for it */
	uint64_t claim_offset;		/* claims: 8 bytes for each slot of each place */
	uint64_t __reserved3[5];

	/*
	 * The clock: the producer's library writes it now and then: @clock_sequence + 1, the rest,
	 * @clock_sequence + 2. An odd number, or one that changes: read it again.
	 */
	uint32_t clock_sequence;
	int32_t clock_utc;		/* seconds from UTC to TAI, as the system knows them */
	uint64_t clock_monotonic;	/* CLOCK_MONOTONIC in ns */
	uint64_t clock_tai;		/* CLOCK_TAI at that moment, ns */
	/* the detector's clock, before the run; tick_of 0: not known */
	uint64_t tick_tai;		/* CLOCK_TAI at tick 0, ns */
	uint32_t tick_ns, tick_of;	/* a tick takes tick_ns / tick_of ns */
	uint64_t __reserved[3];		/* 0 */
};

/*
 * The protocol of places. Changes without the table's lock are compare-and-swap.
 *
 * Claim of stack n = @next: a worker swaps the claim of its slot for n + 1, its number, "taken" and bits of the generation,
 * then @next for n + 1. If the claim of n is taken, it swaps only @next: the first worker may have died in between.
 *
 * Release: a worker swaps its claim for "released", then raises @credit up to the first stack whose claim is in another state.
 * Of two workers that release at once, the later one sees both claims.
 *
 * Credit: then it reads the header's credit, after it the state and the count of each place, and swaps the credit for the
 * least count, if that is greater. A place that joined since has changed the upper bits, so the swap fails: begin again. So
 * credit never falls.
 *
 * Join, with the table's lock, and if the generation is still the same (a producer takes the lock once after it has stored 0 as
 * magic): set RASHPA_PLACE_JOINS, for which credit waits; increment the upper bits of the credit; begin with the credit that
 * this swap found; set RASHPA_PLACE_ACTIVE.
 *
 * Leave, and death, with the table's lock: claims of a worker without its lock become those of worker 63, and @orphaned
 * counts up. Others swap such a claim for their own. A place that is given up, left or free has no part in the least count.
 * In the same stream a consumer of that name goes on where the place stopped.
 *
 * Doorbells: hardware has one for each process, and takes a lower credit than before as no more room. The consumer that raised the
 * credit rings, reads the credit again, and rings again if it has grown. So the last ring is the newest. If it
 * dies before, the others repeat the ring twice a second, and the next one at its first stack.
 */
/**
 * struct rashpa_stream_place - what a consumer, or several that share their work, asks of a stream
 *
 * A stamped number has 42 bits, and in the upper 22 bits the lowest ones of the stream's generation.
 * The lock of a worker is a byte of the node that it locks for writing (F_OFD_SETLK): byte 128 +
 * place * 64 + worker. It ends with its process.
 */
struct rashpa_stream_place {
	/* written by the holder of the table's lock */
	char name[RASHPA_PLACE_NAME];
	uint32_t state;			/* enum rashpa_place_state */
	uint8_t loses;			/* 1: it is not waited for */
	uint8_t writes;			/* 1: it writes into stacks, so there is no other place */
	uint16_t workers;		/* most of them */
	uint64_t keep_ns;		/* how long it is kept for a successor */
	uint64_t left_ns;		/* CLOCK_MONOTONIC when a consumer noticed that no worker is left; 0 */
	uint64_t given_up;		/* how often it was given up in this stream */

	uint64_t next;			/* stamped: the first stack that no worker has claimed */
	uint64_t orphaned;		/* counts changes after which claims have no worker */
	uint64_t __reserved1[6];

	uint64_t credit;		/* stamped: all stacks before it are released here */
	uint64_t consumed;		/* stamped: likewise or done; credit may be ahead */
	uint64_t lost;			/* images that the place could not have */
	uint64_t __reserved2[5];

	int32_t worker[RASHPA_STREAM_WORKERS + 1];	/* process of each; 0: none */
};

/**
 * struct rashpa_stream_table - the places for consumers, with and without a stream
 *
 * Whoever changes a name or a state has locked byte 64 of the node (F_OFD_SETLK). The magic is
 * stored last. Claims are words: bits 0 to 41: number of the stack + 1; 42 to 47: its worker;
 * 48 and 49: enum rashpa_claim_state; 50 to 63: lowest bits of the stream's generation.
 */
struct rashpa_stream_table {
	uint64_t magic;
	uint64_t device, inode;		/* of the node whose bytes are locked */
	uint64_t __reserved[5];
	struct rashpa_stream_place place[RASHPA_STREAM_PLACES];
};

/**
 * struct rashpa_stream_file - the last 64 bytes of the header's page, of a stream in a file
 *
 * A file has no driver: byte i of it is locked (F_OFD_SETLK) as long as a process has role i, and
 * @wake is a futex. The driver's buffers leave all this 0.
 */
struct rashpa_stream_file {
	uint32_t wake;			/* futex: counts changes that a process may wait for */
	uint32_t __reserved1;
	int32_t holder[2];		/* process that has the role: producer, consumer; for display only */
	uint64_t __reserved[6];		/* 0 */
};

/** struct rashpa_stream_process - moves a region of each image */
struct rashpa_stream_process {
	uint32_t function;		/* enum rashpa_stream_function */
	uint32_t fpga;			/* FPGA: N of /dev/rashpa/fpgaN */
	uint32_t number;		/* number of the process in that function */
	uint32_t vector;		/* FPGA: interrupts when a stack is complete */
	uint32_t x, y, width, height;	/* region of the image that it fills, pixels */
	uint32_t origin_x, origin_y;	/* position of the region in its module or dataset */
	uint32_t module;		/* index of that module */
	uint32_t lock;			/* its lock record; several of a program may share one */
	uint64_t doorbell_offset;	/* FPGA: RFPGA_DB_TAGGED in the window "doorbells", bytes */
	uint32_t message, messages;	/* its bits in the map of a stack: first bit, number */
	uint32_t message_lines;		/* lines of the region per message, in order */
	uint32_t line_messages;		/* or messages per line; both 0: not known */
};

/** struct rashpa_stream_module - part of a detector, and its place in the image */
struct rashpa_stream_module {
	uint32_t x, y, width, height;	/* pixels */
	uint32_t number;		/* the detector's own */
	uint32_t __reserved[3];
};

/**
 * struct rashpa_stream_record - description of a stack by a program that fills slots
 *
 * The record of slot n is at record_offset + n * record_size. The program writes it before the lock
 * record, in the order @begun, the rest, @stack. If @begun and @stack differ, the record is being
 * written. If they or @run have other values than expected, it belongs to another stack or run.
 */
struct rashpa_stream_record {
	uint64_t begun;			/* number of the stack + 1 */
	uint64_t frame;			/* number of its first image */
	uint64_t time_ns;		/* CLOCK_MONOTONIC when it was complete, or given up */
	uint32_t images;
	uint32_t run;
	uint64_t missing;		/* bits of the map that are 0 */
	uint64_t user[8];		/* the producer's own */
	uint64_t __reserved[2];
	uint64_t stack;			/* as begun */
};

/** enum rashpa_stage_kind - purpose of a stage */
enum rashpa_stage_kind {
	RASHPA_STAGE_PROCESS = 0,	/* processes images */
	RASHPA_STAGE_SINK = 1,		/* stores or sends results */
};

/** struct rashpa_stream_stage - a stage of a consumer's work, since it began */
struct rashpa_stream_stage {
	char name[RASHPA_STREAM_WORD];
	uint32_t kind;			/* enum rashpa_stage_kind */
	uint32_t __reserved;
	uint64_t images;		/* images that it handled */
	uint64_t lost;			/* images among them that it could not keep */
	uint64_t ns;			/* time spent on these images */
	uint64_t bytes_in, bytes_out;	/* calibration is not counted */
};

/**
 * struct rashpa_stream_work - the consumer's progress report, for display only
 *
 * The consumer writes it at any time: @sequence + 1, the rest, @sequence + 2. If @sequence is odd,
 * or changes during the read, the report was being written: read it again.
 */
struct rashpa_stream_work {
	uint32_t sequence;
	uint32_t run;			/* run of the stream; another value: no report yet */
	uint64_t time_ns;		/* CLOCK_MONOTONIC of the report */
	char engine[RASHPA_STREAM_WORD];	/* processing engine */
	uint64_t images;		/* signal images */
	uint64_t dark;			/* dark images */
	uint64_t vetoed;		/* signal images that the veto left out */
	uint64_t overflow;		/* times that results exceeded their room */
	uint64_t lost;			/* results lost */
	uint32_t queue;			/* capacity of the queue of results to write, stacks */
	uint32_t queue_fill;		/* stacks in that queue now */
	uint32_t queue_most;		/* highest fill so far, stacks */
	uint32_t stages;
	uint64_t queue_full;		/* stacks that waited for room in that queue */
	struct rashpa_stream_stage stage[RASHPA_STREAM_STAGES];

	/* added later: 0 from older consumers */
	uint64_t late;			/* results that came after their deadline */
};

#endif /* RASHPA_STREAM_FORMAT_H */
