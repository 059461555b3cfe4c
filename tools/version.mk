# SPDX-License-Identifier: LGPL-2.1-or-later
# The version is dkms.conf's.
VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' $(dir $(lastword $(MAKEFILE_LIST)))../dkms.conf)
# Warnings are errors where we are at home (the lab): another compiler has warnings of its own.
WERROR ?=
