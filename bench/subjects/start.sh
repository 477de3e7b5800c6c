# Memory, and the start after a crash.
# shellcheck shell=bash disable=SC2154
hosts=1000
say "Publishing $hosts hosts: memory, start after kill -9 …"
start_extender "$work/state"
"$bin/bench_publish" "http://127.0.0.1:$publish" "$hosts" 16 >"$work/names"
rss=$(rss_kb "$pid")
IFS=$'\t' read -r bound _ < <("$bin/bench_bind" \
    "http://127.0.0.1:$sched" "$work/names" 2000 64 3)
rss_loaded=$(rss_kb "$pid")
starts=()
for _ in 1 2 3 4 5; do
    crash "$work/state"
    starts+=("$crash_ms")
done
start_ms=$(printf '%s\n' "${starts[@]}" | sort -n | sed -n 3p)
end "$pid"
row "exec to ready after kill -9, $hosts hosts x 8 cards, ms" "<= 1000" \
    "$start_ms"
row "RSS with $hosts hosts x 8 cards, MB" "" "$(mb "$rss")"
row "RSS with $hosts hosts x 8 cards and $bound pods, MB" "<= 64" \
    "$(mb "$rss_loaded")"
