/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* rashpa-manager: leads the daemons of an experiment. See rashpa-manager(1). */
#ifndef MANAGER_H
#define MANAGER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/say.h"
#include "link/telegram.h"
#include "link/transport.h"
#include "link/wire.h"

#define COUNTS		16	/* names of counts in the schema, at most */

/* As the schema has them. */
enum count {
	COUNT_IMAGES, COUNT_LOST, COUNT_BYTES, COUNT_STACKS, COUNT_MISSING, COUNT_DROPPED,
	COUNT_WRONG, COUNT_LAG, COUNT_SLOTS, COUNT_PROCESSED, COUNT_KEPT, COUNT_UNKEPT,
	COUNT_WAITED, COUNT_KINDS
};

struct counts {
	uint64_t value[COUNT_KINDS];
	uint32_t known;			/* bits */
};

/* Counts of a flow from one of its ends. */
struct link_counts {
	char to[TELEGRAM_NAME * 4];
	struct counts counts;
};

#define LINKS	64

/* A detector or a receiver, and its daemon. */
struct party {
	struct experiment *experiment;
	const char *name, *at, *certificate;
	bool detector;
	const xmlNode *node;		/* its element in the file */
	struct wire *wire;		/* NULL: no link any more */
	uint64_t id;			/* id of the last telegram to it */
	uint64_t asked;			/* id of the unanswered request; 0: no request */
	uint64_t asked_ns;
	uint64_t heard_ns;
	char asking[32];		/* name of that request */
	char error[1024];		/* error of the last answer; "": done */
	char state[24];
	xmlDoc *capabilities;		/* or NULL */
	xmlDoc *ended;			/* its account, or NULL: not yet */
	bool failed, stopped, full, said;
	unsigned int full_receivers;	/* detector only: receivers without room */
	struct counts counts, before;	/* before: a second ago, for rates */
	struct link_counts link[LINKS];
	unsigned int links;
	uint32_t width, height;		/* image size; 0: not known */
	char pixel[8];
};

struct flow {
	struct party *from, *to;
	const struct transport *transport;
	char address[256];		/* "": not by network */
	/* bytes of its longest packet, and bytes that the path carries; 0: not known */
	uint64_t needs, carries;
};

struct rule {
	struct party *of, *at;		/* at: party that acts */
	enum count count;
	uint64_t at_least;
	const xmlNode *act;		/* stop, set-rate or write-register */
	bool fired;
};

enum overrun { OVERRUN_PAUSE, OVERRUN_DROP, OVERRUN_STOP };

struct experiment {
	xmlDoc *doc;
	char name[TELEGRAM_NAME];
	enum overrun overrun;
	bool degrade;			/* the others go on when one fails */
	char orphan[16];
	struct party *party;
	unsigned int parties;
	struct flow *flow;
	unsigned int flows;
	struct rule *rule;
	unsigned int rules;
	uint64_t run;
	bool stopping;			/* all parties are being stopped */
};

struct options {
	const char *command, *file;
	struct wire_files files;
	const char *name;		/* name of the manager */
	double timeout;			/* longest wait for an answer, seconds */
	bool json, take_over, progress;
};

/* --- experiment.c --- */

/* 0, or -1 and why; experiment_free() it in both cases. */
int experiment_read(struct experiment *e, const char *file, char *why);
void experiment_free(struct experiment *e);
/* a value of a setting of the party, or "" */
const char *setting(const struct party *p, const char *name, char *to, size_t size);
bool has_setting(const struct party *p, const char *name);
/* the telegram that configures it, with the settings that follow from flows */
xmlDoc *configuration(struct party *p);
enum count count_named(const char *name);
const char *count_name(enum count count);

/* --- party.c: the links --- */

/* Connect to all, and say hello. role: leader or observer. 0 or an exit code, after messages. */
int parties_connect(struct experiment *e, const struct options *o, struct wire_tls *tls,
		    const char *role, double interval, const volatile bool *stop);
void parties_close(struct experiment *e);
/* Send a request; the answer has come when asked is 0. */
void ask(struct party *p, xmlDoc *telegram);
void ask_simply(struct party *p, const char *what);
xmlDoc *telegram_to(struct party *p, const char *what, xmlNode **content);
/* Serve all links, at most until this time. keys: also wait for this descriptor, or -1 */
void parties_turn(struct experiment *e, uint64_t until, int keys, const volatile bool *stop);
/* Wait for all answers. 0, or an exit code after messages that name parties without success. */
int parties_settle(struct experiment *e, const struct options *o, const volatile bool *stop);

/* --- run.c --- */

/* Handler of SIGUSR1, which pauses all detectors, and SIGUSR2, which resumes them. */
void run_hold(int number);
int run_experiment(struct experiment *e, const struct options *o, const volatile bool *stop);

/* --- ahead.c, watch.c, report.c --- */

int check(struct experiment *e, const struct options *o, const volatile bool *stop);
int plan(struct experiment *e, const struct options *o, const volatile bool *stop);
int watch(struct experiment *e, const struct options *o, const volatile bool *stop);
/* Return: an exit code for the outcome of the run. */
int report(struct experiment *e, const struct options *o, bool interrupted);

#endif /* MANAGER_H */
