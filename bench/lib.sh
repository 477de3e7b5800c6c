# What programs that measure share: processes that are ended
# whatever happens, what they cost, and the rows of the table. Sourced, in the
# top folder; $work is the caller's own folder.
# shellcheck shell=bash disable=SC2034,SC2154
build=${BUILD:-build}
bin=$build/bench
pids=()

say() { printf '%s\n' "$*" >&2; }
die() { say "bench: $*"; exit 1; }

finish() { # ends what was started, and removes $work
    local p
    for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done
    for p in "${pids[@]}"; do wait "$p" 2>/dev/null || true; done
    rm -rf "$work"
}

finish_at_exit() {
    trap finish EXIT
    trap 'exit 130' INT TERM
    never=$work/never
    mkfifo "$never"
}

# --- processes ---------------------------------------------------------------

end() { # PID…: and wait until they are gone
    kill "$@" 2>/dev/null || true
    wait "$@" 2>/dev/null || true
}

free_port() { # → port, one that nobody listens on now
    local p
    while :; do
        p=$((20000 + RANDOM % 12000))
        { : ; } 2>/dev/null 3<>"/dev/tcp/127.0.0.1/$p" || { port=$p; return; }
    done
}

ready() { # PORT: does /readyz answer 200?
    local line=
    { printf 'GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' >&3
      read -r -t 5 line <&3; } 2>/dev/null 3<>"/dev/tcp/127.0.0.1/$1" ||
        return 1
    [[ $line == *" 200 "* ]]
}

# STATE-DIR [SETTING…], with the ports in sched, publish, read → pid
exec_extender() {
    "$build/biga-extender" --scheduler-listen "127.0.0.1:$sched" \
        --publish-listen "127.0.0.1:$publish" \
        --read-listen "127.0.0.1:$read" --state "$1" --fresh 1h \
        --log-level warn "${@:2}" 2>>"$work/extender.log" &
    pid=$!
    pids+=("$pid")
}

ready_s=60 # how long a start may take
wait_ready() { # PID PORT
    local limit=$((SECONDS + ready_s))
    until ready "$2"; do
        read -r -t 0.002 _ <>"$never" || true # a pause without a fork
        kill -0 "$1" 2>/dev/null ||
            die "extender ended: $(tail -5 "$work/extender.log")"
        ((SECONDS < limit)) || die "extender not ready after $ready_s s"
    done
}

start_extender() { # STATE-DIR [SETTING…] → pid sched publish read
    free_port; sched=$port
    free_port; publish=$port
    free_port; read=$port
    exec_extender "$@"
    wait_ready "$pid" "$read"
}

# STATE-DIR [SETTING…]: kills the extender and starts it on the same ports
crash() { # → pid, and from exec to ready crash_ms, crash_cpu (us)
    kill -9 "$pid"
    wait "$pid" 2>/dev/null || true
    now_us; local from=$us
    exec_extender "$@"
    wait_ready "$pid" "$read"
    now_us
    crash_ms=$(((us - from) / 1000))
    spent_us "$pid"; crash_cpu=$us
}

start_printing() { # COMMAND… → pid port: a server that prints its port
    local log=$work/port.$RANDOM$RANDOM limit=$((SECONDS + 20))
    "$@" >"$log" 2>>"$work/peers.log" &
    pid=$!
    pids+=("$pid")
    until [[ -s $log ]]; do
        kill -0 "$pid" 2>/dev/null || die "$1 ended: $(tail -3 "$work/peers.log")"
        ((SECONDS < limit)) || die "$1 prints no port"
        sleep 0.05
    done
    port=$(<"$log")
}

cpu_us() { # PID → us: CPU time of all its threads, user and system
    local f a ns=0
    for f in /proc/"$1"/task/*/schedstat; do
        read -r a _ <"$f" 2>/dev/null && ns=$((ns + a))
    done
    if ((ns)); then
        us=$((ns / 1000))
    else
        spent_us "$1"
    fi
}

spent_us() { # PID → us: the same with threads that ended, in clock ticks
    local f
    read -ra f <"/proc/$1/stat"
    us=$(((f[13] + f[14]) * 1000000 / $(getconf CLK_TCK)))
}

rss_kb() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; }
now_us() { us=${EPOCHREALTIME/[.,]/}; }

# --- figures -----------------------------------------------------------------

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (a && b) printf "%.2f", a / b }'; }
ms() { awk -v us="$1" 'BEGIN { printf "%.1f", us / 1000 }'; }
mb() { awk -v k="$1" 'BEGIN { printf "%.1f", k / 1024 }'; }

# FILE COLUMN KEY…: of the line of a TSV whose first columns are the keys
field() {
    local file=$1 column=$2 IFS=$'\t'
    shift 2
    awk -F'\t' -v c="$column" -v key="$*" 'index($0 FS, key FS) == 1 {
        print $c }' "$file"
}

# --- the table ---------------------------------------------------------------

# WHAT TARGET GOT…: one row. A target is "", "<= X" or ">= X", and judges the
# first figure. Missing it is marked; a gate that misses it, or has no figure,
# fails the run: gates are on CPU time, instructions or memory alone.
row() { add_row row "$@"; }
gate() { add_row gate "$@"; }

add_row() {
    local got
    printf -v got '%s ' "${@:4}"
    printf '%s\t%s\t%s\t%s\t%s\n' "$subject" "$1" "$2" "$3" "${got% }" >>"$rows"
}

# NAME COLUMN,… FILE: a TSV that goes to the JSON results as it is
table_data() {
    printf ',\n"%s":[' "$1" >>"$data"
    awk -F'\t' -v names="$2" '
        BEGIN { n = split(names, name, ",") }
        { printf "%s{", (NR > 1 ? ",\n" : "")
          for (i = 1; i <= n; i++)
              printf "%s\"%s\":%s", (i > 1 ? "," : ""), name[i],
                  ($i ~ /^-?[0-9]+(\.[0-9]+)?$/ ? $i : "\"" $i "\"")
          printf "}" }' "$3" >>"$data"
    printf ']' >>"$data"
}

print_rows() { # every row of $rows, a heading before each subject
    awk -F'\t' '
        function missed(kind, target, got,   t, g) {
            split(target, t, " "); split(got, g, " ")
            if (t[2] == "" || g[1] !~ /^-?[0-9]+(\.[0-9]+)?$/)
                return kind == "gate"
            return t[1] == "<=" ? g[1] + 0 > t[2] + 0 : g[1] + 0 < t[2] + 0
        }
        $1 != last { printf "\n%-66s %9s  %s\n", $1, "target", "got"; last = $1 }
        { bad = missed($2, $4, $5)
          if (bad && $2 == "gate") failed++
          printf "  %-64s %9s  %s%s\n", $3, $4, $5,
              bad ? ($2 == "gate" ? "  FAILED" : "  missed") : "" }
        END { exit failed > 0 }' "$rows"
}

write_results() { # FILE: rows and tables as JSON
    {
        printf '{"cores":%s,"rows":[\n' "$(nproc)"
        awk -F'\t' '
            function text(s) { gsub(/["\\]/, "\\\\&", s); return "\"" s "\"" }
            { printf "%s{\"subject\":%s,\"kind\":%s,\"what\":%s,\"target\":%s," \
                  "\"got\":[", (NR > 1 ? ",\n" : ""), text($1), text($2),
                  text($3), text($4)
              n = split($5, got, " ")
              number = 1
              for (i = 1; i <= n; i++)
                  if (got[i] !~ /^-?[0-9]+(\.[0-9]+)?$/) number = 0
              if (!number) { n = 1; got[1] = text($5) }
              for (i = 1; i <= n; i++)
                  printf "%s%s", (i > 1 ? "," : ""), got[i]
              printf "]}" }' "$rows"
        printf ']'
        cat "$data"
        printf '}\n'
    } >"$1"
}
