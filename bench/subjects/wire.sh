# Filter and prioritize as kube-scheduler sees them, beside a Go extender and a
# canned answer: every target in turn.
# shellcheck shell=bash disable=SC2154
sizes=(500 1000 5000 15000) nodes=15000 pods=16000 batch=10 seed=1
at=5000 mixed_windows=6
declare -A rounds=([500]=60 [1000]=50 [5000]=30 [15000]=12)
if [[ $quick ]]; then
    sizes=(500 1000) nodes=1000 pods=1000 batch=5 at=1000 mixed_windows=1
    rounds=([500]=6 [1000]=6)
fi
client=$bin/bench_client peers=()
client_name="C, for there is no Go here: it shows less of kube-scheduler's own cost"
export GOTOOLCHAIN=local GOFLAGS=-buildvcs=false
go_bin=$(realpath "$bin")
if command -v go >/dev/null && say "Building the Go peers …" &&
    (cd bench/go && go build -o "$go_bin/go-extender" ./extender &&
        go build -o "$go_bin/go-client" ./client); then
    client=$bin/go-client client_name="Go, as kube-scheduler"
    peers=(go-full go-top16)
fi

# One size: every target in turn; appends to calls.tsv.
declare -A target_pid target_url
measure() { # NAMES
    local n=$1 t
    local -A before
    local args=() line
    for t in "${targets[@]}"; do
        args+=("$t=${target_url[$t]}")
        cpu_us "${target_pid[$t]}"
        before[$t]=$us
    done
    "$client" -pod bench/pod.json -names "$work/names" -n "$n" \
        -rounds "${rounds[$n]}" -batch "$batch" -warmup 20 -form tsv \
        "${args[@]}" >"$work/calls.$n"
    while IFS=$'\t' read -ra line; do
        t=${line[0]}
        cpu_us "${target_pid[$t]}"
        awk -v cpu=$((us - before[$t])) -v FS='\t' -v OFS='\t' \
            -v t="$t" '$1 == t { print $0, cpu / $7 }' "$work/calls.$n" \
            >>"$work/calls.tsv"
        [[ ${line[4]} == 0 || $t == canned ]] ||
            die "$t answered with nodes it was not asked about"
    done <"$work/calls.$n"
}

# The extender's own processor time beside the floor's, by a client of prepared
# bytes; appends NAMES, WORKERS, and microseconds of each for a filter and a
# prioritize to raw.tsv.  All on one processor: to wake another one costs either
# server as much as its work, or nothing, as the machine pleases.
measure_raw() { # NAMES WORKERS
    local t
    for t in biga canned; do
        taskset -acp 0 "${target_pid[$t]}" >/dev/null
    done
    taskset -c 0 "$bin/bench_client" -raw 1 -workers "$2" \
        -names "$work/names" -n "$1" -rounds $((rounds[$1] * 4)) \
        -batch "$batch" -form tsv \
        -pids "${target_pid[biga]},${target_pid[canned]}" \
        biga="${target_url[biga]}" canned="${target_url[canned]}" |
        awk -v FS='\t' -v OFS='\t' -v w="$2" '{ cpu[$1] = $14; n = $2 }
            END { print n, w, cpu["biga"], cpu["canned"] }' >>"$work/raw.tsv"
    for t in biga canned; do
        taskset -acp "0-$(($(nproc) - 1))" "${target_pid[$t]}" >/dev/null
    done
}

say "Publishing $nodes hosts with 8 cards each …"
start_extender "$work/state"
target_pid[biga]=$pid target_url[biga]=http://127.0.0.1:$sched/v1/scheduler
"$bin/bench_publish" "http://127.0.0.1:$publish" "$nodes" 64 >"$work/names"
say "Loading them with $pods pods (seed $seed) …"
IFS=$'\t' read -r bound refused _ < <("$bin/bench_bind" \
    "http://127.0.0.1:$sched" "$work/names" "$pods" 64 "$seed")
say "  $bound bound, $refused found no room"
targets=(biga "${peers[@]}" canned)
for t in "${peers[@]}"; do
    top=0
    [[ $t == go-top16 ]] && top=16
    start_printing "$bin/go-extender" --top "$top"
    target_pid[$t]=$pid target_url[$t]=http://127.0.0.1:$port/v1/scheduler
done
start_printing "$bin/bench_canned" "$work/names" 16
target_pid[canned]=$pid target_url[canned]=http://127.0.0.1:$port/v1/scheduler
for n in "${sizes[@]}"; do
    say "Measuring $n names: ${targets[*]}, in turn …"
    measure "$n"
    measure_raw "$n" 1
    measure_raw "$n" 16
done
big_rss=$(rss_kb "${target_pid[biga]}")
say "Filtering $at names on 16 connections, with other work and without …"
"$bin/bench_mixed" "$sched" "$publish" "$at" "$mixed_windows" \
    >"$work/mixed" || die "filters failed beside other work"
end "${target_pid[@]}"
say "Filtering over TLS and in the clear …"
"$bin/bench_tls" >"$work/tls"

call() { field "$work/calls.tsv" "$3" "$1" "$2"; } # TARGET NAMES COLUMN

pod_bytes=$(sed 's/^ *//; s/": /":/' bench/pod.json | tr -d '\n' | wc -c)
echo "Client: $client_name; one kept connection, a pod of $pod_bytes bytes."
echo "Fleet: $nodes hosts with 8 cards, $bound pods on them. Targets are measured in turn."
echo
echo "filter + prioritize as the scheduler sees it, microseconds (ratio to Biga's p50):"
awk -F'\t' '
    BEGIN { printf "%7s  %-9s %9s %9s %9s %9s %7s %6s %9s\n", "names",
            "server", "filter", "priorit.", "p50 sum", "p99 sum", "ratio",
            "nodes", "CPU/req" }
    $1 == "biga" { base = $12 }
    { printf "%7d  %-9s %9.0f %9.0f %9.0f %9.0f %6.2fx %6d %9.0f\n", $2, $1,
      $8, $10, $12, $13, $12 / base, $4, $14 }' "$work/calls.tsv"

declare -A go_target=([full-5000]=">= 22" [top16-5000]=">= 5"
    [full-15000]=">= 30" [top16-15000]=">= 6")
over_go() { # full|top16 NAMES
    ratio "$(call "go-$1" "$2" 12)" "$(call biga "$2" 12)"
}
for n in "${sizes[@]}"; do
    [[ $n -ge $at ]] || continue
    for way in full top16; do
        got=$(over_go "$way" "$n")
        row "Go extender, $way / Biga, p50 at $n names" \
            "${go_target[$way-$n]:-}" "${got:-no Go}"
    done
done
declare -A floor_target=([1000]="<= 1.5" [5000]="<= 2.0" [15000]="<= 2.5")
while IFS=$'\t' read -r n workers own floor; do
    row "CPU of both calls, $n names by $workers: Biga / canned, us each" \
        "${floor_target[$n]:-}" "$(ratio "$own" "$floor") $own $floor"
done <"$work/raw.tsv"
mixed() { # idle|mixed COLUMN → ms
    ms "$(field "$work/mixed" "$2" "$1")"
}
row "filter of $at names, 16 connections, all else going on, p99 ms" "<= 3" \
    "$(mixed mixed 4)"
row "beside it: nothing else going on, p99 ms; p50 of both" "" \
    "$(mixed idle 4)" "$(mixed mixed 3)" "$(mixed idle 3)"
row "filter of 5,000 names over TLS / in the clear, server's CPU" "<= 1.4" \
    "$(field "$work/tls" 8 kept 5000)"
row "RSS with $nodes hosts, $bound pods, after the run, MB" "" \
    "$((big_rss / 1024))"
columns=server,names,iterations,survivors,foreign,connections,requests
columns+=,filter_p50_us,filter_p99_us,prioritize_p50_us,prioritize_p99_us
table_data calls "$columns,sum_p50_us,sum_p99_us,server_cpu_us_per_request" \
    "$work/calls.tsv"
table_data floor names,workers,cpu_us,canned_cpu_us "$work/raw.tsv"
table_data mixed load,filters,p50_us,p99_us,binds_per_s,heartbeats_per_s,slices_per_s \
    "$work/mixed"
table_data tls what,names,p50_us,tls_p50_us,ratio,cpu_us,tls_cpu_us,cpu_ratio \
    "$work/tls"
