#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the lab's root: daemons and telegrams, where no driver is needed. TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=lib/shell.sh
. "$(dirname "$0")/lib/shell.sh"
tools=$PWD/${RASHPA_TOOLS:-build/tools}
export PATH=$tools:$PATH PYTHONPATH=$PWD/selftests/python PYTHONDONTWRITEBYTECODE=1

python3 selftests/python/telegrams.py "$tools" tools/telegram/rashpa.xsd || bad=1

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
ok $? "a daemon listens"
mkdir "$work/said"
is "a client of a few lines leads a run" "$(python3 selftests/python/telegram.py "$work/client" run \
	"<transport>jungfrau</transport><to>127.0.0.1:5009</to><rate>50</rate><split>1</split><images>20</images>" "$work/said")" \
	"done 20"
good "all telegrams are of the schema" xmllint --noout --nonet --schema tools/telegram/rashpa.xsd "$work"/said/*.xml
holds "there were some: $(find "$work/said" -name '*.xml' | wc -l)" "$(find "$work/said" -name '*.xml' | wc -l) > 13"

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
tls() { echo --tls-ca "$keys/ca.pem" --tls-cert "$keys/$1.pem" --tls-key "$keys/$1.key"; }
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
answers() { ss -Hltn "sport = :$1" | grep -q .; }
wait_for 60 answers "$good"
ok $? "a daemon listens at its port"
wait_for 60 answers "$old"
ok $? "and another one"
wait_for 60 test -S "$work/romulu"
ok $? "and a third one at its socket"

# says NAME TEXT OPTION...: what the manager says of the detector; TEXT may be a pattern
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
	ok $? "who is named leads" || sed 's/^/# /' "$work/out"
	says "who is not named does not" "may not lead" $(tls stranger)
	says "who has no certificate is refused" "certificate"
	says "a certificate of another authority is refused" "certificate" --tls-ca "$keys/ca.pem" \
		--tls-cert "$keys/foreign.pem" --tls-key "$keys/foreign.key"
	says "an expired one is refused" "expired" $(tls expired)
	experiment "tls:127.0.0.1:$good" another
	says "a daemon of another name is refused" "another" $(tls manager)
	experiment "tls:127.0.0.1:$good"
	says "and one whose name is not its host" "127.0.0.1" $(tls manager)
	experiment "tls:127.0.0.1:$old" late
	says "a daemon whose certificate has expired is refused" "expired" $(tls manager)
	experiment "plain:192.0.2.1:5000"
	says "a plain link to another machine is refused" "tls:"
	experiment "plain:127.0.0.1:$good"
	says "a plain link finds no plain daemon" "" --timeout 5
}
remu --daemon plain:192.0.2.1:5000 >"$work/out" 2>&1
is "nobody listens plainly to other machines" "$? $(grep -c tls: "$work/out")" "1 1"
chmod 644 "$keys/detector.key"
# shellcheck disable=SC2046
remu --daemon "tls:127.0.0.1:$(port)" $(tls detector) >"$work/out" 2>&1
is "a key that all can read is refused" "$? $(grep -c chmod "$work/out")" "1 1"
mkdir "$work/units"
for unit in tools/systemd/*.in; do
	sed "s|@PREFIX@/bin|$tools|" "$unit" >"$work/units/$(basename "$unit" .in)"
done
good "units of systemd are right" systemd-analyze verify --man=no "$work/units/remu@x.service" \
	"$work/units/romulu@x.service"
good "and their programs are shut in" systemd-analyze security --offline=true --threshold=20 \
	"$work"/units/*.service
is "sockets are not for everybody" "$(stat -c %a "$work/romulu")" 660
finish
