"""run.py VERSION [--worker N]: run the covering tests of each mutant of the sample; one JSON per mutant, restartable.

A parent imports torch and others once and forks a child per mutant, which runs pytest in-process in a copy of the tree.
"""
import json, os, resource, signal, subprocess, sys, time, traceback
from pathlib import Path
sys.path.insert(0, "MUTATION")
from common import *
import ops
import pytest

TOTAL = 120.0  # CPU seconds per mutant, of the process and its children
WALL = 1500.0


class Plugin:
    """Order and select the tests, limit each, and write down what happens."""

    def __init__(self, wanted, cost, log, deselect, whole=()):
        self.wanted, self.cost, self.log, self.deselect, self.whole = set(wanted), cost, log, set(deselect), set(whole)
        self.current, self.begun, self.killed = None, {}, None
        self.passed = self.ran = 0

    def say(self, **event):
        with open(self.log, "a") as f:
            f.write(json.dumps(event) + "\n")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, session, config, items):
        keep, drop = [], []
        missing = {w.split("[")[0] for w in self.wanted - {i.nodeid for i in items}}  # a mutant may change parameters' names
        for item in items:
            file = item.nodeid.split("::")[0]
            new = item.nodeid not in self.cost and item.nodeid.split("[")[0] in missing
            ok = (item.nodeid in self.wanted or file in self.whole or new) and item.nodeid not in self.deselect
            (keep if ok else drop).append(item)
        total = {}
        for item in keep:
            f = item.nodeid.split("::")[0]
            total[f] = total.get(f, 0) + self.cost.get(item.nodeid, 3.0)
        keep.sort(key=lambda i: (i.nodeid.split("::")[0] in self.whole, total[i.nodeid.split("::")[0]], i.nodeid.split("::")[0], self.cost.get(i.nodeid, 3.0)))
        items[:] = keep
        self.say(collected=len(keep), missing=len(self.wanted - {i.nodeid for i in keep}))

    def pytest_runtest_logstart(self, nodeid, location):
        self.current = nodeid
        base = self.cost.get(nodeid, 10.0)
        signal.setitimer(signal.ITIMER_PROF, max(10.0, 4 * base))
        signal.setitimer(signal.ITIMER_REAL, max(180.0, 25 * base))

    def pytest_runtest_logfinish(self, nodeid, location):
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.current = None
        self.ran += 1
        self.say(ran=nodeid)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.say(failed=report.nodeid, when=report.when, message=str(report.longrepr)[-1500:])

    def pytest_collectreport(self, report):
        if report.failed:
            self.say(failed=report.nodeid or "collection", when="collect", message=str(report.longrepr)[-1500:])


def tree_cpu(pid):
    """Give the CPU seconds of a process, its reaped children and its living descendants."""
    tick = os.sysconf("SC_CLK_TCK")
    total, parents = 0.0, {}
    for p in Path("/proc").iterdir():
        if p.name.isdigit():
            try:
                fields = (p / "stat").read_text().rsplit(")", 1)[1].split()
                parents[int(p.name)] = (int(fields[1]), sum(map(int, fields[11:15])) / tick, int(fields[2]), int(fields[3]))
            except OSError:
                pass
    todo = [pid]
    while todo:
        q = todo.pop()
        if q in parents:
            total += parents[q][1]
            todo += [c for c, v in parents.items() if v[0] == q]
    return total


def descendants(pid):
    found, parents = [], {}
    for p in Path("/proc").iterdir():
        if p.name.isdigit():
            try:
                parents[int(p.name)] = int((p / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                pass
    todo = [pid]
    while todo:
        q = todo.pop()
        for c, v in parents.items():
            if v == q:
                found.append(c); todo.append(c)
    return found


def child(tree, files, plugin, expression, out):
    """Run pytest in this forked process."""
    os.setsid()
    fd = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(fd, 1); os.dup2(fd, 2)
    os.chdir(tree)
    env = environment(tree)
    os.environ.clear(); os.environ.update(env)
    sys.path[:] = ["", str(tree), str(tree / "book")] + [p for p in sys.path if p not in ("", "MUTATION") and not p.startswith("MUTATION/")]
    sys.dont_write_bytecode = True

    def alarm(number, frame):
        plugin.say(timeout=plugin.current, signal=number)
        os._exit(7)

    signal.signal(signal.SIGPROF, alarm)
    signal.signal(signal.SIGALRM, alarm)
    args = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore::pytest.PytestAssertRewriteWarning", "--tb=short", *expression, *files]
    if not any(f.startswith("tests") for f in files):
        args = ["-p", "tests.conftest", *args]
    code = pytest.main(args, plugins=[plugin])
    plugin.say(end=int(code))
    os._exit(0)


def execute(tree, files, wanted, cost, deselect, whole, version, tag, total=TOTAL):
    """Fork a child for these tests, and give what it reports."""
    log, out = MUT / f"tmp/{tag}.events", MUT / f"tmp/{tag}.out"
    log.unlink(missing_ok=True)
    plugin = Plugin(wanted, cost, log, deselect, whole)
    expression = ["-m", "not slow"] if version == "new" else []
    start = time.time()
    pid = os.fork()
    if pid == 0:
        try:
            child(tree, files, plugin, expression, out)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(9)
    limit, cpu = None, 0.0
    wall, last, stopped = 0.0, time.time(), False
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        time.sleep(0.2)
        paused = os.path.exists("MUTATION/QUIET")
        if paused:
            stopped = True
            group = [pid, *descendants(pid)]
            for p in group:
                try: os.kill(p, signal.SIGSTOP)
                except OSError: pass
            while os.path.exists("MUTATION/QUIET"):
                time.sleep(5)
            for p in group:
                try: os.kill(p, signal.SIGCONT)
                except OSError: pass
            last = time.time()
        now = time.time(); wall += now - last; last = now
        if int(wall * 5) % 5 == 0:
            cpu = tree_cpu(pid)
        if cpu > total or wall > WALL:
            limit = "cpu" if cpu > total else "wall"
            for p in [*descendants(pid), pid]:
                try: os.kill(p, signal.SIGKILL)
                except OSError: pass
            os.waitpid(pid, 0)
            break
    try:
        os.killpg(pid, signal.SIGKILL)  # what is left of its session
    except OSError:
        pass
    events = [json.loads(x) for x in log.read_text().splitlines()] if log.exists() else []
    result = {"cpu": round(max(cpu, 0), 1), "wall": round(wall, 1), "limit": limit, "ran": sum("ran" in e for e in events)}
    for e in events:
        if "collected" in e:
            result.update(collected=e["collected"], missing=e["missing"])
        if "failed" in e and "killer" not in result:
            result.update(killer=e["failed"], when=e["when"], message=e["message"])
        if "timeout" in e and "killer" not in result:
            result.update(killer=e["timeout"], when="timeout", message=f"limit of the test, signal {e['signal']}")
    if "killer" not in result and not any("end" in e for e in events) and limit is None:
        tail = out.read_text()[-1500:] if out.exists() else ""
        result.update(killer="process ended", when="crash", message=tail)
    ends = [e["end"] for e in events if "end" in e]
    result["end"] = ends[0] if ends else None
    if stopped and (result.get("when") == "timeout" or limit == "wall"):  # timers went on during the pause
        return execute(tree, files, wanted, cost, deselect, whole, version, tag, total)
    if "killer" not in result and ends and ends[0] not in (0, 1, 5):
        result.update(killer="pytest", when=f"exit {ends[0]}", message=out.read_text()[-1500:])
    return result


def main():
    version = sys.argv[1]
    worker = int(sys.argv[sys.argv.index("--worker") + 1]) if "--worker" in sys.argv else 0
    only = sys.argv[sys.argv.index("--only") + 1].split(",") if "--only" in sys.argv else None
    from choose import Cover
    pristine = TREES[version]
    tree = MUT / f"tree/{version}-w{worker}"
    if not tree.exists():
        subprocess.run(["cp", "-a", pristine, tree], check=True)
    for path in [*pristine.rglob("*.py")]:  # what an interrupted run left mutated
        rel = path.relative_to(pristine)
        if ".git" not in rel.parts and (not (tree / rel).exists() or (tree / rel).read_bytes() != path.read_bytes()):
            (tree / rel).write_bytes(path.read_bytes())
    out = RES / f"mut-{version}"; out.mkdir(exist_ok=True)
    os.environ.update(environment(tree))
    import numpy, scipy, scipy.stats, scipy.linalg, scipy.optimize, scipy.special, torch, pytest, hypothesis, hypothesis.strategies, tqdm  # noqa
    import torch.func, torch.nn.functional, torch.multiprocessing  # noqa
    for name in ("triton", "matplotlib.pyplot", "torchvision", "lazy_loader", "filelock", "loky"):
        try: __import__(name)
        except Exception as error: print("no", name, error)
    cover = Cover(version)
    flaky = json.loads((RES / f"deselect-{version}.json").read_text()) if (RES / f"deselect-{version}.json").exists() else {}
    confirmed = set()
    print("tests with coverage:", len(cover.lines), "files without:", cover.without, "fail without mutation:", list(cover.bad), flush=True)
    while True:
        sample = json.loads((RES / "sample.json").read_text())
        todo = None
        for mutant in sample:
            if only and not any(o in mutant["id"] for o in only):
                continue
            name = mutant["id"].replace("/", "_").replace(":", "~")
            path = out / f"{name}.json"
            if path.exists():
                continue
            lock = out / f"{name}.lock"
            try:
                fd = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY); os.write(fd, str(os.getpid()).encode()); os.close(fd)
            except FileExistsError:
                try:
                    other = int(lock.read_text() or 0)
                    os.kill(other, 0)
                    if other != os.getpid():
                        continue
                except (OSError, ValueError):
                    lock.write_text(str(os.getpid()))
            todo = mutant
            break
        if todo is None:
            break
        quiet()
        m = todo[version]
        content = (pristine / m["file"]).read_text()
        mutated = ops.apply(content, m["edit"])
        target = tree / m["file"]
        tests, how = cover.covering(todo)
        static = cover.static(todo)
        deselect = {*cover.bad, *flaky}
        record = {"id": todo["id"], "how": how, "covering": len(tests), "static": static, "base": round(sum(cover.cost[t] for t in tests), 1)}
        for attempt in range(4):
            target.write_text(mutated)
            try:
                files = sorted({t.split("::")[0] for t in tests})
                result = {"ran": 0, "collected": 0, "limit": None}
                if files:
                    result = execute(tree, files, tests, cover.cost, deselect, (), version, f"{version}-w{worker}")
                if static and not result.get("killer"):  # files without coverage that name the function or its module
                    second = execute(tree, static, (), cover.cost, deselect, static, version, f"{version}-w{worker}-static")
                    record["static_result"] = {k: v for k, v in second.items() if k not in ("message",)}
                    if second.get("killer"):
                        result.update({k: second[k] for k in ("killer", "when", "message")})
                        result["stage"] = "static"
            finally:
                target.write_text(content)
            killer = result.get("killer")
            if killer and "::" in killer and killer not in cover.cost and "[" in killer and result["when"] != "timeout" and result.get("stage") != "static":
                break  # a test under a name that only the mutant gives it
            if killer and (killer not in confirmed or result["when"] == "timeout") and result["when"] != "collect" and "::" in killer:
                again = execute(tree, [killer.split("::")[0]], [killer], cover.cost, (), (), version, f"{version}-w{worker}-confirm")
                if result["when"] == "timeout":
                    record["unmutated"] = {"cpu": again["cpu"], "wall": again["wall"]}
                if again.get("killer") or again["ran"] != 1:
                    flaky[killer] = again.get("message", "")[-400:] or "did not run"
                    deselect.add(killer)
                    atomic(RES / f"deselect-{version}.json", flaky)
                    record.setdefault("flaky", []).append(killer)
                    continue
                confirmed.add(killer)
            break
        record.update(result)
        record["status"] = "killed" if record.get("killer") else "survived" if not record["limit"] else "undecided"
        if record["status"] == "survived" and not record["ran"]:
            record["status"] = "uncovered"
        atomic(path, record)
        lock.unlink(missing_ok=True)
        print(time.strftime("%H:%M"), todo["id"], record["status"], record.get("killer"), record.get("when"), f"{record['ran']}/{len(tests)}", record.get("cpu"), record.get("wall"), flush=True)
        if worker == 0 and os.path.exists("MUTATION/MUT2") and not (out / "worker1").exists():
            (out / "worker1").write_text("")
            subprocess.Popen(["chrt", "-i", "0", PYTHON, __file__, version, "--worker", "1"], stdout=open(RES / f"run-{version}-1.log", "a"), stderr=subprocess.STDOUT)


if __name__ == "__main__":
    main()
