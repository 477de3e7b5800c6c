# Who may include whom.  A file's layer is its folder; a layer may include
# itself and the layers listed for it.
#
#   model/base < model < model/io < model/kube < advertiser | extender | cli
#   model/base < card, and of model/io what stands on model/base alone: the
#   Makefile links biga-card with that
#
# advertiser, extender and cli never include each other.  bench/replay, which
# plays the extender on the advertiser's hosts, stands on all of them.  tests
# and bench may include anything but each other's files.
BEGIN {
    may["model/base"] = ""
    may["model"] = "model/base"
    may["model/io"] = "model/base model"
    may["model/kube"] = "model/base model model/io"
    may["advertiser"] = "model/base model model/io model/kube"
    may["extender"] = "model/base model model/io model/kube"
    may["cli"] = "model/base model model/io model/kube"
    may["card"] = "model/base model/io"
    may["bench/replay"] = "model/base model model/io model/kube advertiser " \
                          "extender cli"
    may["tests"] = "model/base model model/io model/kube advertiser extender cli " \
                   "bench/replay card"
    may["bench"] = "model/base model model/io model/kube advertiser extender cli " \
                   "tests"
    # what pure code has no business with
    split("arpa/ netinet/ sys/socket sys/stat sys/types pthread time unistd " \
          "fcntl poll signal microhttpd curl/ sqlite3 gnutls dirent",
          impure, " ")
}
function layer(path) {
    if (path ~ /^model\/(base|io|kube)\//)
        return substr(path, 1, index(substr(path, 7), "/") + 5)
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
