#!/bin/bash
# biga demo: the whole of it, twice, also while the usual ports are taken.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib/hangs.sh
. tests/lib/hangs.sh
# shellcheck source=tests/lib/free_port.sh
. tests/lib/free_port.sh
build=${BUILD:-build}
work=$(mktemp -d)
export TMPDIR=$work
pids=()
finish() {
    for p in "${pids[@]}"; do kill "$p" 2>/dev/null; done
    for p in "${pids[@]}"; do wait "$p" 2>/dev/null; done
    rm -rf "$work"
}
trap finish EXIT
unset BIGA_SERVER BIGA_JSON
# what the caller's advertiser would be told is not for those of the demo
export BIGA_NODE=other BIGA_CARD_FILE=/nowhere/cards.json

bad=0
ok() { echo "ok - $1"; }
not_ok() { # what, file
    echo "not ok - $1"
    tail -40 "$2" | sed 's/^/# /'
    bad=1
}
has() { # file, pattern, what
    if grep -Eq -- "$2" "$1"; then ok "$3"; else not_ok "$3: /$2/" "$1"; fi
}

children() { # how many programs of ours still run with our TMPDIR
    local d n=0
    for d in /proc/[0-9]*; do
        [[ $(cat "$d/comm" 2>/dev/null) == biga* ]] || continue
        grep -zqx "TMPDIR=$work" "$d/environ" 2>/dev/null && n=$((n + 1))
    done
    echo "$n"
}

if "$build/biga" demo --once >"$work/1" 2>&1; then
    ok "demo --once"
else
    not_ok "demo --once ends with $?" "$work/1"
fi
has "$work/1" "fleet of 64 hosts .* all ready" "a fleet of 64 hosts"
has "$work/1" "HBN-like service: on a card of [1-9]" "the service runs"
has "$work/1" "Other jobs: [1-9][0-9]* pods .* on [1-9][0-9]* hosts" "the fleet is busy"
has "$work/1" "16 host pods and 16 xPU pods bound" "the job is bound"
has "$work/1" "Biga: +16 of 16 pairs aligned; 2 leaves, 1 crossing" \
    "every pair is aligned, on two leaves"
has "$work/1" "First fit: .*; ([3-9]|[1-9][0-9]+) leaves" "first fit needs more leaves"
has "$work/1" "^leaf[0-9]+ +host[0-9]+ ■■.* \|" "a picture of the leaves"
has "$work/1" "First fit: +[0-9]+ of 16" "first fit is shown beside it"
has "$work/1" "◀ pair [0-9]+ host, P" "a picture with the pairs"
[ "$(grep -Ec "^ *[0-9]+ .* same  " "$work/1")" = 16 ] && ok "xPU pods are on their cards" ||
    not_ok "xPU pods are on their cards" "$work/1"
[ "$(children)" = 0 ] && ok "nothing runs on" || not_ok "nothing runs on" "$work/1"
[ -z "$(find "$work" -name 'biga-demo-*')" ] && ok "nothing is left behind" ||
    not_ok "nothing is left behind" "$work/1"

# the second stays up; the third finds the ports taken
"$build/biga" demo --hosts 8 --pairs 4 >"$work/2" 2>&1 &
demo=$!
pids+=("$demo")
for _ in $(seq $((HANGS * 20))); do
    grep -q "until Ctrl-C" "$work/2" && break
    kill -0 "$demo" 2>/dev/null || break
    sleep 0.05
done
has "$work/2" "until Ctrl-C" "without --once it stays up"
read=$(sed -n 's,.*browser *http://\([0-9.:]*\)/.*,\1,p' "$work/2")
if "$build/biga" --server "http://$read" allocations >"$work/out" 2>&1; then
    has "$work/out" "demo/allreduce-host-0" "the address it prints answers"
else
    not_ok "the address it prints answers" "$work/out"
fi
if "$build/biga" --server "http://$read" job demo/allreduce >"$work/out" 2>&1; then
    has "$work/out" "pairs  4 of 4 bound" "biga job shows the job"
    has "$work/out" "^leaf[0-9]+  [0-9]+ pairs?" "… leaf by leaf"
else
    not_ok "biga job shows the job" "$work/out"
fi
"$build/biga" --server "http://$read" job --svg demo/allreduce >"$work/out" 2>&1
has "$work/out" '>4 of 4 pairs bound; 0 not aligned; ' "… as a drawing"
host=$("$build/biga" --server "http://$read" allocations | awk '/allreduce-host-0 / { print $3 }')
"$build/biga" --server "http://$read" topo "$host" >"$work/out" 2>&1
has "$work/out" "◀ demo/allreduce pair 0 host, P" "biga topo tells who has what"
for map in hostfile pod-hostfile dpu-hostfile rankfile ucx nccl urom; do
    if "$build/biga" --server "http://$read" job demo/allreduce "--$map" >"$work/out" 2>&1; then
        ok "its $map"
    else
        not_ok "its $map" "$work/out"
    fi
done
if "$build/biga" demo --once --hosts 8 --pairs 4 >"$work/3" 2>&1; then
    ok "a second demo beside it"
else
    not_ok "a second demo beside it" "$work/3"
fi
has "$work/3" "Port [0-9]+ is taken: using [0-9]+" "it says which ports are taken"
kill -INT "$demo"
wait "$demo"
status=$?
[ "$status" = 0 ] && ok "Ctrl-C ends it" || not_ok "Ctrl-C ends it: $status" "$work/2"
[ "$(children)" = 0 ] && ok "… and its children" || not_ok "… and its children" "$work/2"

# a port that was asked for and is taken
"$build/biga-extender" --read-listen 127.0.0.1:0 --publish-listen 127.0.0.1:0 \
    --scheduler-listen 127.0.0.1:0 >"$work/other" 2>&1 &
other=$!
pids+=("$other")
for _ in $(seq $((HANGS * 20))); do
    grep -q "event=ready" "$work/other" && break
    sleep 0.05
done
taken=$(sed -n 's/.*listener=read .*port=\([0-9]*\).*/\1/p' "$work/other")
if "$build/biga" demo --once --read-listen "127.0.0.1:$taken" >"$work/6" 2>&1; then
    not_ok "a chosen port that is taken is a failure" "$work/6"
else
    has "$work/6" "127.0.0.1:$taken.*in use" "a chosen port that is taken is told"
fi
kill "$other"
wait "$other"

# ports that were asked for
read=$(free_port 11700) sched=$(free_port 12400) publish=$(free_port 13100)
"$build/biga" demo --once --hosts 8 --pairs 4 \
    --read-listen "127.0.0.1:$read" --scheduler-listen "127.0.0.1:$sched" \
    --publish-listen "127.0.0.1:$publish" >"$work/4" 2>&1
has "$work/4" "127.0.0.1:$read \(read\)" "listeners may be chosen"

# what cannot be placed is told, and is a failure
if "$build/biga" demo --once --hosts 2 --pairs 64 >"$work/5" 2>&1; then
    not_ok "a job that is too large fails" "$work/5"
else
    ok "a job that is too large fails"
fi
has "$work/5" "no node fits" "… and says why"
[ "$(children)" = 0 ] && ok "… and leaves nothing" || not_ok "… and leaves nothing" "$work/5"

# what follows where there can be no cards: nobody finds a containerd here
python=$(python3 -c 'import sys; print(sys.executable)')
if PATH=$work BIGA_BUILD=$build "$python" -B tests/cards/demo.py >"$work/7" 2>&1; then
    ok "without containerds it ends well"
else
    not_ok "without containerds it ends well" "$work/7"
fi
has "$work/7" "^Real cards are not shown: (there is no containerd|needs root)" "… says why"
has "$work/7" "^All 4 ranks had right sums, 32 each" "… and sums up on loopback"
exit "$bad"
