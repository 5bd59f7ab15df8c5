"""Rows of long computations are kept, whatever stops them."""

import ast
import json

import pytest
from result_files import add_rows


def test_rows_before_a_failure_are_kept(tmp_path):
    path, content = tmp_path / "rows.json", {"rows": [{"unit": 0}]}
    units = [("{'unit': 1}",), ("{'unit': 2}",), ("no unit",), ("{'unit': 4}",)]
    with pytest.raises(SyntaxError):
        add_rows(path, content, ast.literal_eval, units, workers=1)
    kept = [row["unit"] for row in json.loads(path.read_text())["rows"]]
    assert kept[0] == 0 and {*kept} <= {0, 1, 2, 4} and len(kept) == len({*kept})
    add_rows(path, content, ast.literal_eval, [("{'unit': 5}",)], workers=1)
    assert [row["unit"] for row in json.loads(path.read_text())["rows"]] == [*kept, 5]
