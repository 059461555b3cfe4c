/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * librashpa: one function for each operation of the rashpa driver.
 *
 * The structs and their fields are those of <linux/rashpa.h>, which is the reference.
 */
#ifndef RASHPA_H
#define RASHPA_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <linux/rashpa.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * DOC: Conventions
 *
 * - Functions return 0, a file descriptor or a number (>= 0), or a negative errno. errno
 *   itself is not a part of the interface.
 * - After a failure rashpa_reason() returns a sentence that names the thing, the reason and,
 *   if known, the remedy.
 * - A function whose name ends with _get_info describes a thing, one with _get_stat counts.
 * - The functions that take a struct fill in &struct rashpa_head (``size``, ``reason``,
 *   ``reason_size``); ``head.flags`` and all other fields are the caller's. Begin with a
 *   struct of zeros.
 * - Times are nanoseconds. A wait ends with -ETIMEDOUT after its timeout; 0: it does not wait, -1: it
 *   waits for ever. A function that takes the next thing returns 1, or 0 at the end.
 * - File descriptors are close-on-exec and belong to the caller.
 * - The only hidden state is the sentence of each thread: every function may be called from any
 *   thread.
 * - The nodes are searched in the directory of the environment variable ``RASHPA_DEV``, or in
 *   /dev/rashpa. Set-uid programs ignore the variable.
 */

/**
 * DOC: Growth
 *
 * - Structs grow at their end. A program that was built with an older or a newer header runs with
 *   this library: the functions that take such a struct are inline, and hand on its size in the
 *   program. The library reads and writes that many bytes. Members that it does not know become 0.
 * - Other languages call rashpa_ioctl(), or the function whose name ends with _sized, with the size
 *   of the struct as they declare it.
 * - &struct rashpa_event, &struct rashpa_queue and &struct rashpa_wait do not grow.
 */

/**
 * rashpa_reason() - the sentence of this thread's last failure
 *
 * Return: a string that stays valid until the next call of this library in this thread, never NULL.
 */
const char *rashpa_reason(void);

/**
 * rashpa_fail() - set the sentence of this thread, for libraries that use this one
 * @error: an errno, positive
 * @format: format of printf() for the sentence, and its arguments
 *
 * Return: -@error
 */
int rashpa_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/**
 * rashpa_version() - version of the library that the program runs with
 *
 * Return: a string like "0.3.0", never NULL.
 */
const char *rashpa_version(void);

/**
 * rashpa_device_directory() - directory of the nodes
 *
 * Return: a string, never NULL.
 */
const char *rashpa_device_directory(void);

/**
 * rashpa_ioctl() - call any operation, even one that this library does not know
 * @fd: node or object
 * @request: RASHPA_IOC_*
 * @arg: struct that begins with &struct rashpa_head; its size and reason are filled in
 * @size: sizeof(\*arg)
 *
 * Return: 0 or a negative errno.
 */
int rashpa_ioctl(int fd, unsigned long request, void *arg, size_t size);

/* rashpa_memory_alloc_for() with the size of the caller's struct. */
int rashpa_memory_alloc_for_sized(int memory, int device, struct rashpa_alloc *alloc, size_t size);
/* rashpa_node_list() and rashpa_table_read(), with the size of one element of the caller's array. */
int rashpa_node_list_sized(int node, struct rashpa_holding **holdings, size_t size);
int rashpa_table_read_sized(const struct rashpa_table *table, struct rashpa_table *copy,
			    uint32_t room, size_t size);

/* --- memory --- */

/**
 * rashpa_memory_open() - open the memory node
 *
 * Return: a file descriptor or a negative errno.
 */
int rashpa_memory_open(void);

/**
 * rashpa_memory_alloc() - make a contiguous, zeroed buffer
 * @memory: from rashpa_memory_open()
 * @alloc: see &struct rashpa_alloc
 *
 * Return: its dma-buf fd (also in @alloc->out_fd) or a negative errno.
 */
static inline int rashpa_memory_alloc(int memory, struct rashpa_alloc *alloc)
{
	int error = rashpa_ioctl(memory, RASHPA_IOC_ALLOC, alloc, sizeof(*alloc));

	return error ? error : alloc->out_fd;
}

/* rashpa_memory_alloc_huge() with the size of the caller's struct. */
int rashpa_memory_alloc_huge_sized(int memory, uint64_t page, struct rashpa_alloc *alloc, size_t size);

/**
 * rashpa_memory_alloc_huge() - make a buffer of huge pages that are reserved (hugetlb)
 * @memory: from rashpa_memory_open()
 * @page: bytes of a huge page, which the kernel has a pool of: on x86 2 MiB or 1 GiB
 * @alloc: see &struct rashpa_alloc; length is rounded up to whole huge pages, backend and memfd are
 *	set
 *
 * The pages are zeroed, with RASHPA_ALLOC_NODE of that NUMA node. They go back to their pool with
 * the buffer.
 *
 * Return: its dma-buf fd (also in @alloc->out_fd) or a negative errno: ENOMEM, the pool has too
 * few free pages; EINVAL, no pool has pages of that size.
 */
static inline int rashpa_memory_alloc_huge(int memory, uint64_t page, struct rashpa_alloc *alloc)
{
	return rashpa_memory_alloc_huge_sized(memory, page, alloc, sizeof(*alloc));
}

/**
 * rashpa_memory_pin() - memory of this process as a dma-buf
 * @memory: from rashpa_memory_open()
 * @pin: see &struct rashpa_pin
 *
 * Return: its dma-buf fd (also in @pin->out_fd) or a negative errno, -ENOMEM if
 * RLIMIT_MEMLOCK does not allow so much.
 */
static inline int rashpa_memory_pin(int memory, struct rashpa_pin *pin)
{
	int error = rashpa_ioctl(memory, RASHPA_IOC_PIN, pin, sizeof(*pin));

	return error ? error : pin->out_fd;
}

/**
 * rashpa_memory_query() - ask which buffers would fit
 * @memory: from rashpa_memory_open()
 * @query: see &struct rashpa_query
 *
 * Return: 0 or a negative errno.
 */
static inline int rashpa_memory_query(int memory, struct rashpa_query *query)
{
	return rashpa_ioctl(memory, RASHPA_IOC_QUERY, query, sizeof(*query));
}

/**
 * rashpa_node_list() - list the objects and their holders
 * @node: the memory node, or a function's node
 * @holdings: becomes an array for free(), NULL if there is nothing
 *
 * Asks until the list is complete. Objects that are made or ended meanwhile may be listed or not.
 *
 * Return: number of elements, or a negative errno.
 */
static inline int rashpa_node_list(int node, struct rashpa_holding **holdings)
{
	return rashpa_node_list_sized(node, holdings, sizeof(**holdings));
}

/**
 * rashpa_memory_limit() - limit and use of a resource
 * @memory: from rashpa_memory_open()
 * @resource: enum rashpa_resource
 * @limit: see &struct rashpa_limit
 *
 * Return: 0 or a negative errno, -EINVAL if the driver knows no such resource.
 */
static inline int rashpa_memory_limit(int memory, uint32_t resource, struct rashpa_limit *limit)
{
	memset(limit, 0, sizeof(*limit));
	limit->resource = resource;
	return rashpa_ioctl(memory, RASHPA_IOC_LIMIT, limit, sizeof(*limit));
}

/**
 * rashpa_memory_get_info() - describe a memory
 * @node: the memory node, or a buffer's node with @info->fd -1
 * @info: see &struct rashpa_info; @info->fd is any dma-buf fd
 *
 * Return: 0 or a negative errno.
 */
static inline int rashpa_memory_get_info(int node, struct rashpa_info *info)
{
	return rashpa_ioctl(node, RASHPA_IOC_INFO, info, sizeof(*info));
}

/**
 * rashpa_mmap() - map a memory so that the CPU can use huge page-table entries
 * @fd: a dma-buf, or a buffer's node
 * @offset: first byte, a multiple of the page size
 * @length: bytes, > 0
 * @prot: PROT_READ, PROT_WRITE
 * @address: becomes the address
 *
 * Huge entries need an address that is aligned like the memory. So it is a multiple of 2 MiB if
 * @offset is one, and of 1 GiB if @length is one. A mapping of less than 2 MiB is a plain mmap().
 * Undo it with munmap(@address, @length). Buffers of huge pages are mapped in whole pages.
 *
 * Return: 0 or a negative errno.
 */
int rashpa_mmap(int fd, uint64_t offset, uint64_t length, int prot, void **address);

/**
 * rashpa_sync_begin() - before the CPU touches a memory that a device uses
 * @dmabuf: any dma-buf
 * @prot: accesses of the CPU that follow: PROT_READ, PROT_WRITE
 *
 * Does nothing where caches are coherent with devices, as on x86; portable programs and
 * memory of other drivers need it. Pairs with rashpa_sync_end(), with the same @prot.
 *
 * Return: 0 or a negative errno.
 */
int rashpa_sync_begin(int dmabuf, int prot);

/**
 * rashpa_sync_end() - after the CPU has touched a memory that a device uses
 * @dmabuf: any dma-buf
 * @prot: as for rashpa_sync_begin()
 *
 * Return: 0 or a negative errno.
 */
int rashpa_sync_end(int dmabuf, int prot);

/* --- buffers --- */

/**
 * rashpa_open() - the dma-buf of a named buffer
 * @name: name of the buffer
 * @flags: O_RDONLY or O_RDWR; with O_EXCL as an exclusive lease
 *
 * Opens the node, takes its dma-buf, closes the node: the lease goes with the dma-buf.
 *
 * Return: a dma-buf fd or a negative errno, -EBUSY if the buffer has a lease that excludes
 * this one, -EACCES if owner, group and mode of its node do not permit it.
 */
int rashpa_open(const char *name, int flags);

/**
 * rashpa_buffer_remove() - remove a named buffer
 * @name: name of the buffer
 *
 * Return: 0 or a negative errno, -EBUSY if the buffer is in use, -EPERM if it belongs to another
 * user.
 */
int rashpa_buffer_remove(const char *name);

/**
 * rashpa_buffer_open() - open the node of a named buffer
 * @name: name of the buffer
 * @flags: O_RDONLY or O_RDWR, with O_EXCL as an exclusive lease; or O_ACCMODE, which takes no
 *	lease, for rashpa_memory_get_info()
 *
 * rashpa_mmap() the result to reach the memory. It is a lease, see &struct rashpa_alloc.
 * Owner and mode are those of the file: fstat(), fchown(), fchmod().
 *
 * Return: a file descriptor or a negative errno, -EBUSY if the buffer has a lease that
 * excludes this one.
 */
int rashpa_buffer_open(const char *name, int flags);

/**
 * rashpa_buffer_dmabuf() - the dma-buf of an opened buffer node
 * @buffer: from rashpa_buffer_open()
 *
 * Return: a dma-buf fd or a negative errno.
 */
int rashpa_buffer_dmabuf(int buffer);

/**
 * rashpa_buffer_role() - become the only producer or consumer of a buffer, or ask for its process
 * @buffer: from rashpa_buffer_open()
 * @role: see &struct rashpa_role
 *
 * Return: 0 or a negative errno, -EBUSY if another file has the role.
 */
static inline int rashpa_buffer_role(int buffer, struct rashpa_role *role)
{
	return rashpa_ioctl(buffer, RASHPA_IOC_ROLE, role, sizeof(*role));
}

/**
 * rashpa_buffer_list() - names of all named buffers, sorted
 * @names: becomes an array; free it with rashpa_buffer_list_free()
 *
 * Return: number of names, or a negative errno; -ENOENT if the driver is not loaded.
 */
int rashpa_buffer_list(char ***names);

/**
 * rashpa_buffer_list_free() - free the array of rashpa_buffer_list()
 * @names: the array
 * @count: number of names
 */
void rashpa_buffer_list_free(char **names, int count);

/* --- bound PCI functions --- */

/**
 * rashpa_device_list() - numbers N of all /dev/rashpa/fpgaN, sorted
 * @numbers: becomes an array; free() it
 *
 * Return: number of devices, or a negative errno; -ENOENT if the driver is not loaded.
 */
int rashpa_device_list(unsigned int **numbers);

/**
 * rashpa_device_open() - open /dev/rashpa/fpgaN
 * @number: N
 *
 * Return: a file descriptor or a negative errno.
 */
int rashpa_device_open(unsigned int number);

/**
 * rashpa_device_get_info() - identity and state of the function
 * @device: from rashpa_device_open()
 * @info: filled in
 *
 * Return: 0 or a negative errno.
 */
static inline int rashpa_device_get_info(int device, struct rashpa_device_info *info)
{
	memset(info, 0, sizeof(*info));
	return rashpa_ioctl(device, RASHPA_IOC_DEVICE_INFO, info, sizeof(*info));
}

/**
 * rashpa_memory_alloc_for() - make a contiguous, zeroed buffer that a function reaches
 * @memory: from rashpa_memory_open()
 * @device: from rashpa_device_open()
 * @alloc: see &struct rashpa_alloc; dma_bits is set to the function's, or to 0 where an IOMMU
 *	translates
 *
 * Without RASHPA_ALLOC_NODE, memory of the function's NUMA node is taken, or of any node if that has
 * none.
 *
 * Return: its dma-buf fd (also in @alloc->out_fd) or a negative errno.
 */
static inline int rashpa_memory_alloc_for(int memory, int device, struct rashpa_alloc *alloc)
{
	return rashpa_memory_alloc_for_sized(memory, device, alloc, sizeof(*alloc));
}

/**
 * rashpa_device_region() - one BAR
 * @device: from rashpa_device_open()
 * @bar: 0 to 5
 * @info: filled in
 *
 * Return: 0 or a negative errno.
 */
static inline int rashpa_device_region(int device, unsigned int bar,
				       struct rashpa_region_info *info)
{
	memset(info, 0, sizeof(*info));
	info->bar = bar;
	return rashpa_ioctl(device, RASHPA_IOC_REGION_INFO, info, sizeof(*info));
}

/**
 * rashpa_device_engine() - one engine of the profile
 * @device: from rashpa_device_open()
 * @index: 0 to out_engines - 1 of rashpa_device_get_info()
 * @info: filled in
 *
 * Return: 0 or a negative errno.
 */
static inline int rashpa_device_engine(int device, unsigned int index,
				       struct rashpa_engine_info *info)
{
	memset(info, 0, sizeof(*info));
	info->index = index;
	return rashpa_ioctl(device, RASHPA_IOC_ENGINE_INFO, info, sizeof(*info));
}

/**
 * rashpa_device_profile() - describe the board to the driver
 * @device: from rashpa_device_open()
 * @profile: see &struct rashpa_profile_set
 *
 * Return: 0 or a negative errno.
 */
static inline int rashpa_device_profile(int device, struct rashpa_profile_set *profile)
{
	return rashpa_ioctl(device, RASHPA_IOC_PROFILE_SET, profile, sizeof(*profile));
}

/**
 * rashpa_device_window() - a range of a BAR as a memory
 * @device: from rashpa_device_open()
 * @window: see &struct rashpa_window_make
 *
 * Return: its dma-buf fd (also in @window->out_fd) or a negative errno.
 */
static inline int rashpa_device_window(int device, struct rashpa_window_make *window)
{
	int error = rashpa_ioctl(device, RASHPA_IOC_WINDOW_MAKE, window, sizeof(*window));

	return error ? error : window->out_fd;
}

/**
 * rashpa_device_map() - translate a memory for a function
 * @device: from rashpa_device_open()
 * @map: see &struct rashpa_map_make
 *
 * Return: the map (also in @map->out_fd) or a negative errno.
 */
static inline int rashpa_device_map(int device, struct rashpa_map_make *map)
{
	int error = rashpa_ioctl(device, RASHPA_IOC_MAP_MAKE, map, sizeof(*map));

	return error ? error : map->out_fd;
}

/**
 * rashpa_map_program() - make the kernel write a map's table into the function
 * @map: from rashpa_device_map()
 * @program: see &struct rashpa_program
 *
 * Return: 0 or a negative errno.
 */
static inline int rashpa_map_program(int map, struct rashpa_program *program)
{
	return rashpa_ioctl(map, RASHPA_IOC_PROGRAM, program, sizeof(*program));
}

/**
 * rashpa_table_map() - map the table of a map's addresses
 * @map: from rashpa_device_map()
 * @size: out_table_size of the same map
 * @table: becomes the read-only mapping; rashpa_table_unmap() it
 *
 * Return: 0 or a negative errno, -EPERM if the addresses are not disclosed.
 */
int rashpa_table_map(int map, uint64_t size, const struct rashpa_table **table);

/**
 * rashpa_table_unmap() - undo rashpa_table_map()
 * @table: the mapping
 * @size: as it was mapped
 */
void rashpa_table_unmap(const struct rashpa_table *table, uint64_t size);

/**
 * rashpa_table_read() - copy the addresses of a map while the kernel may change them
 * @table: from rashpa_table_map()
 * @copy: becomes the header, and as many segments as fit
 * @room: segments that fit after the header in @copy; at most out_segments of the map
 *
 * Takes no lock and makes no system call. A program that follows a map reads its table again when
 * the generation has changed. A copy is always of one generation.
 *
 * Return: segments of the table, possibly more than @room, or -EAGAIN if the kernel kept changing
 * it.
 */
static inline int rashpa_table_read(const struct rashpa_table *table, struct rashpa_table *copy,
				    uint32_t room)
{
	return rashpa_table_read_sized(table, copy, room, sizeof(copy->segment[0]));
}

/**
 * rashpa_map_restore() - map the memory again after a revocation
 * @map: from rashpa_device_map()
 * @restore: see &struct rashpa_restore
 *
 * Return: 0 or a negative errno, -EAGAIN while the memory's function is being reset.
 */
static inline int rashpa_map_restore(int map, struct rashpa_restore *restore)
{
	return rashpa_ioctl(map, RASHPA_IOC_RESTORE, restore, sizeof(*restore));
}

/**
 * rashpa_device_quiesce() - stop all DMA of the function now
 * @device: from rashpa_device_open()
 * @time_ns: becomes the time that it took, or NULL
 *
 * Return: 0 or a negative errno.
 */
int rashpa_device_quiesce(int device, uint64_t *time_ns);

/**
 * rashpa_device_quiesce_map() - end one map, whichever process holds it
 * @device: from rashpa_device_open()
 * @id: id of the map, see rashpa_node_list()
 *
 * Return: 0 or a negative errno, -EPERM if it belongs to another user, -ENOENT.
 */
int rashpa_device_quiesce_map(int device, uint32_t id);

/**
 * rashpa_device_reset() - function reset
 * @device: from rashpa_device_open()
 *
 * Return: 0 or a negative errno.
 */
int rashpa_device_reset(int device);

/* --- events --- */

/**
 * rashpa_doorbell() - ring: store a word to a mapped doorbell page
 * @window: address of the mapped window, from rashpa_mmap()
 * @offset: bytes from there to the word; a multiple of 4, inside the mapping
 * @value: value to store, one store of 32 bits
 *
 * Earlier reads and writes of this thread are complete before the function sees the word. A window
 * of a removed function raises SIGBUS.
 */
void rashpa_doorbell(volatile void *window, uint64_t offset, uint32_t value);

/**
 * rashpa_doorbell64() - the same with a store of 64 bits
 * @window: address of the mapped window, from rashpa_mmap()
 * @offset: bytes from there to the word; a multiple of 8, inside the mapping
 * @value: value to store; a bridge may split it, the lower half first
 */
void rashpa_doorbell64(volatile void *window, uint64_t offset, uint64_t value);

/**
 * rashpa_channel_open() - make an event channel
 * @node: from rashpa_device_open(), or rashpa_memory_open() for one without a function
 * @depth: capacity of its queue in records, 0 for the default
 *
 * read() &struct rashpa_event from it; poll() it.
 *
 * Return: the channel or a negative errno.
 */
int rashpa_channel_open(int node, unsigned int depth);

/**
 * rashpa_channel_create() - make an event channel for rashpa_ring_map()
 * @node: from rashpa_device_open(), or rashpa_memory_open() for one without a function
 * @make: see &struct rashpa_channel_make
 *
 * Return: the channel (also in @make->out_fd) or a negative errno.
 */
static inline int rashpa_channel_create(int node, struct rashpa_channel_make *make)
{
	int error = rashpa_ioctl(node, RASHPA_IOC_CHANNEL_MAKE, make, sizeof(*make));

	return error ? error : make->out_fd;
}

/**
 * rashpa_memory_look() - check the watched words of a memory and make their events
 * @memory: from rashpa_memory_open()
 * @fd: dma-buf of the memory, open for writing
 *
 * For producers that are programs. Store the words with release semantics; then receivers of the
 * event see all earlier writes.
 *
 * Return: number of events that this made, or a negative errno.
 */
int rashpa_memory_look(int memory, int fd);

/**
 * rashpa_channel_add() - listen to a source that needs only a number
 * @channel: from rashpa_channel_open()
 * @kind: RASHPA_SOURCE_VECTOR, RASHPA_SOURCE_DEVICE, RASHPA_SOURCE_SOFTWARE or
 *	RASHPA_SOURCE_MAP
 * @index: number of the vector or of the map, or 0
 *
 * Return: id of the source in the records (> 0) or a negative errno.
 */
int rashpa_channel_add(int channel, unsigned int kind, unsigned int index);

/**
 * rashpa_channel_listen() - listen to any source
 * @channel: from rashpa_channel_open()
 * @source: see &struct rashpa_source_add
 *
 * Return: id of the source in the records (> 0, also in @source->out_id) or a negative errno,
 * -E2BIG if the driver is older than the request.
 */
static inline int rashpa_channel_listen(int channel, struct rashpa_source_add *source)
{
	int error = rashpa_ioctl(channel, RASHPA_IOC_SOURCE_ADD, source, sizeof(*source));

	return error ? error : (int)source->out_id;
}

/**
 * rashpa_channel_del() - stop listening
 * @channel: from rashpa_channel_open()
 * @id: from rashpa_channel_add(), rashpa_channel_listen() or rashpa_channel_group()
 *
 * Return: 0 or a negative errno.
 */
int rashpa_channel_del(int channel, unsigned int id);

/**
 * rashpa_source_get_info() - counts of a source
 * @channel: from rashpa_channel_open()
 * @info: see &struct rashpa_source_info; @info->id selects the source
 *
 * Return: 0 or a negative errno.
 */
static inline int rashpa_source_get_info(int channel, struct rashpa_source_info *info)
{
	return rashpa_ioctl(channel, RASHPA_IOC_SOURCE_INFO, info, sizeof(*info));
}

/**
 * rashpa_channel_group() - make one event when all sources have reached the same position
 * @channel: from rashpa_channel_open()
 * @group: see &struct rashpa_group_make
 *
 * Return: id of the group in the records (> 0, also in @group->out_id) or a negative errno.
 */
static inline int rashpa_channel_group(int channel, struct rashpa_group_make *group)
{
	int error = rashpa_ioctl(channel, RASHPA_IOC_GROUP_MAKE, group, sizeof(*group));

	return error ? error : (int)group->out_id;
}

/**
 * rashpa_channel_ack() - report the position of a group's consumer
 * @channel: from rashpa_channel_open()
 * @id: from rashpa_channel_group()
 * @position: everything before it may be overwritten
 *
 * rashpa_ring_ack() does the same without a system call.
 *
 * Return: 0 or a negative errno.
 */
int rashpa_channel_ack(int channel, unsigned int id, uint64_t position);

/**
 * rashpa_group_get_info() - positions of a group and its members
 * @channel: from rashpa_channel_open()
 * @info: see &struct rashpa_group_info; @info->id selects the group
 *
 * Return: 0 or a negative errno.
 */
static inline int rashpa_group_get_info(int channel, struct rashpa_group_info *info)
{
	return rashpa_ioctl(channel, RASHPA_IOC_GROUP_INFO, info, sizeof(*info));
}

/**
 * rashpa_channel_eventfd() - signal an eventfd as well
 * @channel: from rashpa_channel_open()
 * @id: from rashpa_channel_add(), 0 for all sources
 * @fd: the eventfd, -1 to stop
 *
 * Return: 0 or a negative errno.
 */
int rashpa_channel_eventfd(int channel, unsigned int id, int fd);

/**
 * rashpa_channel_signal() - make a software event
 * @channel: from rashpa_channel_open(), with RASHPA_SOURCE_SOFTWARE
 * @value: value for the record
 *
 * Return: 0 or a negative errno.
 */
int rashpa_channel_signal(int channel, uint64_t value);

/**
 * rashpa_channel_arm() - arm a source with RASHPA_SOURCE_ONE_SHOT for its next event
 * @channel: from rashpa_channel_open()
 * @id: id of the source
 *
 * Read the existing records first, then call this. An event that came meanwhile makes a record at
 * once, so no event is lost.
 *
 * Return: 1 if an event came at once, which disarms the source again, 0 if it waits for one, or
 * a negative errno.
 */
int rashpa_channel_arm(int channel, unsigned int id);

/* --- events without a system call --- */

/**
 * struct rashpa_queue - a channel's queue as this process sees it
 * @channel: the channel; stays the caller's
 * @ring: the kernel's part of the queue
 * @consumer: this process's part of the queue
 * @ring_size: bytes mapped at @ring
 * @consumer_size: bytes mapped at @consumer
 *
 * For one thread at a time.
 */
struct rashpa_queue {
	int channel;
	const struct rashpa_ring *ring;
	struct rashpa_consumer *consumer;
	size_t ring_size, consumer_size;
};

/**
 * rashpa_ring_map() - map the queue of a channel
 * @channel: from rashpa_channel_create()
 * @make: the struct that rashpa_channel_create() filled in
 * @queue: filled in; rashpa_ring_unmap() it
 *
 * Return: 0 or a negative errno.
 */
int rashpa_ring_map(int channel, const struct rashpa_channel_make *make,
		    struct rashpa_queue *queue);

/**
 * rashpa_ring_unmap() - undo rashpa_ring_map()
 * @queue: the mapping; the channel stays open
 */
void rashpa_ring_unmap(struct rashpa_queue *queue);

/**
 * rashpa_ring_next() - take the oldest record
 * @queue: from rashpa_ring_map()
 * @event: becomes the record
 *
 * Data that hardware wrote before it sent the event can be read now.
 *
 * Return: 1, or 0 if the queue is empty.
 */
int rashpa_ring_next(struct rashpa_queue *queue, struct rashpa_event *event);

/**
 * rashpa_ring_wait() - sleep until a record comes
 * @queue: from rashpa_ring_map()
 * @timeout_ns: longest wait
 *
 * Makes no system call if a record has come already. If read() or another thread took the record
 * that woke it, the wait goes on for the rest of the time.
 *
 * Return: 0 if a record has come, or a negative errno: -ETIMEDOUT, -EINTR, -EBADF if the channel was
 * closed, or -ENODEV if the function of the channel was removed and no record is left.
 */
int rashpa_ring_wait(struct rashpa_queue *queue, int64_t timeout_ns);

/**
 * rashpa_ring_ack() - report the position of a group's consumer
 * @queue: from rashpa_ring_map()
 * @id: from rashpa_channel_group()
 * @position: everything before it may be overwritten
 *
 * Return: 0, or -EINVAL for an id out of range.
 */
int rashpa_ring_ack(struct rashpa_queue *queue, unsigned int id, uint64_t position);

/* --- waiting for a word of memory --- */

/**
 * struct rashpa_wait - condition, limits and statistics of waits for a word
 * @word: the word, in mapped lock memory or in a buffer, aligned to its width
 * @bits: width of the word, 32 or 64
 * @condition: enum rashpa_condition
 * @mask: bits of the word that count; 0 for all
 * @value: operand of the condition. RASHPA_CONDITION_CHANGED: the word as last seen;
 *	rashpa_lock_wait() stores here the word that it saw. A word of 32 bits without a mask
 *	wraps: as for &struct rashpa_source_add, CHANGED and REACHED compare its position, which
 *	has 64 bits
 * @queue: queue of a channel that serves only this wait: a RASHPA_SOURCE_LOCK of the same word,
 *	or the vector that follows its writes. The wait takes its records. NULL: no channel; the
 *	word is polled every millisecond
 * @spin_max_ns: longest spin of one wait; 0 for 100 us
 * @budget: share of one CPU in thousandths that spinning may use, over some 100 ms; 0 for 250,
 *	1000 for all. To sleep at once, set @spin_max_ns to 1
 * @__reserved: not used
 * @spin_ns: private to the library: duration of the next spin
 * @credit_ns: private to the library: rest of the budget
 * @last_ns: private to the library: time when the budget was counted
 * @position: private to the library: position of a word that wraps, at the last check
 * @waits: calls that found the condition unfulfilled at first
 * @slept: calls among @waits that slept
 * @spent_ns: CPU time spent spinning
 *
 * Begin with a struct of zeros, and keep it from wait to wait. For one thread at a time.
 */
struct rashpa_wait {
	const volatile void *word;
	uint32_t bits;
	uint32_t condition;
	uint64_t mask;
	uint64_t value;
	struct rashpa_queue *queue;
	uint64_t spin_max_ns;
	uint32_t budget;
	uint32_t __reserved;
	uint64_t spin_ns;
	uint64_t credit_ns;
	uint64_t last_ns;
	uint64_t position;
	uint64_t waits;
	uint64_t slept;
	uint64_t spent_ns;
};

/**
 * rashpa_lock_wait() - wait for a word that hardware writes
 * @wait: see &struct rashpa_wait
 * @timeout_ns: longest wait
 * @seen: becomes the word, masked, as it was when it fulfilled the condition; or NULL
 *
 * Spins first if that is likely to suffice. While waits are short it spins longer, up to the
 * limits; when they become long it does not spin at all. Then it sleeps until an event comes
 * through the channel. Spinning saves power where the CPU can (UMWAIT on x86).
 *
 * Data that hardware wrote before the word can be read when this returns 0.
 *
 * A word that fulfils the condition counts, even if the function was removed. Only the channel
 * reports the removal: without @wait->queue a word that is never written again ends in -ETIMEDOUT,
 * or never.
 *
 * Return: 0, -ETIMEDOUT, -EINTR, -EINVAL, or -ENODEV if the function of the channel was removed.
 */
int rashpa_lock_wait(struct rashpa_wait *wait, int64_t timeout_ns, uint64_t *seen);

/* --- names of numbers, for people --- */

/** rashpa_backend_name() - "auto", "cma", "contig", "huge", or "?" */
const char *rashpa_backend_name(unsigned int backend);
/** rashpa_cache_name() - "default", "cached", "wc", "uc", or "?" */
const char *rashpa_cache_name(unsigned int cache);
/** rashpa_direction_name() - "both", "to-memory", "from-memory", or "?" */
const char *rashpa_direction_name(unsigned int direction);
/** rashpa_class_name() - "host", "iova", "peer", "bridge", or "?" */
const char *rashpa_class_name(unsigned int map_class);
/** rashpa_map_state_name() - "valid", "revoked", or "?" */
const char *rashpa_map_state_name(unsigned int state);
/** rashpa_resource_name() - "memory", "name", "window", "map", "channel", "source" ..., or "?" */
const char *rashpa_resource_name(unsigned int resource);
/** rashpa_kind_name() - "buffer", "window", "foreign", "pinned", "lock", or "?" */
const char *rashpa_kind_name(unsigned int kind);
/** rashpa_source_name() - "vector", "device", "lock" and so on as the enum has them, or "?" */
const char *rashpa_source_name(unsigned int kind);
/** rashpa_condition_name() - "changed", "equal", "reached", or "?" */
const char *rashpa_condition_name(unsigned int condition);
/**
 * rashpa_device_event_name() - "quiesced", "reset", "stuck", "gone", "error", "engine stopped"
 * @event: enum rashpa_device_event
 *
 * Return: one of these, or "?".
 */
const char *rashpa_device_event_name(unsigned int event);
/** rashpa_state_name() - "ready", "stuck", or "?" */
const char *rashpa_state_name(unsigned int state);

#ifdef __cplusplus
}
#endif

#endif /* RASHPA_H */
