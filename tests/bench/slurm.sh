#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# slurm.sh DIR JOBS CLIENTS: Debian's Slurm on this machine, as root, with everything it keeps below
# DIR, and so many jobs of /bin/true, submitted one by one by so many clients at a time. Prints
# how many a second were finished. Status 77: it is not installed (apt-get install slurmctld slurmd
# slurm-client munge), or we are not root.
set -eu
dir=$1 jobs=$2 clients=$3
PATH=$PATH:/usr/sbin
for program in slurmctld slurmd sbatch squeue munged; do
    command -v $program >/dev/null || exit 77
done
[ "$(id -u)" = 0 ] || exit 77

mkdir -p "$dir/state" "$dir/spool"
chmod 755 "$dir"
pids=
trap 'for pid in $pids; do kill "$pid" 2>/dev/null || :; done; wait' EXIT

dd if=/dev/urandom of="$dir/munge.key" bs=128 count=1 2>/dev/null
chmod 400 "$dir/munge.key"
munged --foreground --force --key-file="$dir/munge.key" --socket="$dir/munge.sock" --pid-file="$dir/munge.pid" \
    --log-file="$dir/munge.log" --seed-file="$dir/munge.seed" >/dev/null 2>&1 &
pids="$pids $!"

host=$(hostname -s)
cat >"$dir/slurm.conf" <<CONF
ClusterName=bench
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=26817
SlurmdPort=26818
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.sock
CryptoType=crypto/munge
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SlurmdParameters=config_overrides
MaxJobCount=100000
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=64 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF="$dir/slurm.conf"

# within COMMAND...: until it succeeds, half a minute at most.
within() {
    end=$(($(date +%s) + 30))
    until "$@" >/dev/null 2>&1; do
        [ "$(date +%s)" -lt "$end" ] || return 1
        sleep 0.1
    done
}
idle() {
    sinfo -h -o %t | grep -qx idle
}

within test -S "$dir/munge.sock"
slurmctld -D -f "$SLURM_CONF" >/dev/null 2>&1 &
pids="$pids $!"
slurmd -D -f "$SLURM_CONF" -N "$host" >/dev/null 2>&1 &
pids="$pids $!"
within idle || {
    tail -5 "$dir/slurmctld.log" "$dir/slurmd.log" >&2
    exit 1
}

begun=$(date +%s.%N)
cd /
seq "$jobs" | xargs -P "$clients" -n 1 sh -c 'sbatch -Q -o /dev/null --wrap=/bin/true'
while [ -n "$(squeue -h -o %i | head -n 1)" ]; do
    sleep 0.05
done
echo "$jobs $begun $(date +%s.%N)" | awk '{ print $1 / ($3 - $2) }'
