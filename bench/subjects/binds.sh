# Durable binds, beside what the disk makes durable.
# shellcheck shell=bash disable=SC2154
hosts=1000 fsync_s=3 job_pairs=(512 4096 65535)
[[ ! $quick ]] || fsync_s=1 job_pairs=(512 4096)

say "Binding durably on $hosts hosts …"
start_extender "$work/state"
"$bin/bench_publish" "http://127.0.0.1:$publish" "$hosts" 16 >"$work/names"
IFS=$'\t' read -r appends overwrites < <("$bin/bench_fsync" "$work" "$fsync_s")
for connections in 1 64; do
    "$bin/bench_bind" "http://127.0.0.1:$sched" "$work/names" \
        $((400 + connections * 25)) $connections $((connections + 1)) \
        >"$work/binds.$connections" || die "binding failed"
done
end "$pid"

figure() { cut -f"$2" "$work/binds.$1"; } # CONNECTIONS COLUMN
row "this disk: fdatasync of 4 KiB per second, appending" "" "$appends"
row "this disk: the same, writing over" "" "$overwrites"
row "durable binds per second, 1 connection" "" "$(figure 1 3)"
row "durable binds per second, 64 connections" "" "$(figure 64 3)"
row "that over fdatasyncs per second, appending" ">= 10" \
    "$(ratio "$(figure 64 3)" "$appends")"
for connections in 1 64; do
    row "one bind, p50 and p99 microseconds, $connections connection(s)" "" \
        "$(figure $connections 4)" "$(figure $connections 5)"
done

say "Binding the first pod of jobs of 512 to 65,535 pairs, and releasing jobs …"
mkdir "$work/first"
"$bin/bench_first_bind" "$work/first" "${job_pairs[@]}" >"$work/first-bind"
first() { field "$work/first-bind" 3 "$@"; } # WHAT PAIRS
declare -A first_max=([512]=5 [4096]=40 [65535]=600)
for n in "${job_pairs[@]}"; do
    gate "first bind of $n pairs, CPU ms" "<= ${first_max[$n]}" \
        "$(first first-bind "$n")"
    row "the same when the cluster has changed since the filter" "" \
        "$(first first-bind-stale "$n")"
    gate "another bind waits meanwhile, the writer's CPU ms" "<= 10" \
        "$(first bind-waits "$n")"
done
gate "release of a 512-pair job, CPU ms" "<= 20" "$(first release 512)"
table_data first_bind what,pairs,ms "$work/first-bind"
