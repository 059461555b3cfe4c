/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Giving a PCI function to the driver, with its profile. */
#ifndef BIND_H
#define BIND_H

#include <stdbool.h>

#include "profile.h"
#include "rashpactl.h"

struct bind {
	const char *what, *profile;	/* no profile: found by the ids */
	bool force, exist_ok, json;
};

/*
 * Bind @function, wait until its node can be opened, apply the profile. One that the driver has
 * already, as by the module's parameter ids, and that has no profile yet, gets it; one that has a
 * profile is refused, or left as it is with exist_ok. *@profiled: @profile is what was applied.
 * An exit code, after a message: then the function is as it was.
 */
int bind_function(const struct bind *bind, struct pci_function *function, struct profile *profile,
		  bool *profiled);

#endif /* BIND_H */
