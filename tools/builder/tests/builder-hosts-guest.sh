#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Guest part of builder-hosts.sh: builder-hosts-guest.sh END FOLDER. The folder is shared.
set -uo pipefail

cd "$(dirname "$0")/../../.." || exit
# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/cable.sh
. selftests/lib/cable.sh
end=$1 out=$PWD/$2
builder=$PWD/build/tools/rashpa-builder
ulimit -l unlimited

# --- a machine of a cluster: names, ssh, munge, Slurm

cable_up "$end"
hostname "n$end"
printf '10.2.0.%s n%s\n' 1 1 2 2 >>/etc/hosts
mkdir -p /run/sshd /run/munge /var/spool/slurm /root/.ssh
cp "$out"/keys/ssh /root/.ssh/id_ed25519
cp "$out"/keys/ssh.pub /root/.ssh/authorized_keys
chmod -R go= /root/.ssh
printf 'StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n' >/root/.ssh/config
ssh-keygen -q -t ed25519 -N '' -f /run/host-key
/usr/sbin/sshd -f /dev/null -h /run/host-key -o UsePAM=no -o PermitRootLogin=prohibit-password
install -o munge -g munge -m 400 "$out/keys/munge" /etc/munge/munge.key
install -d -o munge -g munge -m 755 /run/munge
install -d -o munge -g munge -m 700 /var/log/munge /var/lib/munge
runuser -u munge -- /usr/sbin/munged
cat >/etc/slurm/slurm.conf <<-END
	ClusterName=lab
	SlurmctldHost=n1
	SlurmUser=root
	AuthType=auth/munge
	ProctrackType=proctrack/linuxproc
	TaskPlugin=task/none
	JobAcctGatherType=jobacct_gather/none
	SelectType=select/linear
	StateSaveLocation=/var/spool/slurm
	SlurmdSpoolDir=/var/spool/slurm
	SlurmctldPidFile=/run/slurmctld.pid
	SlurmdPidFile=/run/slurmd.pid
	SlurmctldLogFile=$out/slurmctld.log
	SlurmdLogFile=$out/slurmd-%n.log
	ReturnToService=2
	SlurmdTimeout=60
	MessageTimeout=90
	NodeName=n[1-2] CPUs=1 State=UNKNOWN
	PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE
END
echo "CgroupPlugin=disabled" >/etc/slurm/cgroup.conf
((end == 2)) || /usr/sbin/slurmctld
/usr/sbin/slurmd
if ((end == 2)); then
	until [[ -e $out/over ]]; do sleep 0.5; done
	exit 0
fi

# --- the first machine runs all tests

# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. selftests/lib/shell.sh
# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/mpi.sh
. selftests/lib/mpi.sh
trap 'touch "$out/over"; rm -rf "$work"' EXIT
export OMPI_MCA_btl=self,sm,tcp OMPI_MCA_btl_tcp_if_include=10.2.0.0/24
events=200
settle() { sinfo -h -o %T 2>/dev/null | grep -qx idle && [[ $(sinfo -h -N -o %T | sort -u) == idle ]]; }
# shellcheck disable=SC2029 # words are for the other shell
there() { ssh n2 "$@"; }

# ranks 0 to 2 at the first machine, 3 and 4 at the second
printf '%s\n' n1 n1 n1 n2 n2 >"$work/five"
# manager, readouts and a builder at the first one, a builder at the second
printf '%s\n' n1 n1 n1 n1 n2 >"$work/four-one"
by_mpirun() { # ARGUMENT...
	timeout 400 mpirun --host n1:3,n2:2 -n 5 --bind-to none -x OMPI_MCA_pml -x OMPI_MCA_btl "$builder" build --readouts 2 --timeout 100 "$@"
}
by_slurm() { # HOSTS ARGUMENT...
	SLURM_HOSTFILE=$1 timeout 400 srun --mpi=pmix -m arbitrary -n 5 --overcommit --no-kill --kill-on-bad-exit=0 \
		"$builder" build --readouts 2 --timeout 100 "${@:2}"
}
# run NAME COMMAND...: sets status; files, report and words are in the folder NAME
run() {
	local name=$1
	shift
	rm -rf "${out:?}/$name"
	mkdir -p "$out/$name/events"
	"$@" --files "$out/$name/events" --json="$out/$name/report" >"$out/$name/said" 2>&1
	status=$?
}
explain() { { tail -n 20 "$out/$1/said"; jq -c "del(.ranks)" "$out/$1/report"; } 2>&1 | sed 's/^/# /'; }
# all NAME: each event is in a file, once, and right
all() {
	json ".ranges == [[0, $((events - 1))]] and .twice == [] and .wrong == []" \
		python3 -B tools/builder/tests/events.py "$out/$1/events" 2 4 && cp "$work/json" "$out/$1/seen"
}
bytes() { cat "$out/$1"/events/events-* | wc -c; }
some_files() { (($(find "$out/$1/events" -name 'events-*' | wc -l) >= $2)); }

good "ssh: the machines reach each other" wait_for 60 there true
run mpirun by_mpirun --transport mpi --events "$events"
is "mpirun-ends: mpirun starts five ranks on two hosts, over TCP" "$status" 0 || explain mpirun
all mpirun
ok $? "mpirun-events: it builds all events, once" || explain mpirun

wait_for 120 settle
ok $? "slurm-idle: Slurm has both machines" || { sinfo -N -l; tail -n 20 "$out"/slurm*.log; } 2>&1 | sed 's/^/# /'
for transport in mpi verbs; do
	run "srun-$transport" by_slurm "$work/five" --transport "$transport" --events "$events"
	is "srun-$transport-ends: srun --mpi=pmix starts them, over $transport" "$status" 0 || explain "srun-$transport"
	all "srun-$transport" && cmp "$out/mpirun/seen" "$out/srun-$transport/seen" &&
		[[ $(bytes mpirun) == "$(bytes "srun-$transport")" ]]
	ok $? "srun-$transport-same: the result is that of mpirun" || explain "srun-$transport"
done

# --- deaths

gone_there() { ! there pgrep -x rashpa-builder >/dev/null; }

# killed WHAT NAME COMMAND...: runs it, and kills a rank or a machine at the third file; at a low rate, as ssh is slow
killed() {
	local what=$1 name=$2 pid
	shift
	shift
	rm -rf "${out:?}/$name"
	mkdir -p "$out/$name/events"
	"$@" --rate 5 --files "$out/$name/events" --json="$out/$name/report" >"$out/$name/said" 2>&1 &
	pid=$!
	wait_for 200 some_files "$name" 3
	"kill_$what"
	status=0
	wait "$pid" || status=$?
}
# rank 4
kill_rank() {
	# shellcheck disable=SC2016 # of the other shell
	there 'for p in $(pgrep -x rashpa-builder); do
		! tr "\0" "\n" <"/proc/$p/environ" | grep -qx "PMIX_RANK=4" || kill -9 "$p"; done'
}
kill_node() { there 'echo o >/proc/sysrq-trigger' & }

killed rank mpirun-killed by_mpirun --transport mpi --events "$events"
((status && status != 124)) && wait_for 60 gone_there && ! pgrep -x rashpa-builder >/dev/null
ok $? "mpirun-killed: mpirun ends a job that has lost a rank, on both hosts ($status)" || explain mpirun-killed

killed rank srun-killed by_slurm "$work/five" --transport verbs --events "$events" --hold
((status && status != 124)) && json ".built + .unknown == $events and .lost == 0" cat "$out/srun-killed/report"
ok $? "srun-killed: srun: a builder dies, and the other one builds what it had not handed on ($status)" || explain srun-killed

killed node srun-node by_slurm "$work/four-one" --transport verbs --events "$events" --hold
((status && status != 124)) && json ".built + .unknown == $events and .lost == 0" cat "$out/srun-node/report"
ok $? "srun-node: a machine with a builder dies, and the builder of the other one builds what it had not handed on ($status)" || explain srun-node
finish
