# SPDX-License-Identifier: LGPL-2.1-or-later
# The version is dkms.conf's.
VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' $(dir $(lastword $(MAKEFILE_LIST)))../dkms.conf)
