"""The shell commands of the documents, so that each is run by a test.

A block of shell commands says after "sh" who runs it:

    ```sh demo

here      anywhere, by tests/e2e/docs.py
demo      where `biga demo` has just shown its result, by the same
cards     by tests/cards/test_docs.py, as root
kube      in a cluster, by tests/kube/test_docs.py
node      under a kubelet, by tests/node/test_docs.py
package   by tests/package/images.sh, which asks this program for them:
          documents.py package
checked   nobody: it needs hosts, files or names of the reader's own.  Each
          verb, option, file and make target in it has to exist.

Blocks of a document run in their order, in one shell.  A block of another
language with a file's name, such as ```json policy.json, is that file.
"""
import glob
import os
import re
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
RUNNERS = ("here", "demo", "cards", "kube", "node", "package", "checked")
PROGRAMS = ("biga", "biga-extender", "biga-advertiser", "biga-cri",
            "biga-replay", "biga-card")
BLOCK = re.compile(r"^```(\S+)(?: +(\S+))?[ ]*\n(.*?)^```[ ]*$", re.M | re.S)


class Block:
    def __init__(self, path, line, language, word, text):
        self.path, self.line = path, line
        self.language, self.word, self.text = language, word, text

    def __str__(self):
        return f"{self.path}:{self.line}"


def documents():
    """All that the repository has, by path."""
    said = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return said.splitlines()


def blocks(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        text = f.read()
    return [Block(path, text.count("\n", 0, m.start()) + 1, *m.groups())
            for m in BLOCK.finditer(text)]


def shell(path):
    return [b for b in blocks(path) if b.language in ("sh", "bash", "shell")]


def unmarked():
    """Indented lines that are commands, which nobody would run: texts."""
    for path in documents():
        with open(os.path.join(ROOT, path), encoding="utf-8") as f:
            text = BLOCK.sub(lambda m: "\n" * m.group().count("\n"), f.read())
        for i, line in enumerate(text.splitlines(), 1):
            if re.match(r"( {4}|\t)\$? ?(biga|make) ", line):
                yield f"{path}:{i}: {line.strip()}"


def told(runner):
    """The documents with blocks for that runner: path, its blocks."""
    for path in documents():
        own = [b for b in shell(path) if b.word == runner]
        if own:
            yield path, own


def write_files(path, folder):
    """What the document shows of files."""
    for b in blocks(path):
        if b.word and b.language not in ("sh", "bash", "shell"):
            with open(os.path.join(folder, b.word), "w",
                      encoding="utf-8") as f:
                f.write(b.text)


def script(own):
    """The blocks as one program that says where it failed."""
    lines = ["set -euo pipefail"]
    for b in own:
        lines += [f"trap 'echo \"{b} failed\" >&2' ERR", b.text]
    return "\n".join(lines)


def run(text, hangs):
    """Each line has to succeed; what they said.  What a person would not wait
    for longer is waited for until it hangs, after so many seconds."""
    text, n = re.subn(r"--timeout([= ])\d+s",
                      rf"--timeout\g<1>{hangs:.0f}s", text)
    got = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=ROOT,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, check=False, timeout=(n + 4) * hangs)
    assert got.returncode == 0, f"exit {got.returncode}:\n{got.stdout}"
    return got.stdout


# --- what can be said of commands that are not run ---------------------------

def commands(text):
    """Simple commands: lists of words, without comments, redirections and
    substitutions."""
    text = re.sub(r"\\\n", " ", text)
    text = re.sub(r"<<(\w+)\n.*?^\1$", "", text, flags=re.M | re.S)
    for line in text.splitlines():
        line = re.sub(r"(^|\s)#.*", "", line).replace("…", "ELLIPSIS")
        line = re.sub(r"\$\((.*?)\)", r"; \1 ;", line.replace('"$(', "$("))
        words = []
        parser = shlex.shlex(line.replace(')"', ")"), posix=True,
                             punctuation_chars=True)
        parser.whitespace_split = True
        try:
            words = list(parser)
        except ValueError:
            continue
        one = []
        for word in words + [";"]:
            if re.fullmatch(r"[;&|()<>]+", word):
                if one:
                    yield one
                one = []
            else:
                one.append(word)


class Faults:
    def __init__(self, build):
        self.build, self.helps = build, {}

    def options(self, program, verb=None):
        """Those of its --help; None: there is no such verb."""
        key = (program, verb)
        if key not in self.helps:
            asked = ["help", verb] if verb else ["--help"]
            got = subprocess.run(
                [os.path.join(self.build, program)] + asked, cwd=ROOT,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                check=False)
            self.helps[key] = None if got.returncode else set(
                re.findall(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", got.stdout))
        return self.helps[key]

    def of_program(self, words):
        program, rest = words[0], words[1:]
        verb = None
        if program == "biga":
            named = [w for w in rest if not w.startswith("-")]
            if not named:
                return
            verb = named[0]
            if verb == "ELLIPSIS" or verb.isupper():
                return
        if "--" in rest:
            rest = rest[:rest.index("--")]
        known = self.options(program, verb)
        if known is None:
            yield f"biga has no command \"{verb}\""
            return
        if verb == "replay":
            known = known | (self.options("biga-replay") or set())
        for word in rest if verb != "rsh" else []:
            name = word.split("=")[0]
            if re.fullmatch(r"--?[a-zA-Z][\w-]*", name) and name not in known:
                yield f"{' '.join(words[:2])}: no option \"{name}\""

    def of_make(self, words):
        rules = []
        for name in ["Makefile"] + glob.glob("scripts/*.mk", root_dir=ROOT):
            with open(os.path.join(ROOT, name), encoding="utf-8") as f:
                rules += re.findall(r"^([a-z][\w -]*):(?!=)", f.read(), re.M)
        targets = set(" ".join(rules).split())
        for word in words[1:]:
            if "=" not in word and word not in targets:
                yield f"make has no target \"{word}\""

    def of(self, block):
        """What is wrong with it: texts."""
        for words in commands(block.text):
            while words and re.fullmatch(r"\w+=.*", words[0]):
                words = words[1:]
            if words and words[0] in ("sudo", "env", "export"):
                words = words[1:]
            if not words:
                continue
            name = words[0]
            if name in PROGRAMS:
                yield from self.of_program(words)
            elif name == "make":
                yield from self.of_make(words)
            for word in words:
                if re.match(r"(deploy|tests|scripts|schema|docs)/\S", word) \
                        and "ELLIPSIS" not in word \
                        and not os.path.exists(os.path.join(ROOT, word)):
                    yield f"there is no {word}"


if __name__ == "__main__":
    for _, blocks_of_one in told(sys.argv[1]):
        print(script(blocks_of_one))
