/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Charges. Each object that outlives a call has a struct rashpa_charge: it counts for the user that
 * made it until it ends, whichever process has its file by then.
 */
#ifndef RASHPA_ACCOUNT_H
#define RASHPA_ACCOUNT_H

#include <linux/list.h>
#include <linux/rashpa.h>
#include <linux/sched.h>
#include <linux/types.h>

#include "core/call.h"

struct mutex;
struct pid;
struct seq_file;
struct rashpa_user;

/* device of an object that belongs to no function; for LIST: all devices */
#define RASHPA_NO_DEVICE	(-1)

/*
 * What one object costs, and the user that is charged. Protected by rashpa_account_lock, but for
 * @flags.
 */
struct rashpa_charge {
	struct list_head entry;		/* among all charges, in the order of @serial */
	struct rashpa_user *user;	/* NULL for none */
	bool shared;			/* made without CAP_SYS_RESOURCE: not from root's reserve */
	u32 resource;			/* enum rashpa_resource */
	s32 device;			/* N of the function's node, or RASHPA_NO_DEVICE */
	u32 id;				/* id of a map, index of a source, else 0 */
	u64 amount;			/* units of @resource; 0 for MEMORY */
	u64 memory;			/* bytes */
	u64 serial;			/* never used again */
	u64 since;			/* CLOCK_MONOTONIC */
	unsigned long flags;		/* RASHPA_CHARGE_*, by bit number */
	struct pid *pid;		/* process that made it; one reference */
	char comm[TASK_COMM_LEN];	/* its name then */
	char name[RASHPA_NAME_SIZE];	/* name of the object, or empty */
};

/* bits of rashpa_charge.flags: RASHPA_HOLDING_* that change while the object lives */
#define RASHPA_CHARGE_PROGRAMMED	1
#define RASHPA_CHARGE_TOLD		2

int rashpa_charge(struct rashpa_call *call, struct rashpa_charge *charge,
		  enum rashpa_resource resource, s32 device, u64 amount, u64 memory);
int rashpa_charge_more(struct rashpa_call *call, struct rashpa_charge *charge, u64 memory);
void rashpa_charge_less(struct rashpa_charge *charge, u64 memory);
void rashpa_charge_label(struct rashpa_charge *charge, u32 id, const char *name);
bool rashpa_charge_is_mine(struct rashpa_charge *charge);
struct mutex *rashpa_charge_turn(struct rashpa_charge *charge);
void rashpa_charge_owner(struct rashpa_charge *charge, u32 *uid, s32 *pid);
void rashpa_charge_show(struct rashpa_charge *charge, const char *kind, struct seq_file *m);
void rashpa_uncharge(struct rashpa_charge *charge);
int rashpa_memlock(struct rashpa_call *call, unsigned long pages);
int rashpa_holdings(struct rashpa_call *call, struct rashpa_list *list, s32 device);
rashpa_handler rashpa_ioc_list, rashpa_ioc_limit;
void rashpa_account_init(void);

#endif /* RASHPA_ACCOUNT_H */
