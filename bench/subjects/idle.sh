# An advertiser at rest, with cards' runtimes and without.
# shellcheck shell=bash disable=SC2154
cards=8 idle_s=20
[[ ! $quick ]] || idle_s=5

mkdir -m 700 "$work/keys" "$work/adv"
start_extender "$work/state"
start_printing "$bin/bench_actuate" serve "$cards" "$work/keys"
card_pids=$pid
keys=$(realpath "$work/keys")
functions=(1a 3c 4d 5e 9c bc cc dc) # cards of the host below
{
    printf '{"cards":['
    i=0
    for p in $port; do
        printf '{"match":{"pci":"0000:%s:00.0"},"endpoint":"tcp://127.0.0.1:%s",' \
            "${functions[i++]}" "$p"
        printf '"tls":{"ca":"%s","cert":"%s","key":"%s"}},' \
            "$keys/ca.pem" "$keys/cert.pem" "$keys/key.pem"
    done
    printf '{"match":{"pci":"0000:9d:00.0"},"exclude":true}]}'
} >"$work/cards.json"
idle() { # SETTINGS… → idle_kb idle_cpu: of an advertiser that has settled
    local from
    "$build/biga-advertiser" --hostfile dell-xe9680-bf3 --node bench-idle \
        --server "http://127.0.0.1:$publish" --log-level warn "$@" \
        2>>"$work/advertiser.log" &
    pid=$!
    pids+=("$pid")
    sleep 8 # it gives back what only its start needed after 5 s
    cpu_us "$pid"; from=$us
    sleep "$idle_s"
    kill -0 "$pid" || die "advertiser ended: $(tail -3 "$work/advertiser.log")"
    cpu_us "$pid"
    idle_kb=$(rss_kb "$pid")
    idle_cpu=$(awk -v us=$((us - from)) -v s="$idle_s" \
        'BEGIN { printf "%.2f", us / s / 10000 }')
    end "$pid"
}
say "Watching an idle advertiser for $idle_s s, without cards' runtimes and with $cards …"
idle
floor_kb=$idle_kb floor_cpu=$idle_cpu
idle --card-file "$work/cards.json" --actuate "$work/adv"
end "$card_pids"

row "idle advertiser of $cards cards, RSS MB" "<= 12" "$(mb "$idle_kb")"
row "beside it: one that runs no pods, RSS MB; ratio" "" \
    "$(mb "$floor_kb") $(ratio "$idle_kb" "$floor_kb")"
row "idle advertiser of $cards cards, % of one core" "<= 0.5" "$idle_cpu"
row "beside it: one that runs no pods, %; ratio" "" \
    "$floor_cpu $(ratio "$idle_cpu" "$floor_cpu")"
