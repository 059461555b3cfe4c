/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A PCI function of the vfio-user server: calls from the server to a device, and from a device to
 * its host. To write a device, this file is enough.
 *
 * The server (vfu.c, pci.c, host.c, irq.c, control.c, server.c) speaks the protocol. It implements
 * configuration space, the MSI-X table and memory BARs, and keeps the memory that the host has
 * mapped for DMA. A device implements registers, and may have threads. A program is a few lines:
 *
 *	static struct mine mine;
 *
 *	static const struct device_ops mine_ops = {
 *		.read = mine_read, .write = mine_write, .reset = mine_reset,
 *	};
 *
 *	int main(int argc, char **argv)
 *	{
 *		struct device_options options;
 *		struct server *server = server_open(argc, argv, &options, NULL, NULL);
 *
 *		mine.host = server_host(server);
 *		mine.device = (struct device){ .ops = &mine_ops, .self = &mine, ... };
 *		(bar_create(), threads)
 *		return server_run(server, &mine.device);
 *	}
 *
 * Threads. One thread, the protocol thread, calls all of struct device_ops and serves one message
 * after the other; the host waits meanwhile. Any thread may call host_*(), unless stated otherwise.
 * A device with copying threads stops them after server_run() returns; by then the device has been
 * reset and the host has gone.
 *
 * A fence, like the clearing of an entry of an address table: take a lock to write in
 * &device_ops.write, and to read around look-up and host_access(); or host_exclude(), which is that
 * lock already.
 *
 * Sources in selftests/conformance/second are linked with the server into rashpa-fpga-second, and
 * find this file and rashpa-fpga.h by their names.
 */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICE_BARS		6
#define DEVICE_VECTORS_MAX	16
#define DEVICE_COMMAND_SIZE	256	/* a line at the control socket, or its answer */
#define DEVICE_MSIX_SIZE	0x4000	/* bytes of the BAR with the MSI-X table */

/**
 * enum device_reset - why a device is reset
 * @DEVICE_RESET_HOST: the host asked for it by a message or a register, or has gone
 * @DEVICE_RESET_FLR: it wrote Initiate Function Level Reset
 */
enum device_reset {
	DEVICE_RESET_HOST,
	DEVICE_RESET_FLR,
};

/**
 * struct device_bar - a base address register
 * @size: bytes, a power of two of at least 4096; 0: there is no such BAR
 * @flags: PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH (linux/pci_regs.h). A BAR
 *	of 64 bits also uses the next number
 * @memory: the BAR is this memory; see bar_create(). NULL: &device_ops.read and write
 * @fd: file descriptor of that memory. The host maps it, so the device does not see accesses
 */
struct device_bar {
	uint64_t size;
	uint32_t flags;
	uint8_t *memory;
	int fd;
};

/**
 * struct device_ops - what the server asks of a device
 */
struct device_ops {
	/**
	 * @read: @count bytes at @offset of a BAR, which are inside of it. Any width and any
	 * alignment: a host may be hostile.
	 */
	void (*read)(void *self, unsigned int bar, uint64_t offset, uint8_t *data, uint32_t count);
	/** @write: likewise */
	void (*write)(void *self, unsigned int bar, uint64_t offset, const uint8_t *data,
		      uint32_t count);
	/**
	 * @reset: everything to its reset value, including memory of BARs that has one. When
	 * this returns, no access that the device began reaches the host any more. Bus
	 * mastering is still unchanged; the server resets configuration space afterwards.
	 *
	 * A thread may wait in host_access() for an answer that the protocol thread would have to
	 * receive, which is here: call host_abort(true) before waiting for that thread, and
	 * host_abort(false) afterwards.
	 */
	void (*reset)(void *self, enum device_reset why);
	/** @written: optional. A message has written to a BAR that is memory. */
	void (*written)(void *self, unsigned int bar);
	/**
	 * @answers: optional. Does the device answer? If not, reads are all ones and writes are
	 * ignored, those of configuration space (@config) or those of BARs.
	 */
	bool (*answers)(void *self, bool config);
	/**
	 * @command: optional. A line of the control socket, without its end. False: the device
	 * does not know it. @answer (DEVICE_COMMAND_SIZE bytes) begins with "ok" or "error". If it
	 * stays empty, this is called again with @line NULL, messages in between, until it is
	 * not. "status" is answered with "ok" and what else the server is to say.
	 */
	bool (*command)(void *self, const char *line, char *answer);
};

/**
 * struct device - a PCI function
 * @ops: see there
 * @self: for @ops
 * @vendor: vendor ID in configuration space, also used for the subsystem
 * @id: device ID, used likewise
 * @class: base class, subclass, interface: 24 bits
 * @revision: 8 bits
 * @bar: the BARs
 * @msix_bar: BAR of the MSI-X table: DEVICE_MSIX_SIZE bytes, not served by @ops, may be memory
 * @vectors: number of MSI-X vectors, 1 to DEVICE_VECTORS_MAX
 * @pin: there is INTx, too
 * @no_flr: no function-level reset; read each time the host asks
 *
 * All but @no_flr is fixed from server_run() on.
 */
struct device {
	const struct device_ops *ops;
	void *self;
	uint16_t vendor, id;
	uint32_t class;
	uint8_t revision;
	struct device_bar bar[DEVICE_BARS];
	unsigned int msix_bar;
	uint32_t vectors;
	bool pin;
	bool no_flr;
};

/**
 * bar_create() - make a BAR that is memory
 * @bar: its @memory and @fd are set; the memory is zero
 * @name: name of the memory in /proc, for debugging
 * @size: bytes
 * @flags: see struct device_bar
 *
 * The host maps the memory and writes to it at any time: read it with __atomic_load_n().
 * Return: 0 or -errno.
 */
int bar_create(struct device_bar *bar, const char *name, uint64_t size, uint32_t flags);

/**
 * bar_destroy() - unmap it; a BAR that was never made is no error
 * @bar: the BAR
 */
void bar_destroy(struct device_bar *bar);

/* ------------------------------------------------------------ the host --- */

#define HOST_BURST	(256u << 10)	/* bytes copied at once: an unmap waits for that long */
#define HOST_PATIENCE	5		/* seconds for the host to take or answer a message */

/* how a transaction is made, and what a region of the host allows */
#define HOST_READ	1u		/* as VFIO_DMA_MAP_FLAG_READ */
#define HOST_WRITE	2u		/* as VFIO_DMA_MAP_FLAG_WRITE */
#define HOST_WORDS	4u		/* of 64 bits, which become visible first to last */
#define HOST_LEFT	8u		/* it left while bus mastering was on */

/**
 * enum host_answer - what became of a transaction
 * @HOST_DONE: it was made
 * @HOST_NOTHING: nothing is at that address, or it must not be reached in this way
 * @HOST_NO_MASTER: bus mastering is off
 * @HOST_GONE: a reset cut it short, or the host has gone: no fault of anybody's
 */
enum host_answer {
	HOST_DONE,
	HOST_NOTHING,
	HOST_NO_MASTER,
	HOST_GONE,
};

struct host;

/**
 * host_begin() - hold memory and bus mastering until host_end()
 * @host: the host
 *
 * Takes the host's lock for reading. An unmap or a change of bus mastering waits for host_end(), so
 * that no earlier access is in flight when it is answered. Copy at most HOST_BURST bytes before
 * you release the lock. Do not take it twice, nor while holding a lock that the protocol thread
 * wants.
 */
void host_begin(struct host *host);

/**
 * host_end() - what host_begin() or host_exclude() began is over
 * @host: the host
 */
void host_end(struct host *host);

/**
 * host_exclude() - wait until no transaction is under way, and let none begin
 * @host: the host
 *
 * For a device that changes what its own transactions depend on, like an address table, in the
 * same way: until host_end(). The protocol thread only.
 */
void host_exclude(struct host *host);

/**
 * host_access() - make a transaction, between host_begin() and host_end()
 * @host: the host
 * @how: HOST_READ or HOST_WRITE, and more
 * @addr: bus address
 * @data: data to write, or room for data to read
 * @length: bytes, at least 1
 * @refused: output: the address that failed, if any; or NULL
 *
 * The whole range is looked up before the first byte moves, so a refused transaction has no effect,
 * unless the host cuts off memory at that moment. Written data are visible before data of later
 * calls.
 *
 * Memory that the host cannot share is reached by messages. The lock is given away meanwhile,
 * for HOST_PATIENCE seconds at most: what you looked up under it may have changed.
 * Return: see enum host_answer.
 */
enum host_answer host_access(struct host *host, unsigned int how, uint64_t addr, void *data,
			     size_t length, uint64_t *refused);

/**
 * host_check() - would all of this be made? Nothing moves
 * @host: the host
 * @how: as that of host_access()
 * @addr: bus address
 * @length: bytes, of any number
 * @refused: the address that is at fault, if one is; or NULL
 *
 * Return: see enum host_answer.
 */
enum host_answer host_check(struct host *host, unsigned int how, uint64_t addr, uint64_t length,
			    uint64_t *refused);

/**
 * host_interrupt() - send a vector of MSI-X, between host_begin() and host_end()
 * @host: the host
 * @vector: below &device.vectors
 * @sent: incremented before the interrupt can be seen
 *
 * Without MSI-X Enable it asserts INTx, if there is a pin, until host_intx_clear(). An interrupt
 * without a listener is dropped and not counted; the answer is HOST_DONE.
 * Return: HOST_DONE, or HOST_NO_MASTER: an interrupt is a write, too.
 */
enum host_answer host_interrupt(struct host *host, uint32_t vector, _Atomic uint64_t *sent);

/**
 * host_is_master() - is bus mastering on?
 * @host: the host
 *
 * It may change at once, but not between host_begin() and host_end().
 * Return: whether it is.
 */
bool host_is_master(struct host *host);

/**
 * host_intx_pending() - is INTx asserted?
 * @host: the host
 *
 * Return: whether it is.
 */
bool host_intx_pending(struct host *host);

/**
 * host_intx_clear() - assert INTx no more
 * @host: the host
 *
 * &device_ops.reset has to do that, too.
 */
void host_intx_clear(struct host *host);

/**
 * host_abort() - give up messages to the host
 * @host: the host
 * @on: the one under way and all that follow are HOST_GONE; false: no more
 *
 * The protocol thread only; see &device_ops.reset.
 */
void host_abort(struct host *host, bool on);

/**
 * host_link() - the link of the function goes or comes back
 * @host: the host
 * @up: configuration space is as after a reset; false: no transaction leaves any more, until the
 *	host switches bus mastering on again. &device_ops.answers has to hide that
 *
 * The protocol thread only.
 */
void host_link(struct host *host, bool up);

/* ---------------------------------------------------------- the program --- */

/**
 * struct device_options - options of every device program
 * @memory: bytes of on-board memory: --memory, a power of two
 * @dtps: --dtps
 * @vectors: --vectors, at most DEVICE_VECTORS_MAX
 * @entries: --entries, number of entries in the address table
 */
struct device_options {
	uint64_t memory;
	uint32_t dtps, vectors, entries;
};

struct argp;
struct server;

/**
 * server_open() - parse the options of a device program, listen
 * @argc: argument of main()
 * @argv: argument of main()
 * @options: defaults on input; options of the command line replace them
 * @more: options of this device alone, or NULL
 * @input: for @more
 *
 * Knows --socket PATH, --control PATH, --log FILE, --verbose and those of struct device_options.
 * Blocks the signals that end the program: call it before there are threads. Ends the program if
 * something is wrong.
 * Return: the server; there is one in a program.
 */
struct server *server_open(int argc, char **argv, struct device_options *options,
			   const struct argp *more, void *input);

struct argp_state;

/**
 * option_count() - parse the number of an option
 * @text: the option's argument
 * @least: the least
 * @most: the most
 * @what: the option, for the message that ends the program
 * @state: state of the parser
 *
 * Return: the number.
 */
uint32_t option_count(const char *text, uint32_t least, uint32_t most, const char *what,
		      const struct argp_state *state);

/**
 * server_host() - the host of the device
 * @server: the server
 *
 * Return: the host, which stays until server_run() returns.
 */
struct host *server_host(struct server *server);

/**
 * server_run() - serve one client after the other, until a signal comes
 * @server: the server
 * @device: the device
 *
 * When the client goes, the device is reset, and the host has nothing any more.
 * Return: the exit status of the program; the device has been reset.
 */
int server_run(struct server *server, struct device *device);

#endif /* DEVICE_H */
