"""Describe the results, the claims and where they come from as an RO-Crate: ``python book/archive.py OUT.zip``.

A release attaches the file. It needs a built book, for its ``claims.json``, and the packages of the extra `release`.
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CLAIMS = ROOT / "_build" / "html" / "claims.json"


def runs(path: Path) -> list[dict[str, Any]]:
    """Return the runs that a results file of a job consists of, as actions of schema.org.

    Args:
        path: results file, such as ``book/results/fig1-lenet.json``.
    """
    content = json.loads(path.read_text("utf8"))
    found = content.get("provenance", []) if isinstance(content, dict) else []
    return [
        {
            "@type": "CreateAction",
            "name": f"Training of {path.stem}",
            "description": json.dumps(run, sort_keys=True),
            "endTime": run["date"],
            "instrument": {"@id": "#nads-core"},
            "result": {"@id": path.relative_to(ROOT).as_posix()},
        }
        for run in found
        if "date" in run
    ]


def files() -> list[Path]:
    """Return the stored results, their preregistrations, the register of claims, and what describes the release."""
    folders = [ROOT / "book" / "results", ROOT / "book" / "preregistered", ROOT / "benchmarks" / "results"]
    stored = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    names = ("book/claims.toml", "requirements.txt", "Containerfile", "CITATION.cff", "codemeta.json", ".zenodo.json")
    return [*stored, *(ROOT / name for name in names)]


def write(out: Path, claims: Path = CLAIMS) -> None:
    """Write the RO-Crate as a zip file.

    Args:
        out: zip file to write.
        claims: ``claims.json`` of the built book.
    """
    from rocrate.model.contextentity import ContextEntity
    from rocrate.rocrate import ROCrate

    about = json.loads((ROOT / "codemeta.json").read_text("utf8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    crate = ROCrate()
    crate.name, crate.description, crate.license = about["name"], about["description"], about["license"][0]
    crate.keywords = about["keywords"]
    software = {"@type": "SoftwareSourceCode", "name": project["name"], "version": about["version"]}
    crate.add(ContextEntity(crate, "#nads-core", properties=software | {"codeRepository": about["codeRepository"]}))
    verdicts = "Claims of the book, with verdict, numbers, sources and what would falsify each."
    crate.add_file(claims, "claims.json", properties={"description": verdicts, "encodingFormat": "application/json"})
    for path in files():
        crate.add_file(path, path.relative_to(ROOT).as_posix())
    for path in sorted((ROOT / "book" / "results").glob("*.json")):
        for number, run in enumerate(runs(path)):
            crate.add(ContextEntity(crate, f"#{path.stem}-{number}", properties=run))
    crate.write_zip(out)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
