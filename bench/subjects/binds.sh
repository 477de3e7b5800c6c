# Durable binds, beside what the disk makes durable.
# shellcheck shell=bash disable=SC2154
hosts=1000 fsync_s=3
[[ ! $quick ]] || fsync_s=1

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
row "that over fdatasyncs per second, appending" "" \
    "$(ratio "$(figure 64 3)" "$appends")"
for connections in 1 64; do
    row "one bind, p50 and p99 microseconds, $connections connection(s)" "" \
        "$(figure $connections 4)" "$(figure $connections 5)"
done
