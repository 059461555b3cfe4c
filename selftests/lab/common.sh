# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2034
# Shared by the lab's parts: messages, sudo, paths.

LAB=$TOP/selftests/lab
CACHE=${RASHPA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rashpa}
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
SUDO=()
((EUID == 0)) || SUDO=(sudo)

E_LOG=100	# the kernel log has a line that must not be there
E_DEAD=101	# the guest ended without an exit status (panic)
E_LAB=102	# the lab itself failed: usage, missing program, no root
E_FPGA=103	# a software FPGA died
E_TIME=124	# time limit

say() { printf 'lab: %s\n' "$*" >&2; }
die() { say "$*"; exit "$E_LAB"; }

# Sets DATA: folder with frames of real detectors, empty without one.
find_data() {
	DATA=${RASHPA_DATA:-$TOP/../shared/data}
	if [[ -d $DATA ]]; then
		DATA=$(readlink -f "$DATA")
	else
		[[ ! ${RASHPA_DATA-} ]] || die "RASHPA_DATA: no directory $DATA"
		DATA=
	fi
}

# Lines of a list file without comments and empty lines.
entries() { sed -e 's/[[:space:]]*#.*//' -e '/^[[:space:]]*$/d' "$1"; }

# step TEXT COMMAND...: run the command with its output in $STEP_LOG. It prints one line, with
# seconds; on a terminal also the last line of the log while it runs.
step() {
	local text=$1 start=$SECONDS pid last status=0
	shift
	printf '== %s\n' "$text" >>"$STEP_LOG"
	"$@" >>"$STEP_LOG" 2>&1 </dev/null &
	pid=$!
	while [[ -t 2 ]] && kill -0 "$pid" 2>/dev/null; do
		last=$(tail -n 1 "$STEP_LOG" | tr -cd '[:print:]')
		printf '\r\033[K%5d s  %s: %.60s' $((SECONDS - start)) "$text" "$last" >&2
		sleep 0.2
	done
	wait "$pid" || status=$?
	[[ -t 2 ]] && printf '\r\033[K' >&2
	((status)) && text+=": FAILED"
	printf '%5d s  %s\n' $((SECONDS - start)) "$text" >&2
	if ((status)); then
		tail -n 20 "$STEP_LOG" >&2
		die "failed; the whole log: $STEP_LOG"
	fi
}

# need PROGRAM=PACKAGE...: install what this machine lacks (Debian only).
need() {
	local pair missing=() STEP_LOG=$CACHE/host.log
	for pair; do
		command -v "${pair%%=*}" >/dev/null || missing+=("${pair#*=}")
	done
	((${#missing[@]})) || return 0
	command -v apt-get >/dev/null || die "please install: ${missing[*]}"
	mkdir -p "$CACHE"
	step "installing on this machine: ${missing[*]}" host_install "${missing[@]}"
}

host_install() {
	local -a install=("${SUDO[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y
		--no-install-recommends "$@")
	"${install[@]}" || { "${SUDO[@]}" apt-get update && "${install[@]}"; }
}
