"""Runs notebooks and keeps what they show: `make notebooks` writes it into the files of this folder.

DOMINO_SCALE is their size, 1 for the full one: shares of minutes trained and of boards played. The tests run them
small, and compare what does not depend on it.
"""

from __future__ import annotations

import argparse
import base64
import io
import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from PIL import Image
from traitlets.config import Config

FOLDER = Path(__file__).parent
SECONDS = 3600  # that a cell may take
COLOURS = 256  # of a picture

Notebook = nbformat.NotebookNode


def notebooks() -> list[Path]:
    """The notebooks of this folder, in order."""
    return sorted(FOLDER.glob("*.ipynb"))


def execute(path: Path, scale: float = 1, env: dict[str, str] | None = None) -> Notebook:
    """Run a notebook from its first cell to its last, in a fresh kernel, and give it back with its outputs.

    The file is left as it is. What would differ from one run or machine to the next without saying anything is left
    out: times of cells, the version of Python. Pictures are kept small.

    Args:
        path: the notebook; scale: its size; env: variables over those of this process.
    Raises:
        CellExecutionError: a cell raised.
    """
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory(prefix="nb") as own:
        client = NotebookClient(
            notebook,
            timeout=SECONDS,
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,
            config=Config(KernelManager={"transport": "ipc", "ip": f"{own}/k"}),  # files as sockets: no open port
            resources={"metadata": {"path": str(FOLDER)}},
        )
        client.execute(env={**os.environ, **(env or {}), "DOMINO_SCALE": f"{scale:g}", "IPYTHONDIR": own})
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = _small(output.data["image/png"])
    return notebook


def _small(png: str) -> str:
    """The same picture with a palette, base64: a third of the size, and the files stay in the repository for good."""
    picture = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    file = io.BytesIO()
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(file, format="PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode("ascii")


def main() -> int:
    """`python notebooks/execute.py [--scale 1] [FILE …]`: run notebooks, all by default, and write their outputs."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="notebooks; none: all of this folder")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full size")
    asked = parser.parse_args()
    for path in asked.files or notebooks():
        print(f"{path.name} …", file=sys.stderr, flush=True)
        try:
            notebook = execute(path, asked.scale)
        except CellExecutionError as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            return 1
        nbformat.write(notebook, path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
