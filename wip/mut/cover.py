"""cover.py VERSION: run every collected test file once, with coverage by test; restartable by file."""
import os, subprocess, sys, time
from common import *

version = sys.argv[1]
tree, out = TREES[version], RES / f"cov-{version}"
out.mkdir(exist_ok=True, parents=True)
roots = [tree / "nads_core" / p for p in PACKAGES] if version == "old" else [tree / "nads_core", tree / "book/nads_book"]
BUDGET = 35 * 60 if len(sys.argv) == 2 else 1e9
names = sys.argv[2:] or test_files(version)
names.sort(key=lambda n: next((i + 1 for i, x in enumerate(LAST[::-1]) if n == f"tests/test_{x}.py"), 0))
spent = sum(float(p.read_text().split()[1]) for p in out.glob("*.done"))
for name in names:
    stamp = out / (name.replace("/", "__") + ".done")
    if stamp.exists():
        continue
    if spent > BUDGET:
        print("no more time for coverage:", name, flush=True)
        continue
    quiet()
    sub = MUT / f"tmp/sub-{version}"
    subprocess.run(["rm", "-rf", sub]); sub.mkdir(parents=True)
    env = environment(tree)
    env["PYTHONPATH"] = f"{MUT}/hook:{env['PYTHONPATH']}:{MUT}"
    env.update(MUT_TREE=str(tree), MUT_OUT=str(out), MUT_SOURCE=":".join(map(str, roots)), MUT_SUB=str(sub))
    args = ["-m", "not slow"] if version == "new" else []
    start = time.time()
    with open(out / (name.replace("/", "__") + ".log"), "w") as log:
        # tests/test_seeds.py is not run with doctests: conftest of tests/ is loaded by naming it
        extra = ["-p", "tests.conftest"] if not name.startswith("tests") else []
        command = ["chrt", "-i", "0", PYTHON, "-m", "pytest", "-p", "mutcov", "-p", "no:cacheprovider", "-p", "no:xdist", "-q", *args, *extra, name]
        code = subprocess.run(command, cwd=tree, env=env, stdout=log, stderr=subprocess.STDOUT, timeout=3000).returncode
    spent += time.time() - start
    stamp.write_text(f"{code} {time.time() - start:.1f}")
    print(name, code, round(time.time() - start, 1), flush=True)
