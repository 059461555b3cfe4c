/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The end of a tool that a daemon leads (--led FD): a socket of messages in JSON. The tool says
 * what has become of it, waits where the daemon has to say that it goes on, and takes commands.
 * Where no daemon leads, all of this does nothing, and no call waits. led_say() is for any thread,
 * the rest for one.
 */
#ifndef LED_H
#define LED_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#define LED_MOST	65536		/* bytes of a message */
#define LED_STATUS_MS	100		/* from one status to the next */

struct led_command {
	enum led_kind { LED_NONE, LED_ARM, LED_START, LED_PAUSE, LED_RESUME, LED_RATE } kind;
	double rate;			/* images per second */
};

/* The daemon's end is gone with the daemon, and so are we: 0 or -1 and why. */
int led_open(int fd, char *why);
bool led(void);
/* for poll(); -1: no leader */
int led_fd(void);

/* The next command, if there is one: else LED_NONE. */
struct led_command led_take(void);
/* Wait for this one. false: we are to end. */
bool led_await(enum led_kind kind, const volatile bool *stop);

/* {"kind": kind} with members, which are freed; NULL: no members. */
void led_say(const char *kind, struct json_object *members);
/* refuse the last command */
__attribute__((format(printf, 1, 2)))
void led_refuse(const char *format, ...);

/* It is time for a status. */
bool led_due(void);

#endif /* LED_H */
