# The history: what it takes, what questions take, and what it costs binds.
# shellcheck shell=bash disable=SC2154
past_hosts=1000 past_days=30 past_rounds=400
[[ ! $quick ]] || past_hosts=100 past_days=1 past_rounds=40

say "Writing the history of $past_hosts hosts of $past_days days, and asking of it …"
mkdir -m 700 "$work/past" "$work/past-bind"
"$bin/bench_history" month "$work/past" "$past_hosts" "$past_days" >"$work/month" ||
    die "no history was written"
say "Binding with a history and without, $past_rounds times in turn …"
"$bin/bench_history_bind" "$work/past-bind" "$past_rounds" >"$work/past-binds" ||
    die "binding with a history failed"
rm -rf "$work/past" "$work/past-bind"
month() { awk -F'\t' -v c="$1" 'NR == 2 { print $c }' "$work/month"; }
asked() { field "$work/month" "$2" "$1"; } # WHAT COLUMN
past_bind() { awk -F'\t' -v c="$1" 'NR == 2 { print $c }' "$work/past-binds"; }

row "history of $past_hosts hosts x 8 cards, $past_days days, MiB; million events" \
    "<= 1024" "$(month 6) $(awk -v n="$(month 5)" 'BEGIN { printf "%.1f", n / 1e6 }')"
row "events written to it per second" "" "$(month 8)"
row "the fleet at any moment, p50 ms; p99; p99 of processor time" "<= 100" \
    "$(asked fleet 2) $(asked fleet 3) $(asked fleet 6)"
row "a node, job, or pod then, with events around it, p99 ms" "<= 100" \
    "$(asked node 3) $(asked job 3) $(asked pod 3)"
row "a page of rare events from then on, p99 ms" "<= 100" "$(asked events 3)"
row "a durable bind with a history / one without, in turn" "<= 1.03" \
    "$(past_bind 5)"
row "changes that the history passed over meanwhile" "" "$(past_bind 6)"
