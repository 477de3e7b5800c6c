"""Parts of one test beside one another, each a process with a rack of its
own: most of what they do is to wait.
"""
import re
import subprocess
import sys
import threading

SUM = re.compile(r"\d+ passed, \d+ failed, \d+ skipped$")


def _blocks(lines):
    """What was printed, by checks: each begins with "ok" or "not ok"."""
    block = []
    for line in lines:
        if block and line.startswith(("ok ", "not ok ")):
            yield block
            block = []
        if not SUM.match(line):
            block.append(line)
    yield block


def _copy(child, lock):
    for block in _blocks(child.stdout):
        with lock:
            print("".join(block), end="", flush=True)


def run(parts):
    """Run this script once with each list of arguments, all at once, and
    print what they print, check by check; does not return."""
    children = [subprocess.Popen(
        [sys.executable, "-B", sys.argv[0], *part], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for part in parts]
    lock = threading.Lock()
    readers = [threading.Thread(target=_copy, args=(child, lock))
               for child in children]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    bad = [" ".join(part) for part, child in zip(parts, children)
           if child.wait() != 0]
    for part in bad:
        print(f"# failed: {sys.argv[0]} {part}")
    sys.exit(1 if bad else 0)
