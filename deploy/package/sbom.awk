# Writes the SPDX 2.3 document that deploy/package/sbom has collected in `work`:
# packages (tab-separated), owners ("FILE PACKAGE"), edges ("WHO LIBRARY"),
# files (tab-separated), PACKAGE.copyright.

function text(s) {
    gsub(/\\/, "\\\\", s)
    gsub(/"/, "\\\"", s)
    gsub(/\t/, "\\t", s)
    gsub(/\n/, "\\n", s)
    gsub(/[\001-\037]/, " ", s)
    return "\"" s "\""
}

function member(indent, key, value, last) {
    printf "%s\"%s\": %s%s\n", indent, key, text(value), last ? "" : ","
}

function id(kind, s) {
    gsub(/[^A-Za-z0-9.]+/, "-", s)
    return "SPDXRef-" kind "-" s
}

function relation(from, kind, to) {
    relations[++n_relations] = sprintf("    {\"spdxElementId\": \"%s\", " \
        "\"relationshipType\": \"%s\", \"relatedSpdxElement\": \"%s\"}", \
        from, kind, to)
}

# the "Maintainer:" of a package: a name, and where to write to
function supplier(s,    cut, kind) {
    kind = s ~ /Team|Maintainers|Group|packaging/ ? "Organization: " : "Person: "
    cut = match(s, / *<[^>]*>$/)
    if (!cut)
        return kind s
    return kind substr(s, 1, cut - 1) " " \
        "(" substr(s, index(s, "<") + 1, length(s) - index(s, "<") - 1) ")"
}

function main_package(    me) {
    me = id("Package", name)
    print "    {"
    member("      ", "SPDXID", me)
    member("      ", "name", name)
    member("      ", "versionInfo", version)
    member("      ", "supplier", "Organization: The Biga authors")
    member("      ", "downloadLocation", "NOASSERTION")
    print "      \"filesAnalyzed\": true,"
    printf "      \"packageVerificationCode\": " \
        "{\"packageVerificationCodeValue\": \"%s\"},\n", code
    member("      ", "licenseConcluded", "Apache-2.0")
    member("      ", "licenseDeclared", "Apache-2.0")
    member("      ", "copyrightText", "The Biga authors")
    member("      ", "primaryPackagePurpose", "APPLICATION", 1)
    printf "    }"
    relation("SPDXRef-DOCUMENT", "DESCRIBES", me)
}

function debian_package(line,    f, n, licence) {
    n = split(line, f, "\t")
    if (n < 7 || (f[1] in versions))
        return
    versions[f[1]] = f[2]
    licence = licences(f[1], work "/" f[1] ".copyright")
    print ",\n    {"
    member("      ", "SPDXID", id("Package", f[1]))
    member("      ", "name", f[1])
    member("      ", "versionInfo", f[2])
    member("      ", "supplier", supplier(f[6]))
    member("      ", "downloadLocation", "NOASSERTION")
    print "      \"filesAnalyzed\": false,"
    if (f[7] != "")
        member("      ", "homepage", f[7])
    member("      ", "sourceInfo", "built from Debian's " f[4] " " f[5])
    member("      ", "licenseConcluded", "NOASSERTION")
    member("      ", "licenseDeclared", licence)
    member("      ", "copyrightText", "NOASSERTION")
    print "      \"externalRefs\": [{"
    member("        ", "referenceCategory", "PACKAGE-MANAGER")
    member("        ", "referenceType", "purl")
    member("        ", "referenceLocator", sprintf("pkg:deb/debian/%s@%s?arch=%s", \
        f[1], escaped(f[2]), f[3]), 1)
    print "      }],"
    member("      ", "primaryPackagePurpose", "LIBRARY", 1)
    printf "    }"
}

# a version as a package URL has it
function escaped(s) {
    gsub(/%/, "%25", s)
    gsub(/\+/, "%2B", s)
    gsub(/:/, "%3A", s)
    return s
}

function program(line,    f, me) {
    split(line, f, "\t")
    me = id("File", f[1])
    program_ids[root f[1]] = me
    relation(id("Package", name), "CONTAINS", me)
    printf "%s    {\n", n_programs++ ? ",\n" : ""
    member("      ", "SPDXID", me)
    member("      ", "fileName", "./" f[1])
    print "      \"fileTypes\": [\"BINARY\"],"
    print "      \"checksums\": ["
    printf "        {\"algorithm\": \"SHA1\", \"checksumValue\": \"%s\"},\n", f[2]
    printf "        {\"algorithm\": \"SHA256\", \"checksumValue\": \"%s\"}\n", f[3]
    print "      ],"
    member("      ", "licenseConcluded", "Apache-2.0")
    print "      \"licenseInfoInFiles\": [\"NOASSERTION\"],"
    member("      ", "copyrightText", "NOASSERTION", 1)
    printf "    }"
}

# who uses a library: a program is linked with it, a library depends on it
function edge(line,    f, from, to, kind) {
    split(line, f, " ")
    to = owners[f[2]]
    if (f[1] in program_ids) {
        from = program_ids[f[1]]
        kind = linked ? linked : "DYNAMIC_LINK"
    } else if (f[1] == "-") {
        from = id("Package", name)
        kind = "CONTAINS"
    } else {
        from = id("Package", owners[f[1]])
        kind = "DEPENDS_ON"
    }
    to = id("Package", to)
    if (from == to || ((from, to) in drawn))
        return
    drawn[from, to] = 1
    relation(from, kind, to)
}

function lines_of(file, lines,    n, line) {
    while ((getline line <file) > 0)
        lines[++n] = line
    close(file)
    return n
}

# names that SPDX does not have, with what the copyright file says of them
function print_licences(    i, ref) {
    print "  \"hasExtractedLicensingInfos\": ["
    for (i = 1; i <= n_refs; i++) {
        ref = refs[i]
        printf "    {\"licenseId\": \"%s\", \"name\": %s,\n" \
            "     \"extractedText\": %s}%s\n", ref, text(ref_names[ref]), \
            text(licence_text(ref, ref_packages[ref])), i < n_refs ? "," : ""
    }
    print "  ],"
}

BEGIN {
    known_licences()
    print "{"
    member("  ", "spdxVersion", "SPDX-2.3")
    member("  ", "dataLicense", "CC0-1.0")
    member("  ", "SPDXID", "SPDXRef-DOCUMENT")
    member("  ", "name", name "-" version "-" arch)
    member("  ", "documentNamespace", "https://biga.dev/spdx/" name "-" \
        version "-" arch "-@DIGEST@")
    printf "  \"creationInfo\": {\n    \"created\": \"%s\",\n", created
    print "    \"creators\": [\"Organization: The Biga authors\", " \
        "\"Tool: biga-sbom-" version "\"]\n  },"
    n = lines_of(work "/owners", lines)
    for (i = 1; i <= n; i++) {
        split(lines[i], f, " ")
        owners[f[1]] = f[2]
    }
    print "  \"packages\": ["
    main_package()
    n = lines_of(work "/packages", lines)
    for (i = 1; i <= n; i++)
        debian_package(lines[i])
    print "\n  ],\n  \"files\": ["
    n = lines_of(work "/files", lines)
    for (i = 1; i <= n; i++)
        program(lines[i])
    print "\n  ],"
    if (n_refs)
        print_licences()
    n = lines_of(work "/edges", lines)
    for (i = 1; i <= n; i++)
        edge(lines[i])
    print "  \"relationships\": ["
    for (i = 1; i <= n_relations; i++)
        print relations[i] (i < n_relations ? "," : "")
    print "  ]\n}"
    exit
}
