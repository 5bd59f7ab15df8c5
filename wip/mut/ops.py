"""Mutations of a statement, found by AST and written into the source in place: line numbers stay as they are."""
import ast
import re

COMPARE = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.Is: "is not",
           ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in"}
ARITH = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "/", ast.Mod: "/", ast.Pow: "*",
         ast.BitAnd: "|", ast.BitOr: "&", ast.LShift: ">>", ast.RShift: "<<"}
TOKEN = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
         ast.BitAnd: "&", ast.BitOr: "|", ast.LShift: "<<", ast.RShift: ">>", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
         ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"}
MESSAGE_CALLS = re.compile(r"(^|\.)(warn|print|info|debug|warning|error|exception|write|set_postfix\w*|set_description\w*)$|Error$|Warning$|Timeout$")
SKIP_FUNCTIONS = {"__repr__", "__str__", "__getattr__", "__dir__"}
COMPOUND = (ast.If, ast.While, ast.For, ast.With, ast.Try, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Match)


def header_nodes(statement):
    """Give the expressions that belong to a statement itself: of a compound one its header only."""
    s = statement
    if isinstance(s, (ast.If, ast.While)):
        return [s.test]
    if isinstance(s, ast.For):
        return [s.iter]
    if isinstance(s, ast.With):
        return [i.context_expr for i in s.items]
    if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return [d for d in (*s.args.defaults, *s.args.kw_defaults) if d is not None]
    if isinstance(s, (ast.ClassDef, ast.Try, ast.Match, ast.Raise, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Pass,
                      ast.Break, ast.Continue, ast.Delete)):
        return []
    if isinstance(s, ast.AnnAssign):
        return [s.value] if s.value is not None else []
    if isinstance(s, ast.Assign):
        return [*s.targets, s.value]
    if isinstance(s, ast.AugAssign):
        return [s.target, s.value]
    if isinstance(s, ast.Return):
        return [s.value] if s.value is not None else []
    if isinstance(s, ast.Assert):
        return [s.test]
    if isinstance(s, ast.Expr):
        return [s.value]
    return []


def text(statement):
    """Give the normalised text of a statement: of a compound one its header only."""
    s = statement
    if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef)):
        args = s.args
        names = [a.arg for a in (*args.posonlyargs, *args.args)]
        parts = [f"{n}={ast.unparse(d)}" for n, d in zip(names[len(names) - len(args.defaults):], args.defaults)]
        parts += [f"{a.arg}={ast.unparse(d)}" for a, d in zip(args.kwonlyargs, args.kw_defaults) if d is not None]
        return f"def {s.name}({', '.join(parts)})"
    if isinstance(s, ast.ClassDef):
        return f"class {s.name}"
    if isinstance(s, ast.If):
        return f"if {ast.unparse(s.test)}:"
    if isinstance(s, ast.While):
        return f"while {ast.unparse(s.test)}:"
    if isinstance(s, ast.For):
        return f"for {ast.unparse(s.target)} in {ast.unparse(s.iter)}:"
    if isinstance(s, ast.With):
        return f"with {', '.join(ast.unparse(i) for i in s.items)}:"
    if isinstance(s, ast.Try):
        return "try:"
    if isinstance(s, ast.AnnAssign):
        return f"{ast.unparse(s.target)}" + (f" = {ast.unparse(s.value)}" if s.value is not None else "")
    return ast.unparse(s)


def children(statement):
    """Give the statements directly inside."""
    for name in ("body", "orelse", "finalbody"):
        yield from getattr(statement, name, []) if isinstance(statement, COMPOUND) else []
    if isinstance(statement, ast.Try):
        for handler in statement.handlers:
            yield from handler.body
    if isinstance(statement, ast.Match):
        for case in statement.cases:
            yield from case.body


def statements(tree):
    """Give (qualified name of the function or class around, statement, its occurrence there among equal texts)."""
    def visit(body, scope, counts, first):
        for index, s in enumerate(body):
            if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, str):
                continue
            if isinstance(s, ast.If) and ast.unparse(s.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
                continue
            t = text(s)
            number = counts.get(t, 0)
            counts[t] = number + 1
            if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = (*scope, s.name)
                yield inner, s, 0
                if s.name not in SKIP_FUNCTIONS:
                    yield from visit(s.body, inner, {}, True)
            else:
                yield scope, s, number
                yield from visit(list(children(s)), scope, counts, False)
    yield from visit(tree.body, (), {}, True)


def name_of(func):
    try:
        return ast.unparse(func)
    except Exception:
        return ""


class Source:
    """The text of a file with offsets, in bytes as ast counts columns."""

    def __init__(self, content):
        self.data = content.encode()
        self.lines = [0]
        for m in re.finditer(b"\n", self.data):
            self.lines.append(m.end())

    def start(self, n):
        return self.lines[n.lineno - 1] + n.col_offset

    def end(self, n):
        return self.lines[n.end_lineno - 1] + n.end_col_offset

    def get(self, a, b):
        return self.data[a:b].decode()


def between(source, left, right, old, new):
    """Replace the operator between two operands; comments and brackets there stay."""
    a, b = source.end(left), source.start(right)
    gap = source.get(a, b)
    clean = re.sub(r"#[^\n]*", lambda m: " " * len(m.group()), gap)
    pattern = r"\s+".join(map(re.escape, old.split()))
    if old.isalpha() or " " in old:
        pattern = rf"\b{pattern}\b"
    m = re.search(pattern, clean)
    if not m:
        return None
    a8 = a + len(gap[: m.start()].encode())
    return a8, a8 + len(gap[m.start() : m.end()].encode()), new


def mutations(s, source):
    """List the mutations of a statement: (operator, ordinal among its kind in the statement, start, end, text)."""
    found = []
    count = {}

    def add(op, edit, detail):
        key = op
        count[key] = count.get(key, 0) + 1
        if edit is not None:
            found.append({"op": op, "ordinal": count[key], "edit": edit, "detail": detail})

    def visit(n, parent=None):
        a, b = (source.start(n), source.end(n)) if hasattr(n, "lineno") and hasattr(n, "end_lineno") else (None, None)
        if isinstance(n, ast.JoinedStr):
            return  # text for people, mostly
        if isinstance(n, ast.Compare):
            left = n.left
            for o, right in zip(n.ops, n.comparators):
                add("compare", between(source, left, right, TOKEN[type(o)], COMPARE[type(o)]), f"{TOKEN[type(o)]} -> {COMPARE[type(o)]}")
                left = right
        elif isinstance(n, ast.BinOp) and type(n.op) in ARITH:
            strings = any(isinstance(x, ast.JoinedStr) or isinstance(x, ast.Constant) and isinstance(x.value, str) for x in (n.left, n.right))
            if not strings:
                add("arith", between(source, n.left, n.right, TOKEN[type(n.op)], ARITH[type(n.op)]), f"{TOKEN[type(n.op)]} -> {ARITH[type(n.op)]}")
        elif isinstance(n, ast.BoolOp):
            old, new = ("and", "or") if isinstance(n.op, ast.And) else ("or", "and")
            for left, right in zip(n.values, n.values[1:]):
                add("bool", between(source, left, right, old, new), f"{old} -> {new}")
        elif isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.Not):
            add("not", (a, source.start(n.operand), ""), "not x -> x")
        elif isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.USub):
            add("minus", (a, source.start(n.operand), ""), "-x -> x")
        elif isinstance(n, ast.Constant):
            v = n.value
            if v is True or v is False:
                add("truth", (a, b, str(not v)), f"{v} -> {not v}")
            elif isinstance(v, (int, float)) and not isinstance(v, bool):
                add("number", (a, b, f"{source.get(a, b)} + 1" if False else repr(v + 1)), f"{source.get(a, b)} -> {v + 1!r}")
            elif isinstance(v, str) and source.get(a, b)[-1] in "\"'":
                raw = source.get(a, b)
                if raw[0] in "\"'" and not raw.startswith(('"""', "'''")) and "\n" not in raw and raw.count(" ") < 3:
                    add("string", (a, b, f'{raw[0]}XX{raw[1:-1]}XX{raw[-1]}'), f"{raw} -> XX..XX")
        elif isinstance(n, ast.Call):
            called = name_of(n.func)
            if MESSAGE_CALLS.search(called):
                return
            for k in n.keywords:
                if k.arg is None:
                    continue
                ka, kb = source.lines[k.lineno - 1] + k.col_offset, source.end(k.value)
                rest = source.data[kb:]
                m = re.match(rb"\s*,", rest)
                if m:
                    kb2, ka2 = kb + m.end(), ka
                else:
                    before = source.data[:ka]
                    m2 = re.search(rb",\s*$", before)
                    ka2, kb2 = (m2.start(), kb) if m2 else (ka, kb)
                removed = source.get(ka2, kb2)
                add("keyword", (ka2, kb2, "\n" * removed.count("\n")), f"without {k.arg}={source.get(source.start(k.value), source.end(k.value))}")
        for child in ast.iter_child_nodes(n):
            if isinstance(child, (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)):
                continue
            if isinstance(child, ast.keyword):
                visit(child.value, child)
            elif isinstance(child, ast.arguments):  # of a lambda
                for d in (*child.defaults, *(x for x in child.kw_defaults if x)):
                    visit(d)
            elif isinstance(child, ast.comprehension):
                visit(child.target); visit(child.iter)
                for c in child.ifs:
                    visit(c)
            else:
                visit(child, n)

    if isinstance(s, ast.Assign) and any(name_of(t) == "__all__" for t in s.targets):
        return []
    if isinstance(s, ast.Assert):
        return []
    if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call):
        if not MESSAGE_CALLS.search(name_of(s.value.func)):
            a, b = source.start(s), source.end(s)
            removed = source.get(a, b)
            add("call", (a, b, "pass" if "\n" not in removed else "(" + "\n" * removed.count("\n") + ")"), "call deleted")
    if isinstance(s, ast.Return) and s.value is not None and not (isinstance(s.value, ast.Constant) and s.value.value is None):
        a, b = source.start(s.value), source.end(s.value)
        removed = source.get(a, b)
        new = "None" if "\n" not in removed else "(None" + "\n" * removed.count("\n") + ")"
        add("return", (a, b, new), "return None")
    if isinstance(s, ast.AugAssign) and type(s.op) in ARITH:
        edit = between(source, s.target, s.value, TOKEN[type(s.op)] + "=", ARITH[type(s.op)] + "=")
        add("arith", edit, f"{TOKEN[type(s.op)]}= -> {ARITH[type(s.op)]}=")
    if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef)):
        for d in header_nodes(s):
            visit(d)
        for m in found:
            m["detail"] = "default " + m["detail"]
        return found
    for n in header_nodes(s):
        visit(n)
    return found


def apply(content, edit):
    data = content.encode()
    a, b, new = edit
    return (data[:a] + new.encode() + data[b:]).decode()
