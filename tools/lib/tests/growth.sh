#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check seconds=20
# Runs inside the lab's root: structs of librashpa can grow. The library and a program (growth.c) are built
# with the headers as they are, and with larger structs; each program runs with each library. TAP.
# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. "$(dirname "$0")/../../../selftests/lib/shell.sh"

format=(stream_header stream_process stream_module stream_work)
calls=(stack image stream_stat stream_plan)
boards=(board_info target_info dtp_stat run_plan)
# structs of the driver: those that fake-driver.c handles, and a segment of a table
driver=(info role channel_make source_add group_make group_info window_make segment)
mkdir "$work/now"
cp -r tools/{lib,common,tests} uapi/linux "$work/now"
cp -r "$work/now" "$work/grown"
# grow FILE STRUCT...: four more members at the end of each
grow() {
	local file=$work/grown/$1 name
	shift
	for name; do
		sed -i "/^struct rashpa_$name {\$/,/^}/s/^}/\tuint64_t grown[4];\n&/" "$file"
		[[ $(sed -n "/^struct rashpa_$name {\$/,/^}/p" "$file") == *grown* ]] || echo "# struct rashpa_$name did not grow"
	done
}
{
	grow lib/rashpa-stream-format.h "${format[@]}"
	grow lib/rashpa-stream.h "${calls[@]}"
	grow lib/rashpa-board.h "${boards[@]}"
	grow linux/rashpa.h "${driver[@]}"
} >"$work/out"
sed -i 's/^#include <linux\/types.h>/&\n#include <stdint.h>/' "$work/grown/linux/rashpa.h"
# the sizes of a format are not those of tomorrow
sed -i '/^_Static_assert.*a format/d' "$work/grown/lib/stream-format.c"
is "grown: all structs have grown" "$(<"$work/out")" ""

build() { # VERSION OPTION...
	local at=$work/$1 flags=(-std=gnu17 -D_GNU_SOURCE -pthread -I"$work/$1" -I"$work/$1/lib")
	shift
	rm "$at"/lib/gpu-vulkan.c
	gcc "${flags[@]}" -DRASHPA_VERSION='"0"' -DRASHPA_NO_VULKAN='"it"' -fPIC -shared \
		-Wl,--wrap=ioctl,--wrap=mmap,--wrap=munmap -o "$at/librashpa.so" "$at"/lib/*.c \
		"$at/lib/tests/fake-driver.c" -ldl &&
		gcc "${flags[@]}" -Wall -Wextra -Werror "$@" -o "$at/program" tools/lib/tests/growth.c -L"$at" -lrashpa
}
for version in now grown; do
	option=()
	[[ $version == now ]] || option=(-DGROWN)
	good "built-$version: library and program, $version" build "$version" "${option[@]}"
done

# run PROGRAM LIBRARY
run() {
	local verdicts
	LD_LIBRARY_PATH=$work/$2 timeout 60 "$work/$1/program" >"$work/said" 2>&1
	is "$1-$2: the program of \"$1\" with the library of \"$2\"" "$?" 0 || grep -v '^ok ' "$work/said" | sed 's/^/# /'
	verdicts=$(grep -c '^ok ' "$work/said")
	holds "$1-$2-all: all of it was tried ($verdicts)" "$verdicts == 28"
}
run now now
run now grown
run grown now
run grown grown
finish
