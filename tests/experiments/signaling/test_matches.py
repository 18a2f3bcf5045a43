"""Matches are those of `evaluate`, each is played once, and a folder goes on where it was."""

import json

import numpy as np
import pytest

from agents import make_agent
from domino_env import get_rules
from experiments.evaluate import evaluate
from experiments.signaling import matches
from experiments.signaling.matches import Damaged, Matches, boards_lacking, lacking_line, said
from experiments.signaling.statistics import boards_needed
from experiments.signaling.worth import Deafened
from experiments.tournament import networks

ASKED = [("double_first", "greedy"), (("double_first", "greedy"), "random"), ("double_first", "greedy")]


def counted(monkeypatch, stop_at=None):
    """Counts the matches that are played; Ctrl-C comes in the one of this number."""
    seen = []

    def counting(a, b, *words, **more):
        seen.append((a, b))
        if len(seen) == stop_at:
            raise KeyboardInterrupt
        return evaluate(a, b, *words, **more)

    monkeypatch.setattr(matches, "evaluate", counting)
    return seen


def test_matches__are_those_of_evaluate(monkeypatch, tmp_path):
    seen, told = counted(monkeypatch), []
    found = Matches(boards=20, seed=3, folder=tmp_path / "new").play_all(ASKED, lambda *now: told.append(now))
    for (a, b), one in zip(ASKED, found):
        assert (one.values == evaluate(a, b, boards=20, seed=3).values).all() and one.values.any()
    assert len(seen) == 2 and told[0] == (0, 60) and told[-1] == (60, 60) and told == sorted(told)
    again = Matches(boards=20, seed=3, folder=tmp_path / "new").play_all(ASKED)
    assert len(seen) == 2 and all((one.values == two.values).all() for one, two in zip(found, again))
    Matches(boards=20, seed=4, folder=tmp_path / "new").play_all(ASKED)
    assert len(seen) == 4 and len(list((tmp_path / "new").iterdir())) == 4


def test_matches__interrupted_gives_the_same_bytes(monkeypatch, tmp_path):
    Matches(boards=20, folder=tmp_path / "whole").play_all(ASKED)
    seen = counted(monkeypatch, stop_at=2)
    with pytest.raises(KeyboardInterrupt):
        Matches(boards=20, folder=tmp_path / "cut").play_all(ASKED)
    assert len(list((tmp_path / "cut").iterdir())) == 1
    Matches(boards=20, folder=tmp_path / "cut").play_all(ASKED)
    assert len(seen) == 3
    whole, cut = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("whole", "cut"))
    assert whole == cut and len(whole) == 2


def test_matches__a_file_that_is_another(tmp_path):
    table = Matches(boards=4, folder=tmp_path)
    table.play("club", "greedy")
    (path,) = tmp_path.iterdir()
    good = json.loads(path.read_text())
    for wrong in ({"values": good["values"][:2]}, {"a": ["random"]}, {"counts": None}):
        path.write_text(json.dumps(good | wrong))
        with pytest.raises(ValueError, match="is no match of these players"):
            Matches(boards=4, folder=tmp_path).play("club", "greedy")
    path.write_text("{")
    with pytest.raises(Damaged, match="remove it, and it is played again"):
        Matches(boards=4, folder=tmp_path).play("club", "greedy")


def test_matches__names(monkeypatch):
    one, other = make_agent("club"), make_agent("club:cut_opponents=5")
    other.name = one.name
    with pytest.raises(ValueError, match="two different players are called 'club'"):
        Matches(boards=4).play_all([(one, "greedy"), (other, "greedy")])
    other.sample = True
    assert said(other) == "club (sampled)" and said("club") == "club"
    Matches(boards=4).play_all([(one, "greedy"), (other, "greedy"), (one, "greedy")])
    digests = iter([{"run": "a"}, {"run": "b"}])
    monkeypatch.setattr(matches, "networks", lambda names: next(digests))
    table = Matches(boards=4)
    table.play("club", "greedy")
    with pytest.raises(ValueError, match="run is not the network that began these matches"):
        table.play("club", "random")


def test_matches__networks_of_parts(monkeypatch):
    """The folder of a network that a player is built on is looked at, too."""
    asked = []
    monkeypatch.setattr(matches, "networks", lambda names: asked.extend(names) or {})

    class Around:
        name, agent, values = "around", make_agent("club"), None

        def act(self, batch):
            return self.agent.act(batch)

    Matches(boards=2).play(Around(), "greedy")
    assert asked == ["around", "club", "greedy"]


def test_matches__networks_of_the_deaf_twin(hearing, tmp_path):
    """A match hangs on the twin's network, too: a file says which it was."""
    player = Deafened(make_agent("club"), make_agent(f"deaf:model={hearing}"), "any")
    Matches(get_rules("tiny_pairs", labelled_ends=True), boards=2, folder=tmp_path / "kept").play(player, "greedy")
    (path,) = (tmp_path / "kept").iterdir()
    found = json.loads(path.read_text())["networks"]
    assert found == networks([hearing]) and list(found) == [hearing]


def test_errors(tmp_path):
    (tmp_path / "file").write_text("")
    for wrong, line in (
        ({"boards": 1}, "boards=1"),
        ({"seed": -1}, "seed=-1"),
        ({"folder": tmp_path / "file"}, "file"),
    ):
        with pytest.raises(ValueError, match=line):
            Matches(**wrong)
    with pytest.raises(ValueError, match="unknown agent 'nobody'"):
        Matches(boards=4).play_all([("club", "greedy"), ("nobody", "club")])


def test_boards_lacking():
    values = np.resize([14.0, -14.0], 400)
    needed = boards_needed(float(values.std(ddof=1)), 1.0)
    assert boards_lacking(values, 1.0) == needed > 1500
    assert boards_lacking(values, 2.0) is None  # enough of them: there is no such difference
    assert boards_lacking(values + 5, 0.01) is None  # told from 0 already
    assert boards_lacking(np.zeros(10), 0.01) is None
    (line,) = lacking_line("net", values, 1.0)
    assert f"400 boards are too few for a claim of 1 points a deal: it needs {needed:,} boards" in line
    assert lacking_line("net", values, None) == []
    with pytest.raises(ValueError, match="claim=0"):
        boards_lacking(values, 0)
