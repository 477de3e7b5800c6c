#!/usr/bin/env python3
"""Type into a real shell on a terminal, with tabs, and see what the line has
become: `typed.py SHELL SCRIPT CASES`.  SHELL is bash, zsh or fish, SCRIPT what
`biga completion SHELL` printed.  Each line of CASES is what is typed, a tab,
and the words that the line must then have, with "|" between.  The line is not
run: before it "printf '<%s>' " is typed at its begin."""

import os
import pty
import select
import signal
import sys
import time

HANGS = float(os.environ.get("HANGS", "60"))
COMMANDS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i", "--features",
             "no-query-term"],
}
STARTS = {
    "bash": "bind 'set enable-bracketed-paste off'; source {script}",
    "zsh": "unsetopt zle_bracketed_paste PROMPT_SP; autoload -U compinit; "
           "compinit -D -u; source {script}",
    "fish": "source {script}",
}
HOME_KEY, ENTER = "\x01", "\r"


class Shell:
    def __init__(self, name, script):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="dumb" if name != "fish" else "xterm",
                              PS1="$ ", LANG="C.UTF-8")
            os.execvp(COMMANDS[name][0], COMMANDS[name])
        self.seen = ""
        self.type(STARTS[name].format(script=script) + ENTER)
        self.type("printf 'rea%s\\n' dy" + ENTER)
        self.wait("ready")

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait(self, text):
        """Until it is on the screen; what stands before it."""
        until = time.monotonic() + HANGS
        while text not in self.seen:
            left = max(0, until - time.monotonic())
            if not select.select([self.fd], [], [], left)[0]:
                raise SystemExit(f"waited for {text!r}; on the screen is\n"
                                 + self.seen)
            self.seen += os.read(self.fd, 65536).decode(errors="replace")
        before, self.seen = self.seen.split(text, 1)
        return before

    def line_of(self, n, typed):
        """The words that the line has when that was typed."""
        self.type(typed + HOME_KEY + f"printf '<%s>' 'line''{n}' " + ENTER)
        self.type(f"printf '%s\\n' 'end''{n}'" + ENTER)
        self.wait(f"<line{n}>")
        line = self.wait(f"end{n}")
        return line[:line.find(">\r") if ">\r" in line else
                    line.rfind(">")].strip("<>").split("><")

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def main():
    name, script, cases = sys.argv[1:]
    shell, failed = Shell(name, script), 0
    with open(cases, encoding="utf-8") as f:
        lines = [line.rstrip("\n").split("=>") for line in f]
    for n, (typed, wanted) in enumerate(lines):
        got = shell.line_of(n, typed.replace("TAB", "\t"))
        good = got == wanted.split("|")
        failed += not good
        print(f"{'ok' if good else 'not ok'} - {name}: {typed}: "
              f"{' '.join(got)}" + ("" if good else f", not {wanted}"),
              flush=True)
    shell.end()
    sys.exit(failed > 0)


main()
