"""The benchmark measures what it says, in turns, and leaves the process as it was. No test looks at a speed."""

import os
import time

import pytest

from experiments import benchmark
from experiments.benchmark import Speed


def test_programs_take_turns_and_the_median_counts() -> None:
    calls: list[str] = []

    def program(name: str, moves: int) -> benchmark.Turn:
        def turn() -> int:
            calls.append(name)
            time.sleep(0.001)
            return moves

        return turn

    speeds = benchmark.measure({"a": program("a", 10), "b": program("b", 20)}, repeats=3, seconds=0.002)
    order = [name for i, name in enumerate(calls) if i == 0 or calls[i - 1] != name]
    assert order == ["a", "b"] * 4, "a warm-up and three turns each"
    assert len(speeds["a"].turns) == 3
    assert speeds["a"].wall < 10_001


def test_a_ratio_compares_neighbours() -> None:
    ours, theirs = Speed(0, 0, [10.0, 4.0, 100.0]), Speed(0, 0, [5.0, 2.0, 1.0])
    assert benchmark.ratio(ours, theirs) == 2.0


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system cannot pin")
def test_the_process_is_pinned_only_while_it_measures() -> None:
    before = os.sched_getaffinity(0)
    with pytest.raises(RuntimeError), benchmark.one_core() as core:
        assert os.sched_getaffinity(0) == {core}
        raise RuntimeError
    assert os.sched_getaffinity(0) == before


def test_where_the_system_cannot_pin_it_measures_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    with benchmark.one_core() as core:
        assert core is None


def test_a_turn_is_a_move_a_row() -> None:
    assert benchmark.engine_turn("sport_club", 33, 0)() == 33
    assert benchmark.yardstick_turn(33, 0)() == 33


def test_an_engine_of_16384_rows_is_small() -> None:
    megabytes = benchmark.engine_megabytes("sport_book")
    assert 0.1 < megabytes["held"] <= megabytes["peak"] < 64


def test_all_rows_are_measured_and_4096_is_the_headline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "ROWS", (16, 4096))
    said: list[str] = []
    result = benchmark.engine(seconds=0.1, say=said.append)
    assert [row["rows"] for row in result["by_rows"]] == [16, 4096]
    assert {key: result[key] for key in result["by_rows"][1]} == result["by_rows"][1]
    assert result["rows"] == 4096 and len(said) == 2


def test_peers_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(seed: int) -> benchmark.Turn:
        raise ModuleNotFoundError("nobody")

    monkeypatch.setattr(benchmark, "PEERS", {"dominoes": missing, "pettingzoo_texas_holdem": lambda seed: lambda: 5})
    result = benchmark.engine(rows=16, seconds=0.05, peers=True)
    assert result["peers_missing"] == ["dominoes"]
    assert list(result["peers"]) == list(result["ours"]) == list(result["ratios"]) == ["pettingzoo_texas_holdem"]
    assert result["goals"] == {"pettingzoo_texas_holdem": 2.0}


def test_games_are_held_against_sport(monkeypatch: pytest.MonkeyPatch) -> None:
    """Same rows, same run, the sport engine among them; what was there before stays as it is."""
    monkeypatch.setattr(benchmark, "GAME_ROWS", (16, 32))
    plain = benchmark.engine(rows=8, seconds=0.02)
    result = benchmark.engine(rows=8, seconds=0.02, games=True)
    assert set(result) - set(plain) == {"games", "game_goals"} and "games" not in plain
    assert [(row["rules"], row["rows"]) for row in result["games"]] == [(name, 8) for name in benchmark.GAMES]
    assert [row["times_slower"] for row in result["games"] if row["rules"] == "sport_book"] == [1.0]
    assert all(row["moves_per_second"] > 0 < row["times_slower"] for row in result["games"])
    monkeypatch.setattr(benchmark, "ROWS", (8,))
    rows = [row["rows"] for row in benchmark.engine(seconds=0.02, games=True)["games"]]
    assert rows == [16] * 4 + [32] * 4


@pytest.mark.parametrize("rules", benchmark.GAMES)
def test_every_game_has_a_turn(rules: str) -> None:
    assert benchmark.engine(rules, rows=8, seconds=0.02)["rules"] == rules


@pytest.mark.parametrize(
    ("name", "module"),
    [("dominoes", "dominoes"), ("openspiel_team_dominoes", "pyspiel"), ("pettingzoo_texas_holdem", "rlcard")],
)
def test_a_peer_plays_a_whole_game(name: str, module: str) -> None:
    pytest.importorskip(module)
    moves = benchmark.PEERS[name](3)()
    assert 4 <= moves <= 112


def test_our_raw_aec_env_is_played_as_the_peer_is() -> None:
    from domino_env.aec import raw_aec_env

    turn = benchmark.aec_turn(raw_aec_env("sport_book"), 3)
    assert all(20 <= turn() <= 60 for _ in range(5))


@pytest.mark.parametrize(
    ("keywords", "says"), [({"rows": 0}, "rows must be at least 1"), ({"seconds": 0}, "seconds must")]
)
def test_numbers_that_cannot_be(keywords: dict[str, int], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        benchmark.engine(**keywords)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="updates must be at least 1"):
        benchmark.trainer(updates=0)


def test_the_trainer_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(benchmark, "maskable_ppo", lambda seed: lambda decisions: time.sleep(0.1) or decisions)
    result = benchmark.trainer(updates=1)
    assert {"decisions_per_second", "peers"} <= set(result)
    assert result["updates"] == 1 and result["decisions"] > 20_000
    assert result["ratios"]["sb3_maskable_ppo"] > 0


def test_maskable_ppo_learns_on_our_lanes() -> None:
    pytest.importorskip("sb3_contrib")
    assert benchmark.maskable_ppo(0, num_envs=4, steps=8)(20) == 32
