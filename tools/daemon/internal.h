/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the rooms of the daemon know of each other. */
#ifndef DAEMON_INTERNAL_H
#define DAEMON_INTERNAL_H

#include "child.h"
#include "daemon.h"
#include "say.h"
#include "telegram.h"

#define MANAGERS	32		/* clients that have said hello */
#define STRANGERS	256		/* clients that have not yet */
#define CLIENTS		(MANAGERS + STRANGERS)
#define HELLO_NS	10000000000ull	/* for who connects to say it */
#define ORPHAN_NS	10000000000ull	/* for another manager to take over */
#define STOP_NS		20000000000ull	/* for a child to end, before it is killed */

/* In the order of the schema; bits of masks. */
enum state {
	IDLE, CONFIGURING, CONFIGURED, ARMING, ARMED, RUNNING, PAUSING, PAUSED, STOPPING, ENDED,
	STATES
};

struct client {
	struct wire *wire;
	uint64_t number;		/* of all that ever came; 0: the place is free */
	bool hello, going;		/* it has said hello; it said bye, and hears the rest */
	char name[192];
	uint64_t id;			/* of the last telegram to it */
	uint64_t interval_ns;		/* from status to status; 0: none */
	uint64_t due_ns;		/* of the next one; before its hello: of that */
};

/* A telegram whose answer has to wait for the child. */
struct pending {
	uint64_t client;		/* 0: there is none */
	uint64_t id;
};

struct daemon {
	const struct daemon_options *options;
	bool detector;
	char **argv;			/* of the tool */
	const volatile bool *stop;
	struct wire_tls *tls;
	struct wire_listener listener[DAEMON_ADDRESSES];
	unsigned int listeners;
	struct client client[CLIENTS];
	uint64_t clients;		/* so many came */
	unsigned int first;		/* place that is served first in the next turn */

	enum state state;
	enum state before;		/* a pause or a rate that was refused */
	uint64_t leader;		/* client; 0: nobody leads */
	uint64_t orphan_ns;		/* when nobody will lead any more; 0: somebody does */
	bool orphan_stop, stopped;	/* a run without a manager is stopped; it was stopped */
	char experiment[TELEGRAM_NAME];
	uint64_t run;
	xmlDoc *configuration;		/* the telegram, or NULL */
	struct pending pending;
	struct child child;
	uint64_t kill_ns;		/* when the child is killed; 0: it need not be */

	struct json_object *able;	/* what the program can, as a child told; or NULL */
	struct json_object *configured;	/* of this run; likewise */
	struct json_object *status;	/* the last one of this run; likewise */
	xmlDoc *ended;			/* the account of the run; NULL: it is not over */
};

const char *state_name(enum state state);

/* --- clients.c: who is there --- */

struct client *client_of(struct daemon *d, uint64_t number);
/* The telegram goes, and is freed. re: 0 is none */
void client_send(struct daemon *d, struct client *c, xmlDoc *telegram);
xmlDoc *client_telegram(struct client *c, const char *name, uint64_t re, xmlNode **content);
__attribute__((format(printf, 5, 6)))
void client_refuse(struct daemon *d, struct client *c, uint64_t re, const char *code,
		   const char *format, ...);
void client_done(struct daemon *d, struct client *c, uint64_t re);
void client_close(struct daemon *d, struct client *c);
/* A place for a link of this user or machine; where strangers have all of theirs, one of them goes. */
struct client *client_place(struct daemon *d, uint64_t origin);
/* It says hello for the first time; where there are too many managers, an observer goes. */
void client_admit(struct daemon *d, struct client *c);
bool client_may_lead(const struct daemon *d, const struct client *c);

/* --- requests.c: what a telegram asks for --- */

void request(struct daemon *d, struct client *c, const char *text, size_t size);
/* with what the client says of itself in the request */
void tell_capabilities(struct daemon *d, struct client *c, uint64_t re);
void tell_status(struct daemon *d, struct client *c, uint64_t re);

/* --- run.c: the child, and what becomes of it --- */

/* All return 0, or -1 and why. */
int run_configure(struct daemon *d, const xmlNode *configure, char *why);
int run_probe(struct daemon *d, char *why);
/* A word for the child, which will answer. */
void run_tell(struct daemon *d, const char *kind);
void run_tell_rate(struct daemon *d, double rate);
/* It is stopping then, whatever it was doing: who waits for that hears of it. */
void run_stop(struct daemon *d);
void run_forget(struct daemon *d);
/* The account of a run that has ended. */
void run_tell_ended(struct daemon *d, struct client *c);
/* Its messages, its lines, its end. */
void run_look(struct daemon *d, bool ended);
/* The answer that a client waits for. */
void pending_done(struct daemon *d);
__attribute__((format(printf, 3, 4)))
void pending_refuse(struct daemon *d, const char *code, const char *format, ...);

/* --- machine.c: what there is --- */

void machine_tell(xmlNode *capabilities, struct json_object *able);
/* 0, or -1 and why */
int machine_write_register(uint64_t fpga, const char *window, uint64_t offset, uint64_t value,
			   char *why);

/* JSON of a child as elements. */
void counts_add(xmlNode *to, struct json_object *status);
/* the image, and ways to receivers */
void configured_add(xmlNode *to, struct json_object *configured);
/* before: what comes before the machine, in the order of the schema */
void able_add(xmlNode *to, struct json_object *able, bool before);

#endif /* DAEMON_INTERNAL_H */
