"""What the README shows works: its Python blocks run, its files exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_there_is_an_example_of_each_interface():
    text = "".join(BLOCKS)
    for name in ("aec_env(", "parallel_env(", "gymnasium.make(", "make_vec(", "make_engine("):
        assert name in text
    assert all(len(block.strip().splitlines()) <= 12 for block in BLOCKS)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_example_runs(block, capsys):
    exec(compile(block, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()


def test_links_lead_to_files():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).is_file(), target
