# What programs that measure share: processes that are ended
# whatever happens, and what they cost. Sourced, in the top folder; $work is
# the caller's own folder.
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

wait_ready() { # PID PORT
    local limit=$((SECONDS + 60))
    until ready "$2"; do
        kill -0 "$1" 2>/dev/null ||
            die "extender ended: $(tail -5 "$work/extender.log")"
        ((SECONDS < limit)) || die "extender not ready after 60 s"
    done
}

start_extender() { # STATE-DIR [SETTING…] → pid sched publish read
    free_port; sched=$port
    free_port; publish=$port
    free_port; read=$port
    exec_extender "$@"
    wait_ready "$pid" "$read"
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
    us=
    for f in /proc/"$1"/task/*/schedstat; do
        read -r a _ <"$f" 2>/dev/null && ns=$((ns + a))
    done
    if ((ns)); then
        us=$((ns / 1000))
    else # in clock ticks of 10 ms
        read -ra f <"/proc/$1/stat"
        us=$(((f[13] + f[14]) * 1000000 / $(getconf CLK_TCK)))
    fi
}

rss_kb() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; }
now_us() { us=${EPOCHREALTIME/[.,]/}; }
