#!/bin/bash
# What a job needs to run: Open MPI itself reads the hostfile and the rankfile
# and puts every rank where they say, on nodes that are all this machine.
# Needs curl and mpirun.  TAP lines.
set -u

# shellcheck source=tests/lib/extender.sh
. "$(dirname "$0")/../lib/extender.sh"
need curl mpirun
mpirun --version | grep -q "Open MPI" || { echo "mpirun is not Open MPI's"; exit 77; }

biga() { "$BUILD/biga" --server "http://127.0.0.1:$read" "$@"; }
ready() { [ "$(biga nodes | grep -c ' ready ')" = "$1" ]; }

# --- two nodes, each with the CPUs of this machine ------------------------------

unset OMP_NUM_THREADS OMP_THREAD_LIMIT # nproc heeds them
cpus=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
n_cpus=$(nproc)
cards=$((n_cpus < 2 ? 1 : 2)) # a rank on each
pairs=$((2 * cards))

package=$(cat /sys/devices/system/cpu/cpu0/topology/physical_package_id)
[ "${package:--1}" -ge 0 ] || package=0

host() { # further words on the NUMA node
    echo "package $package"
    echo "  numa 0 cpus=$n_cpus memory=16GiB $*"
    echo "    root 0000:00"
    local i
    for i in $(seq "$cards"); do
        echo "      bridge 0000:00:0$i.0"
        echo "        card 0000:0$i:00.0 id=15b3:a2d6 cores=8 memory=16GiB" \
            "rdma=mlx5_$i endpoint=tcp://{node}-dpu$i:2376"
    done
}
host cpu-list="$cpus" >"$dir/h.host"
host >"$dir/plain.host"

# all that is asked is asked of nodes that are heard from
start_extender --fresh 1h
read=$(port read) publish=$(port publish) sched=$(port scheduler)
advertise() { # node, host description
    "$BUILD/biga-advertiser" --server "http://127.0.0.1:$publish" \
        --hostfile "$dir/$2" --node "$1" 2>"$dir/$1.log" &
    pids+=($!)
}
advertise node-a h.host
advertise node-b h.host
advertise node-c plain.host
until_true ready 3
ok $? "the nodes are ready"

# --- a job, as kube-scheduler places it -------------------------------------------

ask() { # verb, body
    curl -s -m "$HANGS" -H 'Content-Type: application/json' -d "$2" \
        "http://127.0.0.1:$sched/v1/scheduler/$1"
}
place() { # job, size, rank, nodes
    local pod node
    pod='{"metadata":{"name":"'$1-$3'","namespace":"lab","uid":"uid-'$1-$3'",
        "labels":{"biga.dev/role":"host","biga.dev/job":"'$1'",
        "biga.dev/pair":"'$3'"},"annotations":{"biga.dev/size":"'$2'",
        "biga.dev/exclusive":"true"}},"spec":{"containers":[{"name":"c",
        "resources":{"requests":{"biga.dev/card":"1"}}}]}}'
    node=$(ask filter '{"Pod":'"$pod"',"NodeNames":['"$4"']}' |
        grep -o '"NodeNames":\["[a-z-]*"' | cut -d'"' -f4)
    ask bind '{"PodName":"'"$1-$3"'","PodNamespace":"lab",
        "PodUID":"uid-'"$1-$3"'","Node":"'"$node"'"}' >"$dir/bind.out"
    grep -q '"Error":""' "$dir/bind.out" || grep -qx '{}' "$dir/bind.out"
}

placed=0
for rank in $(seq 0 $((pairs - 2))); do
    place ring "$pairs" "$rank" '"node-a","node-b"' && placed=$((placed + 1))
done
[ "$placed" = $((pairs - 1)) ]
ok $? "all pairs but one are placed"
biga job ring -n lab --rankfile >"$dir/early.out" 2>"$dir/early.log"
[ $? = 1 ] && [ ! -s "$dir/early.out" ] &&
    grep -q "409.*$((pairs - 1)) of $pairs pairs are bound.*$((pairs - 1))" "$dir/early.log"
ok $? "no map before the whole job is bound: which pairs lack is told"
place ring "$pairs" $((pairs - 1)) '"node-a","node-b"'
ok $? "the last pair is placed"

# --- the files ----------------------------------------------------------------------

for map in hostfile pod-hostfile dpu-hostfile rankfile ucx nccl urom; do
    biga job lab/ring "--$map" >"$dir/$map" 2>"$dir/$map.log"
    ok $? "biga job --$map"
done
[ "$(sort "$dir/hostfile")" = "node-a slots=$cards max_slots=$cards
node-b slots=$cards max_slots=$cards" ]
ok $? "the hostfile has both nodes"
[ "$(grep -Ec '^node-[ab]-dpu[12] slots=1 max_slots=1$' "$dir/dpu-hostfile")" = "$pairs" ]
ok $? "the DPU hostfile has every card's endpoint"
[ "$(grep -Ec '^[0-9]+ node-[ab] UCX_NET_DEVICES=mlx5_[12]:1$' "$dir/ucx")" = "$pairs" ]
ok $? "every rank has its UCX device"
[ "$(grep -Ec '^(node-[ab]) dpu \1-dpu([12]) 0000:0\2:00.0 mlx5_\2:1$' "$dir/urom")" = "$pairs" ]
ok $? "every card has its UROM service"
biga job lab/ring >"$dir/job" && grep -q "pairs  $pairs of $pairs bound" "$dir/job"
ok $? "biga job shows it"
biga jobs -n lab >"$dir/jobs" && grep -Eq "^lab/ring +Planned +$pairs +$pairs +0 +2 " "$dir/jobs"
ok $? "biga jobs lists it"

# --- Open MPI -----------------------------------------------------------------------

# nodes are reached by a shell of this machine; what runs is told its node.
# Daemons of one machine fail where two of them make one folder at once, so that
# each has its own.
cat >"$dir/agent" <<'EOF'
#!/bin/sh
BIGA_TEST_NODE=$1
TMPDIR=$(mktemp -d)
export BIGA_TEST_NODE TMPDIR
shift
exec sh -c "$*"
EOF
chmod +x "$dir/agent"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# daemons that start at different speeds find no route to each other: Open MPI
# itself names this way around.  A daemon that shares its topology, mapped into
# what it takes for a gap in its addresses, now and then crashes there.
export OMPI_MCA_plm_rsh_agent="$dir/agent" OMPI_MCA_routed=direct \
    OMPI_MCA_rtc_hwloc_vmhole=none TMPDIR="$dir"

timeout "$HANGS" mpirun --hostfile "$dir/hostfile" --do-not-launch --display-map \
    -np "$pairs" true >"$dir/map.log" 2>&1
for node in node-a node-b; do
    grep -Eq "node: $node.*Num slots: $cards.*Max slots: $cards.*Num procs: $cards" \
        "$dir/map.log"
    ok $? "Open MPI reads the slots of $node in the hostfile"
done
timeout "$HANGS" mpirun --hostfile "$dir/hostfile" --do-not-launch --display-map \
    -np $((pairs + 1)) true >"$dir/many.log" 2>&1
grep -q "not enough slots" "$dir/many.log"
ok $? "and has no room for one rank more"

# run NP: what the ranks say of themselves, as a rankfile
run() {
    # shellcheck disable=SC2016 # expanded by the ranks
    timeout "$HANGS" mpirun --hostfile "$dir/hostfile" --rankfile "$dir/rankfile" \
        --mca rmaps_rank_file_physical 1 -np "$1" sh -c 'echo \
        "rank $OMPI_COMM_WORLD_RANK=$BIGA_TEST_NODE slot=$(sed -n \
        "s/^Cpus_allowed_list:[[:space:]]*//p" /proc/self/status)"' \
        >"$dir/run.out" 2>"$dir/run.log"
}
run "$pairs"
ok $? "Open MPI runs the job with the rankfile"
sort "$dir/run.out" >"$dir/run.sorted"
sort "$dir/rankfile" | cmp -s - "$dir/run.sorted"
ok $? "every rank is on its node and on its CPUs"
sed "s/^/# /" "$dir/run.sorted"

# a node that does not tell its CPUs: the package
place plain 1 0 '"node-c"' &&
    biga job lab/plain --hostfile >"$dir/hostfile" &&
    biga job lab/plain --rankfile >"$dir/rankfile" &&
    grep -qx "rank 0=node-c slot=$package:\*" "$dir/rankfile"
ok $? "without a CPU list the rankfile names the package"
run 1
ok $? "and Open MPI takes that"
grep -q "^rank 0=node-c slot=" "$dir/run.out"
ok $? "on that node"
