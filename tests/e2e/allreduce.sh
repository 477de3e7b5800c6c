#!/bin/bash
# deploy/examples/allreduce with its workers on loopback: right sums for several
# numbers of ranks, and what is said of a peer that lies or dies.  TAP lines.
set -u

# shellcheck source=tests/lib/extender.sh
. "$(dirname "$0")/../lib/extender.sh"
# shellcheck source=tests/lib/free_port.sh
. "$(dirname "$0")/../lib/free_port.sh"
program=$BUILD/allreduce
[ -x "$program" ] || { echo "there is no $program"; exit 77; }

# free_ports N: a first port of N that are all free, also 300 above
free_ports() {
    local p i
    while :; do
        p=$(free_port 18000)
        for i in $(seq 0 "$1") $(seq 300 $((300 + $1))); do
            if { : ; } 2>/dev/null 3<>"/dev/tcp/127.0.0.1/$((p + i))"; then
                continue 2
            fi
        done
        echo "$p"
        return
    done
}
export BIGA_PEER_ADDRESS=127.0.0.1
hosts() { # N
    echo "127.0.0.1 slots=$1 max_slots=$1" >"$dir/hosts"
}
worker() { # RANK SIZE OPTION…
    : >"$dir/worker$1.log" # now, or what an earlier one said would be read
    BIGA_RANK=$1 BIGA_SIZE=$2 "$program" worker --once --port "$port" \
        "${@:3}" >"$dir/worker$1.log" 2>&1 &
    pids+=($!)
    workers+=($!)
}
rank() { # RANK SIZE OPTION…
    BIGA_RANK=$1 BIGA_SIZE=$2 timeout "$HANGS" "$program" rank --port "$port" \
        --workers "$dir/hosts" "${@:3}" >"$dir/rank$1.log" 2>&1
}
ranks() { # SIZE OPTION…: all of them; how many failed
    local r failed=0 started=()
    for r in $(seq 0 $(($1 - 1))); do
        rank "$r" "$@" &
        started+=($!)
    done
    for r in "${started[@]}"; do
        wait "$r" || failed=$((failed + 1))
    done
    return "$failed"
}
# head KIND RANK SIZE BYTES of bytes, as octal escapes of printf
# shellcheck disable=SC2059 # the escapes are what is printed
frame() {
    printf "BGAR\\$(printf %o "$1")\\1\\0\\0\\$(printf %o "$2")\\0\\$(printf %o \
        "$3")\\0\\0\\0\\0\\0$4"
}
NOTHING='\0\0\0\0\0\0\0\0'

# --- right sums ---------------------------------------------------------------

for size in 1 2 5 8; do
    port=$(free_ports "$size") workers=()
    hosts "$size"
    for r in $(seq 0 $((size - 1))); do worker "$r" "$size"; done
    # 40 KiB are no multiple of ranks: segments differ in size
    ranks "$size" --kib 40 --rounds 3
    ok $? "the ranks of $size end well"
    [ "$(cat "$dir"/rank?.log | grep -c \
        "^rank [0-7] of $size: 12 sums of 40 KiB, all right$")" = "$size" ]
    ok $? "each with right sums"
    [ "$(cat "$dir"/rank?.log | grep -Ec \
        "^with(out)? offload( +[0-9.]+){5}$|^with / without( +[0-9.]+){3}$")" = 3 ]
    ok $? "rank 0 shows what they cost with and without offload"
    wait "${workers[@]}"
    ok $? "and so do their workers"
    rm -f "$dir"/rank?.log "$dir"/worker?.log
done

port=$(free_ports 2) workers=()
hosts 2
for r in 0 1; do worker "$r" 2; done
mv "$dir/hosts" "$dir/later"
ranks 2 --kib 1 --rounds 1 --offload-only --wait 600 &
ranks=$!
waits() { # both ranks watch for the file
    local p n=0
    for p in /proc/[0-9]*; do
        { [ "$(cat "$p/comm")" = allreduce ] &&
            grep -qz "^$dir/hosts$" "$p/cmdline" &&
            grep -qs "^inotify" "$p"/fdinfo/*; } 2>/dev/null && n=$((n + 1))
    done
    [ "$n" = 2 ]
}
until_true waits
"$program" map "$dir/hosts" "$(cat "$dir/later")"
ok $? "the map is written"
wait "$ranks"
ok $? "ranks that waited for it end well"
! grep -q "without" "$dir/rank0.log" &&
    grep -q "^rank 1 of 2: 2 sums of 1 KiB, all right$" "$dir/rank1.log"
ok $? "and do not compare"
! "$program" map "$dir/hosts" "a host" 2>"$dir/why" &&
    grep -q 'line 1: is "host", must be slots=N' "$dir/why" && [ -s "$dir/hosts" ]
ok $? "a map that is none is refused, and the old one stays"

# --- peers that lie -----------------------------------------------------------

port=$(free_ports 2) workers=()
hosts 2
worker 0 2
worker 1 3
until_true grep -q "waits" "$dir/worker0.log"
rank 1 2
[ $? = 1 ] && grep -q "the worker of rank 1 (127.0.0.1:$((port + 1))): .*sent a HELLO of rank 1 of 2, .*must be a HELLO of rank 1 of 3" "$dir/rank1.log"
ok $? "a worker of another size refuses the rank, and the rank says so"

# the ring's next one is a worker of our size that only listens
exec 4<>"/dev/tcp/127.0.0.1/$port"
frame 2 0 2 "$NOTHING" >&4
timeout "$HANGS" cat <&4 >"$dir/told" # until it closes
exec 4>&-
grep -aq "sent a JOIN of rank 0 of 2, .*must be a JOIN of rank 1 of 2" "$dir/told"
ok $? "who joins as the wrong rank is told, and the worker goes on"
exec 4<>"/dev/tcp/127.0.0.1/$port"
echo "GET / HTTP/1.1 and so on, long enough" >&4
timeout "$HANGS" cat <&4 >"$dir/told"
exec 4>&-
grep -aq "speaks another protocol" "$dir/told"
ok $? "so is who speaks another protocol"
exec 4<>"/dev/tcp/127.0.0.1/$port"
frame 2 1 2 "$NOTHING" >&4
frame 4 1 2 '\0\0\0\0\1\0\0\0' >&4 # 4 GiB
rank 0 2 --kib 40
[ $? = 1 ] && grep -q "^allreduce: .*the one of rank 1 (.*announces a DATA of 4294967296 bytes, the most is 268435456" "$dir/rank0.log"
ok $? "one that announces more than there may be ends the job, with its rank"
exec 4>&-
wait "${workers[0]}"
[ $? = 1 ]
ok $? "and its worker"
kill -9 "${workers[1]}"

# --- and one that dies ----------------------------------------------------------

port=$(free_ports 3) workers=()
hosts 3
for r in 0 1 2; do worker "$r" 3; done
rank 0 3 --kib 40 --rounds 100000 & r0=$!
rank 1 3 --kib 40 --rounds 100000 & r1=$!
rank 2 3 --kib 40 --rounds 100000 & r2=$!
joined() { [ "$(grep -c . "$dir/worker1.log")" -ge 1 ] && ss_established; }
ss_established() { # rank 1 and the worker before have connected to it
    [ "$(grep -ic ":$(printf %04X $((port + 1))) .* 01 " /proc/net/tcp6)" -ge 2 ]
}
until_true joined
kill -9 "${workers[1]}"
wait "$r1"
[ $? = 1 ] && grep -q "the worker of rank 1 (.*\(ended the connection\|was lost\)" "$dir/rank1.log"
ok $? "the rank of a worker that dies says so"
wait "$r2"
[ $? = 1 ] && grep -Eq "rank 1 .*(ended the connection|was lost)|rank 0" "$dir/rank2.log"
ok $? "the next one, too"
wait "$r0"
[ $? = 1 ] && grep -q "rank [12] " "$dir/rank0.log"
ok $? "and the third"
sed 's/^/# /' "$dir"/rank[012].log

# --- what is wrong before it begins ------------------------------------------------

printf '10.0.0.1\n10.0.0.2\n' >"$dir/hosts"
rank 0 2
[ $? = 1 ] && grep -q "has 10.0.0.1 for rank 0, whose BIGA_PEER_ADDRESS is 127.0.0.1" "$dir/rank0.log"
ok $? "a hostfile that is another's is refused"
rank 2 2
[ $? = 2 ] && grep -q 'BIGA_RANK: is "2", must be 0 to 1' "$dir/rank2.log"
ok $? "a rank that cannot be, too"
port=$(free_ports 1)
hosts 1
rank 0 1 --workers "$dir/nowhere" --wait 1
[ $? = 2 ] && grep -q -- "--workers: $dir/nowhere: is not there" "$dir/rank0.log"
ok $? "a map that does not come is named"
BIGA_PEER_ADDRESS='' rank 0 1 --timeout 1
[ $? = 1 ] && grep -q "the worker of rank 0 (127.0.0.1:$port) could not be reached for 1 s: Connection refused" "$dir/rank0.log"
ok $? "a worker that is not there is named"
"$program" --help | grep -q "^For trusted networks only"
ok $? "--help says what it is not for"
