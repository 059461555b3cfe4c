/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All calls of the driver in one table: valid arguments, errors for each field, and how to undo
 * the call. A call that is added to the header and not here fails abi_test.
 */
#ifndef CALLS_H
#define CALLS_H

#include "common.h"

/* DOOMED: node of the buffer that REMOVE takes */
enum node { MEMORY, DOOMED, BUFFER, FPGA, MAP, CHANNEL, NODES };

/* Kinds of file descriptors. */
enum fd_kind {
	FD_NONE,		/* -1 */
	FD_CLOSED,
	FD_PATH,		/* O_PATH of /dev/rashpa/memory */
	FD_FILE,
	FD_PIPE,
	FD_EVENTFD,
	FD_MEMORY,
	FD_NODE,		/* node of a named buffer */
	FD_BUFFER,		/* dma-bufs from here on */
	FD_PINNED,
	FD_FOREIGN,
	FD_LOCK,
	FD_WINDOW,
	FD_FPGA,
	FD_FPGA_READ,		/* open read-only */
	FD_MAP,
	FD_CHANNEL,
	FD_KINDS
};

/* A field with a file descriptor. */
struct fd_field {
	size_t at;
	unsigned int takes;	/* 1 << enum fd_kind */
	const char *says;	/* words of the sentence that refuses all others, "a|b" */
};

/* A field with a pointer to @bytes. */
struct pointer_field {
	size_t at;
	uint32_t bytes;
	bool out;		/* the kernel writes there */
	bool pages;		/* whole pages only */
	uint32_t reserved;	/* offset of a reserved u32 in its target, 0: none */
	int null;		/* errno for NULL */
};

struct op {
	const char *name;
	const char *variant;	/* another use of a call that is already in the table */
	const char *tag;	/* name of its struct, without rashpa_ */
	enum node node;
	unsigned int cmd;
	uint32_t size;
	uint32_t first;		/* size as first published */
	uint32_t flags;		/* defined flags */
	uint32_t apart;		/* those that another row or test tries */
	bool write;		/* refused on a node that is open read-only */
	bool function;		/* names a function */
	bool idle;		/* refused while the function has maps and windows */
	size_t out_fd;		/* field with the new file, 0: none */
	/* Makes an argument that succeeds, if zeros do not. */
	void (*valid)(void *arg);
	/* Undoes a successful call, except for the new file. */
	void (*undo)(void *arg);
	size_t reserved[2];	/* further reserved u32 fields (the head has one); 0: none */
	struct fd_field fds[2];
	struct pointer_field pointers[4];
};

extern const struct op ops[];
extern const size_t n_ops;

/* Room for the largest size that is tried. */
union call_arg {
	struct rashpa_head head;
	char bytes[3 * 4096];
};

/* Files and names that the arguments use; calls_open() makes them, -1: missing. */
struct calls {
	struct fpga fpga;
	bool have_fpga;
	int nodes[NODES];
	int fds[FD_KINDS];
};

extern struct calls calls;

extern const char *const node_names[];
extern const char *const fd_names[];

/* Named buffers, a function with a profile, one object of each kind. */
void calls_open(void);
void calls_close(void);
/* For each test of the program. */
#define CALLS_SETUP					\
	void setup(void) { calls_open(); }		\
	void teardown(void) { calls_close(); }
/* The same for the function's objects only; between these it may be unbound. */
void calls_function_open(void);
void calls_function_close(void);
/* Bind the function after an unbind, and make its objects again. */
void calls_function_again(void);
/* Close the windows and maps that arguments name, or open them again. */
void calls_function_idle(bool idle);
/* The name of @op as a part of a test's id. */
const char *op_key(const struct op *op);
/* Prepare what @op needs and run @test of it; it may be skipped without a software FPGA. */
void op_test(const struct op *op, void (*test)(const struct op *op));

/* A test with a row for each @op of which @cond is true. */
#define TEST_OPS(name, cond, text)						\
	static void test_##name(const struct op *op);				\
	static void tap_row_##name(size_t i)					\
	{									\
		op_test(&ops[i], test_##name);					\
	}									\
	static const char *tap_key_##name(size_t i)				\
	{									\
		const struct op *op = &ops[i];					\
										\
		return i >= n_ops ? NULL : (cond) ? op_key(op) : "";		\
	}									\
	TAP_TEST(name, .sentence = text, .row = tap_row_##name, .key = tap_key_##name) \
	static void test_##name(const struct op *op)

/* A new file of the node's kind, or a negative errno. */
int calls_node(enum node node);

/* The name of @op for people. */
const char *op_name(const struct op *op);
/* Does the table say that @node serves @cmd? */
bool op_served(enum node node, unsigned int cmd);
/* Is byte @at of the struct in a field named out_? */
bool op_out(const struct op *op, size_t at);
/* Does the struct have any such field? */
bool op_answers(const struct op *op);
/* Does its object have a name or an id, and stay when the answer cannot be stored? */
bool op_stays(const struct op *op);
void op_prepare(const struct op *op, union call_arg *arg);
/* Close the new file, and undo the rest. */
void op_undo(const struct op *op, union call_arg *arg);
/* Undo a call whose answer could not be stored. */
void op_lost(const struct op *op, union call_arg *arg);
/* Call with @arg on @fd, and undo it. Returns 0 or -errno. */
int op_run(const struct op *op, int fd, union call_arg *arg);

static inline int op_fd(const struct op *op, const union call_arg *arg)
{
	int fd;

	memcpy(&fd, arg->bytes + op->out_fd, sizeof(fd));
	return fd;
}

/* --- nothing may be left: state that is cheap to check after each call --- */

struct calls_state {
	unsigned int fds, names, holdings, sources, importers, mappings, maps, windows;
	u64 pinned;
};

void calls_state_get(struct calls_state *s);
/* Check that the state has not changed. */
bool calls_state_same(const struct calls_state *before, const char *what);

#endif /* CALLS_H */
