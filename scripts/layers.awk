# Who may use whom: reads the table of rooms, then lines of scripts/layers:
# FROM \t TO \t how it is said.
function room_of(path,    r) {
    r = path
    while (sub(/\/[^\/]*$/, "", r))
        if (r in line)
            return r
    return ""
}
# the noun of a file: the shortest head of its name that is a file there
function noun_of(path,    dir, base, n, part, i, head) {
    dir = base = path
    sub(/\/[^\/]*$/, "", dir)
    sub(/.*\//, "", base)
    sub(/\.[ch]$/, "", base)
    sub(/_private$/, "", base)
    n = split(base, part, "_")
    for (i = 1; i <= n; i++) {
        head = i == 1 ? part[1] : head "_" part[i]
        if ((dir "/" head) in stem)
            return dir "/" head
    }
    return dir "/" base
}
function complain(text) {
    if (!(text in said))
        print text
    said[text] = 1
    bad = 1
}
function ours(path) {
    return path !~ /^(tests|bench)\//
}
FNR == NR {
    if ($0 ~ /^#/ || $0 ~ /^ *$/)
        next
    split($0, cell, / *[|] */)
    name = cell[1]
    line[name] = ++n_rooms
    room[n_rooms] = name
    pure[name] = cell[3] ~ /\. Pure[.:]/
    n = split(cell[2], used, " ")
    for (i = 1; i <= n; i++) {
        if (used[i] == "-" || used[i] == "*") {
            all[name] = used[i] == "*"
            continue
        }
        if (!(used[i] in line))
            complain("scripts/rooms: " name " may not use " used[i] \
                     ", which does not stand above it")
        may[name, used[i]] = 1
    }
    next
}
FNR == 1 { FS = "\t"; $0 = $0 }
{ n_edges++; from[n_edges] = $1; to[n_edges] = $2; how[n_edges] = $3
  if ($1 ~ /\.[ch]$/) { s = $1; sub(/\.[ch]$/, "", s); stem[s] = 1 } }
function judge_room(i,    a, b) {
    a = room_of(from[i])
    if (a == "") {
        complain(from[i] ": its folder has no line in scripts/rooms")
        return
    }
    if (to[i] ~ /^[<(]/) {
        if (pure[a] && substr(to[i], 2) ~ impure && to[i] !~ harmless)
            complain(how[i] ": " a " is pure and may not use " to[i])
        return
    }
    b = room_of(to[i])
    if (b == "") {
        if (to[i] ~ /\//)
            complain(how[i] ": " to[i] " is in no room of scripts/rooms")
        else if (to[i] ~ /\.h$/)
            complain(how[i] ": " to[i] " is not named from the top folder")
        return
    }
    if (a == b || (all[a] && (b != "tests" || a == "bench")))
        return
    uses[a, b] = 1
    if (!((a, b) in may))
        complain(how[i] ": " a " may not use " b " (" to[i] ")")
}
# A noun may not use, also by way of others, one that uses it: tsort finds them.
function judge_nouns(    i, a, b, text, last, first, tsort) {
    for (i = 1; i <= n_edges; i++) {
        if (to[i] ~ /^[<(]/ || !ours(from[i]) || !ours(to[i]))
            continue
        a = noun_of(from[i])
        b = noun_of(to[i])
        if (a != b && !((a, b) in edge)) {
            edge[a, b] = how[i] " (" to[i] ")"
            print a, b >pairs
        }
    }
    close(pairs)
    tsort = "tsort " pairs " 2>&1 >/dev/null"
    while ((tsort | getline text) > 0) {
        sub(/^tsort: /, "", text)
        if (text ~ /contains a loop/) {
            if (last != "")
                complain("circle: " edge[last, first])
            last = ""
            continue
        }
        if (last == "")
            first = text
        else
            complain("circle: " edge[last, text])
        last = text
    }
    if (last != "")
        complain("circle: " edge[last, first])
}
END {
    impure = "^(arpa/|netinet/|sys/socket|sys/stat|sys/types|pthread|time|" \
        "unistd|fcntl|poll|signal|microhttpd|curl/|sqlite3|gnutls|dirent|" \
        "clock_|gettimeofday|open|read|write|socket|getenv|rand|fopen|log_)"
    harmless = "^.(time_t|readlink_never)"
    for (i = 1; i <= n_edges; i++)
        judge_room(i)
    judge_nouns()
    # a line that allows what nobody does is not true either
    if (calls)
        for (key in may) {
            split(key, part, SUBSEP)
            if (!(key in uses) && ours(part[1] "/"))
                complain("scripts/rooms: " part[1] " does not use " part[2])
        }
    exit bad
}
