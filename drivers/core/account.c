// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: accounts of users: limits, the reserve for root, and RLIMIT_MEMLOCK.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>

#include "core/account.h"

/* a part of each limit that only CAP_SYS_RESOURCE gets: one in so many */
#define RASHPA_RESERVE		8
/* a limit that is set when the module is loaded */
#define RASHPA_LIMIT_UNSET	UINT_MAX

#define RASHPA_RESOURCE_LAST	RASHPA_RESOURCE_TIMERS

/* How much there is of a resource, and how much is held. */
struct rashpa_budget {
	const char *what;		/* unit and name */
	const char *param;		/* module parameter of @all; user_* for @user */
	unsigned int all;		/* limit for all, 0 for none */
	unsigned int user;		/* for one user, 0 for none */
	unsigned int shift;		/* unit of the parameters, a power of two */
	u64 used;			/* held by all */
	u64 shared;			/* the part of it that is held without CAP_SYS_RESOURCE */
};

static struct rashpa_budget rashpa_budgets[] = {
	[RASHPA_RESOURCE_MEMORY] = {
		"MiB of memory", "limit_mib", 0, RASHPA_LIMIT_UNSET, .shift = 20 },
	[RASHPA_RESOURCE_NAMES] = { "names", "limit_names", 15360, 1024 },
	[RASHPA_RESOURCE_WINDOWS] = { "windows", "limit_windows", 4096, 256 },
	[RASHPA_RESOURCE_MAPS] = { "maps", "limit_maps", 16384, 1024 },
	[RASHPA_RESOURCE_CHANNELS] = { "channels", "limit_channels", 4096, 256 },
	[RASHPA_RESOURCE_SOURCES] = { "sources", "limit_sources", 65536, 8192 },
	[RASHPA_RESOURCE_TIMERS] = { "thousandths of a CPU for timers", "poll_budget", 100, 50 },
};

#define RASHPA_LIMIT(param, resource, what, all_default, user_default)	\
	module_param_named(param, rashpa_budgets[RASHPA_RESOURCE_##resource].all, uint, 0644); \
	MODULE_PARM_DESC(param, what " for all, 0 for no limit (" all_default ")"); \
	module_param_named(user_##param, rashpa_budgets[RASHPA_RESOURCE_##resource].user, uint, \
			   0644);					\
	MODULE_PARM_DESC(user_##param, #param " for one user without CAP_SYS_RESOURCE, "	\
			 "0 for no limit (" user_default ")")

RASHPA_LIMIT(limit_mib, MEMORY, "MiB of memory", "0", "a quarter of the RAM");
RASHPA_LIMIT(limit_names, NAMES, "named buffers", "15360", "1024");
RASHPA_LIMIT(limit_windows, WINDOWS, "windows", "4096", "256");
RASHPA_LIMIT(limit_maps, MAPS, "maps", "16384", "1024");
RASHPA_LIMIT(limit_channels, CHANNELS, "channels", "4096", "256");
RASHPA_LIMIT(limit_sources, SOURCES, "sources of events", "65536", "8192");
RASHPA_LIMIT(poll_budget, TIMERS, "thousandths of a CPU for timers that check words of memory",
	     "100", "50");

/* What one user holds; there while it is anything. */
struct rashpa_user {
	struct list_head entry;		/* in rashpa_users */
	kuid_t uid;
	u64 charges;			/* that have not ended */
	u64 used[RASHPA_RESOURCE_LAST + 1];
	struct mutex turn;		/* one long work; no data */
};

static DEFINE_MUTEX(rashpa_account_lock);	/* all charges, users and budgets; a leaf */
static LIST_HEAD(rashpa_users);
static LIST_HEAD(rashpa_charges);
static u64 rashpa_serial;

/* A quarter of the memory: three who fill theirs have not filled the machine. */
void rashpa_account_init(void)
{
	struct rashpa_budget *b = &rashpa_budgets[RASHPA_RESOURCE_MEMORY];

	if (b->user == RASHPA_LIMIT_UNSET)
		b->user = max_t(u64, (u64)totalram_pages() << PAGE_SHIFT >> b->shift, 4) / 4;
}

/*
 * The user that is charged. All ids of a namespace that an ordinary user has made count for that
 * user: one limit for each id would limit nothing.
 */
static kuid_t rashpa_user_charged(void)
{
	const struct user_namespace *ns;
	kuid_t uid = current_uid();

	for (ns = current_user_ns(); ns != &init_user_ns; ns = ns->parent)
		if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
			uid = ns->owner;
	return uid;
}

static struct rashpa_user *rashpa_user_find(kuid_t uid)
{
	struct rashpa_user *user;

	lockdep_assert_held(&rashpa_account_lock);
	list_for_each_entry(user, &rashpa_users, entry)
		if (uid_eq(user->uid, uid))
			return user;
	return NULL;
}

/* With one more charge. */
static struct rashpa_user *rashpa_user_get(void)
{
	kuid_t uid = rashpa_user_charged();
	struct rashpa_user *user = rashpa_user_find(uid);

	if (!user) {
		user = kzalloc(sizeof(*user), GFP_KERNEL);
		if (!user)
			return NULL;
		user->uid = uid;
		mutex_init(&user->turn);
		list_add(&user->entry, &rashpa_users);
	}
	user->charges++;
	return user;
}

static void rashpa_user_put(struct rashpa_user *user)
{
	lockdep_assert_held(&rashpa_account_lock);
	if (--user->charges)
		return;
	list_del(&user->entry);
	mutex_destroy(&user->turn);
	kfree(user);
}

/* ------------------------------------------------------------ limits --- */

#define RASHPA_NO_LIMIT		U64_MAX

/* @param: b->all or b->user; users change it at any time */
static u64 rashpa_limit_of(const struct rashpa_budget *b, const unsigned int *param)
{
	return (u64)READ_ONCE(*param) << b->shift ?: RASHPA_NO_LIMIT;
}

/*
 * The limit for all users without CAP_SYS_RESOURCE together: the rest is for root. Where memory has
 * no limit, root may fill the RAM, which does not count against others.
 */
static u64 rashpa_limit_shared(const struct rashpa_budget *b)
{
	u64 all = rashpa_limit_of(b, &b->all);

	if (all == RASHPA_NO_LIMIT) {
		if (b != &rashpa_budgets[RASHPA_RESOURCE_MEMORY])
			return all;
		all = (u64)totalram_pages() << PAGE_SHIFT;
	}
	return all - DIV_ROUND_UP_ULL(all, RASHPA_RESERVE);
}

/* As LIMIT reports it. */
static u64 rashpa_limit_reported(u64 limit)
{
	return limit == RASHPA_NO_LIMIT ? 0 : limit;
}

static int rashpa_limit_check(struct rashpa_call *call, const struct rashpa_budget *b,
			      u64 used, u64 more, u64 limit, const char *whose, const char *prefix)
{
	if (used <= limit && more <= limit - used)
		return 0;
	return rashpa_fail(call, -EDQUOT,
			   "%llu %s: %llu of %llu %s are taken: end what is not needed (rashpactl list names who holds what), or raise the module parameter %s%s",
			   DIV_ROUND_UP_ULL(more, 1U << b->shift), b->what, used >> b->shift,
			   limit >> b->shift, whose, prefix, b->param);
}

static int rashpa_quota_check(struct rashpa_call *call, const struct rashpa_charge *charge,
			      enum rashpa_resource resource, u64 more)
{
	const struct rashpa_budget *b = &rashpa_budgets[resource];
	const u64 all = rashpa_limit_of(b, &b->all);
	int err;

	if (!more)
		return 0;
	err = rashpa_limit_check(call, b, b->used, more, all, "for all", "");
	if (err || !charge->shared)
		return err;
	err = rashpa_limit_check(call, b, charge->user->used[resource], more,
				 rashpa_limit_of(b, &b->user), "for one user", "user_");
	if (err)
		return err;
	return rashpa_limit_check(call, b, all == RASHPA_NO_LIMIT ? b->shared : b->used, more,
				  rashpa_limit_shared(b), "for all but root", "");
}

/* ----------------------------------------------------------- charges --- */

/* Add @n, or subtract -@n. */
static void rashpa_charge_add(struct rashpa_charge *charge, enum rashpa_resource resource, u64 n)
{
	rashpa_budgets[resource].used += n;
	if (charge->shared)
		rashpa_budgets[resource].shared += n;
	charge->user->used[resource] += n;
}

/*
 * Charge the caller with a new object; @charge is zeroed. The other arguments become fields of its
 * holding. Return: 0, -EDQUOT, -ENOMEM.
 */
int rashpa_charge(struct rashpa_call *call, struct rashpa_charge *charge,
		  enum rashpa_resource resource, s32 device, u64 amount, u64 memory)
{
	int err;

	charge->holding.resource = resource;
	charge->holding.device = device;
	charge->holding.amount = amount;
	charge->holding.memory = memory;
	charge->holding.since_ns = ktime_get_ns();
	charge->shared = !ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);
	get_task_comm(charge->holding.comm, current->group_leader);
	guard(mutex)(&rashpa_account_lock);
	charge->user = rashpa_user_get();
	if (!charge->user)
		return -ENOMEM;
	err = rashpa_quota_check(call, charge, resource, amount);
	if (!err)
		err = rashpa_quota_check(call, charge, RASHPA_RESOURCE_MEMORY, memory);
	if (err) {
		rashpa_user_put(charge->user);
		charge->user = NULL;
		return err;
	}
	charge->pid = get_pid(task_tgid(current));
	rashpa_charge_add(charge, resource, amount);
	rashpa_charge_add(charge, RASHPA_RESOURCE_MEMORY, memory);
	charge->holding.serial = ++rashpa_serial;
	list_add_tail(&charge->entry, &rashpa_charges);
	return 0;
}

/* It needs @memory more bytes than were known. Return: 0 or -EDQUOT. */
int rashpa_charge_more(struct rashpa_call *call, struct rashpa_charge *charge, u64 memory)
{
	int err;

	guard(mutex)(&rashpa_account_lock);
	err = rashpa_quota_check(call, charge, RASHPA_RESOURCE_MEMORY, memory);
	if (err)
		return err;
	rashpa_charge_add(charge, RASHPA_RESOURCE_MEMORY, memory);
	charge->holding.memory += memory;
	return 0;
}

/* Some of its memory was given back: @memory bytes are left. */
void rashpa_charge_less(struct rashpa_charge *charge, u64 memory)
{
	guard(mutex)(&rashpa_account_lock);
	rashpa_charge_add(charge, RASHPA_RESOURCE_MEMORY, memory - charge->holding.memory);
	charge->holding.memory = memory;
}

/* Set what LIST reports: the id of the object, or 0, and its name, or NULL. */
void rashpa_charge_label(struct rashpa_charge *charge, u32 id, const char *name)
{
	guard(mutex)(&rashpa_account_lock);
	charge->holding.id = id;
	strscpy_pad(charge->holding.name, name ?: "", sizeof(charge->holding.name));
}

/* The object has ended: @charge, which may be zeroed already, is zeroed. */
void rashpa_uncharge(struct rashpa_charge *charge)
{
	if (!charge->user)
		return;
	guard(mutex)(&rashpa_account_lock);
	list_del(&charge->entry);
	rashpa_charge_add(charge, charge->holding.resource, -charge->holding.amount);
	rashpa_charge_add(charge, RASHPA_RESOURCE_MEMORY, -charge->holding.memory);
	rashpa_user_put(charge->user);
	put_pid(charge->pid);
	memset(charge, 0, sizeof(*charge));
}

/* Is the caller the user that is charged? Capabilities do not count. */
bool rashpa_charge_is_mine(struct rashpa_charge *charge)
{
	return uid_eq(charge->user->uid, rashpa_user_charged());
}

/* A lock for work that makes other users wait: all charges of one user share it. */
struct mutex *rashpa_charge_turn(struct rashpa_charge *charge)
{
	return &charge->user->turn;
}

/* The user, and the process that made it (0: it is gone), as the caller's namespace counts them. */
void rashpa_charge_owner(struct rashpa_charge *charge, u32 *uid, s32 *pid)
{
	*uid = from_kuid_munged(current_user_ns(), charge->user->uid);
	*pid = pid_vnr(charge->pid);
}

/* For /proc/PID/fdinfo: the object that the file is of, as LIST reports it. */
void rashpa_charge_show(struct rashpa_charge *charge, const char *kind, struct seq_file *m)
{
	const struct rashpa_holding *h = &charge->holding;

	guard(mutex)(&rashpa_account_lock);
	seq_printf(m, "rashpa-kind:\t%s\nrashpa-serial:\t%llu\nrashpa-device:\t%d\n", kind,
		   h->serial, h->device);
	seq_printf(m, "rashpa-id:\t%u\nrashpa-name:\t%s\nrashpa-memory:\t%llu\n", h->id, h->name,
		   h->memory);
}

/* -------------------------------------------------------------- LIST --- */

static void rashpa_holding_fill(struct rashpa_holding *h, struct rashpa_charge *charge)
{
	*h = charge->holding;
	rashpa_charge_owner(charge, &h->uid, &h->pid);
	h->flags = READ_ONCE(charge->flags);
	if (!pid_has_task(charge->pid, PIDTYPE_TGID))
		h->flags |= RASHPA_HOLDING_ORPHAN;
}

/* The first @room that come after @after; how many there are. */
static u32 rashpa_holdings_collect(struct rashpa_holding *to, u32 room, u64 after, s32 device)
{
	/* keeps the place in the list while others have the lock; no user: it is no charge */
	struct rashpa_charge place = { .entry = LIST_HEAD_INIT(place.entry) };
	struct rashpa_charge *charge;
	struct list_head *at;
	u32 n = 0, seen = 0;

	mutex_lock(&rashpa_account_lock);
	for (at = rashpa_charges.next; at != &rashpa_charges; at = at->next) {
		charge = list_entry(at, struct rashpa_charge, entry);
		if (charge->user && charge->holding.serial > after &&
		    (device == RASHPA_NO_DEVICE || charge->holding.device == device)) {
			if (n < room)
				rashpa_holding_fill(&to[n], charge);
			n++;
		}
		if (++seen % RASHPA_HOLDINGS_MAX)
			continue;
		list_move(&place.entry, at);
		at = &place.entry;
		mutex_unlock(&rashpa_account_lock);
		cond_resched();
		mutex_lock(&rashpa_account_lock);
	}
	list_del(&place.entry);
	mutex_unlock(&rashpa_account_lock);
	return n;
}

/* LIST; @device: only what is of that function, or RASHPA_NO_DEVICE for all. */
int rashpa_holdings(struct rashpa_call *call, struct rashpa_list *list, s32 device)
{
	struct rashpa_holding *h = NULL;
	int err = 0;

	if (list->n_holdings > RASHPA_HOLDINGS_MAX)
		return rashpa_fail(call, -EINVAL,
				   "%u holdings at once: at most %u, then go on after the last one",
				   list->n_holdings, RASHPA_HOLDINGS_MAX);
	if (list->n_holdings) {
		/* user memory is written when nothing is locked any more */
		h = kvcalloc(list->n_holdings, sizeof(*h), GFP_KERNEL_ACCOUNT);
		if (!h)
			return -ENOMEM;
	}
	list->out_count = rashpa_holdings_collect(h, list->n_holdings, list->after, device);
	list->out_holdings = min(list->out_count, list->n_holdings);
	if (list->n_holdings)
		err = rashpa_store_array(call, list->holdings, list->out_holdings,
					 list->holding_size,
					 offsetofend(struct rashpa_holding, name), h, sizeof(*h));
	kvfree(h);
	return err;
}

int rashpa_ioc_limit(struct rashpa_call *call, void *arg)
{
	struct rashpa_limit *limit = arg;
	const struct rashpa_budget *b;
	struct rashpa_user *user;

	if (limit->resource < RASHPA_RESOURCE_MEMORY || limit->resource > RASHPA_RESOURCE_LAST)
		return rashpa_fail(call, -EINVAL, "resource %u is not defined", limit->resource);
	b = &rashpa_budgets[array_index_nospec(limit->resource, ARRAY_SIZE(rashpa_budgets))];
	guard(mutex)(&rashpa_account_lock);
	user = rashpa_user_find(rashpa_user_charged());
	limit->out_used = b->used;
	limit->out_shared_used = b->shared;
	limit->out_user_used = user ? user->used[b - rashpa_budgets] : 0;
	limit->out_limit = rashpa_limit_reported(rashpa_limit_of(b, &b->all));
	limit->out_shared_limit = rashpa_limit_reported(rashpa_limit_shared(b));
	limit->out_user_limit = rashpa_limit_reported(rashpa_limit_of(b, &b->user));
	return 0;
}

/*
 * Charge pinned pages to the caller's RLIMIT_MEMLOCK, as RDMA registration does: they count in
 * mm->pinned_vm, which outlives the process until the last reference to the mm ends. Return: 0 or
 * -ENOMEM.
 */
int rashpa_memlock(struct rashpa_call *call, unsigned long pages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	u64 now = atomic64_add_return(pages, &current->mm->pinned_vm);

	if (now <= limit || capable(CAP_IPC_LOCK))
		return 0;
	atomic64_sub(pages, &current->mm->pinned_vm);
	return rashpa_fail(call, -ENOMEM,
			   "pinning %lu KiB would exceed RLIMIT_MEMLOCK of %lu KiB (%llu pinned): raise it (ulimit -l)",
			   pages << (PAGE_SHIFT - 10), limit << (PAGE_SHIFT - 10),
			   (now - pages) << (PAGE_SHIFT - 10));
}
