/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Charges. Each object that outlives a call has a struct rashpa_charge: it counts for the user that
 * made it until it ends, whichever process has its file by then.
 */
#ifndef RASHPA_ACCOUNT_H
#define RASHPA_ACCOUNT_H

#include <linux/list.h>
#include <linux/log2.h>
#include <linux/rashpa.h>
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
 * @flags. The object reads @user, @shared and @pid without it: constant while it is charged.
 */
struct rashpa_charge {
	struct list_head entry;		/* among all charges, in the order of @serial */
	struct rashpa_user *user;	/* NULL for none */
	bool shared;			/* made without CAP_SYS_RESOURCE: not from root's reserve */
	struct pid *pid;		/* process that made it; one reference */
	unsigned long flags;		/* RASHPA_CHARGE_*, by bit number */
	struct rashpa_holding holding;	/* for LIST, which fills in user, process and flags */
};

/* bits of rashpa_charge.flags: RASHPA_HOLDING_* that change while the object lives */
#define RASHPA_CHARGE_PROGRAMMED	ilog2(RASHPA_HOLDING_PROGRAMMED)
#define RASHPA_CHARGE_TOLD		ilog2(RASHPA_HOLDING_TOLD)

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
rashpa_handler rashpa_ioc_limit;
void rashpa_account_init(void);

#endif /* RASHPA_ACCOUNT_H */
