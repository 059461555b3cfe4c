/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An ioctl in progress, and the table that it is looked up in.
 *
 * The driver has rooms: core, memory, function, events, and main.c above them. Kbuild lists the
 * files in the order in which they stand on each other: each calls only what stands before it.
 *
 * Locks of all rooms, outermost first. Each is explained in the header of its room:
 *
 *   rashpa_names_lock
 *   rashpa_buffer.lock
 *   rashpa_device.lock
 *   rashpa_map.lock
 *   rashpa_channel.sources_lock	one rashpa_device.lock at most is held outside of it: that
 *			of the source
 *   mmap_lock		as page faults take it
 *   rashpa_device.bars_lock
 *   rashpa_device.windows_lock
 *   dma_resv		of a dma-buf, as its rules demand
 *   rashpa_device.hw_lock
 *   rashpa_words.lock
 *   rashpa_channel.wake_lock	(soft interrupt)
 *   rashpa_origin.lock	(hard interrupt)
 *   rashpa_channel.lock	(hard interrupt)
 *
 * rashpa_account_lock, rashpa_search_lock and rashpa_importers.lock are leaves;
 * rashpa_user.turn has only rashpa_search_lock inside;
 * rashpa_channel.read_lock has only page faults and rashpa_channel.lock inside.
 */
#ifndef RASHPA_CALL_H
#define RASHPA_CALL_H

#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/rashpa.h>
#include <linux/stddef.h>
#include <linux/types.h>

/* One ioctl in progress; only its thread knows it. */
struct rashpa_call {
	struct file *file;	/* the file it arrived on */
	void *obj;		/* its private_data, the object of the file */
	int fd;			/* reserved for @new_file, -1 if the call makes none */
	struct file *new_file;	/* installed once the answer is in user memory */
	char reason[RASHPA_REASON_SIZE];	/* sentence on failure */
};

/* ----------------------------------------------------------- table --- */

/* @arg: the kernel's copy of the struct. */
typedef int rashpa_handler(struct rashpa_call *call, void *arg);

#define RASHPA_OP_ANY		0
/* only on a file that is open for writing */
#define RASHPA_OP_WRITE		BIT(0)
/* The struct has no out_ fields: nothing is stored, so no store can fail after the work is done. */
#define RASHPA_OP_SILENT	BIT(1)
#define RASHPA_OP_WRITE_SILENT	(RASHPA_OP_WRITE | RASHPA_OP_SILENT)
/* It makes a file, whose descriptor is reserved before the work. */
#define RASHPA_OP_FD		BIT(2)
#define RASHPA_OP_WRITE_FD	(RASHPA_OP_WRITE | RASHPA_OP_FD)

/* Room for the largest struct; on the stack, so it has to stay small. */
union rashpa_arg {
	struct rashpa_head head;
	u8 room[256];
};

/* One line of the ioctl table; constant. */
struct rashpa_op {
	const struct file_operations *fops;	/* operations of the files that have it */
	unsigned int cmd;
	size_t min;		/* size of the struct as first published */
	size_t size;		/* size of the struct now */
	size_t reserved;	/* bytes of the struct that must be zero */
	size_t n_reserved;	/* their number */
	u32 flags;		/* flags that head.flags may hold */
	u32 rules;		/* RASHPA_OP_* */
	rashpa_handler *fn;
};

#define RASHPA_OP(_node, _cmd, _struct, _last, _rules, _fn, _flags, ...) {	\
	.fops = &rashpa_##_node##_fops,					\
	.cmd = RASHPA_IOC_##_cmd,					\
	.min = offsetofend(struct rashpa_##_struct, _last),		\
	.size = sizeof(struct rashpa_##_struct) +			\
		BUILD_BUG_ON_ZERO(sizeof(struct rashpa_##_struct) > sizeof(union rashpa_arg)), \
	.flags = (_flags),						\
	.rules = RASHPA_OP_##_rules,					\
	.fn = (_fn),							\
	##__VA_ARGS__							\
}

/* last argument of RASHPA_OP() for a struct with a reserved field */
#define RASHPA_OP_ZERO(_struct)						\
	.reserved = offsetof(struct rashpa_##_struct, __reserved),	\
	.n_reserved = sizeof_field(struct rashpa_##_struct, __reserved)

/* Set the table, before there is a node. */
void rashpa_call_init(const struct rashpa_op *ops, size_t n);

/* ---------------------------------------------------- for handlers --- */

__printf(3, 4)
int rashpa_fail(struct rashpa_call *call, int err, const char *fmt, ...);
long rashpa_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
int rashpa_check_name(struct rashpa_call *call, const char *name, size_t size);
void *rashpa_copy_array(struct rashpa_call *call, u64 from, u32 n, u32 usize, size_t min,
			size_t size);

/* Set *@to to a copy for kvfree(); @last: last member of the struct as first published. */
#define rashpa_copy(call, to, from, n, usize, last) ({					\
	typeof(to) _to = (to);								\
	void *_copy = rashpa_copy_array(call, from, n, usize,				\
					offsetofend(typeof(**_to), last), sizeof(**_to));	\
											\
	if (!IS_ERR(_copy))								\
		*_to = _copy;								\
	PTR_ERR_OR_ZERO(_copy);								\
})

int rashpa_store_array(struct rashpa_call *call, u64 to, u32 n, u32 usize, size_t min,
		       const void *from, size_t size);

#endif /* RASHPA_CALL_H */
