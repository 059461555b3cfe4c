/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Register map of the reference FPGA interface, version 1.1.
 *
 * Documentation/fpga-interface.rst is the specification; these are its numbers. All
 * registers are 32 bits wide, little-endian; a 64-bit value is a pair, low word
 * first, and a 64-bit access reaches both.
 */
#ifndef RASHPA_FPGA_H
#define RASHPA_FPGA_H

#include <stdint.h>
#include <string.h>

/* PCI identity of the software FPGA */
#define RFPGA_PCI_VENDOR	0x1234
#define RFPGA_PCI_DEVICE	0x5250
/* the software FPGA that fetches addresses: descriptors in an array, in a chain, packed */
#define RFPGA_PCI_FETCH_ARRAY	0x5251
#define RFPGA_PCI_FETCH_CHAIN	0x5252
#define RFPGA_PCI_FETCH_PACKED	0x5253
#define RFPGA_PCI_CLASS		0x118000	/* signal processing controller */

/* BARs */
#define RFPGA_BAR_REGS		0	/* 32 bit, 64 KiB: registers, address table */
#define RFPGA_BAR_MSIX		1	/* 32 bit: MSI-X table and PBA, between pages of memory */
#define RFPGA_BAR_DOORBELL	2	/* 64 bit, 64 KiB: one page per DTP */
#define RFPGA_BAR_MEMORY	4	/* 64 bit, prefetchable: on-board memory */

#define RFPGA_BAR_REGS_SIZE	0x10000
#define RFPGA_BAR_DOORBELL_SIZE	0x10000
#define RFPGA_DOORBELL_PAGE	0x1000

/* global registers (BAR 0) */
#define RFPGA_ID		0x0000	/* ro: RFPGA_ID_VALUE */
#define   RFPGA_ID_VALUE	0x50485352	/* "RSHP" */
#define RFPGA_VERSION		0x0004	/* ro: major << 16 | minor */
#define   RFPGA_VERSION_VALUE	0x00010001
#define RFPGA_CAPS		0x0008	/* ro */
#define   RFPGA_CAPS_DTPS(v)	((v) & 0xff)
#define   RFPGA_CAPS_VECTORS(v)	(((v) >> 8) & 0xff)
#define   RFPGA_CAPS_ENTRIES(v)	(((v) >> 16) & 0xffff)	/* entries of the address table */
#define RFPGA_FEATURES		0x000c	/* ro: RFPGA_FEATURE_* */
#define   RFPGA_FEATURE_MSIX	(1u << 0)
#define   RFPGA_FEATURE_LOCK	(1u << 1)
#define   RFPGA_FEATURE_FREERUN	(1u << 3)
#define   RFPGA_FEATURE_FLUSH	(1u << 4)
#define   RFPGA_FEATURE_GROUP	(1u << 5)
#define   RFPGA_FEATURE_DROP	(1u << 6)
#define   RFPGA_FEATURE_META	(1u << 7)
#define   RFPGA_FEATURE_VERDICT	(1u << 8)
#define   RFPGA_FEATURE_FETCH	(1u << 9)	/* entries say where rings of descriptors are */
#define RFPGA_CONTROL		0x0010	/* wo, reads 0 */
#define   RFPGA_CONTROL_STOP	(1u << 0)	/* stop every DTP */
#define   RFPGA_CONTROL_RESET	(1u << 1)	/* registers and table to reset values */
#define   RFPGA_CONTROL_CLEAR	(1u << 2)	/* global counters and fault to 0 */
#define RFPGA_STATUS		0x0014	/* ro */
#define   RFPGA_STATUS_BUSY	(1u << 0)	/* a DTP is RUNNING */
#define   RFPGA_STATUS_FAULT	(1u << 1)	/* RFPGA_FAULTS is not 0 */
#define   RFPGA_STATUS_RESETTING (1u << 2)	/* nothing else is answered yet */
#define RFPGA_MEMORY_SIZE	0x0018	/* ro, 64 bit: bytes of on-board memory */
#define RFPGA_TICKS		0x0020	/* ro, 64 bit: free-running, see RFPGA_TICK_RATE */
#define   RFPGA_TICK_NS		4	/* software FPGA: nanoseconds per tick */
#define RFPGA_SCRATCH		0x0028	/* rw */
#define RFPGA_FAULTS		0x0030	/* ro, 64 bit: refused transactions */
#define RFPGA_FAULT_ADDR	0x0038	/* ro, 64 bit: address of the last one */
#define RFPGA_FAULT_CAUSE	0x0040	/* ro: cause of the last one */
#define   RFPGA_FAULT_NONE	0
#define   RFPGA_FAULT_ENTRY	1	/* entry not valid, or outside the DTP's entries */
#define   RFPGA_FAULT_BUS	2	/* the host has nothing at that address */
#define   RFPGA_FAULT_MASTER	3	/* bus mastering is off */
#define   RFPGA_FAULT_SOURCE	4	/* beyond on-board memory */
#define   RFPGA_FAULT_CONFIG	5	/* DTP registers make no sense */
#define   RFPGA_FAULT_DESC	6	/* a descriptor that was fetched makes no sense */
#define RFPGA_FAULT_DTP		0x0044	/* ro: DTP of the last one, or of a ring: */
#define   RFPGA_FAULT_RING(r)	(0x100 + (r))
#define RFPGA_BYTES		0x0048	/* ro, 64 bit: payload written, all DTPs */
#define RFPGA_STOPS		0x0050	/* ro: stop requests taken */
#define RFPGA_LIMITS		0x0054	/* ro: implemented bits of registers */
#define   RFPGA_LIMITS_OFFSET(v)	((v) & 0xff)	/* bases, DST_SLOT, 64-bit numbers */
#define   RFPGA_LIMITS_STRIDE(v)	(((v) >> 8) & 0xff)	/* *_LINE, *_IMAGE */
#define   RFPGA_LIMITS_COUNT(v)		(((v) >> 16) & 0xff)	/* BUNCH ... HEIGHT */
#define   RFPGA_LIMITS_ALIGN(v)		(((v) >> 24) & 0xff)	/* SRC_*, DST_* in bytes */
#define RFPGA_TICK_RATE		0x0058	/* ro: ticks a second */
#define RFPGA_BLOCKS		0x005c	/* ro: offset of the list of blocks, BAR 0 */
#define RFPGA_INTX		0x0060	/* the software FPGA with --intx only */
#define   RFPGA_INTX_PENDING	(1u << 0)	/* rw1c: INTx is asserted */
#define RFPGA_STOP_TIME		0x0064	/* ro: us from STOP to idle, at most */
#define RFPGA_GROUP_START	0x0068	/* wo, reads 0: DTPs that start together, all or none */
#define RFPGA_BUILD_ID		0x0070	/* ro: which gateware */
#define   RFPGA_BUILD_ID_WORDS	5

/* list of blocks (BAR 0, at RFPGA_BLOCKS): entries until one of type NONE */
#define RFPGA_BLOCK_STRIDE	16
#define RFPGA_BLOCK_TYPE	0x00	/* ro: 15-0 RFPGA_BLOCK_*, 31-16 how many */
#define   RFPGA_BLOCK_NONE	0
#define   RFPGA_BLOCK_DTP	1
#define   RFPGA_BLOCK_TABLE	2
#define   RFPGA_BLOCK_SOURCE	3
#define   RFPGA_BLOCK_SENSOR	4
#define   RFPGA_BLOCK_BOUNDS	5
#define   RFPGA_BLOCK_MAILBOX	6
#define   RFPGA_BLOCK_UNIT	7
#define   RFPGA_BLOCK_RING	8
#define   RFPGA_BLOCK_RING_BOUNDS 9
#define RFPGA_BLOCK_BASE	0x04	/* ro: offset of the first, BAR 0 */
#define RFPGA_BLOCK_STEP	0x08	/* ro: bytes from one to the next */
#define RFPGA_BLOCK_DOORBELL	0x0c	/* ro: first page in BAR 2, a page each; 0xffffffff: none */

/* registers of a live source (BAR 0), relative to the BASE of its block */
#define RFPGA_SOURCE_CONTROL	0x00	/* wo, reads 0 */
#define   RFPGA_SOURCE_START	(1u << 0)
#define   RFPGA_SOURCE_STOP	(1u << 1)
#define RFPGA_SOURCE_STATUS	0x04	/* ro */
#define   RFPGA_SOURCE_RUNNING	(1u << 0)
#define RFPGA_SOURCE_WIDTH	0x08	/* ro: pixels; 0: as the DTP says */
#define RFPGA_SOURCE_HEIGHT	0x0c	/* ro: lines; likewise */
#define RFPGA_SOURCE_PIXEL_BYTES 0x10	/* ro: likewise */
#define RFPGA_SOURCE_FIFO	0x14	/* ro: images that are kept for each DTP */
#define RFPGA_SOURCE_ROLE	0x18	/* rw: role of images that begin from now on */
#define RFPGA_SOURCE_PERIOD	0x20	/* rw, 64 bit: ticks from image to image, >= 1 */
#define RFPGA_SOURCE_FRAMES	0x28	/* ro, 64 bit: number of the image that comes next */
#define RFPGA_SOURCE_TRIGGERS	0x30	/* ro, 64 bit: number of its trigger */
#define RFPGA_SOURCE_TIME	0x38	/* ro, 64 bit: ns, TAI; 0: there is no such clock */
#define RFPGA_SOURCE_MISSED	0x40	/* ro, 64 bit: images that were not delivered */
#define RFPGA_SOURCE_LINES_MISSED 0x48	/* ro, 64 bit: lines, likewise */
#define RFPGA_SOURCE_SIZE	0x80

/* a sensor (BAR 0), relative to its block */
#define RFPGA_SENSOR_KIND	0x00	/* ro */
#define   RFPGA_SENSOR_TEMPERATURE 1	/* VALUE is in m degree C */
#define   RFPGA_SENSOR_VOLTAGE	2	/* in mV */
#define   RFPGA_SENSOR_CURRENT	3	/* in mA */
#define RFPGA_SENSOR_VALUE	0x04	/* ro, signed */
#define RFPGA_SENSOR_NAME	0x08	/* ro: 8 bytes of ASCII, filled with zeros */
#define RFPGA_SENSOR_SIZE	0x10

/* the mailbox of the slow control (BAR 0), relative to its block */
#define RFPGA_MAILBOX_ADDRESS	0x00	/* rw */
#define RFPGA_MAILBOX_DATA	0x04	/* rw */
#define RFPGA_MAILBOX_CONTROL	0x08	/* wo, reads 0 */
#define   RFPGA_MAILBOX_READ	(1u << 0)
#define   RFPGA_MAILBOX_WRITE	(1u << 1)
#define RFPGA_MAILBOX_STATUS	0x0c	/* ro */
#define   RFPGA_MAILBOX_BUSY	(1u << 0)
#define   RFPGA_MAILBOX_ERROR(v)	(((v) >> 8) & 0xff)
#define   RFPGA_MAILBOX_NOWHERE	1	/* there is no such address */
#define   RFPGA_MAILBOX_READ_ONLY 2
#define   RFPGA_MAILBOX_TIMEOUT	3	/* no answer */
#define RFPGA_MAILBOX_SIZE	0x10

/*
 * A processing unit (BAR 0), relative to its block: raw images in on-board memory become results
 * there. A unit that runs keeps its configuration.
 */
#define RFPGA_UNIT_CONTROL	0x00	/* wo, reads 0 */
#define   RFPGA_UNIT_START	(1u << 0)
#define   RFPGA_UNIT_STOP	(1u << 1)
#define RFPGA_UNIT_STATUS	0x04	/* ro */
#define   RFPGA_UNIT_RUNNING	(1u << 0)
#define   RFPGA_UNIT_WAITING	(1u << 1)	/* running, results have not been sent */
#define   RFPGA_UNIT_FAULTED	(1u << 2)	/* stopped by a fault */
#define RFPGA_UNIT_KIND		0x08	/* ro */
#define   RFPGA_UNIT_PRETREAT	1
#define RFPGA_UNIT_RUN		0x0c	/* rw: 16 bits, what RFPGA_DB_GIVEN has to have */
#define RFPGA_UNIT_RAW		0x10	/* rw, 64 bit: raw images, in on-board memory */
#define RFPGA_UNIT_RESULT	0x18	/* rw, 64 bit: results, likewise: 32 bit floating point */
#define RFPGA_UNIT_PEDESTAL	0x20	/* rw, 64 bit: planes, that of the highest gain first */
#define RFPGA_UNIT_GAIN		0x28	/* rw, 64 bit: planes of 1 / gain; NaN: an invalid pixel */
#define RFPGA_UNIT_WIDTH	0x30	/* rw: pixels */
#define RFPGA_UNIT_HEIGHT	0x34	/* rw: lines */
#define RFPGA_UNIT_SATURATED	0x38	/* rw: one gain: raw words from here on are invalid */
#define RFPGA_UNIT_FORMAT	0x3c	/* rw */
#define   RFPGA_UNIT_BYTES(n)	(n)		/* bytes of a raw word: 1, 2 or 4 */
#define   RFPGA_UNIT_JUNGFRAU	(1u << 8)	/* words of two bytes, three gains: three planes */
#define   RFPGA_UNIT_ROUND	(1u << 9)	/* results are whole */
#define RFPGA_UNIT_DARK_WEIGHT	0x40	/* rw: float, 0 to 1: of a dark image in the mean */
#define RFPGA_UNIT_RAW_IMAGE	0x50	/* rw: bytes from raw image to raw image */
#define RFPGA_UNIT_RESULT_IMAGE	0x54	/* rw: bytes from result to result */
#define RFPGA_UNIT_RAW_SLOTS	0x58	/* rw: 1 to RFPGA_UNIT_SLOTS_MAX, and so the next */
#define RFPGA_UNIT_RESULT_SLOTS	0x5c	/* rw */
#define   RFPGA_UNIT_SLOTS_MAX	16
#define RFPGA_UNIT_C_IN		0x60	/* ro, 64 bit: raw images taken since START, as all C_* */
#define RFPGA_UNIT_C_OUT	0x68	/* ro, 64 bit: results made */
#define RFPGA_UNIT_C_INVALID	0x80	/* ro, 64 bit: pixels of results that are NaN */
#define RFPGA_UNIT_C_DARK	0x88	/* ro, 64 bit: dark images among the raw ones */
#define RFPGA_UNIT_FAULT_CAUSE	0x90	/* ro: RFPGA_FAULT_CONFIG or RFPGA_FAULT_SOURCE */
#define RFPGA_UNIT_FAULT_ADDR	0x98	/* ro, 64 bit: of the register, or in on-board memory */
#define RFPGA_UNIT_SIZE		0x100

/*
 * A ring (BAR 0), relative to its block: transmit descriptors and events in memory of the host or
 * of a GPU, and a wire. A ring that runs keeps its configuration.
 */
#define RFPGA_RING_CONTROL	0x00	/* wo, reads 0 */
#define   RFPGA_RING_START	(1u << 0)
#define   RFPGA_RING_STOP	(1u << 1)
#define RFPGA_RING_STATUS	0x04	/* ro */
#define   RFPGA_RING_RUNNING	(1u << 0)
#define   RFPGA_RING_WAITING	(1u << 1)	/* running, the queue of events is full */
#define   RFPGA_RING_FAULTED	(1u << 2)	/* stopped by a fault */
#define   RFPGA_RING_STOPPING	(1u << 3)	/* running, stop requested */
#define RFPGA_RING_KIND		0x08	/* ro */
#define   RFPGA_RING_WIRE	1	/* UDP datagrams */
#define RFPGA_RING_MODE		0x0c	/* rw */
#define   RFPGA_RING_MSIX	(1u << 1)	/* interrupt after each event */
#define   RFPGA_RING_LOOPBACK	(1u << 2)	/* datagrams sent are received here only */
#define   RFPGA_RING_FLUSH	(1u << 3)	/* read back from the payload before its event */
#define RFPGA_RING_VECTOR	0x10	/* rw: MSI-X vector */
#define RFPGA_RING_RUN		0x14	/* rw: 1 to 65535, part of each generation */
#define RFPGA_RING_FIRST	0x18	/* rw: first table entry of descriptors and events */
#define RFPGA_RING_COUNT	0x1c	/* rw: entries */
#define RFPGA_RING_DESCRIPTORS	0x20	/* rw, 64 bit: of the descriptors in these */
#define RFPGA_RING_EVENTS	0x28	/* rw, 64 bit: of the events in these */
#define RFPGA_RING_DESCRIPTORS_LOG2 0x30	/* rw: so many, 0 to RFPGA_RING_LOG2_MAX */
#define RFPGA_RING_EVENTS_LOG2	0x34	/* rw: likewise, at least 1 */
#define   RFPGA_RING_LOG2_MAX	15
#define RFPGA_RING_PAYLOAD_FIRST 0x38	/* rw: first table entry of payload, sent and received */
#define RFPGA_RING_PAYLOAD_COUNT 0x3c	/* rw: entries */
#define RFPGA_RING_RECEIVE	0x40	/* rw, 64 bit: of the received payload in these */
#define RFPGA_RING_RECEIVE_LOG2	0x48	/* rw: bytes of a datagram, 6 to 16; 0: receive nothing */
#define RFPGA_RING_DEADLINE	0x4c	/* rw: ticks that an answer may take; 0: any number */
#define RFPGA_RING_DATAGRAM_MAX	0x50	/* ro: bytes that can be sent in one */
#define RFPGA_RING_FIFO		0x54	/* ro: datagrams that the board keeps */
#define RFPGA_RING_ADDRESS	0x58	/* ro: IPv4 address of the wire; 0: no wire */
#define RFPGA_RING_PORT		0x5c	/* ro: its UDP port */
#define RFPGA_RING_C_EVENTS	0x60	/* ro, 64 bit: events written since START, as all C_* */
#define RFPGA_RING_C_SENT	0x68	/* ro, 64 bit: datagrams sent */
#define RFPGA_RING_C_RECEIVED	0x70	/* ro, 64 bit: datagrams received */
#define RFPGA_RING_C_HELD	0x78	/* ro, 64 bit: what had to wait for room in the queue */
#define RFPGA_RING_C_LATE	0x80	/* ro, 64 bit: answers behind their deadline */
#define RFPGA_RING_C_LOST	0x88	/* ro, 64 bit: datagrams that the FIFO had no room for */
#define RFPGA_RING_C_ERRORS	0x90	/* ro, 64 bit: descriptors that were not sent */
#define RFPGA_RING_C_BYTES	0x98	/* ro, 64 bit: payload sent */
#define RFPGA_RING_FAULT_CAUSE	0xa0	/* ro: RFPGA_FAULT_* */
#define RFPGA_RING_FAULT_ADDR	0xa8	/* ro, 64 bit */
#define RFPGA_RING_SEEN		0xb0	/* ro, 64 bit: RFPGA_DB_RING as last read by the board */
#define RFPGA_RING_SIZE		0x100

/* bounds of ring r, as those of a DTP, at the BASE of their block, in the page RFPGA_BOUNDS */

/* Generation of descriptor or event number n, of 2^log2 of them, in this run. */
#define RFPGA_RING_GENERATION(run, n, log2)	((uint32_t)(run) << 16 | \
						 (((uint32_t)(n) >> (log2)) & 0xffff))

/* A transmit descriptor. The word GENERATION is written last. */
#define RFPGA_TX_SIZE		64
#define RFPGA_TX_SOURCE		0x00	/* 64 bit: of the payload in its linear space */
#define RFPGA_TX_LENGTH		0x08	/* 32 bit: bytes, up to RFPGA_RING_DATAGRAM_MAX */
#define RFPGA_TX_GENERATION	0x0c	/* 32 bit: RFPGA_RING_GENERATION() */
#define RFPGA_TX_ADDRESS	0x10	/* 32 bit: destination, IPv4: 127.0.0.1 is 0x7f000001 */
#define RFPGA_TX_PORT		0x14	/* 32 bit: its UDP port, 1 to 65535 */
#define RFPGA_TX_CONTEXT	0x18	/* 64 bit: comes back in the event */
#define RFPGA_TX_SINCE		0x20	/* 32 bit: TICKS of the event that it answers */
#define RFPGA_TX_FLAGS		0x24	/* 32 bit */
#define   RFPGA_TX_ANSWER	(1u << 0)	/* SINCE and RFPGA_RING_DEADLINE count */

/* An event: one write of 32 bytes, in which GENERATION becomes visible last. */
#define RFPGA_EVENT_SIZE	32
#define RFPGA_EVENT_CONTEXT	0x00	/* 64 bit: of the descriptor; or number of the datagram */
#define RFPGA_EVENT_OFFSET	0x08	/* 32 bit: number of the descriptor; bytes behind RECEIVE */
#define RFPGA_EVENT_LENGTH	0x0c	/* 32 bit: bytes of payload */
#define RFPGA_EVENT_KIND	0x10	/* 32 bit: 15-0 which, 31-16 RFPGA_EVENT_* */
#define   RFPGA_EVENT_RECEIVED	1
#define   RFPGA_EVENT_SENT	2
#define   RFPGA_EVENT_STATUS(v)	((v) >> 16)	/* 0: it is well */
#define   RFPGA_EVENT_LATE	(1u << 0)	/* sent after its deadline */
#define   RFPGA_EVENT_CUT	(1u << 1)	/* received more than there is room for */
#define   RFPGA_EVENT_STALE	(1u << 2)	/* not sent: of another generation */
#define   RFPGA_EVENT_INVALID	(1u << 3)	/* not sent: length, port or flags */
#define   RFPGA_EVENT_REFUSED	(1u << 4)	/* not sent: the payload could not be read */
#define   RFPGA_EVENT_UNSENT	(1u << 5)	/* not sent: the wire did not take it */
#define RFPGA_EVENT_TICKS	0x14	/* 32 bit: TICKS when it was received, or sent */
#define RFPGA_EVENT_GENERATION	0x1c	/* 32 bit: RFPGA_RING_GENERATION() */

/* bounds of DTP n in the address table (BAR 0); on a separate page, for the kernel only */
#define RFPGA_BOUNDS		0x7000
#define RFPGA_BOUNDS_STRIDE	16
#define RFPGA_BOUNDS_FIRST	0x0	/* rw: no entry before this one */
#define RFPGA_BOUNDS_LIMIT	0x4	/* rw: nor this or any later one; reset: CAPS_ENTRIES */
#define   RFPGA_BOUNDS_MASK	0x7ffu	/* of both */

/* address table (BAR 0): where the host lets us write */
#define RFPGA_TABLE		0x8000
#define RFPGA_TABLE_SIZE	0x8000
#define RFPGA_ENTRY_STRIDE	32
#define RFPGA_ENTRY_PAGE	4096	/* ADDR, LEN and SUM are multiples */
#define RFPGA_ENTRY_ADDR	0x00	/* rw, 64 bit: DMA address */
#define RFPGA_ENTRY_LEN		0x08	/* rw, 64 bit: bytes */
#define RFPGA_ENTRY_CONTROL	0x10	/* rw */
#define   RFPGA_ENTRY_VALID	(1u << 0)
#define RFPGA_ENTRY_SUM		0x18	/* rw, 64 bit: length of the entries before it */

/* an entry with RFPGA_FEATURE_FETCH, which only the kernel writes */
#define RFPGA_FETCH_BASE	0x00	/* rw, 64 bit: DMA address of the first descriptor */
#define RFPGA_FETCH_COUNT	0x08	/* rw: descriptors of the ring */
#define RFPGA_FETCH_TAIL	0x0c	/* rw: the first one that is not fetched */
#define RFPGA_FETCH_CONTROL	0x10	/* rw */
#define   RFPGA_FETCH_VALID	(1u << 0)
#define RFPGA_FETCH_STATUS	0x14	/* ro: status of the last fetch that failed */
#define   RFPGA_FETCH_REFUSED	1	/* no answer, or a refusal */
#define   RFPGA_FETCH_POISON	2	/* the answer was poisoned */
#define   RFPGA_FETCH_INVALID	3	/* a descriptor that makes no sense */
#define RFPGA_FETCH_FETCHED	0x18	/* ro: descriptors since VALID was set, modulo 2^32 */

/* a descriptor of the array, 16 bytes; addresses and lengths are whole pages, as in an entry */
#define RFPGA_ARRAY_SIZE	16
#define RFPGA_ARRAY_ADDR	0x00	/* 64 bit */
#define RFPGA_ARRAY_LEN		0x08	/* 32 bit */
#define RFPGA_ARRAY_FLAGS	0x0c	/* 32 bit */
#define   RFPGA_ARRAY_VALID	(1u << 0)
#define   RFPGA_ARRAY_LAST	(1u << 1)
/* descriptor of the chain, 32 bytes, as in the DMA engine of PG195 */
#define RFPGA_CHAIN_SIZE	32
#define RFPGA_CHAIN_CONTROL	0x00	/* 32 bit: 31-16 the magic */
#define   RFPGA_CHAIN_MAGIC	0xad4bu
#define RFPGA_CHAIN_LEN		0x04	/* 32 bit: 28 bits count */
#define RFPGA_CHAIN_SUM		0x08	/* 64 bit: bytes before this one */
#define RFPGA_CHAIN_ADDR	0x10	/* 64 bit */
#define RFPGA_CHAIN_NEXT	0x18	/* 64 bit: DMA address of the next descriptor */
/* packed, one word of 64 bits: 63-12 of the address, 11-1 pages less one, 0 valid */
#define RFPGA_PACKED_SIZE	8

/* the same for RASHPA_IOC_PROGRAM: initializer of a struct rashpa_layout (linux/rashpa.h) */
#define RFPGA_LAYOUT { \
	.stride = RFPGA_ENTRY_STRIDE, \
	.address_offset = RFPGA_ENTRY_ADDR, \
	.address_bits = 64, \
	.length_offset = RFPGA_ENTRY_LEN, \
	.length_bits = 64, \
	.control_offset = RFPGA_ENTRY_CONTROL, \
	.control_bits = 32, \
	.control_set = RFPGA_ENTRY_VALID, \
	.sum_offset = RFPGA_ENTRY_SUM, \
	.sum_bits = 64, \
}

/* data transfer process n (BAR 0) */
#define RFPGA_DTP(n)		(0x1000 + (n) * 0x200)
#define RFPGA_DTPS_MAX		16

/* Registers of a DTP, relative to RFPGA_DTP(n). A DTP that runs keeps its configuration. */
#define RFPGA_DTP_CONTROL	0x000	/* wo, reads 0 */
#define   RFPGA_DTP_START	(1u << 0)
#define   RFPGA_DTP_STOP	(1u << 1)
#define RFPGA_DTP_STATUS	0x004	/* ro */
#define   RFPGA_DTP_RUNNING	(1u << 0)
#define   RFPGA_DTP_WAITING	(1u << 1)	/* running, no credit */
#define   RFPGA_DTP_DONE	(1u << 2)	/* all IMAGES sent */
#define   RFPGA_DTP_FAULTED	(1u << 3)	/* stopped by a fault */
#define   RFPGA_DTP_STOPPING	(1u << 4)	/* running, stop requested */
#define   RFPGA_DTP_IGNORED	(1u << 5)	/* a START was ignored, for it was running */
#define RFPGA_DTP_MODE		0x008	/* rw */
#define   RFPGA_MODE_FREERUN	(1u << 0)	/* do not wait for credit */
#define   RFPGA_MODE_MSIX	(1u << 1)	/* interrupt after each stack */
#define   RFPGA_MODE_LOCK	(1u << 2)	/* lock write after each stack */
#define   RFPGA_MODE_FLUSH	(1u << 3)	/* read back from the payload before the event */
#define   RFPGA_MODE_DROP	(1u << 4)	/* with FREERUN: no stack without credit is sent */
#define   RFPGA_MODE_META	(1u << 5)	/* a metadata record for each image */
#define   RFPGA_MODE_VERDICT	(1u << 6)	/* count verdicts, see RFPGA_DB_VERDICT */
#define RFPGA_DTP_VECTOR	0x00c	/* rw: MSI-X vector */
#define RFPGA_DTP_PIXEL_BYTES	0x010	/* rw: 1, 2, 4 or 8 */
#define RFPGA_DTP_BUNCH		0x018	/* rw: images per stack, >= 1 */
#define RFPGA_DTP_SLOTS		0x01c	/* rw: stacks in the destination, 1 to 2^31 - 1 */
#define RFPGA_DTP_SRC_BASE	0x020	/* rw, 64 bit: dataset in on-board memory */
#define RFPGA_DTP_SRC_IMAGES	0x028	/* rw: images in the dataset, >= 1; read round and round */
#define RFPGA_DTP_SRC_X		0x02c	/* rw: pixels */
#define RFPGA_DTP_SRC_Y		0x030	/* rw: lines */
#define RFPGA_DTP_WIDTH		0x034	/* rw: region of interest, pixels, >= 1 */
#define RFPGA_DTP_HEIGHT	0x038	/* rw: lines, >= 1 */
#define RFPGA_DTP_DST_X		0x03c	/* rw: pixels */
#define RFPGA_DTP_DST_Y		0x040	/* rw: lines */
#define RFPGA_DTP_SRC_LINE	0x048	/* rw, 64 bit: bytes from line to line */
#define RFPGA_DTP_SRC_IMAGE	0x050	/* rw, 64 bit: bytes from image to image */
#define RFPGA_DTP_DST_BASE	0x058	/* rw, 64 bit: in the destination */
#define RFPGA_DTP_DST_LINE	0x060	/* rw, 64 bit */
#define RFPGA_DTP_DST_IMAGE	0x068	/* rw, 64 bit */
#define RFPGA_DTP_DST_SLOT	0x070	/* rw, 64 bit: bytes from stack to stack */
#define RFPGA_DTP_DST_FIRST	0x078	/* rw: first table entry of the destination */
#define RFPGA_DTP_DST_COUNT	0x07c	/* rw: entries; their lengths make one linear space */
#define RFPGA_DTP_LOCK_OFFSET	0x080	/* rw, 64 bit: of the lock record in its destination */
#define RFPGA_DTP_LOCK_FIRST	0x088	/* rw: first table entry of the lock memory */
#define RFPGA_DTP_LOCK_COUNT	0x08c	/* rw: entries */
#define RFPGA_DTP_IMAGES	0x090	/* rw, 64 bit: images to send; 0: until stopped */
#define RFPGA_DTP_PERIOD	0x098	/* rw, 64 bit: ticks an image, free-running; 0: fastest */
#define RFPGA_DTP_FIRST_STACK	0x0a0	/* rw, 64 bit: the first stack (to resume); counts on */
#define RFPGA_DTP_FIRST_SLOT	0x0a8	/* rw: its slot, < SLOTS: FIRST_STACK mod SLOTS */
#define RFPGA_DTP_FIRST_INDEX	0x0ac	/* rw: image of the dataset that is sent first */
#define RFPGA_DTP_INDEX_STEP	0x0b0	/* rw: from one to the next, mod SRC_IMAGES, and below it */
#define RFPGA_DTP_SOURCE	0x0b4	/* rw: 15-0 RFPGA_FROM_*, 31-16 which of them */
#define   RFPGA_FROM_MEMORY	0
#define   RFPGA_FROM_LIVE	1
#define   RFPGA_FROM_UNIT	2
#define RFPGA_DTP_SAMPLING	0x0b8	/* rw: live: 15-0 one of N, 31-16 images that pass first */
#define RFPGA_DTP_META_OFFSET	0x0c0	/* rw, 64 bit: of the metadata in their destination */
#define RFPGA_DTP_META_FIRST	0x0c8	/* rw: first table entry of the metadata */
#define RFPGA_DTP_META_COUNT	0x0cc	/* rw: entries */
#define RFPGA_DTP_FIRST_FRAME	0x0d0	/* rw, 64 bit: number of the first image, for metadata */
#define RFPGA_DTP_RUN		0x0bc	/* rw: which RFPGA_DB_TAGGED counts; 0: RFPGA_DB_CREDIT */

/* counters of a DTP, read-only, from START on, 64 bit unless said otherwise */
#define RFPGA_DTP_C_IMAGES	0x100	/* images sent */
#define RFPGA_DTP_C_STACKS	0x108	/* stacks sent (FIRST_STACK not included) */
#define RFPGA_DTP_C_BYTES	0x110	/* payload */
#define RFPGA_DTP_C_DESCRIPTORS	0x118	/* descriptors generated and executed */
#define RFPGA_DTP_C_EVENTS	0x120	/* interrupts sent */
#define RFPGA_DTP_C_OVERRUNS	0x128	/* stacks sent without credit (free-running) */
#define RFPGA_DTP_C_FAULTS	0x130	/* refused transactions */
#define RFPGA_DTP_C_START	0x138	/* RFPGA_TICKS at START */
#define RFPGA_DTP_C_STOP	0x140	/* RFPGA_TICKS when the last write was done */
#define RFPGA_DTP_C_CREDIT	0x148	/* credit as last seen, 32 bit */
#define RFPGA_DTP_FAULT_CAUSE	0x150	/* cause of the fault that ended the run, 32 bit */
#define RFPGA_DTP_FAULT_ADDR	0x158	/* its address */
#define RFPGA_DTP_C_STALL	0x160	/* ticks without credit */
#define RFPGA_DTP_C_STALL_BUS	0x168	/* ticks in which the bus took nothing */
#define RFPGA_DTP_C_STALL_SOURCE 0x170	/* ticks without an image to send */
#define RFPGA_DTP_C_DROPPED	0x178	/* stacks that were dropped */
#define RFPGA_DTP_FIFO_PEAK	0x180	/* most images that waited at once, live */
#define RFPGA_DTP_C_LOST	0x188	/* images that came while the FIFO was full, live */
/* verdicts, see RFPGA_DB_VERDICT */
#define RFPGA_DTP_C_SUCCESSES	0x190	/* stacks that were processed well */
#define RFPGA_DTP_C_FAILURES	0x198	/* stacks that were not */
#define RFPGA_DTP_C_UNJUDGED	0x1a0	/* stacks that verdicts have passed over */
#define RFPGA_DTP_SUCCESS_TICKS	0x1a8	/* RFPGA_TICKS of the last success; 0: there was none */
#define RFPGA_DTP_FAILURE_TICKS	0x1b0	/* likewise */
#define RFPGA_DTP_JUDGED	0x1b8	/* number of the stack after the one judged last */

/*
 * Doorbell page of DTP n: BAR 2 at n * RFPGA_DOORBELL_PAGE. The credit is the number of stacks
 * consumed so far, modulo 2^32, FIRST_STACK included. Where RFPGA_DTP_RUN is not 0, only a
 * credit with this number in its upper half counts, and one of the run before does not.
 */
#define RFPGA_DB_CREDIT		0x00	/* rw, 32 bit, if RFPGA_DTP_RUN is 0 */
#define RFPGA_DB_TAGGED		0x18	/* rw, 64 bit: credit, and RFPGA_DTP_RUN << 32 */

/*
 * Doorbell page of a processing unit, at the DOORBELL of its block: how many raw images it was
 * given since START, modulo 2^32; above that, in bit k, whether raw image n with n mod 16 = k
 * is a dark one; above that RFPGA_UNIT_RUN, without which nothing of it counts.
 */
#define RFPGA_DB_GIVEN		0x08	/* rw, 64 bit */
#define   RFPGA_GIVEN(n, darks, run)	((uint32_t)(n) | (uint64_t)(uint16_t)(darks) << 32 | \
					 (uint64_t)(uint16_t)(run) << 48)

/*
 * How processing of a stack has ended, in the doorbell page of its DTP: number of the stack, modulo
 * 2^30; above that RFPGA_VERDICT_*; above that RFPGA_DTP_RUN, without which it does not count. So
 * one store of 32 bits is enough once the upper word is there, as START leaves it.
 */
#define RFPGA_DB_VERDICT	0x08	/* rw, 64 bit */
#define   RFPGA_VERDICT_SUCCESS	1
#define   RFPGA_VERDICT_FAILURE	2
#define   RFPGA_VERDICT_STACK	0x3fffffffu
#define   RFPGA_VERDICT(stack, verdict, run)	(((uint32_t)(stack) & RFPGA_VERDICT_STACK) | \
						 (uint32_t)(verdict) << 30 | (uint64_t)(run) << 32)

/*
 * Doorbell page of a ring, at the DOORBELL of its block. The lower half holds the index after the
 * last valid descriptor, and the number of consumed events, both modulo 2^16. The upper half holds
 * RFPGA_RING_RUN; the board ignores another value. So later stores need only the lower 32 bits.
 */
#define RFPGA_DB_RING		0x10	/* rw, 64 bit */
#define   RFPGA_RING_BELL(tail, consumed, run)	((uint16_t)(tail) | \
						 (uint32_t)(uint16_t)(consumed) << 16 | \
						 (uint64_t)(uint16_t)(run) << 32)

/*
 * Lock record: one write of 64 bytes, which become visible from the first word to the last.
 * To follow the stream, poll `stacks`. To read the whole record, read `stacks`, the rest and
 * `begun`, and repeat if the two differ: rfpga_lock_read().
 */
#define RFPGA_LOCK_SIZE		64
#define RFPGA_LOCK_BEGUN	0x00	/* 64 bit: as stacks; the first word to be visible */
#define RFPGA_LOCK_IMAGES	0x08	/* 64 bit: images sent since START */
#define RFPGA_LOCK_TICKS	0x10	/* 64 bit: RFPGA_TICKS */
#define RFPGA_LOCK_OVERRUNS	0x18	/* 64 bit: overruns so far */
#define RFPGA_LOCK_DROPPED	0x20	/* 64 bit: stacks dropped so far */
#define RFPGA_LOCK_RUN		0x28	/* 64 bit: RFPGA_DTP_RUN */
#define RFPGA_LOCK_FRAME	0x30	/* 64 bit: number of the last image of the stack */
#define RFPGA_LOCK_STACKS	0x38	/* 64 bit: stacks complete, with FIRST_STACK; the last */

/** struct rfpga_lock - a lock record that was read as a whole */
struct rfpga_lock {
	uint64_t stacks, images, ticks, overruns, dropped, run, frame;
};

/**
 * rfpga_lock_read() - read a lock record
 * @record: the record in host memory
 * @lock: becomes the words of one record; words of several records after 0
 *
 * Payload that is read afterwards belongs to stack @lock->stacks - 1 or a later one.
 * Return: 1, or 0 if the record is just being written: read it again.
 */
static inline int rfpga_lock_read(const volatile void *record, struct rfpga_lock *lock)
{
	const volatile uint64_t *word = (const volatile uint64_t *)record;

	lock->stacks = __atomic_load_n(word + RFPGA_LOCK_STACKS / 8, __ATOMIC_ACQUIRE);
	lock->images = __atomic_load_n(word + RFPGA_LOCK_IMAGES / 8, __ATOMIC_RELAXED);
	lock->ticks = __atomic_load_n(word + RFPGA_LOCK_TICKS / 8, __ATOMIC_RELAXED);
	lock->overruns = __atomic_load_n(word + RFPGA_LOCK_OVERRUNS / 8, __ATOMIC_RELAXED);
	lock->dropped = __atomic_load_n(word + RFPGA_LOCK_DROPPED / 8, __ATOMIC_RELAXED);
	lock->run = __atomic_load_n(word + RFPGA_LOCK_RUN / 8, __ATOMIC_RELAXED);
	lock->frame = __atomic_load_n(word + RFPGA_LOCK_FRAME / 8, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(word + RFPGA_LOCK_BEGUN / 8, __ATOMIC_RELAXED) == lock->stacks;
}

/* Write the words from MODE to the end, in any order, then RFPGA_DTP_START. */
/** struct rfpga_dtp - configuration of a DTP: registers from CONTROL on, at their offsets */
struct rfpga_dtp {
	uint32_t control, status;	/* not to be written */
	uint32_t mode, vector;
	uint32_t pixel_bytes, reserved_014;
	uint32_t bunch, slots;
	uint64_t src_base;
	uint32_t src_images, src_x, src_y, width, height, dst_x, dst_y, reserved_044;
	uint64_t src_line, src_image;
	uint64_t dst_base, dst_line, dst_image, dst_slot;
	uint32_t dst_first, dst_count;
	uint64_t lock_offset;
	uint32_t lock_first, lock_count;
	uint64_t images, period, first_stack;
	uint32_t first_slot, first_index, index_step, source, sampling, run;
	uint64_t meta_offset;
	uint32_t meta_first, meta_count;
	uint64_t first_frame;
};

/* The register at this offset. */
static inline uint32_t rfpga_dtp_word(const struct rfpga_dtp *dtp, uint32_t offset)
{
	uint32_t word;

	memcpy(&word, (const char *)dtp + offset, sizeof(word));
	return word;
}

/*
 * Metadata record of image i in slot s, at META_OFFSET + (s * BUNCH + i) * 64: one write, behind
 * the payload of the image and before the event of its stack.
 */
#define RFPGA_META_SIZE		64
#define RFPGA_META_FRAME	0x00	/* 64 bit: number of the image; jumps where some drop */
#define RFPGA_META_STACK	0x08	/* 64 bit: number of the stack, or not written yet */
#define RFPGA_META_TICKS	0x10	/* 64 bit: RFPGA_TICKS when the image was begun */
#define RFPGA_META_LENGTH	0x18	/* 32 bit: bytes of payload */
#define RFPGA_META_STATUS	0x1c	/* 32 bit: 0: it is whole */
#define   RFPGA_META_LINES	(1u << 0)	/* lines are missing: */
#define   RFPGA_META_MISSING(v)	((v) >> 16)	/* so many; 65535: or more */
#define RFPGA_META_INDEX	0x20	/* 32 bit: image of the dataset; 0 if the source is live */
#define RFPGA_META_ROLE		0x24	/* 32 bit: of a live source, and so the next two */
#define RFPGA_META_TRIGGER	0x28	/* 64 bit: number of the trigger */
#define RFPGA_META_TIME		0x30	/* 64 bit: RFPGA_SOURCE_TIME when the image was begun */
#define RFPGA_META_RUN		0x38	/* 32 bit: RFPGA_DTP_RUN */

#endif /* RASHPA_FPGA_H */
