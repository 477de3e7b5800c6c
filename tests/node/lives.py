"""How pods live and end, tried with kubectl at a Place: probes, hooks, init,
sidecar and ephemeral containers, deletion, jobs."""
import time

from pods import WAIT, sh, status_of
from proc import wait_for


def quick(**probe):
    return {"periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 20,
            **probe}


FILE = {"exec": {"command": ["test", "-e", "/tmp/well"]}}


def test_readiness(t, p):
    with t.check("a readiness probe by exec is followed both ways"):
        name = p.apply("ready", sh(WAIT, readinessProbe=quick(**FILE)))
        p.event(name, "Unhealthy")
        p.execute(name, "touch", "/tmp/well")
        p.ready(name)
        p.execute(name, "rm", "/tmp/well")
        wait_for("it is not ready", lambda: not status_of(
            p.r.pod(name))["ready"])
        assert status_of(p.r.pod(name))["restartCount"] == 0
        p.gone(name)


def test_liveness(t, p):
    with t.check("liveness probes by HTTP and TCP, and a startup probe: what "
                 "fails is started again"):
        serve = "httpd -p 8081 -h /www; " + WAIT
        name = p.up("alive", sh(
            serve,
            startupProbe=quick(tcpSocket={"port": 8081}, failureThreshold=60),
            livenessProbe=quick(httpGet={"port": 8081, "path": "/"}),
            readinessProbe=quick(tcpSocket={"port": 8081})))
        assert status_of(p.r.pod(name))["restartCount"] == 0
        p.sh(name, "rm /www/index.html")
        wait_for("it is started again", lambda: status_of(
            p.r.pod(name))["restartCount"] == 1)
        p.ready(name)  # with a new file system
        p.gone(name)


def test_hooks(t, p):
    with t.check("postStart comes before ready, preStop before SIGTERM"):
        name = p.up("hooks", sh(
            WAIT, lifecycle={
                "postStart": {"exec": {"command": [
                    "sh", "-c", "echo began >/proc/1/fd/1"]}},
                "preStop": {"exec": {"command": [
                    "sh", "-c", "echo stopping >/proc/1/fd/1"]}}}),
            terminationGracePeriodSeconds=60)
        p.said(name, "began\n")
        follow = p.r.talk("logs", "-f", name)
        follow.wait_text("began")
        p.gone(name)
        follow.wait()
        assert follow.log == "began\nstopping\ntold\n", follow.text


def test_grace(t, p):
    with t.check("what does not end on SIGTERM is killed after its grace"):
        name = p.up("deaf", sh("trap '' TERM; while :; do sleep 1; done"),
                    terminationGracePeriodSeconds=1)
        p.gone(name)
    with t.check("and at once with --force --grace-period=0"):
        name = p.up("forced", sh("trap '' TERM; while :; do sleep 1; done"),
                    terminationGracePeriodSeconds=100000)
        p.gone(name, "--force", "--grace-period=0")
        wait_for("the runtime has ended it", lambda: name not in p.r.crictl(
            "pods", "--state", "ready"))


def test_init(t, p):
    mounts = [{"name": "d", "mountPath": "/d"}]
    with t.check("init containers run in turn, a sidecar beside the rest"):
        name = p.up(
            "init", sh("cat /d/log; " + WAIT, volumeMounts=mounts),
            initContainers=[
                sh("echo one >>/d/log", "one", volumeMounts=mounts),
                sh("echo side >>/d/log; " + WAIT, "side",
                   restartPolicy="Always", volumeMounts=mounts,
                   startupProbe=quick(exec={"command": [
                       "grep", "side", "/d/log"]}, failureThreshold=60)),
                sh("echo two >>/d/log", "two", volumeMounts=mounts)],
            volumes=[{"name": "d", "emptyDir": {}}])
        p.said(name, "one\nside\ntwo\n", "-c", "main")
        found = p.r.pod(name)
        assert "running" in status_of(found, "side")["state"]
        assert status_of(found, "two")["state"]["terminated"]["reason"] == \
            "Completed"
        p.gone(name)
    with t.check("when an init container fails, the pod fails with it"):
        name = p.apply("noinit", sh(WAIT), restartPolicy="Never",
                       initContainers=[sh("exit 4", "bad")])
        found = p.phase(name, "Failed")
        state = status_of(found, "bad")["state"]["terminated"]
        assert state["exitCode"] == 4, state
        p.gone(name)


def test_message(t, p):
    with t.check("the termination message and exit status of a pod that "
                 "failed"):
        name = p.apply("last", sh("echo last words >/dev/termination-log; "
                                  "exit 9"), restartPolicy="Never")
        state = status_of(p.phase(name, "Failed"))["state"]["terminated"]
        assert state["message"] == "last words\n", state
        assert state["exitCode"] == 9, state
        p.gone(name)
    with t.check("of its log, where it asks for that"):
        name = p.apply("lastlog", sh(
            "echo said last; exit 1",
            terminationMessagePolicy="FallbackToLogsOnError"),
            restartPolicy="Never")
        state = status_of(p.phase(name, "Failed"))["state"]["terminated"]
        assert state["message"] == "said last\n", state
        p.gone(name)


def test_deadline(t, p):
    with t.check("a pod ends at its activeDeadlineSeconds"):
        name = p.apply("late", sh(WAIT), activeDeadlineSeconds=1)
        assert p.phase(name, "Failed")["status"]["reason"] == \
            "DeadlineExceeded"
        p.gone(name)


def test_job(t, p):
    with t.check("a Job of three pods completes"):
        name = p.name("job")
        made = p.dress({"metadata": {}, "spec": {
            "restartPolicy": "Never", "containers": [sh("echo worked")]}})
        p.r.c.apply([{
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"completions": 3, "parallelism": 3, "template": {
                "metadata": made["metadata"], "spec": made["spec"]}}}])
        wait_for("it is complete", lambda: p.r.c.api.get(
            "jobs", "default", name)["status"].get("succeeded") == 3)

        def said():
            got = p.k("logs", "-l", f"job-name={name}")
            assert got == "worked\n" * 3, got
            return True
        wait_for("all have said so", said)
        p.k("delete", "job", name)


def test_many(t, p):
    with t.check(f"{p.most} pods at once start, and end"):
        began = time.monotonic()
        names = [p.apply(f"many{i}", sh(WAIT)) for i in range(p.most)]
        for name in names:
            p.ready(name)
        t.note(f"ready after {time.monotonic() - began:.1f} s")
        addresses = {p.r.pod(name)["status"]["podIP"] for name in names}
        assert len(addresses) == p.addresses(p.most), addresses
        p.k("delete", "pod", *names)


ALL = (test_readiness, test_liveness, test_hooks, test_grace, test_init,
       test_message, test_deadline, test_job, test_many)
