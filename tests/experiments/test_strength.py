"""The table of players: who met whom, what it cost, and that it goes on where it was left."""

import json
from pathlib import Path

import pytest

from agents.base import make_agent
from domino_env import get_rules
from experiments import strength
from experiments.evaluate import evaluate


def test_search__every_pair_meets_on_the_same_boards(tmp_path: Path) -> None:
    out = tmp_path / "table.json"
    said: list[str] = []
    names = ["greedy", "random", "double_first"]
    result = strength.search(names, boards=40, seed=5, out=out, say=said.append)
    assert len(said) == 3 and result["players"] == names
    for i, a in enumerate(names):
        for j, b in enumerate(names):
            if i == j:
                assert result["points"][i][j] is None
                continue
            one = evaluate(a, b, boards=40, seed=5)
            assert result["points"][i][j] == pytest.approx(one.points_per_deal)
            assert result["low"][i][j] == pytest.approx(one.low) and result["high"][i][j] == pytest.approx(one.high)
    assert all(result["cpu_ms_per_move"][name] > 0 for name in names)
    # What stands in the file is not played again, and a player more brings only its own matches.
    again: list[str] = []
    more = strength.search([*names, "club"], boards=40, seed=5, out=out, say=again.append)
    assert len(again) == 3 and all("club" in line for line in again)
    assert [row[:3] for row in more["points"][:3]] == result["points"]


def test_search__a_file_of_another_table_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "table.json"
    strength.search(["greedy", "random"], boards=4, out=out)
    before = out.read_bytes()
    with pytest.raises(ValueError, match="name another file"):
        strength.search(["greedy", "random"], boards=5, out=out)
    assert out.read_bytes() == before
    for text in ("{", json.dumps([1]), json.dumps({"rules": "sport_book"})):
        out.write_text(text)
        with pytest.raises(ValueError, match="no table of matches"):
            strength.search(["greedy", "random"], boards=4, out=out)
        assert out.read_text() == text
    table = json.loads(before)
    for damaged in ({}, {**table["matches"]["greedy | random"], "spent": {}}, None):
        text = json.dumps({**table, "matches": {"greedy | random": damaged}})
        out.write_text(text)
        with pytest.raises(ValueError, match="no table of matches"):
            strength.search(["greedy", "random"], boards=4, out=out)
    said: list[str] = []
    with pytest.raises(ValueError, match="there is no folder"):  # before anything is played
        strength.search(["greedy", "random"], boards=4, out=tmp_path / "none" / "table.json", say=said.append)
    assert not said


def test_search__refusals() -> None:
    for names in (["greedy"], ["greedy", "greedy"]):
        with pytest.raises(ValueError, match="two players or more"):
            strength.search(names)
    with pytest.raises(ValueError, match="unknown agent"):
        strength.search(["greedy", "gredy"])


def test_timed__answers_and_is_asked_as_the_agent_itself() -> None:
    timed = strength.Timed(make_agent("club"))
    assert timed.needs_history and timed.name == "club" and not hasattr(timed, "sees_everything")
    assert evaluate(timed, "club", boards=20).points_per_deal == 0
    assert timed.decisions > 100 and timed.cpu_seconds > 0 and timed.seconds > 0


def test_late__each_agent_has_its_part_of_the_deal() -> None:
    greedy, club = make_agent("greedy"), make_agent("club")
    for tiles, same in ((0, "club"), (28, "greedy")):
        assert evaluate(strength.Late(greedy, club, tiles), same, boards=20).values.any() == 0
    assert evaluate(strength.Late(greedy, club, 8), "club", boards=20).values.any()


def test_dominoes__plays_at_our_table_and_beats_greedy_late() -> None:
    """K1: the package's searching player, shown what its seat can know, from sixteen tiles on."""
    rules = get_rules("puerto_rico")
    theirs = strength.Late(make_agent("greedy"), strength.Dominoes(5), 16)
    one, two = (evaluate(theirs, "greedy", rules, boards=12, seed=1) for _ in range(2))
    assert one.points_per_deal == two.points_per_deal
    assert one.points_per_deal > 0
    with pytest.raises(ValueError, match="puerto_rico"):
        strength.Dominoes().check(get_rules("sport_book"))


def test_peers__at_equal_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strength, "PEER_TILES", 18)
    monkeypatch.setattr(strength, "PEER_WORLDS", 2)
    result = strength.search(["greedy", "random"], boards=4, peers=True)
    found = result["peers"]["dominoes_probabilistic_alphabeta"]
    assert found["boards"] == 4 and found["low"] <= found["points"] <= found["high"]
    assert found["ms_per_move"] > 0 and found["ours_ms_per_move"] > 0
