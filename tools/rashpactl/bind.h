/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Binding a PCI function to the driver, with its profile. */
#ifndef BIND_H
#define BIND_H

#include <stdbool.h>

#include "rashpactl/profile-file.h"
#include "rashpactl/rashpactl.h"

struct bind {
	const char *what, *profile;	/* no profile: found by the ids */
	bool force, exist_ok;
};

/*
 * Bind @function, wait until its node can be opened, and apply the profile. A function that is bound
 * already (e.g. by the module's parameter ids) gets its profile if it has none, or is stuck; with a
 * profile it is refused, or stays unchanged with exist_ok. *@profiled: @profile was applied. Returns
 * an exit code, after a message; after an error the function is in its previous state, or it stays
 * bound and stuck, because its profile does not stop it.
 */
int bind_function(const struct bind *bind, struct pci_function *function, struct profile *profile,
		  bool *profiled);

#endif /* BIND_H */
