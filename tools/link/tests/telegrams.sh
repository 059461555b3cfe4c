#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=45
# Runs inside the lab's root: daemons and telegrams, where no driver is needed. TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. "$(dirname "$0")/../../../selftests/lib/shell.sh"
# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/sanitized.sh
. selftests/lib/sanitized.sh
tools=$PWD/${RASHPA_TOOLS:-build/tools}
export PATH=$tools:$PATH PYTHONPATH=$PWD/tools/link/tests PYTHONDONTWRITEBYTECODE=1

python3 tools/link/tests/telegrams.py "$tools" tools/link/rashpa.xsd || bad=1

# --- a whole run, by a client of a few lines; xmllint says that all of it is of the schema
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; rm -rf "$work"' EXIT
# daemon TOOL NAME ADDRESS OPTION...
daemon() {
	local tool=$1 name=$2 address=$3
	shift 3
	"$tool" --daemon "$address" "$@" >"$work/$name.log" 2>&1 &
	pids+=($!)
}
daemon remu client "unix:$work/client" --dataset generate:2
wait_for 60 test -S "$work/client"
ok $? "daemon-listens: a daemon listens"
mkdir "$work/said"
is "client-few-lines: a client of a few lines leads a run" "$(python3 tools/link/tests/telegram.py "$work/client" run \
	"<transport>jungfrau</transport><to>127.0.0.1:5009</to><rate>50</rate><split>1</split><images>20</images>" "$work/said")" \
	"done 20"
good "all-telegrams-schema: all telegrams are of the schema" xmllint --noout --nonet --schema tools/link/rashpa.xsd "$work"/said/*.xml
holds "there-were-some: there were some: $(find "$work/said" -name '*.xml' | wc -l)" "$(find "$work/said" -name '*.xml' | wc -l) > 13"

# --- certificates
keys=$work/keys
certificate() { # AUTHORITY NAME
	selftests/lib/certificates.sh "$keys" "$@" >"$work/log" 2>&1 || sed 's/^/# /' "$work/log"
}
certificate ca manager
certificate ca detector
certificate ca stranger
certificate ca2 foreign
CERTIFICATE_DAYS=-1 certificate ca expired
CERTIFICATE_DAYS=-1 certificate ca late
port() { python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
tls() { echo "--tls=$keys/$1.pem,$keys/$1.key,$keys/ca.pem"; }
good=$(port) old=$(port)
# shellcheck disable=SC2046 # these are words
{
	daemon remu good "tls:127.0.0.1:$good" $(tls detector) --leader cert:manager --leader cert:expired
	daemon remu old "tls:127.0.0.1:$old" $(tls late) --leader cert:manager
}
daemon romulu romulu "unix:$work/romulu"
experiment() { # ADDRESS [CERTIFICATE]
	local named=${2:+certificate=\"$2\"}
	cat >"$work/experiment.xml" <<-END
		<experiment xmlns="urn:rashpa:1" version="1.0" name="keys">
			<detector name="board" at="$1" $named> <dataset>generate:2</dataset> </detector>
			<receiver name="judge" at="unix:$work/romulu"> <buffer>none</buffer> </receiver>
			<flow from="board" to="judge" transport="udp" address="127.0.0.1:5001"/>
		</experiment>
	END
}
cat >"$work/memory.xml" <<-END
	<experiment xmlns="urn:rashpa:1" version="1.0" name="memory">
		<detector name="board" at="unix:$work/client"> <dataset>generate:2</dataset> </detector>
		<receiver name="judge" at="unix:$work/romulu"> <buffer>$work/ring0</buffer> </receiver>
		<flow from="board" to="judge" transport="memory"/>
	</experiment>
END
wait_for 60 test -S "$work/romulu"
rashpa-manager check "$work/memory.xml" >"$work/out" 2>&1
is "memory: a stream in a file requires neither a board nor a buffer" "$? $(grep -c problem "$work/out")" "0 0" ||
	sed 's/^/# /' "$work/out"
answers() { ss -Hltn "sport = :$1" | grep -q .; }
wait_for 60 answers "$good"
ok $? "daemon-listens-port: a daemon listens at its port"
wait_for 60 answers "$old"
ok $? "another-one: and another one"
wait_for 60 test -S "$work/romulu"
ok $? "third-one-socket: and a third one at its socket"

# says NAME TEXT OPTION...: checks the manager's line for the detector; TEXT may be a pattern
says() {
	local name=$1 text=$2
	shift 2
	rashpa-manager check --timeout 20 "$@" "$work/experiment.xml" >"$work/out" 2>&1
	grep -q "board: .*$text" "$work/out"
	ok $? "$name" || sed 's/^/# /' "$work/out"
}
# shellcheck disable=SC2046
{
	experiment "tls:127.0.0.1:$good" detector
	rashpa-manager check $(tls manager) "$work/experiment.xml" >"$work/out" 2>&1
	grep -q "no buffer none" "$work/out" && ! grep -q "board" "$work/out"
	ok $? "named-leads: a named manager leads" || sed 's/^/# /' "$work/out"
	says "not-named-not: a manager that is not named does not" "may not lead" $(tls stranger)
	says "no-certificate-refused: a manager without a certificate is refused" "certificate"
	says "certificate-another-authority: a certificate of another authority is refused" "certificate" --tls \
		"$keys/foreign.pem,$keys/foreign.key,$keys/ca.pem"
	says "expired-one-refused: an expired one is refused" "expired" $(tls expired)
	experiment "tls:127.0.0.1:$good" another
	says "daemon-another-name: a daemon of another name is refused" "another" $(tls manager)
	experiment "tls:127.0.0.1:$good"
	says "one-name-not: and one whose name is not its host" "127.0.0.1" $(tls manager)
	experiment "tls:127.0.0.1:$old" late
	says "daemon-certificate-expired: a daemon whose certificate has expired is refused" "expired" $(tls manager)
	experiment "plain:192.0.2.1:5000"
	says "plain-link-another: a plain link to another machine is refused" "tls:"
	experiment "plain:127.0.0.1:$good"
	says "plain-link-finds: a plain link finds no plain daemon" "" --timeout 5
}
remu --daemon plain:192.0.2.1:5000 >"$work/out" 2>&1
is "nobody-listens-plainly: plain TCP for other machines is refused" "$? $(grep -c tls: "$work/out")" "1 1"
chmod 644 "$keys/detector.key"
# shellcheck disable=SC2046
remu --daemon "tls:127.0.0.1:$(port)" $(tls detector) >"$work/out" 2>&1
is "key-all-read: a key that all can read is refused" "$? $(grep -c chmod "$work/out")" "1 1"

# --- paths that do not carry a packet: detector, router and receiver, each in a network name space
# machine NAME: sets NAME to a process in that name space
machine() {
	unshare -n sleep infinity &
	declare -g "$1=$!"
	pids+=($!)
	other() { [[ $(readlink "/proc/$1/ns/net") != "$(readlink /proc/self/ns/net)" ]]; }
	wait_for 20 other "$!"
}
at() { nsenter -t "$1" -n "${@:2}"; }
sender='' router='' taker=''
# cable MACHINE NUMBER MTU: from there to the router, with addresses of both kinds
cable() {
	at "$1" ip link set lo up
	at "$1" ip link add eth0 mtu 9000 type veth peer name "eth$2" netns "$router" mtu "$3" &&
		at "$1" ip addr add "10.4.$2.1/24" dev eth0 && at "$router" ip addr add "10.4.$2.2/24" dev "eth$2" &&
		at "$1" ip addr add "fd04:$2::1/64" dev eth0 nodad &&
		at "$router" ip addr add "fd04:$2::2/64" dev "eth$2" nodad &&
		at "$1" ip link set eth0 up && at "$router" ip link set "eth$2" up &&
		at "$1" ip route add default via "10.4.$2.2" && at "$1" ip route add default via "fd04:$2::2"
}
{
	machine sender && machine router && machine taker && cable "$sender" 1 9000 && cable "$taker" 2 1500 &&
		at "$router" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
	ok $? "router-between-9000: a router between 9000 and 1500 bytes"
	# not by at(): the process to be ended is then a shell, and the daemon stays
	nsenter -t "$sender" -n remu --daemon "unix:$work/far" --dataset generate:2 --split 1 >"$work/far.log" 2>&1 &
	pids+=($!)
	nsenter -t "$taker" -n romulu --daemon "unix:$work/near" >"$work/near.log" 2>&1 &
	pids+=($!)
	wait_for 60 test -S "$work/far" && wait_for 60 test -S "$work/near"
	ok $? "daemons-ends: daemons at both ends of it"
	# way TO TRANSPORT MORE: bytes of its longest packet, and what the way carries
	way() { python3 tools/link/tests/telegram.py "$work/far" paths "<transport>$2</transport><to>$1</to><rate>1</rate>${3-}"; }
	is "short-packets-through: short packets come through" "$(way 10.4.2.1:5001 udp)" 1480/1480
	short() { [[ $(way '[fd04:2::1]:5001' udp) == 1500/1500 ]]; }
	wait_for 20 short # neighbours of IPv6 are there a little later
	ok $? "ipv6: by IPv6, too"
	is "jungfrau-not: those of a JUNGFRAU do not" "$(way 10.4.2.1:5001 jungfrau)" 8268/1500
	is "jungfrau/ipv6: nor by IPv6" "$(way '[fd04:2::1]:5001' jungfrau)" 8288/1500
	is "several-lines-once: nor several lines at once" "$(way 10.4.2.1:5001 udp '<message>5000</message>')" 4140/1500
	is "two-ways-once: two ways at once" "$(way 10.4.2.1:5001 jungfrau '<to>10.4.1.2:5001</to>')" "8268/1500 8268/8268"
	is "nobody-answers/nothing: no answer: nothing is reported" "$(way 10.4.3.1:5001 jungfrau)" ""
	cat >"$work/experiment.xml" <<-END
		<experiment xmlns="urn:rashpa:1" version="1.0" name="far">
			<detector name="board" at="unix:$work/far"> <message>5000</message> </detector>
			<receiver name="judge" at="unix:$work/near"> <buffer>none</buffer> </receiver>
			<flow from="board" to="judge" transport="udp" address="10.4.2.1:5001"/>
		</experiment>
	END
	rashpa-manager check "$work/experiment.xml" >"$work/out" 2>&1
	grep -q "board .*4140 bytes.* 1500 unfragmented: raise the MTU .* to 4140, or give board <message>1416</message>" \
		"$work/out"
	ok $? "check: check reports it" || sed 's/^/# /' "$work/out"
	sed -i 's/<message>5000/<message>1416/' "$work/experiment.xml"
	rashpa-manager check "$work/experiment.xml" >"$work/out" 2>&1
	is "content-remedy: and is content with its own remedy" "$(grep -c board "$work/out")" 0
	at "$sender" ip link set eth0 mtu 1400
	is "interface-small: an interface that is too small" "$(way 10.4.2.1:5001 jungfrau)" 8268/1400
	at "$sender" ip link set eth0 mtu 9000
	at "$router" ip link set eth2 mtu 9000
	is "raised-carries: a path with a raised MTU carries them" "$(way 10.4.2.1:5001 jungfrau) $(way '[fd04:2::1]:5001' jungfrau)" \
		"8268/8268 8288/8288"
}

mkdir "$work/units"
for unit in tools/data/systemd/*.in; do
	sed "s|@PREFIX@/bin|$tools|" "$unit" >"$work/units/$(basename "$unit" .in)"
done
good "units-systemd-right: units of systemd are right" systemd-analyze verify --man=no "$work/units/remu@x.service" \
	"$work/units/romulu@x.service"
good "programs-shut: and their programs are shut in" systemd-analyze security --offline=true --threshold=30 \
	"$work"/units/*.service
is "sockets-not-everybody: sockets are not for everybody" "$(stat -c %a "$work/romulu")" 660
finish
