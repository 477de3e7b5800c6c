# Memory of fleets, and what their slices take of the extender's processor time.
# shellcheck shell=bash disable=SC2154
fleets=(1000 10000)
[[ $quick ]] && fleets=(1000)

# Hosts that join, then say the same again, then say something else: what each
# of it takes of the extender's processor time, and its memory at the end.
measure_hosts() { # HOSTS
    local empty from generation us_each=()
    say "Publishing $1 hosts: memory, joining, changing …"
    start_extender "$work/hosts"
    empty=$(rss_kb "$pid")
    for generation in 1 1 2; do
        cpu_us "$pid"; from=$us
        "$bin/bench_publish" "http://127.0.0.1:$publish" "$1" 16 "" \
            "$generation" >/dev/null 2>>"$work/peers.log" ||
            die "publishing failed: $(tail -1 "$work/peers.log")"
        cpu_us "$pid"; us_each+=($(((us - from) / $1)))
    done
    read -r -t 3 _ <>"$never" || true # two of its sweeps, a second each
    printf '%s\t' "$1" "$empty" "$(rss_kb "$pid")" >>"$work/hosts.tsv"
    printf '%s\t%s\t%s\n' "${us_each[@]}" >>"$work/hosts.tsv"
    end "$pid"
    rm -rf "$work/hosts"
}
for n in "${fleets[@]}"; do measure_hosts "$n"; done

declare -A rss_target=([1000]="<= 24" [10000]="<= 90")
while IFS=$'\t' read -r n empty full_kb join again change; do
    gate "RSS with $n hosts x 8 cards, MB" "${rss_target[$n]}" \
        "$(mb "$full_kb")"
    row "beside it: with none, MB; KiB for each host" "" \
        "$(mb "$empty")" "$(ratio $((full_kb - empty)) "$n")"
    gate "a changed slice of one of them, us of CPU" "<= 400" "$change"
    row "beside it: one said again, us; the first over that" "" \
        "$again" "$(ratio "$change" "$again")"
    row "a slice of a new host, us of CPU" "<= 300" "$join"
done <"$work/hosts.tsv"
columns=hosts,empty_rss_kb,rss_kb,join_cpu_us,repeat_cpu_us,change_cpu_us
table_data hosts "$columns" "$work/hosts.tsv"
