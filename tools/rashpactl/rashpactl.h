/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef RASHPACTL_H
#define RASHPACTL_H

#include <argp.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/command.h"
#include "common/options.h"
#include "common/path.h"
#include "common/say.h"
#include "common/text-file.h"

/* Sub-commands: argv[0] is "rashpactl NAME". An exit code. */
int cmd_doctor(int argc, char **argv);
int cmd_apply(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_bind(int argc, char **argv);
int cmd_unbind(int argc, char **argv);
int cmd_profile(int argc, char **argv);
int cmd_board_test(int argc, char **argv);
int cmd_buffer_create(int argc, char **argv);
int cmd_buffer_list(int argc, char **argv);
int cmd_buffer_info(int argc, char **argv);
int cmd_buffer_remove(int argc, char **argv);
int cmd_buffer_permit(int argc, char **argv);
int cmd_buffer_query(int argc, char **argv);
int cmd_lock_create(int argc, char **argv);
int cmd_window_list(int argc, char **argv);
int cmd_window_info(int argc, char **argv);
int cmd_limits(int argc, char **argv);
int cmd_map_release(int argc, char **argv);
int cmd_map_list(int argc, char **argv);
int cmd_map_program(int argc, char **argv);
int cmd_map_explain(int argc, char **argv);
int cmd_map_make(int argc, char **argv);
int cmd_event_watch(int argc, char **argv);
int cmd_event_stat(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_fpga_quiesce(int argc, char **argv);
int cmd_fpga_reset(int argc, char **argv);
int cmd_fpga_status(int argc, char **argv);
int cmd_fpga_read(int argc, char **argv);
int cmd_fpga_write(int argc, char **argv);
int cmd_fpga_dump(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_cdi(int argc, char **argv);

/* --- device.c --- */

struct fpga;
struct json_object;

/* Output of doctor, list and top as JSON, for report. */
struct json_object *doctor_json(unsigned int *problems);
/*
 * Fill @o; NULL: print. An exit code, after a message; errors of one item do not hide the others.
 */
int list_all(struct json_object *o);
/* Measure one interval in seconds; NULL after a message. */
struct json_object *top_json(double interval);

/* Open the function of an argument. An exit code, after a message. */
int fpga_named(struct fpga *fpga, const char *text);

/* --- profile.c --- */

struct profile;

/*
 * Add "table": place of the profile's address table, and layout of its entries; null without a
 * table or a profile.
 */
void put_table(struct json_object *to, const struct profile *profile);

/* --- arguments.c: they end the program with a message if arg is invalid --- */

struct owner;

void option_node(struct argp_state *state, const char *arg, uint32_t *node);
void option_backend(struct argp_state *state, const char *arg, uint32_t *backend);
void option_size(struct argp_state *state, const char *option, const char *arg, __u64 *size);
/* The name of a buffer, into RASHPA_NAME_SIZE bytes. */
void option_buffer(struct argp_state *state, const char *arg, char *name);
void option_owner(struct argp_state *state, const char *arg, struct owner *owner);
void option_mode(struct argp_state *state, const char *arg, uint32_t *mode);

/* --- machine.c --- */

/* y, m, n, or 0 if the configuration of this kernel cannot be read. */
char kernel_config(const char *name);
/* Value of a line of /proc/meminfo in bytes; 0 if the line is missing. */
uint64_t meminfo(const char *key);
/* False if the driver is not loaded, or has no such parameter. */
bool module_parameter(char *buf, size_t size, const char *name);
/*
 * A field that modinfo prints for the module file that modprobe would load into this kernel:
 * signer, version; empty: the file lacks that field. False if there is no such file.
 */
bool module_field(char *buf, size_t size, const char *release, const char *name);

/* --- pci.c --- */

#define PCI_DEVICES	"/sys/bus/pci/devices"
#define PCI_DRIVERS	"/sys/bus/pci/drivers"
#define PCI_DRIVER	PCI_DRIVERS "/rashpa"

struct pci_function {
	char bdf[BDF_SIZE];
	uint32_t vendor, device;
	char driver[64];	/* empty: none */
	int fpga;		/* N if rashpa serves it, or -1 */
};

/* All PCI functions, sorted, to be freed by free(). Returns the number, or -1 after a message. */
int pci_list(struct pci_function **functions);
/* False after a message if there is no such function. */
bool pci_read(const char *bdf, struct pci_function *function);

/* Names of vendor and device in buf; NULL if libpci does not know them. */
const char *pci_name(char *buf, size_t size, uint32_t vendor, uint32_t device);
void pci_name_done(void);

#endif /* RASHPACTL_H */
