"""Worlds that a player imagines: drawn by the rules, weighed by a model, merged, joined, and refused."""

import dataclasses

import numpy as np
import pytest

from agents.base import decide
from agents.search import worlds as module
from agents.search.beliefs import RulesBelief
from agents.search.position import Position, position_at
from agents.search.worlds import Imagination, Worlds, joined, keys_of
from domino_env import get_rules, make_engine
from domino_env.deals import Streams
from domino_env.tiles import NUM_TILES, PIPS

BOOK = get_rules("sport_book")
TINY = get_rules("tiny_pairs")


class Modelled:
    """Plays each legal action with a chance that grows with its pips, `steep` of zero alike, infinite the heaviest."""

    def __init__(self, steep: float, name: str = "modelled") -> None:
        self.steep, self.name = steep, name
        self.asked: set[int] = set()

    def act(self, batch) -> np.ndarray:
        return self.probabilities(batch).argmax(axis=1)

    def probabilities(self, batch) -> np.ndarray:
        self.asked |= set(batch.seat.tolist())
        pips = np.append(np.tile(PIPS, 2), 0)[: batch.mask.shape[1]].astype(float)
        if np.isinf(self.steep):
            best = np.where(batch.mask != 0, pips - np.arange(len(pips)) / 1000, -1).argmax(axis=1)
            return np.eye(len(pips))[best]
        chance = np.where(batch.mask != 0, np.exp(self.steep * pips), 0)
        return chance / chance.sum(axis=1, keepdims=True)


def played(rules, rows: int, plies: int, seed: int = 4):
    """An engine after some random plies, without the deals that are over."""
    engine = make_engine(rules, rows, seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(plies):
        _, done = engine.step(engine.sample_legal(rng), autoreset=False)
        engine = engine.take(~done)
    return engine


def keys(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 53, count, dtype=np.uint64)


def told(worlds: Worlds, row: int) -> dict[tuple[int, ...], float]:
    """The weight of each world of a row."""
    found: dict[tuple[int, ...], float] = {}
    for hands, weight in zip(worlds.hands[row].tolist(), worlds.weights[row].tolist(), strict=True):
        if weight:
            found[tuple(hands)] = found.get(tuple(hands), 0) + weight
    return found


def close(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(abs(one[key] - other[key]) < 1e-9 for key in one)


def exact(position: Position, row: int, steep: float) -> dict[tuple[int, ...], float]:
    """The posterior of a row by the formula, all deals of the hidden tiles tried: what `Modelled` would have played."""
    from agents.search.reading import log_likelihood

    one = position.take(np.array([row]))
    hands = np.unique(RulesBelief(one).sample(4000, keys(1))[0], axis=0)[None]
    assert hands.shape[1] == RulesBelief(one).total()[0]  # all of them
    log = log_likelihood(one, [Modelled(steep)] * position.rules.seats, hands).copy()
    log[:, :, one.viewer[0]] = 0
    chance = np.exp(log.sum(axis=2)[0])
    return {tuple(deal): c / chance.sum() for deal, c in zip(hands[0].tolist(), chance.tolist(), strict=True)}


def test_worlds_by_the_rules_are_draws_of_the_belief_with_equal_ones_merged() -> None:
    position = position_at(played(BOOK, 40, 16))
    found = Imagination(50).draw(position, keys(len(position)))
    drawn = RulesBelief(position).sample(50, keys(len(position)))
    for row in range(len(position)):
        deals, counts = np.unique(drawn[row], axis=0, return_counts=True)
        assert close(told(found, row), dict(zip(map(tuple, deals.tolist()), (counts / 50).tolist(), strict=True)))
        assert (found.weights[row] > 0).sum() == len(deals)
    assert (found.weights == 0).any() and (found.ess == 50).all() and not found.fell_back.any()


def test_more_worlds_go_on_where_fewer_ended() -> None:
    position, chance = position_at(played(BOOK, 12, 9)), keys(30)
    position = position.take(np.arange(len(position)))
    chance = chance[: len(position)]
    mind = Imagination(64)
    whole = mind.draw(position, chance)
    parts = joined([mind.draw(position, chance, start, count) for start, count in ((0, 1), (1, 2), (3, 61))])
    assert parts.draws == whole.draws == 64 and np.allclose(parts.ess, 64)
    assert all(close(told(parts, row), told(whole, row)) for row in range(len(position)))
    other = mind.draw(position, chance, 64)
    assert not (other.hands == whole.hands).all(axis=(1, 2)).any()


def test_every_draw_resamples_by_a_chance_of_its_own(monkeypatch) -> None:
    numbers: list[np.ndarray] = []
    inner = module._chosen

    def chosen(hands, weights, count, chance):
        numbers.append(Streams(chance.keys, chance.counter).random(len(weights)))
        return inner(hands, weights, count, chance)

    monkeypatch.setattr(module, "_chosen", chosen)
    position, mind = position_at(played(BOOK, 6, 9)), Imagination(4, 8, "uniform")
    for start in (0, 1, 2, 0):
        mind.draw(position, keys(len(position)), start, 1)
    assert np.array_equal(numbers[0], numbers[3])
    assert (numbers[0] != numbers[1]).all() and (numbers[1] != numbers[2]).all()


def test_weights_are_those_of_the_formula() -> None:
    """Where there are few worlds all are kept, and their weights approach the posterior."""
    position = position_at(played(TINY, 60, 5))
    position = position.take(np.flatnonzero((total := RulesBelief(position).total()) <= 30)[:6])
    assert len(position) == 6 and (total > 1).any()
    found = Imagination(3000, 30_000, Modelled(1.0), temperature=1, floor=0).draw(position, keys(6))
    plain = Imagination(30_000).draw(position, keys(6))
    apart = 0.0
    for row in range(6):
        wanted, got, flat = exact(position, row, 1.0), told(found, row), told(plain, row)
        assert max(abs(wanted[key] - got.get(key, 0)) for key in wanted) < 0.015
        apart = max(apart, max(abs(wanted[key] - flat[key]) for key in wanted))
    assert apart > 0.05  # the model says something
    assert (found.ess < 30_000).any() and (found.ess > 1000).all()


def test_parts_join_by_the_weight_of_all_candidates() -> None:
    position = position_at(played(TINY, 60, 5))
    position = position.take(np.flatnonzero(RulesBelief(position).total() <= 20))
    mind = Imagination(400, 400, Modelled(0.5))
    chance = keys(len(position))
    whole = mind.draw(position, chance)
    parts = joined([mind.draw(position, chance, start, count) for start, count in ((0, 100), (100, 300))])
    assert np.allclose(parts.mass, whole.mass) and np.allclose(parts.ess, whole.ess)
    assert all(close(told(parts, row), told(whole, row)) for row in range(len(position)))


def test_a_temperature_and_a_floor_bring_worlds_nearer_to_alike() -> None:
    position, chance = position_at(played(BOOK, 20, 12)), keys(40)
    chance = chance[: len(position)]

    def ess(**options: float) -> np.ndarray:
        return Imagination(10, 200, Modelled(0.3), **options).draw(position, chance).ess

    sharp = ess(temperature=1, floor=0)
    assert (ess(temperature=2, floor=0) > sharp).mean() > 0.9
    assert (ess(temperature=1, floor=0.5) > sharp).mean() > 0.9
    assert np.allclose(ess(temperature=1e9, floor=0), 200)


def test_resampling_keeps_to_the_weights() -> None:
    rng = np.random.default_rng(1)
    weights = rng.random((1, 50)) ** 4
    weights[0, ::7] = 0
    weights /= weights.sum()
    hands = np.arange(50, dtype=np.uint32)[None, :, None].repeat(4, axis=2)
    times = 1500
    seen = np.zeros(50)
    for seed in range(times):
        chosen, given = module._chosen(hands, weights, 8, Streams(np.array([seed], np.uint64)))
        assert chosen.shape == (1, 8, 4) and abs(given.sum() - 1) < 1e-12
        share = np.zeros(50)
        np.add.at(share, chosen[0, :, 0], given[0])
        assert (np.abs(share * 8 - np.round(share * 8)) < 1e-9).all()
        assert (share * 8 > weights[0] * 8 - 1 - 1e-9).all() and (share * 8 < weights[0] * 8 + 1 + 1e-9).all()
        seen += share
    assert (seen[weights[0] == 0] == 0).all()
    assert np.abs(seen / times - weights[0]).max() < 5 * np.sqrt(0.25 / 64 / times)


def test_few_enough_worlds_keep_their_weights() -> None:
    weights = np.array([[0.5, 0, 0.25, 0.25, 0, 0], [0.4, 0.3, 0.2, 0.05, 0.05, 0]])
    hands = np.arange(12, dtype=np.uint32).reshape(2, 6, 1)
    chosen, given = module._chosen(hands, weights, 3, Streams(keys(2)))
    assert chosen[0, :, 0].tolist() == [0, 2, 3] and given[0].tolist() == [0.5, 0.25, 0.25]
    assert np.allclose(given[1] * 3, np.round(given[1] * 3))


@pytest.mark.parametrize(("reads", "away"), [("all", {1, 2, 3}), ("partner", {2}), ("opponents", {1, 3})])
def test_whose_moves_are_read(reads: str, away: set[int]) -> None:
    engine = played(BOOK, 30, 9)
    viewer = 1
    position = position_at(engine, viewer)
    model = Modelled(0.3)
    found = Imagination(10, 20, model, reads=reads).draw(position, keys(len(position)))
    others = {(viewer + seat) % 4 for seat in away}
    assert others <= model.asked <= others | {viewer}
    plain = Imagination(20).draw(position, keys(len(position)))
    assert (found.ess < plain.ess).all()


def test_nobody_is_read_and_candidates_are_drawn_as_ever() -> None:
    """All count alike, whatever they would have done; the model is not asked, known or not."""
    position = position_at(played(BOOK, 30, 9))
    model = Modelled(np.inf)
    for known in (False, True):
        found = Imagination(20, 20, model, floor=0, reads="none", known=known).draw(position, keys(len(position)))
        plain = Imagination(20).draw(position, keys(len(position)))
        assert not model.asked and not found.fell_back.any() and np.array_equal(found.ess, plain.ess)
        assert all(close(told(found, row), told(plain, row)) for row in range(len(position)))
    few = Imagination(10, 20, model, reads="none").draw(position, keys(len(position)))
    assert all(told(few, row).keys() <= told(plain, row).keys() for row in range(len(position)))
    assert "reads=none" in Imagination(10, 20, model, reads="none").options()
    Imagination(10, 20, model, reads="none").check(get_rules("sport_book", seats=2, pairs=False))


def test_all_weights_zero_falls_back_to_the_rules_and_says_so() -> None:
    position = position_at(played(BOOK, 40, 12))
    chance = keys(len(position))
    found = Imagination(20, 20, Modelled(np.inf), floor=0).draw(position, chance)
    lost = found.fell_back
    assert lost.sum() > 5
    plain = Imagination(20).draw(position, chance)
    assert all(close(told(found, row), told(plain, row)) for row in np.flatnonzero(lost))
    assert np.array_equal(found.ess[lost], _kish(plain)[lost])
    half = joined([Imagination(20, 20, Modelled(np.inf), floor=0).draw(position, chance, 0, 10), found])
    assert (half.fell_back <= lost).all() and np.allclose(half.weights.sum(axis=1), 1)
    assert not Imagination(20, 20, Modelled(np.inf), floor=0.1).draw(position, chance).fell_back.any()


def _kish(worlds: Worlds) -> np.ndarray:
    """Of draws that count alike: their number, however they are merged."""
    return np.full(len(worlds.weights), float(worlds.draws))


def test_passes_that_cannot_be_are_forgotten() -> None:
    position = position_at(played(BOOK, 8, 10))
    chance = keys(len(position))
    voids = position.voids.copy()
    voids[2] = 0x7F  # nobody holds anything
    wrong = dataclasses.replace(position, voids=voids)
    with pytest.raises(ValueError, match="row 2"):
        RulesBelief(wrong)
    found, plain = Imagination(5).draw(wrong, chance), Imagination(5).draw(position, chance)
    rest = np.arange(len(position)) != 2
    assert np.array_equal(found.hands[rest], plain.hands[rest])
    voids[2] = 0
    free = Imagination(5).draw(dataclasses.replace(position, voids=voids), chance)
    assert np.array_equal(found.hands[2], free.hands[2])
    sizes = position.sizes.copy()
    sizes[2] += 1
    with pytest.raises(ValueError, match="row 2"):
        Imagination(5).draw(dataclasses.replace(wrong, sizes=sizes), chance)


def test_a_wrong_pass_that_stood_is_played_on_with() -> None:
    """A judge lets a wrong pass stand (J3): what the seat then holds may be anything, and a model may rule all out."""
    engine = make_engine(BOOK, 20, seed=2)
    rng = np.random.default_rng(2)
    for ply in range(6):
        actions = engine.sample_legal(rng)
        if ply == 3:
            engine.allow_pass(np.arange(20))
            actions[:] = 2 * NUM_TILES
        engine.step(actions, autoreset=False)
    position = position_at(engine)
    found = Imagination(5, 20, Modelled(0.1)).draw(position, keys(20))
    assert np.allclose(found.weights.sum(axis=1), 1)


def test_keys_are_one_number_a_row() -> None:
    engine = make_engine(BOOK, 6, seed=0)
    streams = Streams.of(3, np.arange(6))
    got = keys_of(decide(engine, rng=streams))
    assert got.dtype == np.uint64 and len(set(got.tolist())) == 6
    assert streams.counter == 1
    assert np.array_equal(got[2:4], keys_of(decide(engine, rng=Streams.of(3, np.arange(6)), rows=np.array([2, 3]))))
    with pytest.raises(ValueError, match="rng"):
        keys_of(decide(engine))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"worlds": 0}, "worlds=0 must be"),
        ({"worlds": 2.0}, "worlds=2.0 must be"),
        ({"candidates": -1}, "candidates=-1 must be"),
        ({"candidates": 100}, "need a model"),
        ({"worlds": 30, "candidates": 20, "model": "uniform"}, "at least worlds=30"),
        ({"temperature": 0}, "temperature=0 must be"),
        ({"temperature": -1}, "temperature=-1 must be"),
        ({"temperature": float("nan")}, "temperature=nan must be"),
        ({"floor": 1.5}, "floor=1.5 must be"),
        ({"floor": -0.1}, "floor=-0.1 must be"),
        ({"reads": "mine"}, "all, partner, opponents, none"),
        ({"model": "nobody"}, "model='nobody' is no agent"),
        ({"model": "greedy:x=1"}, "model=greedy:x=1: agent greedy has no option"),
    ],
)
def test_refusals(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Imagination(**options)


def test_a_model_must_say_its_probabilities_and_play_the_game() -> None:
    class Silent:
        name = "silent"

        def act(self, batch) -> np.ndarray:
            return batch.mask.argmax(axis=1)

    with pytest.raises(ValueError, match="model=silent: agent silent has no probabilities"):
        Imagination(model=Silent())
    model = Modelled(1)
    model.rules = BOOK
    Imagination(model=model).check(BOOK)
    with pytest.raises(ValueError, match="trained for sport_book, not for tiny_pairs"):
        Imagination(model=model).check(TINY)
    two = get_rules("sport_book", seats=2, pairs=False)
    with pytest.raises(ValueError, match="without partners"):
        Imagination(reads="partner").check(two)


def test_candidates_follow_from_the_model() -> None:
    assert Imagination(7).candidates == 0
    assert Imagination(7, model="uniform").candidates == 70
    assert Imagination(7, 0, "uniform").candidates == 0
