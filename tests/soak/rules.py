"""What must hold of a soak, by its history alone.  Each rule reads the events
of a Verdict (verdict.py), and tells it what does not hold."""
import json
from collections import Counter, defaultdict

import jobs
import measure

# {who publishes: where to}
ADVERTISERS = {"east": "apiserver", "west": "apiserver",
               "advertiser": "embedded", "simulated": "embedded"}
OVER = ("Succeeded", "Failed")
GROWS = 1.25              # times, of a process that lives long, and
SLACK_KIB = 16 << 10      # KiB beside
FILES = 96                # more than at its first rest: a leader binds by many
                          # connections, which it did not have before


# --- nothing is given twice -------------------------------------------------
class Given:
    """Who has which device at a moment."""

    def __init__(self, verdict, what, devices):
        self.verdict, self.what, self.devices = verdict, what, devices
        self.gpus = {}
        self.cards = defaultdict(lambda: defaultdict(list))

    def take(self, who, got, at):
        v = self.verdict
        if got["pod"]["role"] == "host":
            for gpu in got.get("gpus", []):
                key = (got["node"], gpu["id"])
                v.made["gpu given"] += 1
                if self.gpus.get(key, who) != who:
                    v.bad(self.what, f"{at:.2f}: {who} got {key}, which "
                          f"{self.gpus[key]} has")
                self.gpus[key] = who
        for card in got["cards"]:
            key = (got["node"], card["id"])
            self.cards[key][jobs.pair_of(got)].append(got)

    def leave(self, who, got):
        for gpu in got.get("gpus", []):
            key = (got["node"], gpu["id"])
            if self.gpus.get(key) == who:
                del self.gpus[key]
        for card in got["cards"]:
            pairs = self.cards[(got["node"], card["id"])]
            members = pairs[jobs.pair_of(got)]
            members.remove(got)
            if not members:
                del pairs[jobs.pair_of(got)]

    def look(self, who, got, at):
        for card in got["cards"]:
            key = (got["node"], card["id"])
            self.verdict.made["card given"] += 1
            for text in jobs.overfull({key: self.cards[key]}, self.devices,
                                      churn=True):
                self.verdict.bad(self.what, f"{at:.2f}: when {who} got it: "
                                 f"{text}")


def cluster_twice(v):
    devices, has = {}, {}
    given = Given(v, "given twice in the cluster", devices)
    for e in v.of("slice", "pod", "pod-deleted"):
        if e["e"] == "slice":
            for name, (cores, memory) in e["cards"].items():
                devices[(e["node"], name)] = {"cores": cores,
                                              "memory_mib": memory}
            continue
        old = has.pop(e["uid"], None)
        if old:
            given.leave(e["name"], old)
        got = e.get("allocation")
        if e["e"] == "pod" and e["node"] and got and \
                e["phase"] not in OVER:
            if got["node"] != e["node"] or got["pod"].get("uid") != e["uid"]:
                v.bad("an allocation of somebody else", f"{e['t']:.2f}: "
                      f"{e['name']} on {e['node']} has what {got['pod']} "
                      f"has on {got['node']}")
            has[e["uid"]] = got
            given.take(e["name"], got, e["t"])
            if got != old:
                given.look(e["name"], got, e["t"])


def cards_twice(v):
    devices, has = {}, {}
    given = Given(v, "given twice without a cluster", devices)
    for e in v.of("card", "allocations"):
        if e["e"] == "card":
            devices[(e["node"], e["card"])] = {
                "cores": e["cores"], "memory_mib": e["memory_mib"]}
            continue
        for key in e["drop"]:
            given.leave(key, has.pop(key))
        for got in e["give"]:
            key = f"{got['pod']['namespace']}/{got['pod']['name']}"
            if key in has:
                given.leave(key, has.pop(key))
            has[key] = got
            given.take(key, got, e["t"])
        for got in e["give"]:
            given.look(got["pod"]["name"], got, e["t"])


# --- what was acknowledged stays --------------------------------------------
def binds(v):
    bound_of_cluster(v)
    bound_of_sim(v)


def bound_of_cluster(v):
    node, acked, deleting, seen = {}, {}, set(), set()
    for e in v.of("binding", "pod", "pod-deleted", "deleting"):
        if e["e"] == "deleting":
            deleting.add(e["name"])
        elif e["e"] == "binding" and e["code"] == 201:
            v.made["bind acknowledged in the cluster"] += 1
            if e["pod"] in acked:
                v.bad("bound twice", f"{e['t']:.2f}: {e['pod']} by "
                      f"{acked[e['pod']]}, then by {e['by']}")
            acked[e["pod"]] = e["by"]
        elif e["e"] == "pod":
            was = node.get(e["uid"])
            if was and e["node"] != was:
                v.bad("a pod moved", f"{e['t']:.2f}: {e['name']} was on "
                      f"{was}, is on {e['node']}")
            if e["node"]:
                node[e["uid"]] = e["node"]
                seen.add(e["name"])
                if not e["allocation"]:
                    v.bad("bound without an allocation",
                          f"{e['t']:.2f}: {e['name']}")
        elif e["e"] == "pod-deleted" and e["name"] not in deleting:
            v.bad("a pod that nobody deleted is gone",
                  f"{e['t']:.2f}: {e['name']}")
    for name in acked.keys() - seen - deleting:
        v.bad("an acknowledged bind was lost", name)


def bound_of_sim(v):
    acked, there, leaving, doubtful = {}, {}, set(), set()
    for e in v.of("bound", "allocations", "releasing", "rest", "node-state"):
        if e["e"] == "bound" and not e["error"]:
            v.made["bind acknowledged without a cluster"] += 1
            acked.setdefault(e["unit"], e)
        elif e["e"] == "releasing":
            leaving.add(e["unit"])
        elif e["e"] == "node-state" and e["node"].startswith("embedded/"):
            if e["status"] == "doubtful":
                doubtful.add(e["node"].split("/", 1)[1])
        elif e["e"] == "allocations":
            for key in e["drop"]:
                name = there.pop(key)["pod"]["name"]
                if name in acked and name not in leaving and \
                        acked[name]["node"] not in doubtful:
                    v.bad("an acknowledged bind was lost",
                          f"{e['t']:.2f}: {name}")
            for got in e["give"]:
                there[f"default/{got['pod']['name']}"] = got
        elif e["e"] == "rest" and e["side"] == "cards":
            for name in acked.keys() - leaving:
                v.made["bind looked for at rest"] += 1
                got = there.get("default/" + name)
                if not got or got["node"] != acked[name]["node"]:
                    v.bad("an acknowledged bind was lost",
                          f"{e['t']:.2f}: {name} at rest: {got}")


def applied(v):
    acked, deleting = set(), set()
    for e in v.of("apply", "deleting", "pod-gone", "rest"):
        if e["e"] == "apply" and e["ok"]:
            acked |= set(e["names"])
        elif e["e"] == "deleting":  # a host pod takes its xPU pod along
            deleting |= {e["name"], e["name"] + "-xpu"}
        elif e["e"] == "pod-gone":
            name = e["name"].split("/")[0]
            v.made["applied pod gone"] += 1
            if name not in deleting:
                v.bad("a pod that nobody deleted is gone",
                      f"{e['t']:.2f}: {name}")
        elif e["e"] == "rest" and e["side"] == "cards":
            there = {p["name"] for p in e["pods"].values()}
            v.made["applied pod looked for at rest"] += len(acked - deleting)
            for name in acked - deleting - there:
                v.bad("a pod that nobody deleted is gone",
                      f"{e['t']:.2f}: {name} at rest")


# --- a pod runs once, and where it should -----------------------------------
def tasks(v):
    runs, places, wanted = defaultdict(list), {}, defaultdict(set)
    roles, open_tasks = {}, {}
    for e in v.of("place", "task", "task-end", "pod-state"):
        if e["e"] == "place":
            places[e["place"]] = e["card"]
        elif e["e"] == "pod-state":
            uid = e["name"].split("/")[1]
            wanted[uid] |= set(e["cards"])
            roles[uid] = e["role"]
        elif e["e"] == "task":
            one = {**e, "last": float("inf")}
            open_tasks[(e["place"], e["id"])] = one
            if not e["uid"].startswith("biga-helper-"):
                runs[(e["uid"], e["container"])].append(one)
        else:
            one = open_tasks.pop((e["place"], e["id"]), None)
            if one:
                one["last"] = e["last"]
    for (uid, _), found in runs.items():
        found.sort(key=lambda e: e["seen"])
        for one, other in zip(found, found[1:]):
            v.made["two runs of a container"] += 1
            if other["seen"] < one["last"]:
                v.bad("a pod runs twice", f"{other['t']:.2f}: {one['pod']} "
                      f"({uid}) {one['container'] or 'sandbox'} on "
                      f"{one['place']} and on {other['place']}")
        for one in found:
            on_its_card(v, one, uid, places, wanted, roles)


def on_its_card(v, run, uid, places, wanted, roles):
    if uid not in wanted:
        return  # it was gone before anybody looked
    v.made["run on its card"] += 1
    right = run["place"] == "host" if roles[uid] == "host" else \
        places.get(run["place"]) in wanted[uid]
    if not right:
        v.bad("a pod runs where it should not",
              f"{run['t']:.2f}: {run['pod']} ({roles[uid]}) on "
              f"{run['place']}, its cards are {sorted(wanted[uid])}")


def lost(v):
    """A pod that is to run once is lost with the power of its card alone."""
    places, power, begun = {}, defaultdict(list), {}
    for e in v.of("place", "fault", "pod-state"):
        if e["e"] == "place":
            places[e["place"]] = e["card"]
        elif e["e"] == "fault":
            if e["kind"] == "power":
                power[places.get(e["target"])].append(e["t"])
        else:
            since, cards = begun.setdefault(e["name"], (e["t"], set()))
            cards |= set(e["cards"])
            if e["reason"] != "SandboxLost":
                continue
            v.made["pod that was lost"] += 1
            if not any(t >= since for card in cards for t in power[card]):
                v.bad("a pod was lost without a cause",
                      f"{e['t']:.2f}: {e['name']} on {sorted(cards)}")


# --- at rest ----------------------------------------------------------------
def rests(v):
    for e in v.of("no-rest", "broken", "rest"):
        if e["e"] != "rest":
            v.bad("it does not come to rest" if e["e"] == "no-rest"
                  else "the soak itself broke", e["text"])
            continue
        v.made["rest of " + e["side"]] += 1
        (cards_at_rest if e["side"] == "cards" else cluster_at_rest)(v, e)
    if v.events and not any(e.get("whole") for e in v.of("end")):
        v.bad("the soak itself broke", "it was ended before its time")


def cards_at_rest(v, e):
    runs = {p["name"] for p in e["pods"].values() if p["state"] == "running"}
    for name in set(e["wanted"]) - runs:
        v.bad("at rest, and a pod does not run", f"{e['t']:.2f}: {name}")
    ready = Counter()
    for s in e["sandboxes"]:
        ready[s["uid"]] += s["ready"]
        if s["uid"] not in e["pods"]:
            v.bad("at rest, and a sandbox is nobody's", f"{e['t']:.2f}: {s}")
    for uid, p in e["pods"].items():
        if p["state"] == "running" and ready[uid] != 1:
            v.bad("at rest, and a pod does not run once",
                  f"{e['t']:.2f}: {p['name']} has {ready[uid]} sandboxes")


def cluster_at_rest(v, e):
    runs = {p["name"] for p in e["pods"].values() if p["phase"] == "Running"}
    for name in set(e["wanted"]) - runs:
        v.bad("at rest, and a pod does not run", f"{e['t']:.2f}: {name}")
    for p in e["pods"].values():
        if p["node"] and not p["allocation"]:
            v.bad("bound without an allocation", f"{e['t']:.2f}: {p['name']}")


# --- one leader -------------------------------------------------------------
def leaders(v):
    """By the API server's own clock: each bind came while the Lease was of
    who sent it.  What a killed API server did last is not written down."""
    begin = next((e for e in v.events if e["e"] == "begin"), None)
    wall = begin["wall"] if begin else 0
    acts = [(e["done"], "lease", e) for e in v.of("lease")]
    acts += [(e["came"], "bind", e) for e in v.of("binding")
             if e["code"] == 201]
    acts += [(e["t"] + wall, "unknown", e) for e in v.of("fault", "ended",
                                                        "died")
             if e.get("target", e.get("name")) == "apiserver"]
    holder = None
    for at, kind, e in sorted(acts, key=lambda a: a[0]):
        if kind == "unknown":
            holder = None
        elif kind == "lease":
            holder = e["holder"]
        else:
            v.made["bind of a leader"] += 1
            if holder is not None and (e["by"] or "") != \
                    holder.rsplit("_", 1)[0]:
                v.bad("a bind of one that does not lead",
                      f"{at - wall:.2f}: {e['pod']} by {e['by']}, and "
                      f"{holder or 'nobody'} leads")


# --- programs ---------------------------------------------------------------
def answers(v):
    for e in v.of("compare"):
        v.made["answers before and after a restart"] += 1
        for where, one, other in differences(e["before"], e["after"]):
            v.bad("another answer after a restart",
                  f"{e['t']:.2f}: {e['side']}, {e['how']}: {where}: was "
                  f"{json.dumps(one)[:300]}, is {json.dumps(other)[:300]}")


def differences(one, other, where=""):
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from differences(one.get(key), other.get(key),
                                   f"{where}.{key}")
    elif one != other:
        yield where, one, other


def programs(v):
    faults = measure.Faults(v.events)
    for e in v.of("died", "ended"):
        v.made["end of a program"] += 1
        if not e.get("ours", True):
            continue
        if e["e"] == "died":
            v.bad("a program died", f"{e['t']:.2f}: {e['name']}, status "
                  f"{e['status']}: " + " | ".join(e["log"]))
        elif e["how"] == "term" and (not e["clean"] or e["status"] != 0
                                     and not slices_left(e, faults)):
            v.bad("a program did not end well", f"{e['t']:.2f}: {e['name']}"
                  f", status {e['status']} after {e['took']} s"
                  + ("" if e["clean"] else ", killed"))


def slices_left(e, faults):
    """An advertiser says by its status that nobody took its withdrawal."""
    server = ADVERTISERS.get(e["name"])
    return server and e["status"] == 3 and not faults.quiet(
        [server], e["t"] - e["took"], e["t"], 5)


def sizes(v):
    lives = defaultdict(list)
    for e in v.of("size"):
        if e["calm"]:
            lives[(e["name"], e["pid"], e["start"])].append(e)
    for (name, pid, _), found in lives.items():
        first, last = found[0], found[-1]
        v.made["size compared"] += len(found) - 1
        if last["rss"] > first["rss"] * GROWS + SLACK_KIB:
            v.bad("a program grows", f"{name} ({pid}): {first['rss']} KiB at "
                  f"{first['t']:.0f}, {last['rss']} at {last['t']:.0f}")
        if last["files"] > first["files"] + FILES:
            v.bad("a program grows", f"{name} ({pid}): {first['files']} "
                  f"files at {first['t']:.0f}, {last['files']} at "
                  f"{last['t']:.0f}")


ALL = (cluster_twice, cards_twice, binds, applied, tasks, lost, rests,
       leaders, answers, programs, sizes)
