"""The notebooks run from their first cell to their last, and what they show is what they give.

A cell that depends on the size of the run is tagged "sized", one that depends on the machine's speed "timed"; what all
others print is the same in the small run here as in the committed one.
"""

import base64
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from PIL import Image

pytest.importorskip("numba")

from notebooks.execute import FOLDER, execute, notebooks

SCALE = 0.01  # of the full size
ROOM = 300_000  # bytes of all pictures of a notebook
#: A path of some machine: its first folder, behind what no address or fraction begins with.
PATH = re.compile(r"(?<![\w./:])/(?:home|root|Users|tmp|var|usr|opt|mnt|private|work|workspace)\b|[A-Z]:\\\\?Users")


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(cell: Any) -> list[str]:
    """What a cell prints and what its last value reads like, in order."""
    shown = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return [text for text in shown if text]


def kinds(cell: Any) -> set[str]:
    """What a cell shows: streams, and kinds of data."""
    return {kind for output in cell.outputs for kind in output.get("data", {output.get("name"): None})}


def pictures(notebook: Any) -> Iterator[bytes]:
    """All pictures of a notebook."""
    for cell in code_cells(notebook):
        for output in cell.outputs:
            for kind, data in output.get("data", {}).items():
                if kind.startswith("image/"):
                    yield base64.b64decode(data) if isinstance(data, str) and kind == "image/png" else data.encode()


@pytest.fixture(params=notebooks(), ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


def test_there_are_four() -> None:
    assert [path.name[:2] for path in notebooks()] == ["01", "02", "03", "04"]


def test_what_is_kept_is_whole_and_of_no_machine(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == [*range(1, len(cells) + 1)]
    assert notebook.metadata.language_info == {"name": "python"}
    for cell in cells:
        assert set(cell.metadata) <= {"tags"} and set(cell.metadata.get("tags", [])) <= {"sized", "timed"}
        assert all(output.output_type != "error" for output in cell.outputs)
        assert "stderr" not in kinds(cell)
    for cell in cells:
        for output in cell.outputs:
            output["data"] = {kind: data for kind, data in output.get("data", {}).items() if kind != "image/png"}
    plain = json.dumps(notebook)
    assert not PATH.search(plain), PATH.search(plain)
    assert "Traceback" not in plain and "Warning" not in plain


def test_pictures_are_small(path: Path) -> None:
    found = [*pictures(nbformat.read(path, as_version=4))]
    assert found
    for data in found:
        with Image.open(io.BytesIO(data)) as picture:
            assert picture.format == "PNG" and len(data) < ROOM / 3
    assert sum(map(len, found)) < ROOM


@pytest.mark.parametrize("text", ["/home/me/x", "in /tmp/a", "'/work/main'", r"C:\Users\me"])
def test_paths_are_found(text: str) -> None:
    assert PATH.search(text) and not PATH.search(f"https://example.org/home half/work {text[-1]}")


def test_a_run_gives_what_is_shown_and_leaves_nothing(path: Path, tmp_path: Path) -> None:
    kept, before = nbformat.read(path, as_version=4), sorted(FOLDER.iterdir())
    fresh = execute(path, SCALE, {"TMPDIR": str(tmp_path)})
    for old, new in zip(code_cells(kept), code_cells(fresh), strict=True):
        assert old.source == new.source
        if old.metadata.get("tags"):
            assert kinds(new) and kinds(new) <= kinds(old), new.source  # a short run has no looks on the way
        else:
            assert (kinds(old), texts(old)) == (kinds(new), texts(new)), new.source
    assert not [*tmp_path.iterdir()]
    assert sorted(FOLDER.iterdir()) == before


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_at_full_size_all_is_the_same_but_what_hangs_on_time() -> None:
    path = notebooks()[2]
    kept, fresh = nbformat.read(path, as_version=4), execute(path)
    for old, new in zip(code_cells(kept), code_cells(fresh), strict=True):
        assert "timed" not in old.metadata.get("tags", [])
        assert texts(old) == texts(new), new.source


def test_a_cell_that_fails_fails_the_run(tmp_path: Path) -> None:
    from nbclient.exceptions import CellExecutionError

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0")])
    nbformat.write(notebook, tmp_path / "fails.ipynb")
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        execute(tmp_path / "fails.ipynb", SCALE)
