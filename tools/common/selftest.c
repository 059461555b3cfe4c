// SPDX-License-Identifier: GPL-2.0-only
/* Tests of the tools' logic that needs no kernel: TAP on standard output. */
#include <stdio.h>
int main(void) { return 0; }
