/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The parts of the kernel that files of the driver need to be compiled and called in a user
 * program. The Makefile includes this before all else, and makes the kernel's own headers empty.
 *
 * All tests have one thread. A lock only stores whether it is held: the program ends if a held lock
 * is taken, or if a free one is asserted to be held. Functions that no test defines are only
 * declared here; the linker puts them at address 0.
 */
#ifndef UNITS_KERNEL_H
#define UNITS_KERNEL_H

#include <errno.h>
#include <limits.h>
#include <linux/types.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* ------------------------------------------------------------- types ---- */

typedef __u8 u8;
typedef __s8 s8;
typedef __u16 u16;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;
typedef __s64 s64;
typedef u64 dma_addr_t;
typedef u64 phys_addr_t;
typedef s64 ktime_t;
typedef unsigned int gfp_t;
typedef int atomic_t;
typedef struct { unsigned int val; } kuid_t;
typedef struct { int unused; } wait_queue_head_t, poll_table;

#define __iomem
#define __rcu
#define __printf(a, b)		__attribute__((format(printf, a, b)))

#define U32_MAX			UINT32_MAX
#define U64_MAX			((u64)~0ULL)

/* --------------------------------------------------------- arithmetic ---- */

#define PAGE_SHIFT		12
#define PAGE_SIZE		(1UL << PAGE_SHIFT)
#define PMD_SIZE		(2UL << 20)
#define SZ_4K			0x1000
#define SZ_64K			0x10000
#define SZ_4M			0x400000
#define SZ_16M			0x1000000
#define SZ_64M			0x4000000
#define SZ_128M			0x8000000
#define SZ_1G			0x40000000
#define NSEC_PER_USEC		1000L
#define USEC_PER_SEC		1000000L

#define BIT(n)			(1UL << (n))
#define GENMASK_ULL(h, l)	(~0ULL << (l) & ~0ULL >> (63 - (h)))
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define ALIGN(x, a)		(((x) + (a) - 1) & ~((typeof(x))(a) - 1))
#define ALIGN_DOWN(x, a)	((x) & ~((typeof(x))(a) - 1))
#define IS_ALIGNED(x, a)	(((x) & ((typeof(x))(a) - 1)) == 0)
#define PAGE_ALIGN(x)		ALIGN(x, PAGE_SIZE)
#define offset_in_page(x)	((x) & (PAGE_SIZE - 1))
#define lower_32_bits(n)	((u32)(n))
#define upper_32_bits(n)	((u32)((u64)(n) >> 32))
#define is_power_of_2(n)	((n) && !((n) & ((n) - 1)))
#define __ffs(n)		((unsigned long)__builtin_ctzl(n))
#define ilog2(n)		(63 - __builtin_clzll(n))
#define hweight32(n)		((u32)__builtin_popcount(n))
#define fls64(n)		((n) ? ilog2(n) + 1 : 0)
#define sign_extend64(n, bit)	((s64)((u64)(n) << (63 - (bit))) >> (63 - (bit)))
#define rounddown_pow_of_two(n)	(1UL << ilog2(n))
#define roundup_pow_of_two(n)	((n) > 1 ? 2UL << ilog2((n) - 1) : 1UL)
#define div_u64(a, b)		((u64)(a) / (u32)(b))
#define div64_u64(a, b)		((u64)(a) / (u64)(b))
#define check_add_overflow	__builtin_add_overflow
#define check_mul_overflow	__builtin_mul_overflow

#define min(a, b)		({ typeof(a) _a = (a); typeof(b) _b = (b); _a < _b ? _a : _b; })
#define max(a, b)		({ typeof(a) _c = (a); typeof(b) _d = (b); _c > _d ? _c : _d; })
#define min3(a, b, c)		min((typeof(a))min(a, b), c)
#define min_t(t, a, b)		min((t)(a), (t)(b))
#define max_t(t, a, b)		max((t)(a), (t)(b))
#define clamp(v, lo, hi)	min((typeof(v))max(v, lo), hi)
#define clamp_t(t, v, lo, hi)	clamp((t)(v), (t)(lo), (t)(hi))

#define container_of(p, t, m)	((t *)((char *)(p) - offsetof(t, m)))
#define offsetofend(t, m)	(offsetof(t, m) + sizeof(((t *)0)->m))
#define struct_size(p, m, n)	(sizeof(*(p)) + sizeof((p)->m[0]) * (n))
#define strscpy(to, from, n)	((void)snprintf(to, n, "%s", from))
#define memset_startat(p, v, m) \
	memset((char *)(p) + offsetof(typeof(*(p)), m), v, sizeof(*(p)) - offsetof(typeof(*(p)), m))

#define le32_to_cpu(x)		((u32)(x))
#define le64_to_cpu(x)		((u64)(x))
#define cpu_to_le32(x)		((__le32)(x))
#define cpu_to_le64(x)		((__le64)(x))

#define READ_ONCE(x)		(*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v)	(*(volatile typeof(x) *)&(x) = (v))
#define smp_load_acquire(p)	READ_ONCE(*(p))
#define smp_store_release(p, v)	WRITE_ONCE(*(p), v)
/* barriers of the driver call unit_barrier() of a test, which may log them */
#define mb()			unit_barrier()
#define wmb()			unit_barrier()
#define dma_wmb()		unit_barrier()
#define dma_rmb()		((void)0)
void unit_barrier(void);

#define MAX_ERRNO		4095
static inline void *ERR_PTR(long err) { return (void *)err; }
static inline long PTR_ERR(const void *p) { return (long)p; }
static inline bool IS_ERR(const void *p) { return (unsigned long)p >= -(unsigned long)MAX_ERRNO; }
static inline long PTR_ERR_OR_ZERO(const void *p) { return IS_ERR(p) ? PTR_ERR(p) : 0; }

#define WARN_ON(x)		({ bool _w = (x); if (_w) abort(); _w; })
#define dev_warn(d, ...)	((void)(d))
#define pr_warn(...)		((void)printf("# " __VA_ARGS__))
#define pr_err			pr_warn

/* ------------------------------------------------------------- bitmaps ---- */

#define BITS_PER_LONG		(8 * sizeof(long))
#define BITS_TO_LONGS(n)	DIV_ROUND_UP(n, BITS_PER_LONG)
#define DECLARE_BITMAP(name, n)	unsigned long name[BITS_TO_LONGS(n)]

static inline bool test_bit(unsigned long i, const unsigned long *map)
{
	return map[i / BITS_PER_LONG] >> i % BITS_PER_LONG & 1;
}

static inline void set_bit(unsigned long i, unsigned long *map)
{
	map[i / BITS_PER_LONG] |= 1UL << i % BITS_PER_LONG;
}

static inline void clear_bit(unsigned long i, unsigned long *map)
{
	map[i / BITS_PER_LONG] &= ~(1UL << i % BITS_PER_LONG);
}

static inline bool test_and_set_bit(unsigned long i, unsigned long *map)
{
	const bool was = test_bit(i, map);

	set_bit(i, map);
	return was;
}

static inline void bitmap_set(unsigned long *map, unsigned long i, unsigned long n)
{
	while (n--)
		set_bit(i++, map);
}

static inline unsigned long unit_next(const unsigned long *map, unsigned long n, unsigned long i,
				      bool value)
{
	while (i < n && test_bit(i, map) != value)
		i++;
	return min(i, n);
}

#define find_next_bit(map, n, i)	unit_next(map, n, i, true)

/* --------------------------------------------------------------- lists ---- */

struct list_head {
	struct list_head *next, *prev;
};

#define LIST_HEAD_INIT(name)	{ &(name), &(name) }
#define LIST_HEAD(name)		struct list_head name = LIST_HEAD_INIT(name)
static inline void INIT_LIST_HEAD(struct list_head *l) { l->next = l->prev = l; }

static inline void list_add(struct list_head *e, struct list_head *behind)
{
	e->next = behind->next;
	e->prev = behind;
	behind->next->prev = e;
	behind->next = e;
}

static inline void list_add_tail(struct list_head *e, struct list_head *before)
{
	list_add(e, before->prev);
}

static inline void list_del(struct list_head *e)
{
	e->next->prev = e->prev;
	e->prev->next = e->next;
}

static inline void list_del_init(struct list_head *e)
{
	list_del(e);
	INIT_LIST_HEAD(e);
}

static inline void list_move(struct list_head *e, struct list_head *behind)
{
	list_del(e);
	list_add(e, behind);
}

static inline void list_move_tail(struct list_head *e, struct list_head *before)
{
	list_del(e);
	list_add_tail(e, before);
}

static inline bool list_empty(const struct list_head *l) { return l->next == l; }
#define list_is_last(e, l)	((e)->next == (l))
#define list_entry		container_of
#define list_first_entry_or_null(l, t, m) \
	(list_empty(l) ? NULL : list_entry((l)->next, t, m))
#define list_next_entry(p, m)	list_entry((p)->m.next, typeof(*(p)), m)
#define list_for_each_entry(p, l, m)						\
	for ((p) = list_entry((l)->next, typeof(*(p)), m); &(p)->m != (l);	\
	     (p) = list_next_entry(p, m))
#define list_for_each_entry_safe(p, n, l, m)					\
	for ((p) = list_entry((l)->next, typeof(*(p)), m), (n) = list_next_entry(p, m); \
	     &(p)->m != (l); (p) = (n), (n) = list_next_entry(n, m))

/* --------------------------------------------------------------- locks ---- */

struct mutex {
	bool held;
};

typedef struct mutex spinlock_t;
struct rw_semaphore { struct mutex unused; };
struct lock_class_key { int unused; };

static inline void unit_lock(struct mutex *m, bool from, bool to)
{
	if (m->held != from)
		abort();
	m->held = to;
}

#define DEFINE_MUTEX(name)	struct mutex name
#define mutex_init(m)		((m)->held = false)
#define mutex_destroy(m)	unit_lock(m, false, false)
#define mutex_lock(m)		unit_lock(m, false, true)
#define mutex_unlock(m)		unit_lock(m, true, false)
#define mutex_lock_interruptible(m)	(mutex_lock(m), 0)
#define spin_lock_init		mutex_init
#define spin_lock		mutex_lock
#define spin_unlock		mutex_unlock
#define spin_lock_irq		mutex_lock
#define spin_unlock_irq		mutex_unlock
#define lockdep_assert_held(m)	unit_lock(m, true, true)
#define cond_resched()		((void)0)

#define DEFINE_GUARD(_name, _type, _lock, _unlock)					\
	typedef _type guard_##_name;							\
	static inline _type guard_##_name##_begin(_type _T) { _lock; return _T; }	\
	static inline void guard_##_name##_end(_type *p) { _type _T = *p; _unlock; }
#define guard(_name)									\
	__attribute__((cleanup(guard_##_name##_end), unused))				\
	guard_##_name guarded = guard_##_name##_begin
#define scoped_guard(_name, arg)							\
	for (int once = 1; once;)							\
		for (guard(_name)(arg); once; once = 0)
DEFINE_GUARD(mutex, struct mutex *, mutex_lock(_T), mutex_unlock(_T))
DEFINE_GUARD(spinlock, struct mutex *, mutex_lock(_T), mutex_unlock(_T))
DEFINE_GUARD(spinlock_irq, struct mutex *, mutex_lock(_T), mutex_unlock(_T))
DEFINE_GUARD(spinlock_irqsave, struct mutex *, mutex_lock(_T), mutex_unlock(_T))

/* -------------------------------------------------------------- memory ---- */

enum {
	GFP_KERNEL = 0, GFP_KERNEL_ACCOUNT = 0, __GFP_NOWARN = 0, __GFP_COMP = 1,
	__GFP_RETRY_MAYFAIL = 2, __GFP_THISNODE = 4, GFP_DMA32 = 8,
};

#define kzalloc(n, gfp)		calloc(1, n)
#define kcalloc(n, size, gfp)	calloc(n, size)
#define kvzalloc		kzalloc
#define kvcalloc		kcalloc
#define kfree			free
#define kvfree			free
#define bitmap_zalloc(n, gfp)	((unsigned long *)calloc(BITS_TO_LONGS(n), sizeof(long)))
#define bitmap_free		free

/* fields of a page that the driver uses, and fields for tests */
struct page {
	unsigned long private;
	int count;
	u8 order;
	u8 flags;
	s8 node;
	struct list_head lru;
};

int page_to_nid(const struct page *page);
phys_addr_t page_to_phys(const struct page *page);
void *page_address(const struct page *page);

/* ------------------------------------------------------- only declared ---- */

#define NUMA_NO_NODE		(-1)
typedef unsigned int fmode_t;
#define FMODE_READ		1
#define FMODE_WRITE		2

enum { CAP_SYS_ADMIN, CAP_SYS_RAWIO, CAP_SYS_RESOURCE };
enum dma_data_direction { DMA_BIDIRECTIONAL };
enum hrtimer_restart { HRTIMER_NORESTART, HRTIMER_RESTART };
enum { HRTIMER_MODE_REL, CLOCK_MONOTONIC };

struct cdev { int unused; };
struct kref { int count; };
struct tasklet_struct { int unused; };
struct hrtimer { enum hrtimer_restart (*fn)(struct hrtimer *timer); };
struct device {
	const char *init_name;
	u64 coherent_dma_mask;
	u64 *dma_mask;
	int node;
};
struct pci_bus { int unused; };
struct pci_dev { struct device dev; struct pci_bus *bus; };
struct file { unsigned int f_mode; void *private_data; };
struct dma_buf { struct file *file; size_t size; };
struct work_struct { void (*fn)(struct work_struct *entry); };
struct delayed_work { int unused; };
struct dma_buf_attachment;
struct eventfd_ctx;
struct inode;
struct pci_saved_state;
struct pid;
struct sg_table;
struct task_struct;
struct vm_area_struct;

extern struct task_struct *current;
bool capable(int cap);
bool signal_pending(struct task_struct *task);
bool task_sigpending(struct task_struct *task);

#define ktime_get_ns()		((u64)ktime_get())
#define ktime_add_us(t, us)	((t) + (us) * NSEC_PER_USEC)
#define ktime_us_delta(a, b)	(((a) - (b)) / NSEC_PER_USEC)
#define ns_to_ktime(ns)		((ktime_t)(ns))
ktime_t ktime_get(void);
/* no thread sleeps here */
#define init_waitqueue_head(w)	((void)(w))
#define wq_has_sleeper(w)	((void)(w), false)
#define wake_up_interruptible_all(w)	((void)(w))
#define wake_up_interruptible_poll(w, key)	((void)(w))
#define tasklet_setup(t, f)	((void)(t), (void)(f))
#define tasklet_schedule(t)	((void)(t))
#define spin_lock_bh		mutex_lock
#define spin_unlock_bh		mutex_unlock
#define fatal_signal_pending(t)	((void)(t), false)
#define array_index_nospec(i, n)	(i)
void list_splice_tail_init(struct list_head *from, struct list_head *to);
void eventfd_signal(struct eventfd_ctx *ctx);
void hrtimer_start(struct hrtimer *timer, ktime_t at, int mode);
void hrtimer_forward_now(struct hrtimer *timer, ktime_t interval);

struct dma_buf *dma_buf_get(int fd);
void dma_buf_put(struct dma_buf *dmabuf);

u32 readl(const void *reg);
void writel(u32 value, void *reg);
void writeq(u64 value, void *reg);

u64 pci_resource_len(struct pci_dev *pdev, u32 bar);
u32 pci_domain_nr(struct pci_bus *bus);
u32 pci_dev_id(struct pci_dev *pdev);
void *pci_iomap_range(struct pci_dev *pdev, u32 bar, u64 offset, u64 length);
void pci_iounmap(struct pci_dev *pdev, void *reg);

void *dma_alloc_coherent(struct device *d, size_t size, dma_addr_t *bus, gfp_t gfp);
void dma_free_coherent(struct device *d, size_t size, void *p, dma_addr_t bus);

/* do not include the driver's header for differences between kernels */
#define RASHPA_COMPAT_H
void hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*fn)(struct hrtimer *t),
		   int clock, int mode);

/* tracepoints that no test reads */
#define RASHPA_TRACE_H
#define trace_rashpa_program(...)	((void)0)
#define trace_rashpa_search(...)	((void)0)
#define trace_rashpa_stop(...)		((void)0)

#endif /* UNITS_KERNEL_H */
