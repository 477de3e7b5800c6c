# Who may include whom.  A file's layer is its folder; a layer may include
# itself and the layers listed for it.
#
#   lib < model < advertiser | extender | cli
#   lib < card: the Makefile links biga-card with what stands on lib/base alone
#
# advertiser, extender and cli never include each other.  bench/replay, which
# plays the extender on the advertiser's hosts, stands on all of them.  tests
# and bench may include anything but each other's files.
BEGIN {
    may["lib"] = ""
    may["model"] = "lib"
    may["advertiser"] = "lib model"
    may["extender"] = "lib model"
    may["cli"] = "lib model"
    may["card"] = "lib"
    may["bench/replay"] = "lib model advertiser extender cli"
    may["tests"] = "lib model advertiser extender cli bench/replay card"
    may["bench"] = "lib model advertiser extender cli tests"
    # what pure code has no business with
    split("arpa/ netinet/ sys/socket sys/stat sys/types pthread time unistd " \
          "fcntl poll signal microhttpd curl/ sqlite3 gnutls dirent",
          impure, " ")
}
function layer(path) {
    if (path ~ /^bench\/replay\//)
        return "bench/replay"
    return substr(path, 1, index(path, "/") - 1)
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
    split($0, part, "\"")
    from = layer(FILENAME)
    to = layer(part[2])
    if (to == "") {
        printf "%s:%d: \"%s\" is not named from the top folder\n", FILENAME,
            FNR, part[2]
        bad = 1
    } else if (from != to && index(" " may[from] " ", " " to " ") == 0) {
        printf "%s:%d: %s may not include %s\n", FILENAME, FNR, from, part[2]
        bad = 1
    }
}
/^[ \t]*#[ \t]*include[ \t]*</ {
    if (layer(FILENAME) != "model")
        next
    for (i in impure)
        if (index($0, "<" impure[i]) > 0) {
            printf "%s:%d: model is pure and may not use %s\n", FILENAME,
                FNR, $2
            bad = 1
        }
}
END { exit bad }
