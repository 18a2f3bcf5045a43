"""The registry of agents, and the question they are asked."""

import dataclasses
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from agents import base
from agents.base import Agent, Decisions, decide, folder_of, list_agents, make_agent, register_agent
from domino_env import PRESETS, make_engine
from domino_env.deals import Streams


class Spy:
    name = "spy"

    def act(self, batch: Decisions) -> np.ndarray:
        return batch.mask.argmax(axis=1)


def test_list_agents__the_house_players_with_one_line_each():
    known = dict(list_agents())
    assert set(known) >= {"random", "greedy", "double_first", "club", "counter", "memory"}
    assert all(text and "\n" not in text for text in known.values())


def test_folder_of__a_registered_name_goes_first(tmp_path, monkeypatch):
    """A folder that happens to be called as a player is no checkpoint."""
    monkeypatch.chdir(tmp_path)
    for name in ("greedy", "pimc-30", "mine"):
        (tmp_path / name).mkdir()
    assert make_agent("greedy").name == "greedy"
    assert [folder_of(name) for name in ("greedy", "pimc-30", "greedy:", "", "gone", Spy())] == [None] * 6
    assert folder_of("mine") == Path("mine") == folder_of(Path("mine"))


def test_make_agent__by_name_and_as_given():
    for name in ("random", "greedy", "double_first", "club", "counter", "memory"):
        agent = make_agent(name)
        assert isinstance(agent, Agent) and agent.name == name
    spy = Spy()
    assert make_agent(spy) is spy


def test_make_agent__options_in_the_name():
    club = make_agent("club:repeat_partner=0, cut_opponents=2.5")
    assert club.weights["repeat_partner"] == 0 and club.weights["cut_opponents"] == 2.5
    assert club.weights["play_heavy"] == make_agent("club").weights["play_heavy"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gredy", "random, greedy, double_first, club"),
        ("runs/nowhere/checkpoints/latest", "folder of a checkpoint"),
        ("", "choose from"),
        ("club:repeat=1", "maxims are .*repeat_partner"),
        ("club:repeat_partner=much", "finite number"),
        ("club:repeat_partner=true", "finite number"),
        ("club:repeat_partner=nan", "finite number"),
        ("club:repeat_partner", "option=value"),
        ("club:repeat_partner=1,repeat_partner=2", "each once"),
        ("greedy:speed=3", "no option 'speed'"),
        (Spy, "no agent"),
        (None, "no agent"),
    ],
)
def test_make_agent__says_what_is_wrong(text, says):
    with pytest.raises(ValueError, match=says):
        make_agent(text)


def test_make_agent__refuses_a_game_that_the_agent_cannot_play():
    """By name, with options, and as given; one line that says what it plays."""
    for agent in ("club", "club:play_heavy=2", make_agent("club")):
        with pytest.raises(ValueError, match=r"^club plays [^\n]*, not blitz$"):
            make_agent(agent, "blitz")
        assert make_agent(agent, "kozyol").name == "club"
    plays_all = Spy()
    for game in PRESETS:
        assert make_agent(plays_all, game) is plays_all
        for name in ("random", "greedy", "double_first"):
            make_agent(name, game)
        assert sum(_plays(name, game) for name in ("club", "counter", "memory")) == 1, "one rule player a game"


def _plays(name: str, game: str) -> bool:
    try:
        make_agent(name, game)
    except ValueError:
        return False
    return True


def test_register_agent__name_once_and_writable(monkeypatch):
    monkeypatch.setattr(base, "_REGISTRY", dict(base._REGISTRY))

    def timid(speed: int = 1) -> Spy:
        """Plays what comes first.

        More about it.
        """
        spy = Spy()
        spy.speed = speed
        return spy

    register_agent("timid", timid)
    assert dict(list_agents())["timid"] == "Plays what comes first."
    assert make_agent("timid:speed=4").speed == 4
    with pytest.raises(ValueError, match="already"):
        register_agent("timid", timid)
    for name in ("", "a:b", "a/b", "a b"):
        with pytest.raises(ValueError, match="word"):
            register_agent(name, timid)


def test_make_agent__a_folder_is_a_checkpoint(tmp_path, monkeypatch):
    asked = []
    fake = types.ModuleType("agents.checkpoint")
    fake.load_policy = lambda folder, rules=None: asked.append((folder, rules)) or Spy()
    monkeypatch.setitem(sys.modules, "agents.checkpoint", fake)
    assert isinstance(make_agent(str(tmp_path), "sport_club"), Spy)
    assert asked == [(tmp_path, PRESETS["sport_club"])]
    monkeypatch.setitem(sys.modules, "agents.checkpoint", None)  # as where torch is not installed
    with pytest.raises(ImportError, match=r"domino-lab\[train\]"):
        make_agent(str(tmp_path))


def test_agents__need_no_torch():
    code = "import agents, sys; agents.make_agent('club'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_decide__holds_no_more_than_the_agent_may_see():
    engine = make_engine("sport_book", 8, seed=1)
    batch = decide(engine, Spy(), np.random.default_rng(0))
    assert batch.table is None and batch.history is None and batch.rules == engine.rules and len(batch) == 8
    assert (batch.obs == engine.observe()).all() and (batch.mask == engine.legal()).all()

    reader, seer = Spy(), Spy()
    reader.needs_history, seer.sees_everything = True, True
    assert decide(engine, reader).history.shape == (8, engine.rules.max_plies)
    assert decide(engine, reader).table is None
    assert (decide(engine, seer).table.hands == engine.hands()).all()


def test_decide__rows_take_their_own_chance_and_key():
    engine = make_engine("sport_book", 8, seed=1)
    rows, keys = np.array([5, 2]), np.arange(8) * 10
    batch = decide(engine, None, Streams.of(7, np.arange(8)), rows, keys)
    assert (batch.obs == engine.observe()[rows]).all() and (batch.seat == engine.to_move()[rows]).all()
    assert batch.key.tolist() == [50, 20]
    assert (batch.rng.random(2) == Streams.of(7, np.arange(8)).random(8)[rows]).all()


def test_a_number_after_a_dash_is_the_option_that_the_player_names_for_it() -> None:
    made: list[dict[str, object]] = []

    def counted(rounds: int = 1, other: float = 0.0) -> Agent:
        made.append({"rounds": rounds, "other": other})
        return make_agent("greedy")

    register_agent("counted", counted, "for a test", number="rounds")
    try:
        for name in ("counted", "counted-30", "counted:rounds=30", "counted-30:other=2"):
            make_agent(name)
        assert [one["rounds"] for one in made] == [1, 30, 30, 30] and made[-1]["other"] == 2
        with pytest.raises(ValueError, match="each once"):
            make_agent("counted-30:rounds=2")
        for name in ("greedy-30", "counted-", "counted-x", "counted-3.5"):
            with pytest.raises(ValueError, match="unknown agent"):
                make_agent(name)
        with pytest.raises(ValueError, match="no option 'round'; it has rounds, other"):
            make_agent("counted:round=3")
    finally:
        del base._REGISTRY["counted"], base._NUMBER["counted"]


def test_search_players_are_listed_without_numba_and_name_the_extra_that_brings_it() -> None:
    """The environments, the trainers and the rule players do not need it."""
    code = """
import sys
sys.modules["numba"] = None
sys.modules["llvmlite"] = None
import domino_env, agents, experiments.evaluate, experiments.train
from agents import list_agents, make_agent
names = [name for name, _ in list_agents()]
assert {"pimc", "lookahead", "ismcts", "cheat"} <= set(names)
for name in ("pimc-30", "lookahead", "ismcts", "cheat"):
    try:
        make_agent(name)
    except ImportError as error:
        assert "domino-lab[search]" in str(error), error
    else:
        raise AssertionError(name)
experiments.evaluate.evaluate("club", "greedy", boards=2)
assert "agents.search.position" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_some_of_the_decisions_have_everything_of_theirs() -> None:
    engine = make_engine("sport_book", 6, seed=1)
    for _ in range(5):
        engine.step(engine.legal().argmax(axis=1))
    batch = decide(engine, make_agent("cheat"), Streams.of(3, np.arange(6)), key=np.arange(6))
    batch = dataclasses.replace(batch, history=engine.history())
    for rows in (np.array([4, 1]), np.arange(6) == 2):
        some = batch.take(rows)
        for name in ("obs", "mask", "seat", "history", "key"):
            assert np.array_equal(getattr(some, name), getattr(batch, name)[rows])
        assert some.table is not None and np.array_equal(some.table.hands, engine.hands()[rows])
        assert np.array_equal(some.rng.random(len(some)), Streams.of(3, np.arange(6)).random(6)[rows])
        assert some.rules == engine.rules
    drawn = np.random.default_rng(0)
    assert dataclasses.replace(batch, rng=drawn, history=None).take(np.array([0])).rng is drawn
