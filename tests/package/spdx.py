#!/usr/bin/env python3
"""spdx.py FILE...: whether each is a document of SPDX 2.3, as JSON, that a
reader of the specification would take: members and their forms, identifiers
that lead somewhere, expressions of licences that SPDX knows.  It shares no
code with what writes them."""
import hashlib
import json
import re
import sys

# every licence that SPDX has a name for, by Debian's node-spdx-license-ids
KNOWN = "/usr/share/nodejs/spdx-license-ids/index.json"
REF = r"SPDXRef-[A-Za-z0-9.\-]+"
AGENT = r"(Person|Organization): [^\n]+?( \([^() ]*\))?"
URI = r"[a-z][a-z0-9+.\-]*:[^\s#]+"
PAGE = URI + r"(#\S*)?"
TEXT = r"(?s).+"
LICENCE = object()  # an expression, looked at by itself
# of each kind of object: members, what they have to look like, "?" may lack
OBJECTS = {
    "document": {
        "spdxVersion": r"SPDX-2\.3", "dataLicense": r"CC0-1\.0",
        "SPDXID": r"SPDXRef-DOCUMENT", "name": TEXT,
        "documentNamespace": URI, "creationInfo": "creation",
        "packages": ["package"], "files?": ["file"],
        "hasExtractedLicensingInfos?": ["extracted"],
        "relationships": ["relationship"]},
    "creation": {
        "created": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
        "creators": [AGENT + r"|Tool: [^ ]+-[^ ]+"]},
    "package": {
        "SPDXID": REF, "name": TEXT, "versionInfo?": TEXT,
        "supplier?": AGENT + "|NOASSERTION",
        "downloadLocation": URI + "|NOASSERTION|NONE",
        "filesAnalyzed?": bool, "packageVerificationCode?": "code",
        "homepage?": PAGE, "sourceInfo?": TEXT,
        "licenseConcluded?": LICENCE, "licenseDeclared?": LICENCE,
        "copyrightText?": TEXT, "externalRefs?": ["external"],
        "primaryPackagePurpose?": "APPLICATION|LIBRARY|CONTAINER"},
    "code": {"packageVerificationCodeValue": "[0-9a-f]{40}"},
    "external": {
        "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
        "referenceLocator": r"pkg:deb/debian/[a-z0-9.+\-]+@"
                            r"[A-Za-z0-9.~%\-]+\?arch=[a-z0-9]+"},
    "file": {
        "SPDXID": REF, "fileName": r"\./[^/].*", "fileTypes?": ["BINARY"],
        "checksums": ["checksum"], "licenseConcluded?": LICENCE,
        "licenseInfoInFiles?": [LICENCE], "copyrightText?": TEXT},
    "checksum": {
        "algorithm": "SHA1|SHA256",
        "checksumValue": r"[0-9a-f]{40}|[0-9a-f]{64}"},
    "extracted": {
        "licenseId": r"LicenseRef-[A-Za-z0-9.\-]+", "name?": TEXT,
        "extractedText": TEXT},
    "relationship": {
        "spdxElementId": REF, "relatedSpdxElement": REF,
        "relationshipType": "DESCRIBES|CONTAINS|DEPENDS_ON|DYNAMIC_LINK|"
                            "STATIC_LINK"},
}


class Bill:
    def __init__(self, path):
        self.path = path
        self.wrong = []
        self.refs = set()  # licences named in expressions
        with open(path, encoding="utf-8") as f:
            self.document = json.load(f)
        try:
            with open(KNOWN, encoding="utf-8") as f:
                self.known = set(json.load(f))
        except OSError:
            self.known = None

    def say(self, where, what):
        self.wrong.append(f"{self.path}: {where}: {what}")

    def expression(self, where, text):
        """"A AND (B OR C)", each of them known"""
        if text in ("NOASSERTION", "NONE"):
            return
        words = re.findall(r"[()]|[^\s()]+", text)
        simple = re.sub(r"[^\s()]+", lambda m: m[0] if m[0] in ("AND", "OR")
                        else "x", text)
        while True:  # what is put together of parts is one
            shorter = re.sub(r"\(x\)|x (AND|OR) x", "x", simple)
            if shorter == simple:
                break
            simple = shorter
        if simple != "x":
            self.say(where, f"{text!r} is no expression of licences")
        for word in words:
            if word.startswith("LicenseRef-"):
                self.refs.add(word)
            elif word not in ("(", ")", "AND", "OR") and self.known and \
                    word not in self.known:
                self.say(where, f"{word}: SPDX knows no such licence")

    def value(self, where, want, value):
        if want is LICENCE:
            self.expression(where, value)
        elif want is bool:
            if not isinstance(value, bool):
                self.say(where, f"{value!r} is not true or false")
        elif isinstance(want, list):
            if not isinstance(value, list):
                self.say(where, "is no list")
                return
            for i, item in enumerate(value):
                self.value(f"{where}[{i}]", want[0], item)
        elif want in OBJECTS:
            self.members(where, want, value)
        elif not isinstance(value, str) or not re.fullmatch(want, value):
            self.say(where, f"{value!r} is not of the form {want}")

    def members(self, where, kind, value):
        left = dict(value)
        for member, want in OBJECTS[kind].items():
            name = member.rstrip("?")
            if name in left:
                self.value(f"{where}.{name}", want, left.pop(name))
            elif name == member:
                self.say(where, f"{name} is missing")
        for name in left:
            self.say(where, f"SPDX has no {name} there")

    def files_of(self, package):
        """they are told of one that was analyzed, and of no other"""
        d = self.document
        inside = {r["relatedSpdxElement"] for r in d["relationships"]
                  if r["spdxElementId"] == package["SPDXID"] and
                  r["relationshipType"] == "CONTAINS"}
        sums = sorted(
            c["checksumValue"] for f in d.get("files", ())
            if f["SPDXID"] in inside
            for c in f["checksums"] if c["algorithm"] == "SHA1")
        code = package.get("packageVerificationCode", {}).get(
            "packageVerificationCodeValue")
        if package.get("filesAnalyzed", True):
            if code != hashlib.sha1("".join(sums).encode()).hexdigest():
                self.say(package["SPDXID"], f"{code} is not of its files")
        elif sums or code:
            self.say(package["SPDXID"], "has files, and none was analyzed")

    def check(self):
        d = self.document
        self.members("document", "document", d)
        for package in d["packages"]:
            self.files_of(package)
        ids = ["SPDXRef-DOCUMENT"] + [
            x.get("SPDXID") for x in d["packages"] + d.get("files", [])]
        for one in {x for x in ids if ids.count(x) > 1}:
            self.say(one, "is there twice")
        reached, arrows = set(), {}
        for r in d["relationships"]:
            for end in (r["spdxElementId"], r["relatedSpdxElement"]):
                if end not in ids:
                    self.say("relationships", f"there is no {end}")
            arrows.setdefault(r["spdxElementId"], set()).add(
                r["relatedSpdxElement"])
        todo = ["SPDXRef-DOCUMENT"]
        while todo:
            one = todo.pop()
            if one not in reached:
                reached.add(one)
                todo += arrows.get(one, ())
        for one in set(ids) - reached:
            self.say(one, "nothing leads to it")
        said = {x["licenseId"]
                for x in d.get("hasExtractedLicensingInfos", [])}
        for one in said ^ self.refs:
            self.say(one, "is not both named and explained")
        return self.wrong


def main():
    bad = 0
    for path in sys.argv[1:]:
        wrong = Bill(path).check()
        for line in wrong:
            print(line)
        bad += bool(wrong)
        if not wrong:
            d = Bill(path).document
            print(f"{d['name']}: {len(d['packages'])} packages, "
                  f"{len(d.get('files', []))} programs")
    return bad


if __name__ == "__main__":
    sys.exit(main())
