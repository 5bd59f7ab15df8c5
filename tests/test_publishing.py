"""What the world sees: workflows that GitHub accepts, a citation that holds, an environment for Binder."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from nads_core.runtime import provenance

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
ADDRESS = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))["repository"]["url"]


def follows_schema(schema, path):
    """Check a file against a schema that comes with check-jsonschema: no network is needed."""
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        f"vendor.{schema}",
        str(path),
    ]
    result = subprocess.run(command, capture_output=True, text=True)
    return result.returncode == 0, result.stdout + result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_follows_the_schema(path):
    valid, message = follows_schema("github-workflows", path)
    assert valid, message


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_asks_for_little(path):
    workflow = yaml.safe_load(path.read_text("utf8"))
    assert workflow["permissions"] == {"contents": "read"} and "concurrency" in workflow
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            assert "uses" not in step or re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", step["uses"])
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False
            for target in re.findall(r"make ([\w-]+)", step.get("run", "")):
                assert re.search(
                    rf"^{target}:", (ROOT / "Makefile").read_text("utf8"), re.MULTILINE
                )


def test_an_action_has_one_commit_and_one_version():
    used = [
        re.findall(r"(actions/[\w-]+)@(\w+) # (v\d+\.\d+\.\d+)\n", path.read_text("utf8"))
        for path in WORKFLOWS
    ]
    pins = {pin for pins in used for pin in pins}
    assert sum(map(len, used)) == sum(path.read_text("utf8").count("uses:") for path in WORKFLOWS)
    assert len(pins) == len({name for name, *_ in pins}) == len({commit for _, commit, _ in pins})


def test_a_release_is_tested_and_its_jobs_with_rights_install_nothing_that_is_not_pinned():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf8"))[
        "jobs"
    ]
    commands = {
        name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()
    }
    assert {"make test", "make verify"} <= set(commands["check"])
    assert {"check", "build"} <= set(jobs["publish"]["needs"])
    rights = {name for name, job in jobs.items() if "write" in job.get("permissions", {}).values()}
    assert rights == {"publish", "attach"}
    for name in (*rights, "build"):
        for command in commands[name]:
            assert (
                "install" not in command
                or "--require-hashes --no-deps -r .github/release-tools.txt" in command
            )
    assert "python -m build --no-isolation" in " ".join(
        commands["build"]
    )  # else it fetches the newest setuptools


def test_tools_of_a_release_have_the_pinned_versions_and_hashes():
    pinned = re.findall(
        r"^[\w.-]+==[\w.]+", (ROOT / "requirements.txt").read_text("utf8"), re.MULTILINE
    )
    lines = (ROOT / ".github" / "release-tools.txt").read_text("utf8").splitlines()[2:]
    for line in lines:
        requirement, digest = re.fullmatch(
            r"(\S+==\S+) --hash=sha256:([0-9a-f]{64})", line
        ).groups()
        assert requirement in pinned and len(set(digest)) > 4
    assert {"build", "setuptools", "twine", "id"} <= {line.partition("==")[0] for line in lines}


def test_the_newest_versions_are_tested_every_week():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "newest.yml").read_text("utf8"))
    ((minute, hour, day, month, weekday),) = (
        entry["cron"].split() for entry in workflow[True]["schedule"]
    )  # key: on
    assert day == month == "*" and weekday.isdecimal() and int(minute) < 60 and int(hour) < 24
    *_, install, test = (
        step["run"] for step in workflow["jobs"]["tests"]["steps"] if "run" in step
    )
    assert {"torch", "numpy", "timm", "pandas"} <= set(install.split())
    assert "requirements.txt" not in install and "nads_core tests" in test
    for left_out in re.findall(r"--ignore ([\w/.]+)", test):
        assert (ROOT / left_out).exists(), left_out


@pytest.mark.slow
def test_a_wrong_workflow_is_found(tmp_path):
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(WORKFLOWS[0].read_text("utf8").replace("runs-on:", "runs-at:"))
    assert not follows_schema("github-workflows", wrong)[0]


def test_the_deployed_folder_is_the_one_that_the_build_writes():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "book.yml").read_text("utf8"))["jobs"]
    assert {"path": "_build/html"} in [step.get("with") for step in jobs["build"]["steps"]]
    assert jobs["deploy"]["permissions"] == {"pages": "write", "id-token": "write"}


@pytest.mark.slow
def test_citation_follows_the_schema():
    valid, message = follows_schema("citation-file-format", ROOT / "CITATION.cff")
    assert valid, message


def test_citation_and_its_page_agree():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))
    paper, page = citation["preferred-citation"], (ROOT / "book" / "citing.md").read_text("utf8")
    entry = re.search(
        r"@inproceedings\{ortizjimenez2020nads.*?\n\}",
        (ROOT / "book/references.bib").read_text("utf8"),
        re.S,
    )
    bibtex = entry.group().replace(r"{\'e}", "é")
    assert paper["title"] in bibtex and str(paper["year"]) in bibtex and paper["url"] in bibtex
    authors = " and ".join(
        f"{author['family-names']}, {author['given-names']}" for author in paper["authors"]
    )
    assert authors in bibtex
    (maintainers,) = PROJECT["authors"]
    assert maintainers["name"] == citation["authors"][0]["name"]
    assert citation["title"] in page and maintainers["name"] in page
    assert citation["repository-code"] == PROJECT["urls"]["Repository"] == ADDRESS
    assert f"nads-core {provenance.__version__}" in page and ADDRESS in page


def test_the_citation_agrees_with_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))
    assert citation["version"] == provenance.__version__ and citation["repository-code"] == ADDRESS


def test_the_container_installs_the_pinned_versions_and_builds_the_book():
    text = (ROOT / "Containerfile").read_text("utf8")
    targets = re.findall(r"make VENV=\S+ (\S+)|\"make\", \"VENV=\S+\", \"(\w+)\"", text)
    assert [one or other for one, other in targets] == ["/opt/venv/.ready", "book"]
    assert re.search(r"^USER (?!root)", text, re.MULTILINE) and "EXTRA_INDEX" not in text
    assert (
        "requirements.txt"
        in re.search(r"^\$\(READY\):.*\n.*", (ROOT / "Makefile").read_text("utf8"), re.MULTILINE)[0]
    )


def test_binder_has_what_the_chapters_import():
    environment = yaml.safe_load((ROOT / "binder" / "environment.yml").read_text("utf8"))
    names = {re.split(r"[=<>]", name)[0] for name in environment["dependencies"]}
    library = {re.split(r"[=<>]", name)[0] for name in PROJECT["dependencies"]}
    assert (
        library - {"torch"}
        | {"pytorch-cpu", "torchvision", "matplotlib-base", "pillow", "setuptools"}
        <= names
    )
    script = ROOT / "binder" / "postBuild"
    assert (
        os.access(script, os.X_OK)
        and subprocess.run(["bash", "-n", script], check=False).returncode == 0
    )
