# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2034,SC2154 # variables of the scripts that source this
# A program that fills a stream of the driver that is files. Sourced; $tools is the folder of the built tools.

begin_program() { # ARGUMENT...: its stream
	coproc program {
		PYTHONPATH=$tools/python RASHPA_LIBRARY=$tools/librashpa-fake.so \
			python3 -B tools/processing/tests/program.py "$@" 2>&1
	}
	input=${program[1]}
	read -r RASHPA_DEV <&"${program[0]}"
}
end_program() {
	exec {input}>&-
	wait
}
