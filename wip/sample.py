"""Enumerate mutants of the old library in a random order (seed 0) and find each again in the new tree.

sample.py NEW_TREE writes results/candidates.json (all, in random order by package) and results/sample.json: by package
the first PER_PACKAGE that carry over, one per statement.
"""
import ast, difflib, json, random, subprocess, sys
from collections import Counter, defaultdict
from pathlib import Path
from common import *
import ops

PER_PACKAGE = 32
OLD = TREES["old"]
NEW = Path(sys.argv[1])
moved = json.loads((NEW / "nads_core/moved.json").read_text())


def files(root, folders):
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            yield path.relative_to(root).as_posix()


def module(rel):
    rel = rel.removeprefix("book/").removesuffix(".py").removesuffix("/__init__")
    return rel.replace("/", ".")


def mapped(mod):
    """Give where a module went, by moved.json."""
    parts = mod.split(".")
    for n in range(len(parts), 1, -1):
        head = ".".join(parts[:n])
        if head in moved["modules"]:
            return ".".join([moved["modules"][head], *parts[n:]])
    return mod


class File:
    def __init__(self, root, rel):
        self.rel = rel
        self.content = (root / rel).read_text()
        self.source = ops.Source(self.content)
        self.tree = ast.parse(self.content)
        self.statements = [(scope, s, n, ops.text(s)) for scope, s, n in ops.statements(self.tree)]
        self.bodies = defaultdict(set)
        for scope, s, n, t in self.statements:
            self.bodies[scope].add(t)


old_files = {rel: File(OLD, rel) for rel in files(OLD, [f"nads_core/{p}" for p in PACKAGES])}
new_files = {rel: File(NEW, rel) for rel in files(NEW, ["nads_core", "book/nads_book"])}
index = defaultdict(list)
for rel, f in new_files.items():
    for k, (scope, s, n, t) in enumerate(f.statements):
        index[t].append((rel, k))


def rename(t):
    """Give the text of a statement with the names that moved.json gives to what was renamed."""
    import re
    return re.sub(r"\b(" + "|".join(map(re.escape, moved["members"])) + r")\b", lambda m: moved["members"][m.group()], t)


def find(f, scope, n, t):
    """Find the same statement in the new tree: (file, index of statement), the way it was found."""
    best = None
    for way, wanted in (("same", t), ("renamed", rename(t))):
        for rel, k in index.get(wanted, []):
            g = new_files[rel]
            scope2, s2, n2, _ = g.statements[k]
            if bool(scope) != bool(scope2):
                continue
            same_module = mapped(module(f.rel)) == module(rel)
            a, b = f.bodies[scope], g.bodies[scope2]
            alike = len(a & b) / max(1, min(len(a), len(b)))
            name = scope[-1:] == scope2[-1:] or (scope and moved["members"].get(scope[-1]) == scope2[-1])
            path = scope == scope2
            if scope and not (name and (same_module or alike >= 0.3) or alike >= 0.5 and len(b) > 1):
                continue
            paths = {scope, tuple(moved["members"].get(x, x) for x in scope)}
            if scope and len(wanted) < 26 and not (scope2 in paths or not name and alike >= 0.6 and len(b) > 2):
                continue  # short statements are everywhere
            if not scope and not same_module and len(wanted) < 12:
                continue
            score = (way == "same") * 0.1 + name * 2 + path + same_module * 2 + alike * 2 + (n == n2) * 0.5
            if best is None or score > best[0]:
                best = (score, rel, k, way)
    return best and best[1:]


candidates = defaultdict(list)
skip_new = Counter()
for rel, f in old_files.items():
    package = rel.split("/")[1]
    for k, (scope, s, n, t) in enumerate(f.statements):
        found = ops.mutations(s, f.source)
        if not found:
            continue
        place = find(f, scope, n, t)
        if place:
            g = new_files[place[0]]
            there = {(m["op"], m["ordinal"]): m for m in ops.mutations(g.statements[place[1]][1], g.source)}
        for m in found:
            ok = True
            try:
                ast.parse(ops.apply(f.content, m["edit"]))
            except SyntaxError:
                ok = False
            if not ok:
                continue
            c = {
                "id": f"{module(rel).removeprefix('nads_core.')}:{'.'.join(scope)}:{s.lineno}:{m['op']}{m['ordinal']}",
                "package": package, "op": m["op"], "detail": m["detail"], "text": t[:300],
                "old": {"file": rel, "scope": scope, "line": s.lineno, "end": header_end(s) if False else getattr(s, "end_lineno", s.lineno), "edit": m["edit"]},
                "new": None,
            }
            body = [x for x in ops.children(s)]
            if body:
                c["old"]["end"] = max(s.lineno, body[0].lineno - 1)
            if place and (m["op"], m["ordinal"]) in there:
                g = new_files[place[0]]
                s2 = g.statements[place[1]][1]
                body2 = list(ops.children(s2))
                c["new"] = {
                    "file": place[0], "scope": g.statements[place[1]][0], "line": s2.lineno,
                    "end": max(s2.lineno, body2[0].lineno - 1) if body2 else s2.end_lineno,
                    "edit": there[m["op"], m["ordinal"]]["edit"], "way": place[2],
                }
                try:
                    ast.parse(ops.apply(g.content, c["new"]["edit"]))
                except SyntaxError:
                    c["new"] = None
            c["kind"] = "def" if isinstance(s, ast.FunctionDef) else "body" if scope else "module"
            if scope and c["kind"] == "body":  # directly in a class
                node_names = {tuple(sc) for sc, st, _, _ in f.statements if isinstance(st, ast.ClassDef)}
                c["kind"] = "class" if scope in node_names else "body"
            candidates[package].append(c)

order = {}
for package in PACKAGES:
    rng = random.Random(f"0 {package}")
    items = sorted(candidates[package], key=lambda c: c["id"])
    rng.shuffle(items)
    order[package] = items
sample, report = [], {}
for package, items in order.items():
    seen, chosen, tried = set(), [], 0
    for c in items:
        if len(chosen) == PER_PACKAGE:
            break
        key = (c["old"]["file"], c["old"]["line"])
        if key in seen:
            continue
        tried += 1
        if c["new"]:
            seen.add(key); chosen.append(c)
    sample += chosen
    lost = [c for c in items if not c["new"]]
    report[package] = {
        "candidates": len(items), "not carried": len(lost), "statements": len({(c["old"]["file"], c["old"]["line"]) for c in items}),
        "statements not carried": len({(c["old"]["file"], c["old"]["line"]) for c in lost}),
        "drawn for the sample": tried, "of these not carried": tried - len(chosen),
        "by name changes of moved.json only": sum(c["new"] is not None and c["new"]["way"] == "renamed" for c in items),
    }
atomic(RES / "candidates.json", order)
atomic(RES / "sample.json", sample)
atomic(RES / "sample-report.json", {"new": str(NEW), "packages": report, "ops": Counter(c["op"] for c in sample)})
print(json.dumps(report, indent=1), Counter(c["op"] for c in sample), len(sample))
