"""A pytest plugin: which lines of the library each test executes, and how long it takes.

Fixtures of a wider scope and cached functions run once; every test that uses them is credited with their lines.
Writes one JSON file per test file to MUT_OUT as soon as the file is done.
"""
import functools, json, os, resource, signal, sys, time
from pathlib import Path

sys.path.append("MUTATION/site")
TREE = Path(os.environ["MUT_TREE"])
OUT = Path(os.environ["MUT_OUT"])
SOURCE = os.environ["MUT_SOURCE"].split(":")
SUB = Path(os.environ["MUT_SUB"])
LIMIT = int(os.environ.get("MUT_TEST_LIMIT", "240"))

import coverage

cov = coverage.Coverage(data_file=None, config_file=False, source=SOURCE, messages=False)
cov._warn = lambda *a, **k: None
stack = ["import"]
uses = {}  # context -> set of other contexts whose lines it is credited with
outcome, wall, cpu = {}, {}, {}


def push(label, credit=True):
    if credit:
        uses.setdefault(stack[-1], set()).add(label)
    stack.append(label)
    cov.switch_context(label)


def pop():
    stack.pop()
    cov.switch_context(stack[-1])


_lru = functools.lru_cache
_counter = [0]


def _tracked(function, make):
    code = getattr(function, "__code__", None)
    if code is None or not code.co_filename.startswith(str(TREE)):
        return make(function)
    label = f"cache:{code.co_filename}:{function.__qualname__}"

    @functools.wraps(function)
    def counted(*args, **kwargs):
        import threading
        if threading.current_thread() is not threading.main_thread():
            return function(*args, **kwargs)
        push(label)
        try:
            return function(*args, **kwargs)
        finally:
            pop()

    real = make(counted)

    @functools.wraps(function)
    def outer(*args, **kwargs):
        uses.setdefault(stack[-1], set()).add(label)
        return real(*args, **kwargs)

    outer.cache_clear, outer.cache_info, outer.cache_parameters = real.cache_clear, real.cache_info, real.cache_parameters
    outer.__wrapped__ = function
    return outer


def lru_cache(maxsize=128, typed=False):
    if callable(maxsize):
        return _tracked(maxsize, lambda f: _lru(128, typed)(f))
    return lambda function: _tracked(function, lambda f: _lru(maxsize, typed)(f))


def cache(function):
    return _tracked(function, lambda f: _lru(maxsize=None)(f))


functools.lru_cache, functools.cache = lru_cache, cache
cov.start()
cov.switch_context("import")


class Slow(Exception):
    pass


def _alarm(*_):
    raise Slow(f"longer than {LIMIT} s")


import pytest


def pytest_configure(config):
    signal.signal(signal.SIGALRM, _alarm)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    if fixturedef.scope == "function":
        return (yield)
    label = f"fixture:{fixturedef.baseid}:{fixturedef.argname}:{fixturedef.cache_key(request)!r}"
    push(label, credit=False)
    try:
        return (yield)
    finally:
        pop()


def fixture_labels(item):
    labels = []
    info = getattr(item, "_fixtureinfo", None)
    if info is None:
        return labels
    for name, defs in info.name2fixturedefs.items():
        for d in defs:
            labels.append((d.baseid, d.argname, d.scope))
    return labels


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    while os.path.exists("MUTATION/QUIET"):
        time.sleep(20)
    os.environ["MUT_TEST"] = item.nodeid
    start, c0 = time.time(), time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    stack[:] = ["import", item.nodeid]
    cov.switch_context(item.nodeid)
    signal.alarm(LIMIT)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        wall[item.nodeid] = time.time() - start
        cpu[item.nodeid] = time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - c0
        stack[:] = ["import"]
        cov.switch_context("import")
        items.setdefault(item.nodeid, fixture_labels(item))
        if nextitem is None or nextitem.path != item.path:
            dump(item.path)


items = {}
done_files = set()


def pytest_runtest_logreport(report):
    old = outcome.get(report.nodeid)
    if report.failed:
        outcome[report.nodeid] = "failed"
    elif report.skipped and old != "failed":
        outcome[report.nodeid] = "skipped"
    elif report.when == "call" and old is None:
        outcome[report.nodeid] = "passed"


def lines_by_context():
    data = cov.get_data()
    result = {}
    for file in data.measured_files():
        rel = os.path.relpath(file, TREE)
        for line, contexts in data.contexts_by_lineno(file).items():
            for context in contexts:
                result.setdefault(context, {}).setdefault(rel, []).append(line)
    return result


def dump(path):
    lines = lines_by_context()
    sub = {}
    for file in SUB.glob("sub.*"):
        try:
            d = coverage.CoverageData(basename=str(file)); d.read()
            for f in d.measured_files():
                rel = os.path.relpath(f, TREE)
                for line, contexts in d.contexts_by_lineno(f).items():
                    for c in contexts:
                        if line > 0:
                            sub.setdefault(c, {}).setdefault(rel, []).append(line)
        except Exception as error:
            print("cannot read", file, error)
    value = {
        "outcome": outcome, "wall": wall, "cpu": cpu, "fixtures": items,
        "uses": {k: sorted(v) for k, v in uses.items()}, "lines": lines, "sub": sub,
    }
    name = os.path.relpath(path, TREE).replace("/", "__")
    tmp = OUT / f"{name}.tmp"
    tmp.write_text(json.dumps(value))
    tmp.replace(OUT / f"{name}.json")
