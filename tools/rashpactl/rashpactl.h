/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef RASHPACTL_H
#define RASHPACTL_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "say.h"

/* --json was given before the command */
extern bool want_json;

/* Sub-commands: argv[0] is "rashpactl NAME". An exit code. */
int cmd_doctor(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_bind(int argc, char **argv);
int cmd_unbind(int argc, char **argv);
int cmd_profile(int argc, char **argv);
int cmd_buffer_create(int argc, char **argv);
int cmd_buffer_list(int argc, char **argv);
int cmd_buffer_info(int argc, char **argv);
int cmd_buffer_remove(int argc, char **argv);
int cmd_map(int argc, char **argv);
int cmd_event_watch(int argc, char **argv);
int cmd_quiesce(int argc, char **argv);
int cmd_reset(int argc, char **argv);
int cmd_fpga_status(int argc, char **argv);

/*
 * The simple ones take some arguments and perhaps --json: parse them with this. args
 * names the arguments as usage shows them; value[n] becomes each.
 */
struct simple {
	const char *args, *doc;
	unsigned int n;
	const char **value;
	bool *json;		/* NULL: there is no --json */
};

void parse_simple(const struct simple *simple, int argc, char **argv);

/* --- sysfs.c --- */

#define PCI_DEVICES	"/sys/bus/pci/devices"
#define PCI_DRIVER	"/sys/bus/pci/drivers/rashpa"
#define BDF_SIZE	16

struct pci_function {
	char bdf[BDF_SIZE];
	uint32_t vendor, device;
	char driver[64];	/* empty: none */
	int fpga;		/* N if rashpa serves it, or -1 */
};

/* First line of a file, without the newline; false if it cannot be read. */
bool read_line(char *buf, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* 0 or a negative errno. */
int write_text(const char *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* "0000:00:03.0", or without the domain; writes the long form. */
bool parse_bdf(const char *text, char bdf[BDF_SIZE]);

/* All PCI functions, sorted; free() it. A number, or -1 after a message. */
int pci_list(struct pci_function **functions);
/* False after a message if there is no such function. */
bool pci_read(const char *bdf, struct pci_function *function);

/* Vendor and device in words: buf, or NULL if libpci does not know them. */
const char *pci_name(char *buf, size_t size, uint32_t vendor, uint32_t device);
void pci_name_done(void);

#endif /* RASHPACTL_H */
