/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Will this kernel load our module: Secure Boot, lockdown, signatures, keys. */
#ifndef SIGNING_H
#define SIGNING_H

#include <stdbool.h>
#include <stddef.h>

struct signing {
	bool efi;		/* booted by UEFI firmware */
	bool secure_boot;
	bool enforced;		/* unsigned modules are refused */
	bool by_lockdown;	/* only by lockdown, not by module.sig_enforce */
	char lockdown[32];	/* none, integrity, confidentiality; empty: not known */
	bool found;		/* a module file is there */
	char signer[128];	/* name of the signer; empty: not signed */
	enum { KEY_NOT_TOLD, KEY_UNKNOWN, KEY_KNOWN } key;
};

enum signing_verdict { SIGNING_OK, SIGNING_NOTE, SIGNING_PROBLEM };

/* Read the kernel's state; root is "" or the folder that stands for /. */
void signing_state(struct signing *s, const char *root);

/* Has the kernel a key of the signer's name? found and signer are the caller's. */
void signing_key(struct signing *s, const char *root);

/* A sentence for text; *remedy is what to do, or NULL. */
enum signing_verdict signing_judge(const struct signing *s, char *text, size_t size,
				   const char **remedy);

#endif /* SIGNING_H */
