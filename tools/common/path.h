/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* PCI functions: how they are written, where two of them meet. */
#ifndef PATH_H
#define PATH_H

#include <stdbool.h>
#include <stdint.h>

#define CHAIN_MAX	32

/* A PCI function as the kernel's calls name it. */
#define PCI_BDF(domain, bus, devfn)	((uint64_t)(domain) << 16 | (bus) << 8 | (devfn))

/* The long form, whose domain has four digits or more: some bridges create further domains. */
#define BDF_SIZE	20

/* "0000:00:03.0", or without the domain; writes the long form. */
bool parse_bdf(const char *text, char bdf[BDF_SIZE]);
/* Of PCI_BDF(); returns bdf. */
const char *bdf_text(char bdf[BDF_SIZE], uint64_t function);

/* Its largest BAR of memory, bytes; 0: none. @root: "", or a folder with another /sys, for tests. */
uint64_t path_largest_bar(const char *root, const char *bdf);

/*
 * The way from a function up to its host bridge: at[0] is the function itself, at[n - 1] is on the
 * root bus (a root port, or the function if there is no bridge).
 */
struct chain {
	unsigned int n;
	uint64_t at[CHAIN_MAX];
};

enum meeting {
	MEET_SAME,		/* it is one function */
	MEET_DEVICE,		/* functions of one device */
	MEET_SWITCH,		/* below one switch */
	MEET_PORT,		/* below one root port, but not in a switch */
	MEET_BRIDGE,		/* at one host bridge, below different root ports */
	MEET_NOWHERE,		/* different host bridges: in the processors */
};

/* Both chains have at least one member. *where: the bridge they share, if there is one. */
enum meeting chains_meet(const struct chain *a, const struct chain *b, uint64_t *where);

const char *meeting_name(enum meeting meeting);

#endif /* PATH_H */
