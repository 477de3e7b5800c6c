#!/bin/bash
# A card is flashed by the shipped hook, with a tool that stands in for the
# vendor's: what becomes of it is seen by `biga card flash`, by the slice that
# is published, and by who asks for a card.  TAP lines.
set -u

# shellcheck source=tests/lib/extender.sh
. "$(dirname "$0")/../lib/extender.sh"
need curl stdbuf sha256sum
hook=$(realpath "$(dirname "$0")/../../deploy/hooks/flash-bfb")

card="card-0000-01-00"
act=$dir/act os=bf-bundle-2.9.0_prod
biga() { BIGA_SOCKET=$act/actuator.sock "$BUILD/biga" "$@"; }
says() { # TEXT COMMAND…: what it prints has it
    "${@:2}" 2>&1 | grep -qE -- "$1"
}
cat >"$dir/h.host" <<EOF
package 0
  numa 0 cpus=8 memory=16GiB
    root 0000:00
      bridge 0000:00:01.0
        card 0000:01:00.0 id=15b3:a2d6 cores=8 memory=16GiB
EOF
python3 -c 'import json
print(json.dumps({"metadata": {"name": "k", "labels": {"biga.dev/role": "xpu"}},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits":
        {"biga.dev/card": "1"}}}]}}))' >"$dir/k.json"
is_chosen() { says "k is placed: .*best h" biga simulate "$dir/k.json"; }
is_not_chosen() { says "k is refused" biga simulate "$dir/k.json"; }

# --- a host whose tools are ours ----------------------------------------------

mkdir -p "$dir"/{hooks,tools,fake,root/etc/biga,root/dev/rshim0,root/dev/rshim1}
printf 'DISPLAY_LEVEL   0\nDEV_NAME        pcie-0000:02:00.2\n' \
    >"$dir/root/dev/rshim0/misc"
printf 'DISPLAY_LEVEL   0\nDEV_NAME        pcie-01:00.2 (BF2)\n' \
    >"$dir/root/dev/rshim1/misc"
echo "BIGA_CARD_ADDRESS=192.0.2.1 FLASH_SSH='ssh -q'" \
    >"$dir/root/etc/biga/flash.conf"
cat >"$dir/hooks/flash-bfb" <<EOF
#!/bin/sh
export PATH="$dir/tools:\$PATH" BIGA_ROOT="$dir/root" BIGA_FLASH_PAUSE=0.05
exec "$hook"
EOF
# how it ends is what $dir/fake/plan says; what is on the card is in fake/card
cat >"$dir/tools/bfb-install" <<EOF
#!/bin/sh
cd "$dir/fake" || exit 9
echo "\$*" >asked
: >begun
echo "Pushing bfb"
printf ' 10%%\r 45%%\r'
while [ -e hold ]; do sleep 0.05; done
case \$(cat plan) in
half) : >card; echo "rshim1: Broken pipe"; exit 3 ;;
other) echo bf-bundle-2.8.0_prod >card ;;
*) cat "\$2" >card ;;
esac
printf '100%%\n'
: >booting
EOF
# the card answers at the second try
cat >"$dir/tools/ssh" <<EOF
#!/bin/sh
cd "$dir/fake" || exit 9
echo "\$*" >ssh
[ "\$(cat plan)" != silent ] || exit 255
if [ -e booting ]; then rm booting; exit 255; fi
cat card
EOF
cat >"$dir/tools/devlink" <<EOF
#!/bin/sh
[ "\$2 \$3" = "dev info" ] || { echo "kernel answers: No such device" >&2; exit 1; }
echo '{"info":{"pci/0000:01:00.0":{"driver":"mlx5_core","serial_number":"MT1",
"versions":{"running":{"fw.version":"24.35.1"},"stored":{"fw.version":"24.40.9"}}}}}'
EOF
chmod 755 "$dir"/tools/* "$dir/hooks/flash-bfb"
image=$dir/$os.bfb
echo "$os" >"$image"
(cd "$dir" && sha256sum "$os.bfb" >"$os.bfb.sha256")
plan() { echo "$1" >"$dir/fake/plan"; rm -f "$dir/fake/begun"; }
flash() { biga card flash "$card" --bfb "$image" "$@" >"$dir/flash.log" 2>&1; }
told() { grep -qE -- "$1" "$dir/flash.log"; }

start_extender
publish=$(port publish)
BIGA_SERVER=http://127.0.0.1:$(port read)
export BIGA_SERVER
answers() { biga card ps >/dev/null 2>&1; }
advertise() {
    "$BUILD/biga-advertiser" --server "http://127.0.0.1:$publish" --node h \
        --hostfile "$dir/h.host" --heartbeat 1s --actuate "$act" \
        --hooks "$dir/hooks" --devlink "$dir/tools/devlink" 2>>"$dir/advertiser.log" &
    advertiser=$!
    pids+=("$advertiser")
    until_true answers
}
advertise
until_true is_chosen
ok $? "the card is chosen"

biga card show "$card" >"$dir/show.log" 2>&1
grep -qx 'firmware     24.35.1, 24.40.9 after a reset' "$dir/show.log" &&
    grep -qx 'serial       MT1' "$dir/show.log" &&
    grep -qx 'mode         unknown' "$dir/show.log" &&
    grep -qx 'pods         none' "$dir/show.log"
ok $? "it is shown, and what is unknown says so"
says '"firmware":"24.35.1".*"mode":null' biga card show --json "$card"
ok $? "so it is as JSON"

# --- all is well ---------------------------------------------------------------

plan well
: >"$dir/fake/hold"
flash &
flashing=$!
pids+=("$flashing")
until_true says '"percent":45,"phase":"writing the image"' \
    curl -s -m "$HANGS" --unix-socket "$act/actuator.sock" \
    "http://x/v1/cards/$card"
ok $? "how far it is comes from the vendor's tool"
until_true is_not_chosen
ok $? "the card is not chosen meanwhile"
says "being flashed: writing the image, 45 %" biga card ps
ok $? "and it is said why"
says "409.*is being flashed" biga card undrain "$card"
ok $? "it cannot be undrained"
rm "$dir/fake/hold"
wait "$flashing"
ok $? "it ends well"
told "^$card: $os booted; it takes pods"
ok $? "what booted is told"
grep -qx -- "--bfb $image --rshim rshim1" "$dir/fake/asked" &&
    grep -qx -- '-q root@192.0.2.1 cat /etc/mlnx-release' "$dir/fake/ssh"
ok $? "by the card's own rshim, and asked at its address"
until_true is_chosen
ok $? "the card is chosen again"

# --- what may go wrong ---------------------------------------------------------

plan well
truncate -s 5 "$image"
flash
[ $? = 1 ] && told "FlashImageBad: .*its SHA-256 is" &&
    [ ! -e "$dir/fake/begun" ]
ok $? "half an image does not touch the card"
until_true is_chosen
ok $? "which stays in service"
echo "$os" >"$image"

fails() { # REASON TEXT OPTION…
    flash "${@:3}"
    [ $? = 1 ] && told "$1: .*$2"
    ok $? "$1 is told"
    until_true is_not_chosen
    ok $? "$1: the card is not chosen"
}
plan half
fails FlashFailed "at 45 % .*bfb-install failed"
grep -q 'rshim1: Broken pipe' "$act/hook-$card.log"
ok $? "what the tool said is in the log"
plan silent
fails FlashTimedOut "killed after 2000 ms" --timeout 2
plan other
fails FlashWrongVersion "bf-bundle-2.8.0_prod booted, and $os was to"
plan well
flash
ok $? "a flash that ends well brings it back"
until_true is_chosen
ok $? "and it is chosen"

# --- in the middle -------------------------------------------------------------

plan well
: >"$dir/fake/hold"
flash &
flashing=$!
pids+=("$flashing")
until_true test -e "$dir/fake/begun"
{ kill -9 "$advertiser" && wait "$advertiser"; } 2>/dev/null
# all of the host goes down: the hook as well, which leads a group of its own
group=$(awk '$1 == "begun" { print $3 }' "$act/hook-$card")
[ "${group:-0}" -gt 1 ] && kill -9 -- "-$group"
rm "$dir/fake/hold"
advertise
wait "$flashing"
[ $? = 1 ] && told "FlashInterrupted: .*$os.bfb"
ok $? "a reboot in the middle is told to who waits for the flash"
says "^0000:[0-9a-f:.]* .*FlashInterrupted" biga card ps &&
    says "^flash +failed: FlashInterrupted" biga card show "$card"
ok $? "and to who looks"
until_true is_not_chosen
ok $? "the card is not chosen"
says "takes pods again" biga card undrain "$card"
ok $? "until the operator says that it is well"
until_true is_chosen
ok $? "then it is chosen"
echo "1..$n"
