/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Event channels, as the ioctl table knows them; what they are made of is in events/channel.h.
 */
#ifndef RASHPA_EVENTS_H
#define RASHPA_EVENTS_H

#include "core/call.h"

/* ------------------------------------------------ events/channel.c --- */

int rashpa_ioc_channel(struct rashpa_call *call, void *arg);
int rashpa_ioc_fpga_channel(struct rashpa_call *call, void *arg);
int rashpa_ioc_source_add(struct rashpa_call *call, void *arg);
int rashpa_ioc_source_del(struct rashpa_call *call, void *arg);
int rashpa_ioc_signal(struct rashpa_call *call, void *arg);
int rashpa_ioc_arm(struct rashpa_call *call, void *arg);
int rashpa_ioc_source_info(struct rashpa_call *call, void *arg);

/* -------------------------------------------------- events/group.c --- */

int rashpa_ioc_group(struct rashpa_call *call, void *arg);
int rashpa_ioc_ack(struct rashpa_call *call, void *arg);
int rashpa_ioc_group_info(struct rashpa_call *call, void *arg);

/* ------------------------------------------------- events/notify.c --- */

int rashpa_ioc_eventfd(struct rashpa_call *call, void *arg);

/* -------------------------------------------------- events/watch.c --- */

int rashpa_ioc_look(struct rashpa_call *call, void *arg);

#endif /* RASHPA_EVENTS_H */
