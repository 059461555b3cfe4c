/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the files of the daemon. */
#ifndef DAEMON_INTERNAL_H
#define DAEMON_INTERNAL_H

#include "daemon/child.h"
#include "daemon/daemon.h"
#include "common/say.h"
#include "link/telegram.h"

#define MANAGERS	32		/* clients that have said hello */
#define STRANGERS	256		/* clients that have not yet */
#define CLIENTS		(MANAGERS + STRANGERS)
#define HELLO_NS	10000000000ull	/* time for a client to say hello */
#define ORPHAN_NS	10000000000ull	/* for another manager to take over */
#define STOP_NS		20000000000ull	/* for a child to end, before it is killed */

/* In the order of the schema; bits of masks. */
enum state {
	IDLE, CONFIGURING, CONFIGURED, ARMING, ARMED, RUNNING, PAUSING, PAUSED, STOPPING, ENDED,
	STATES
};

struct client {
	struct wire *wire;
	uint64_t number;		/* serial number; 0: the place is free */
	bool spoke, hello, going;	/* it has sent something; said hello; said bye, and receives the rest */
	char name[192];
	uint64_t id;			/* id of the last telegram to it */
	uint64_t interval_ns;		/* from status to status; 0: no status */
	uint64_t due_ns;		/* time of the next status; before its hello: of that */
};

/* A telegram whose answer has to wait for the child. */
struct pending {
	uint64_t client;		/* 0: no such telegram */
	uint64_t id;
};

struct daemon {
	const struct daemon_options *options;
	bool detector;
	char **argv;			/* the tool's arguments, and: */
	const struct tune *tunes;
	const volatile bool *stop;
	struct wire_tls *tls;
	struct wire_listener listener[DAEMON_ADDRESSES];
	unsigned int listeners;
	struct client client[CLIENTS];
	uint64_t clients;		/* clients so far */
	unsigned int first;		/* place that is served first in the next turn */

	enum state state;
	enum state before;		/* a pause or a rate that was refused */
	uint64_t leader;		/* client; 0: no leader */
	uint64_t orphan_ns;		/* time to give up waiting for a leader; 0: not waiting */
	bool orphan_stop, stopped;	/* a run without a manager is stopped; it was stopped */
	char experiment[TELEGRAM_NAME];
	uint64_t run;
	xmlDoc *configuration;		/* the telegram, or NULL */
	struct pending pending;
	struct child child;
	uint64_t kill_ns;		/* time to kill the child; 0: never */

	struct json_object *able;	/* the program's capabilities, from a child; or NULL */
	struct json_object *configured;	/* a child's answer for this run; or NULL */
	struct json_object *status;	/* the last status of this run; or NULL */
	xmlDoc *ended;			/* the account of the run; NULL: not over */
};

const char *state_name(enum state state);

/* --- clients.c: links to managers --- */

struct client *client_of(struct daemon *d, uint64_t number);
/* Send the telegram and free it. re: id that it answers, or 0 */
void client_send(struct daemon *d, struct client *c, xmlDoc *telegram);
xmlDoc *client_telegram(struct client *c, const char *name, uint64_t re, xmlNode **content);
__attribute__((format(printf, 5, 6)))
void client_refuse(struct daemon *d, struct client *c, uint64_t re, const char *code,
		   const char *format, ...);
void client_done(struct daemon *d, struct client *c, uint64_t re);
void client_close(struct daemon *d, struct client *c);
/* A place for a link of this user or machine. If strangers use all of theirs, one is closed. */
struct client *client_place(struct daemon *d, uint64_t origin);
/* Its first hello. With too many managers, an observer is closed. */
void client_admit(struct daemon *d, struct client *c);
bool client_may_lead(const struct daemon *d, const struct client *c);

/* --- requests.c: requests of telegrams --- */

void request(struct daemon *d, struct client *c, const char *text, size_t size);
/* also includes the client's data in the request */
void tell_capabilities(struct daemon *d, struct client *c, uint64_t re);
void tell_status(struct daemon *d, struct client *c, uint64_t re);

/* --- run.c: the child of a run --- */

/* All return 0, or -1 and why. */
int run_configure(struct daemon *d, const xmlNode *configure, char *why);
int run_probe(struct daemon *d, char *why);
/* A word for the child, which will answer. */
void run_tell(struct daemon *d, const char *kind);
void run_tell_rate(struct daemon *d, double rate);
/* Changes to stopping from any state; a client that waits for an answer gets an error. */
void run_stop(struct daemon *d);
void run_forget(struct daemon *d);
/* The account of a run that has ended. */
void run_tell_ended(struct daemon *d, struct client *c);
/* Handle the child's messages, its lines and its end. */
void run_look(struct daemon *d, bool ended);
/* The answer that a client waits for. */
void pending_done(struct daemon *d);
__attribute__((format(printf, 3, 4)))
void pending_refuse(struct daemon *d, const char *code, const char *format, ...);

/* --- machine.c: resources of this machine --- */

void machine_tell(xmlNode *capabilities, struct json_object *able);
/* 0, or -1 and why */
int machine_write_register(uint64_t fpga, const char *window, uint64_t offset, uint64_t value,
			   char *why);

/* JSON of a child as elements. */
void counts_add(xmlNode *to, struct json_object *status);
/* the image, and paths to receivers */
void configured_add(xmlNode *to, struct json_object *configured);
/* before: only elements that precede the machine's in the schema */
void able_add(xmlNode *to, struct json_object *able, bool before);

#endif /* DAEMON_INTERNAL_H */
