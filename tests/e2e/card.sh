#!/bin/bash
# What a card gets: biga-card from its command line, images of it that are
# the same each time, and a configuration of containerd without traps.
set -u
. tests/lib/check.sh
trap 'rm -rf "$work"' EXIT
BIGA_BUILD=${BIGA_BUILD:-build}
card=$BIGA_BUILD/biga-card
T=2026-01-01T00:00:00.000000001Z
images() {
    deploy/images --card "$card" "$@"
}
# deliver DIR NAME MODE TEXT…
deliver() {
    "$card" files "$1" - "$2" "$3" $(($# - 3)) "${@:4}"
}
log() { # OFFSET MAX: what it prints, with where to go on
    "$card" log "$work/c/log" "$@" 2>&1
}

quietly() {
    "$@" && echo "done"
}

check "without a word it waits, and ends on SIGTERM" 0 "^ended 0$" bash -c \
    "'$card' & until [ \$(grep -Ec '^(Name:.biga-card|State:.S.*)\$' \
     /proc/\$!/status) = 2 ]; do sleep 0.05; done
     kill \$!; wait \$!; echo ended \$?"
check "it says how it is used" 2 "biga-card files DIR" "$card" file
check "it writes files, of several pieces" 0 "^done$" \
    quietly deliver "$work/c/v" a/b 640 Zm9v YmFy
check "which are whole" 0 "^foobar 640$" bash -c \
    "cat $work/c/v/a/b; echo -n ' '; stat -c %a $work/c/v/a/b"
check "but none elsewhere" 1 "no name below" deliver "$work/c/v" ../b 640 Zm9v
check "nor of what is no base64" 1 "not base64" deliver "$work/c/v" d 640 Zm9
printf '%s stdout F one\n%s stderr P tw\n%s stderr F o\n' $T $T $T >"$work/c/log"
check "it gives a log as it was written" 0 "one" log 0 100
check "with partial lines joined" 0 "^two$" log 0 100
check "and where to go on" 0 "^next=129$" log 0 100
check "and how many bytes it gave" 0 "^bytes=8$" log 0 100
check "up to 8 MiB at once" 0 "^two$" log 0 8388608
check "and not more" 2 "usage" log 0 8388609
check "a log that is not there has a status of its own" 3 "No such file" \
    "$card" log "$work/c/none" 0 1
check "a number is a number" 2 "usage" "$card" log "$work/c/log" -1 1
check "it removes a folder" 0 "^done$" quietly "$card" rm "$work/c"
check "once more, too" 0 "^done$" quietly "$card" rm "$work/c"
check "but not the top" 1 "two names or more" "$card" rm /tmp

check "images go where they are asked for, from anywhere" 0 "^done$" \
    quietly sh -c "d=\$PWD; mkdir '$work/here' && cp '$card' '$work/here/mine' &&
        cd '$work/here' && \"\$d/deploy/images\" --card mine --out o >/dev/null &&
        test -s o/biga-card.tar"
check "images need no docker" 0 "biga-card:[0-9.]* biga-pause:[0-9.]* " \
    images --out "$work/a"
# the clock says another second than it did: no image may have one in it
check "and are the same each time" 0 "^same$" bash -c \
    "while [ \$(date +%s) -le \$(stat -c %Y $work/a/biga-card.tar) ]
     do sleep 0.05; done
     deploy/images --card '$card' --out $work/b >/dev/null &&
     cmp $work/a/biga-card.tar $work/b/biga-card.tar && echo same"
check "they say what they are for" 0 '"architecture":"' bash -c \
    "tar -xOf $work/a/biga-card.tar --wildcards '*.json'"
check "so is the example's, which is asked for" 0 '\["/allreduce"\]' bash -c \
    "deploy/images --card '$card' --allreduce '$BIGA_BUILD/allreduce' \
         --out $work/e >/dev/null &&
     tar -xOf $work/e/allreduce.tar --wildcards '*.json'"
check "a program that needs libraries is refused" 1 "is not static" \
    images --card "$BIGA_BUILD/biga" --out "$work/a"
check "and what is no program" 1 "is no program" \
    images --card Makefile --out "$work/a"

setup() {
    deploy/card-setup "$@"
}
check "containerd serves the CRI to the host" 0 \
    'tcp_address = "192.168.100.2:7443"' setup --address 192.168.100.2
check "over TCP" 0 "disable_tcp_service = false" setup --address 192.168.100.2
check "and holds containers to their huge pages" 0 \
    "disable_hugetlb_controller = false" setup --address 192.168.100.2
check "to nobody else" 0 'tcp_tls_ca = "/etc/biga/pki/ca.crt"' \
    setup --address 192.168.100.2
check "and streams where it answers" 0 \
    '^  stream_server_address = "192.168.100.2"' setup --address 192.168.100.2
check "without the brackets of an address" 0 \
    '^  stream_server_address = "fd00::2"' setup --address '[fd00::2]:7443'
check "over TLS" 0 "^  enable_tls_streaming = true" \
    setup --address 192.168.100.2
check "with the card's key" 0 '^  tls_key_file = "/pki/card.key"' \
    setup --address 192.168.100.2 --tls /pki
check "with the pause image made here" 0 "biga-pause:[0-9]" \
    setup --address 192.168.100.2
check "it wants the card's own address" 1 "every address" \
    setup --address 0.0.0.0:7443
check "and a port" 1 "the port is no number" setup --address 192.168.100.2:x
check "a value cannot add lines" 1 "does not belong there" \
    setup --address 192.168.100.2 --pause 'x"'
exit $bad
