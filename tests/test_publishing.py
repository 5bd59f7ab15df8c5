"""What the world sees: workflows that GitHub accepts, the citation, an environment for Binder."""

import os
import re
import subprocess
import sys
import tomllib

import pytest
import yaml
from conftest import ROOT

from nads_core.runtime import provenance

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
ADDRESS = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))["repository"]["url"]


def load(name):
    return yaml.safe_load((ROOT / name).read_text("utf8"))


@pytest.mark.slow
def test_workflows_and_citation_follow_their_schemas():
    """The schemas come with check-jsonschema: no network is needed."""
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema"]
    subprocess.run([*check, "vendor.github-workflows", *WORKFLOWS], check=True)
    subprocess.run([*check, "vendor.citation-file-format", ROOT / "CITATION.cff"], check=True)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_few_rights_and_runs_pinned_actions(path):
    workflow = load(path)
    assert workflow["permissions"] == {"contents": "read"} and "concurrency" in workflow
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            assert "uses" not in step or re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", step["uses"])
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


def test_citation_and_package_agree():
    citation = load("CITATION.cff")
    assert citation["version"] == provenance.__version__
    assert citation["repository-code"] == PROJECT["urls"]["Repository"] == ADDRESS


def test_binder_has_what_the_chapters_import():
    names = {re.split(r"[=<>]", n)[0] for n in load("binder/environment.yml")["dependencies"]}
    library = {re.split(r"[=<>]", name)[0] for name in PROJECT["dependencies"]}
    drawn = {"pytorch-cpu", "torchvision", "matplotlib-base", "pillow", "setuptools"}
    assert library - {"torch"} | drawn <= names
    script = ROOT / "binder" / "postBuild"
    assert os.access(script, os.X_OK) and not subprocess.run(["bash", "-n", script]).returncode
