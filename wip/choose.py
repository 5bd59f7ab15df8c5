"""Which tests cover a mutant: from the coverage by test; files without coverage are chosen by what they name."""
import ast, functools, json, re
from collections import defaultdict
from pathlib import Path
from common import *


class Cover:
    def __init__(self, version):
        self.version, self.tree, self.dir = version, TREES[version], RES / f"cov-{version}"
        self.lines = defaultdict(lambda: defaultdict(set))  # test -> file -> lines
        self.cost, self.bad, self.files = {}, {}, set()
        self.imported = defaultdict(set)
        for path in sorted(self.dir.glob("*.json")):
            d = json.loads(path.read_text())
            lines, uses = d["lines"], d["uses"]
            for file, ls in lines.get("import", {}).items():
                self.imported[file].update(ls)
            by_fixture = defaultdict(set)
            for context in {*lines, *uses}:
                if context.startswith("fixture:"):
                    base, name = context[8:].split(":")[:2] if "::" not in context else (context[8:].rsplit(":", 2)[0], context[8:].rsplit(":", 2)[1])
                    by_fixture[name].add(context)
            for test, outcome in d["outcome"].items():
                file = test.split("::")[0]
                self.files.add(file)
                self.cost[test] = d["cpu"].get(test, 1.0)
                if outcome == "failed":
                    self.bad[test] = "fails without mutation (with coverage)"
                if outcome != "passed":
                    continue
                todo, seen = [test], set()
                for base, name, scope in d["fixtures"].get(test, []):
                    if scope != "function":
                        todo += by_fixture[name]
                while todo:
                    c = todo.pop()
                    if c in seen:
                        continue
                    seen.add(c)
                    todo += uses.get(c, [])
                    for f, ls in lines.get(c, {}).items():
                        self.lines[test][f].update(ls)
                for f, ls in d["sub"].get(test, {}).items():
                    self.lines[test][f].update(set(ls) - self.imported[f])
        # a worker process lives on after the test that started it: tests of that file which use processes get its lines
        by_file = defaultdict(lambda: defaultdict(set))
        for path in sorted(self.dir.glob("*.json")):
            d = json.loads(path.read_text())
            for test, files in d["sub"].items():
                for f, ls in files.items():
                    by_file[test.split("::")[0]][f].update(set(ls) - self.imported[f])
        for test in self.lines:
            if "nads_core/training/processes.py" in self.lines[test]:
                for f, ls in by_file[test.split("::")[0]].items():
                    self.lines[test][f] |= ls
        self.without = [n for n in test_files(version) if n.endswith(".py") and n not in self.files]

    @functools.cache
    def functions(self, file):
        """List (qualified name, first line, last line, first body line) of functions, and names they use."""
        result = []
        if not (self.tree / file).is_file():
            return result
        tree = ast.parse((self.tree / file).read_text())
        def visit(node, scope):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                    inner = (*scope, child.name)
                    if isinstance(child, ast.FunctionDef):
                        names = {n.id for n in ast.walk(child) if isinstance(n, ast.Name)} | {n.attr for n in ast.walk(child) if isinstance(n, ast.Attribute)}
                        result.append((inner, child.body[0].lineno, child.end_lineno, names))
                    visit(child, inner)
                else:
                    visit(child, scope)
        visit(tree, ())
        return result

    def tests_of(self, file, ranges):
        """List the tests that execute a line in one of the ranges."""
        found = []
        for test, files in self.lines.items():
            ls = files.get(file)
            if ls and any(a <= line <= b for line in ls for a, b in ranges):
                found.append(test)
        return found

    def covering(self, mutant):
        """Give the tests for a mutant, and how they were found."""
        m = mutant[self.version]
        file, scope, kind = m["file"], tuple(m["scope"]), mutant["kind"]
        lines = range(m["line"], m["end"] + 1)
        if kind == "body":
            tests = self.tests_of(file, [(m["line"], m["end"])])
            if tests or not self.imported[file].intersection(lines):
                return tests, "line"
            names = {scope[-1]}  # a function that is called when its module is imported
        elif kind == "def":
            ranges = [(a, b) for name, a, b, _ in self.functions(file) if name == scope]
            tests = self.tests_of(file, ranges)
            if tests or scope[-1] == "__init__":
                return tests, "function"
            names = {scope[-1]}
        elif scope:
            names = {scope[0]}
        else:
            names = self.targets(mutant["text"])
        # whoever uses the value: functions that name it, or a constant that was made of it
        tests = set(self.tests_of(file, [(m["line"], m["end"])]))
        modules = {f for fs in self.lines.values() for f in fs} | set(self.imported) | {file}
        known = {(n, file) for n in names} | {(n, None) for n in names if not n.startswith("_")}
        grown = True
        while grown:
            grown = False
            for rel in modules:
                here = {n for n, where in known if where in (rel, None)}
                for targets, used in self.constants(rel):
                    if used & here:
                        for t in targets:
                            for key in {(t, rel)} | ({(t, None)} if not t.startswith("_") else set()):
                                if key not in known:
                                    known.add(key); grown = True
        for rel in modules:
            here = {n for n, where in known if where in (rel, None)}
            ranges = [(a, b) for _, a, b, used in self.functions(rel) if used & here]
            if ranges:
                tests |= set(self.tests_of(rel, ranges))
        public = {n for n, where in known if where is None and len(n) > 3}
        for name in self.files:
            path = self.tree / name
            if public and path.is_file() and re.search(r"\b(" + "|".join(public) + r")\b", path.read_text()):
                tests |= {t for t in self.lines if t.startswith(name + "::")}
        if scope and kind == "class":  # whoever makes one
            ranges = [(a, b) for name, a, b, _ in self.functions(file) if name[: len(scope)] == scope]
            tests |= set(self.tests_of(file, ranges))
        how = "name"
        if not tests:
            tests, how = set(self.tests_of(file, [(1, 10**6)])), "module"
        return sorted(tests), how

    @staticmethod
    def targets(statement):
        return set(re.findall(r"\w+", statement.split(" = ")[0])) if " = " in statement else set()

    @functools.cache
    def constants(self, file):
        """List (names, names they are made of) of the statements of a module outside functions."""
        path, result = self.tree / file, []
        if not path.is_file():
            return result
        for node in ast.parse(path.read_text()).body:
            used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                result.append(({n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}, used))
        return result

    @functools.cache
    def public(self, file):
        return {name[0] for name, *_ in self.functions(file) if not name[0].startswith("_")}

    def static(self, mutant):
        """List the test files without coverage that name the function, its module or a public name of the module."""
        m = mutant[self.version]
        stem = Path(m["file"]).stem
        names = {stem} if stem != "__init__" else {Path(m["file"]).parent.name}
        names |= self.public(m["file"]) | {n for n in m["scope"] if len(n) > 4}
        pattern = re.compile(r"\b(" + "|".join(map(re.escape, names)) + r")\b")
        return [n for n in self.without if pattern.search((self.tree / n).read_text())]
