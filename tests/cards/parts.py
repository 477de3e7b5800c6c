"""Parts of one test beside one another, each a process with a rack of its
own: most of what they do is to wait.
"""
import re
import subprocess
import sys
import threading

SUM = re.compile(r"\d+ passed, \d+ failed, \d+ skipped$")


def _blocks(lines):
    """What was printed, by checks: each begins with "ok" or "not ok"; what
    comes before them, line by line."""
    block = []
    for line in lines:
        if not block and line.startswith("#"):
            yield [line]
            continue
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


def run_all(parts, script):
    """Run a script once with each list of arguments, all at once, and print
    what they print, check by check; those that failed."""
    children = [subprocess.Popen(
        [sys.executable, "-B", script, *part], stdin=subprocess.DEVNULL,
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
        print(f"# failed: {script} {part}")
    return bad


def run(parts):
    """The same with this script; does not return."""
    sys.exit(1 if run_all(parts, sys.argv[0]) else 0)
