# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced after shell.sh by tests of tools that need no driver: where all tests run, they run the
# tools with sanitizers only.

if [[ ${RASHPA_TIER:-check} != check && ! ${RASHPA_TOOLS-} ]]; then
	export RASHPA_TOOLS=build/sanitize/tools
	# shellcheck disable=SC2154 # shell.sh sets work
	selftests/static/sanitize.sh build >"$work/log" 2>&1 || { tail -n 20 "$work/log" | sed 's/^/# /'; echo "Bail out! no tools with sanitizers"; exit 1; }
fi
