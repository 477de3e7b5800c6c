# Memory, and the start after a crash.
# shellcheck shell=bash disable=SC2154
middle() { printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"; }

crashes() { # HOSTS STATE-DIR: two rows
    local ms=() cpu=() _ target="<= $((150 + $1 * 485 / 10000))"
    for _ in 1 2 3 4 5; do
        crash "$2"
        ms+=("$crash_ms")
        cpu+=("$((crash_cpu / 1000))")
    done
    row "exec to ready after kill -9, $1 hosts x 8 cards, ms" "$target" \
        "$(middle "${ms[@]}")"
    gate "CPU time of it, all threads, ms" "$target" "$(middle "${cpu[@]}")"
}

hosts=1000
say "Publishing $hosts hosts: memory, start after kill -9 …"
start_extender "$work/state"
"$bin/bench_publish" "http://127.0.0.1:$publish" "$hosts" 16 >"$work/names"
rss=$(rss_kb "$pid")
IFS=$'\t' read -r bound _ < <("$bin/bench_bind" \
    "http://127.0.0.1:$sched" "$work/names" 2000 64 3)
rss_loaded=$(rss_kb "$pid")
crashes "$hosts" "$work/state"
end "$pid"
row "RSS with $hosts hosts x 8 cards, MB" "" "$(mb "$rss")"
gate "RSS with $hosts hosts x 8 cards and $bound pods, MB" "<= 64" \
    "$(mb "$rss_loaded")"

[[ $quick ]] && return
hosts=30000
say "Publishing $hosts hosts: start after kill -9 …"
start_extender "$work/large"
"$bin/bench_publish" "http://127.0.0.1:$publish" "$hosts" 64 >/dev/null
crashes "$hosts" "$work/large"
end "$pid"
rm -rf "$work/large"
