"""What the README and the pages of docs/ show works: their Python blocks run, the files that they name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def _blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


BLOCKS = _blocks(ROOT / "README.md")
ALL = [(page.name, block) for page in PAGES for block in _blocks(page)]


def test_there_is_an_example_of_each_interface():
    text = "".join(BLOCKS)
    for name in ("aec_env(", "parallel_env(", "gymnasium.make(", "make_vec(", "make_engine("):
        assert name in text
    assert all(len(block.strip().splitlines()) <= 12 for block in BLOCKS)


@pytest.mark.parametrize(("page", "block"), ALL, ids=range(len(ALL)))
def test_example_runs(page, block, capsys):
    exec(compile(block, page, "exec"), {})
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).is_file(), target
