#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=all where=guest kernel=any iommu=off seconds=60
# rashpa-bench network sweep FILE: the nodes of a file are three network namespaces with soft-RoCE, each with an
# SSH server; two write to the third one. A run that was stopped is continued.
. "$(dirname "$0")/../lib/shell.sh"
. "$(dirname "$0")/../lib/rxe-pair.sh"

for program in sshd ssh-keygen; do
	PATH=$PATH:/usr/sbin command -v $program >/dev/null || { skip "nodes: three SSH servers" "no $program here"; finish; }
done
if ! modprobe -q veth || ! modprobe -q bridge || ! modprobe -q rdma_rxe; then
	skip "nodes: three SSH servers" "no soft-RoCE, or no bridge, in this kernel"
	finish
fi

# --- nodes
mkdir -p /run/sshd
chmod 755 /run/sshd
ssh-keygen -q -t ed25519 -N '' -f "$work/key"
cat >"$work/sshd" <<-END
	HostKey $work/key
	AuthorizedKeysFile $work/key.pub
	StrictModes no
	UsePAM no
	PermitRootLogin prohibit-password
	PidFile none
END
cat >"$work/ssh" <<-END
	Host node*
	User root
	IdentityFile $work/key
	StrictHostKeyChecking no
	UserKnownHostsFile /dev/null
	LogLevel ERROR
END
ip link add br9 type bridge
ip addr add 10.9.0.254/24 dev br9
ip link set br9 mtu 9000 up
servers=()
node() { # NUMBER
	ip netns add "n$1" && ip link add "p$1" mtu 9000 master br9 type veth peer name "v$1" mtu 9000 netns "n$1" || return
	at "n$1" ip link set lo up
	at "n$1" ip addr add "10.9.0.$1/24" dev "v$1"
	at "n$1" ip link set "v$1" up
	ip link set "p$1" up
	at "n$1" rdma link add "rx$1" type rxe netdev "v$1" || return
	await_gids "0a09:000$1" "rx$1" || return
	ip netns exec "n$1" /usr/sbin/sshd -D -e -f "$work/sshd" 2>>"$work/sshd.log" &
	servers+=($!)
	printf 'Host node%s\nHostName 10.9.0.%s\n' "$1" "$1" >>"$work/ssh"
}
nodes() {
	local i
	for i in 1 2 3; do
		node $i || return
	done
}
nodes >"$work/err" 2>&1
ok $? "nodes: three SSH servers" || { sed 's/^/# /' "$work/err"; finish; }
answers() { ssh -F "$work/ssh" "node$1" true 2>/dev/null; }
for i in 1 2 3; do
	wait_for 60 answers $i
	ok $? "node$i: it answers" || sed 's/^/# /' "$work/sshd.log"
done

# --- an experiment
cat >"$work/site.toml" <<-END
	run = {time = 0.5, warm_up = 0.2, repeat = 2}
	[[writer]]
	at = "ssh -F $work/ssh node1 env PATH=$PATH"
	device = "rx1"
	[[writer]]
	at = "ssh -F $work/ssh node2 env PATH=$PATH"
	device = "rx2"
	[[sink]]
	at = "ssh -F $work/ssh node3 env PATH=$PATH"
	address = "10.9.0.3"
	device = "rx3"
	[[group]]
	experiment = "two to one"
	vary = {pairs = [1, 4]}
	with = {service = "rc", writers = 2, rate = 4000000, regions = 10}
	trials = [
		{name = "shared, {pairs}"},
		{name = "private, {pairs}", threads = 0, private = true, receives = 16, series = true},
	]
END
sweep() { rashpa-bench network sweep "$work/site.toml" --keep "$work/kept" --json="$work/json" "$@" >"$work/out" 2>"$work/err"; }
sweep --repeat 1
is "run: two nodes write to a third one, by SSH" "$? $(jq -c '[.trials[] | .name, .missing_percent == 0, .goodput_bytes_per_second > 0, .threads]' "$work/json")" \
	'0 ["shared, 1",true,true,1,"private, 1",true,true,1,"shared, 4",true,true,1,"private, 4",true,true,4]' || sed 's/^/# /' "$work/err" "$work/out"
is "sides: the results of all three are kept" "$(jq -c '.sides | length' "$work/kept/results.jsonl" | sort | uniq -c | xargs)" "4 3"
is "memory: each pair writes to ten places" "$(jq -c '[.trials[] | .destinations]' "$work/json")" "[10,10,40,40]"
sweep
is "continued: only the second round runs" "$? $(grep -c 'round 1' "$work/err") $(grep -c 'round 2' "$work/err")" "0 0 4"
is "continued-all: medians of both rounds" "$(jq -c '[.trials[].goodput_bytes_per_second_rounds | length] | unique' "$work/json")" "[2]"

kill "${servers[0]}"
sed -i 's/^run = .*/run = {time = 0.4, warm_up = 0.2, repeat = 1}/' "$work/site.toml"
sweep --only "two to one"
is "gone: a node that does not answer is the reason" "$? $(jq -c '[.left_out[].reason | test("refused|10.9.0.1")] | length, all' "$work/json" | xargs)" \
	"1 4 true"
kill "${servers[@]}" 2>/dev/null
finish
