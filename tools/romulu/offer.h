/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory of ours, handed to programs that ask for its name: one that streams into it, above all. */
#ifndef ROMULU_OFFER_H
#define ROMULU_OFFER_H

struct offer;

/* From now on, in a thread. @dmabuf stays the caller's. 0, or an exit status after a message. */
int offer_open(const char *name, int dmabuf, struct offer **offer);

/* Nobody gets it any more; NULL: nothing. */
void offer_close(struct offer *offer);

#endif /* ROMULU_OFFER_H */
