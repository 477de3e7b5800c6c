"""How long took what the documents promise in seconds, by the history of a
soak and its real clock.  Times in which something else was broken that has
to do with it are left out: a promise is about one fault."""
from collections import defaultdict

WATCHES = ("embedded", "advertiser")  # who tells of cards and pods there
CUTS = ("freeze", "kill", "link", "silent", "power")


class Faults:
    """When who was broken."""

    def __init__(self, events):
        self.spans = defaultdict(list)  # target: [(from, to, kind)]
        begun = {}
        for e in events:
            if e["e"] == "fault":
                begun[e["n"]] = e
            elif e["e"] == "healed" and e["n"] in begun:
                b = begun.pop(e["n"])
                self.spans[e["target"]].append((b["t"], e["t"], e["kind"]))
            elif e["e"] in ("restart", "died"):
                self.spans[e["name"]].append((e["t"], e["t"] + 5, e["e"]))
        for b in begun.values():
            self.spans[b["target"]].append((b["t"], float("inf"), b["kind"]))

    def quiet(self, targets, since, until, before=0.0):
        """Whether none of these was broken then, nor shortly before."""
        return not any(a < until and b > since - before
                       for target in targets
                       for a, b, _ in self.spans[target])

    def of(self, target, kinds):
        return [s for s in sorted(self.spans[target]) if s[2] in kinds]


class Changes:
    """The values of something by time."""

    def __init__(self, events, name, key, value):
        self.by = defaultdict(list)
        for e in events:
            if e["e"] == name:
                self.by[e[key]].append((e["t"], e[value]))

    def at(self, key, t):
        last = None
        for when, value in self.by[key]:
            if when > t:
                break
            last = value
        return last

    def first(self, key, t, true):
        """When it first was so after t."""
        return next((when for when, value in self.by[key]
                     if when > t and true(value)), None)


def measures(events):
    """{what: (promise in seconds or None, [seconds])}"""
    found = {}
    faults = Faults(events)

    def add(what, promise, took):
        found.setdefault(what, (promise, []))[1].extend(took)
    add("a card that died is withdrawn", 5, card_dead(events, faults))
    add("a card that is back is chosen again", None,
        card_back(events, faults))
    add("a drained card is withdrawn", 5, drained(events, faults))
    crash, clean = leader(events, faults)
    add("a leader that crashed is followed", 15, crash)
    add("a leader that ended well is followed", None, clean)
    add("a node without its advertiser is stale", 15, stale(events, faults))
    add("a node whose advertiser is back is ready", None,
        ready_again(events, faults))
    add("deleted slices of simulated hosts are back", None,
        slices_back(events, faults))
    add("a pod in the cluster is bound", None, bound(events, faults))
    add("a pod is bound once its node is ready again", 10,
        woken(events, faults))
    add("an applied pod with a place runs", None, started(events, faults))
    add("an extender that is back knows its pods", 10,
        known(events, faults))
    add("a container that ended is seen", 2, ended(events, faults))
    add("all is at rest after the last fault", None,
        [e["took"] for e in events if e["e"] == "rest" and
         e["when"] == "round"])
    return found


def cards_of(events):
    return {e["place"]: e["card"] for e in events if e["e"] == "place"}


def card_dead(events, faults):
    healthy = Changes(events, "card-state", "card", "healthy")
    for place, card in cards_of(events).items():
        for since, until, _ in faults.of(place, CUTS):
            seen = healthy.first(card, since, lambda yes: not yes)
            if healthy.at(card, since) and seen and seen < until + 1 and \
                    faults.quiet((*WATCHES, "host"), since, seen, 3):
                yield seen - since


def card_back(events, faults):
    healthy = Changes(events, "card-state", "card", "healthy")
    for place, card in cards_of(events).items():
        for _, until, _ in faults.of(place, ("freeze", "link", "silent")):
            seen = healthy.first(card, until, bool)
            if not healthy.at(card, until) and seen and faults.quiet(
                    (*WATCHES, "host"), until, seen, 3) and \
                    faults.quiet((place,), until + 0.01, seen):
                yield seen - until


def drained(events, faults):
    healthy = Changes(events, "card-state", "card", "healthy")
    places = {card: place for place, card in cards_of(events).items()}
    for e in events:
        if e["e"] == "drain" and e["on"] and healthy.at(e["card"], e["t"]):
            seen = healthy.first(e["card"], e["t"], lambda yes: not yes)
            if seen and faults.quiet(WATCHES, e["t"], seen, 3) and \
                    e["card"] in places:
                yield seen - e["t"]


def leader(events, faults):
    """(after a crash, after a clean end)"""
    ready = Changes(events, "ready", "name", "ready")
    crash, clean = [], []
    names = list(ready.by)
    for name in names:
        for since, until, kind in sorted(faults.spans[name]):
            if kind not in ("kill", "freeze", "reboot", "cut", "term") or \
                    not ready.at(name, since):
                continue
            others = [n for n in names if n != name]
            seen = min((t for t in (ready.first(n, since, bool)
                                    for n in others) if t), default=None)
            own = ready.first(name, until, bool)
            if not seen or own and own < seen:
                continue  # it was back before, and leads on
            if faults.quiet(("apiserver", *others), since, seen, 10):
                (clean if kind == "term" else crash).append(seen - since)
    return crash, clean


def fleets(events):
    """(node as an extender has it, who publishes it, who is asked)"""
    for key in {e["node"] for e in events if e["e"] == "node-state"}:
        asked, name = key.split("/", 1)
        if asked != "embedded":
            yield key, name.rstrip("0123456789"), (asked, "apiserver")
        elif name == "host0":
            yield key, "advertiser", ("embedded", "host")


def stale(events, faults):
    states = Changes(events, "node-state", "node", "status")
    for key, who, asked in fleets(events):
        for since, until, _ in faults.of(who, ("freeze", "kill", "cut",
                                               "reboot")):
            seen = states.first(key, since, lambda s: s == "stale")
            if states.at(key, since) == "ready" and seen and \
                    seen < until + 1 and faults.quiet(asked, since, seen, 15):
                yield seen - since


def ready_again(events, faults):
    states = Changes(events, "node-state", "node", "status")
    for key, who, asked in fleets(events):
        for _, until, _ in faults.of(who, ("freeze", "kill", "cut", "term",
                                           "reboot")):
            seen = states.first(key, until, lambda s: s == "ready")
            if states.at(key, until) != "ready" and seen and \
                    faults.quiet(asked, until, seen, 5) and \
                    faults.quiet((who,), until + 0.01, seen):
                yield seen - until


def slices_back(events, faults):
    for i, e in enumerate(events):
        if e["e"] != "slices-deleted":
            continue
        gone = back = None
        for later in events[max(0, i - 20):]:
            if later["t"] > e["t"] + 60:
                break
            if later["e"] == "slice-gone" and later["node"] == e["node"]:
                gone = gone or later["t"]
            elif later["e"] == "slice" and later["node"] == e["node"] \
                    and gone and later["t"] >= gone:
                back = later["t"]
                break
        who = e["node"].rstrip("0123456789")
        if back and faults.quiet((who, "apiserver"), e["t"], back, 5):
            yield back - gone


REPLICAS = ("extender0", "extender1", "extender2")
BACK_OFF = 12  # seconds after a fault in which pods may be tried again later
CONTROL = ("apiserver", "scheduler", *REPLICAS)


def first_seen(events):
    """{uid: (name, first seen, bound)} of pods in the cluster"""
    pods = {}
    for e in events:
        if e["e"] == "pod":
            _, first, when = pods.get(e["uid"], (0, e["t"], None))
            pods[e["uid"]] = (e["name"], first,
                              when or (e["t"] if e["node"] else None))
    return pods


def bound(events, faults):
    """Of pods that may go anywhere, while nothing of the control plane is
    broken, nor was."""
    pinned = {e["id"] for e in events
              if e["e"] == "unit" and e["kind"] == "pinned"}
    for name, first, when in first_seen(events).values():
        if when and when > first and unit_of(name) not in pinned and \
                faults.quiet(CONTROL, first, when, BACK_OFF):
            yield when - first


def unit_of(name):
    """c0-12 of c0-12-3-xpu"""
    return "-".join(name.split("-")[:2])


def woken(events, faults):
    states = Changes(events, "node-state", "node", "status")
    bound_to, waits = {}, {}
    for e in events:
        if e["e"] == "pod" and e["node"]:
            bound_to[e["uid"]] = e["node"]
    pinned = {e["id"] for e in events
              if e["e"] == "unit" and e["kind"] == "pinned"}
    for uid, (name, first, when) in first_seen(events).items():
        if when and unit_of(name) in pinned:
            waits[uid] = (first, when)
    for uid, (first, when) in waits.items():
        node = bound_to[uid]
        ups = [states.first(f"{r}/{node}", first, lambda s: s == "ready")
               for r in REPLICAS]
        up = min((t for t in ups if t), default=None)
        was = [states.at(f"{r}/{node}", first) for r in REPLICAS]
        if up and up < when and all(s and s != "ready" for s in was) and \
                faults.quiet(CONTROL, up, when, BACK_OFF):
            yield when - up


def started(events, faults):
    """From the allocation until its first container runs."""
    given, runs = {}, {}
    for e in events:
        if e["e"] == "allocations":
            for got in e["give"]:
                given.setdefault(got["pod"].get("uid"), (e["t"], got))
        elif e["e"] == "task" and e["kind"] == "container":
            runs.setdefault(e["uid"], (e["seen"], e["place"]))
    for uid, (since, got) in given.items():
        if uid in runs and got["pod"]["role"] != "host":
            seen, place = runs[uid]
            if faults.quiet((*WATCHES, "host", place), since, seen, 20):
                yield seen - since


def known(events, faults):
    """From an extender's start until no pod is `wanted` that was not
    before."""
    starts = [e["t"] for e in events
              if e["e"] == "started" and e["name"] == "embedded"]
    state, lost = {}, []
    for e in events:
        if e["e"] == "pod-state":
            before = state.get(e["name"])
            state[e["name"]] = e["state"]
            if before in ("running", "stopping") and e["state"] == "wanted":
                lost.append((e["t"], e["name"]))
    states = Changes(events, "pod-state", "name", "state")
    for t, name in lost:
        start = max((s for s in starts if s <= t), default=None)
        seen = states.first(name, t, lambda s: s != "wanted")
        if start and seen and t - start < 15 and faults.quiet(
                (*WATCHES, "host", *cards_of(events)), start + 0.01, seen):
            yield seen - start


def ended(events, faults):
    """A container that ends by itself, and the pod with it."""
    short = {e["id"] for e in events
             if e["e"] == "unit" and e["kind"] == "short"}
    deleting = {e["name"]: e["t"] for e in reversed(events)
                if e["e"] == "deleting"}
    tasks = {(e["place"], e["id"]): e for e in events if e["e"] == "task"}
    states = Changes(events, "pod-state", "name", "state")
    for e in events:
        task = tasks.get((e.get("place"), e.get("id")))
        if e["e"] != "task-end" or not task or not task["container"] or \
                task["pod"] not in short or \
                deleting.get(task["pod"], e["t"]) < e["t"]:
            continue
        seen = states.first(f"{task['pod']}/{task['uid']}", e["last"],
                            lambda s: s != "running")
        if seen and faults.quiet((*WATCHES, "host", task["place"]),
                                 e["last"], seen, 8):
            yield seen - e["last"]


def table(events):
    yield (f"{'seconds, by the real clock':<46} {'n':>5} {'median':>7} "
           f"{'p99':>7} {'max':>7}  promise")
    for what, (promise, took) in measures(events).items():
        if not took:
            yield f"{what:<46} {0:>5}"
            continue
        took = sorted(took)
        late = sum(t > promise for t in took) if promise else 0
        word = f"{promise} s" if promise else "-"
        yield (f"{what:<46} {len(took):>5} {took[len(took) // 2]:>7.2f} "
               f"{took[int(len(took) * 0.99)]:>7.2f} {took[-1]:>7.2f}  "
               f"{word}" + (f", {late} later" if late else ""))
