"""Beliefs that know how the players play, held against enumeration, against play itself, and against each other."""

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from agents.base import decide, make_agent
from agents.search.beliefs import RulesBelief
from agents.search.position import PUBLIC, past, position_at
from agents.search.reading import (
    AsPlayed,
    ExactBelief,
    SampledBelief,
    SplitBelief,
    join_terms,
    ladder,
    log_factors,
    log_likelihood,
    policy_belief,
)
from domino_env import get_rules, make_engine
from domino_env.deals import Streams, row_keys
from domino_env.tiles import HIGH, LOW, NUM_TILES, PIPS, SUIT_MASK, mask_of, tiles_of

TINY = get_rules("tiny_pairs")
BOOK = get_rules("sport_book")
SMALL = get_rules("sport_club", hand_size=3, max_pip=4, redeal=False)  # 15 tiles, 3 of them left over
DUEL = get_rules("sport_book", seats=2, pairs=False, hand_size=6, max_pip=4, redeal=False)


class Soft:
    """Prefers heavy tiles, and those of suits that it holds more of; every legal move has a chance."""

    name = "soft"
    needs_history = False

    def probabilities(self, batch: Any) -> Any:
        hand = batch.obs[:, :NUM_TILES].astype(np.float64)
        suits = np.stack([hand[:, tiles_of(mask)].sum(axis=1) for mask in SUIT_MASK], axis=1)
        worth = 0.15 * PIPS + 0.5 * (suits[:, LOW] + suits[:, HIGH])
        worth = np.concatenate([worth, worth + 0.4, np.zeros((len(hand), 1))], axis=1)
        p = np.exp(worth) * batch.mask
        return p / p.sum(axis=1, keepdims=True)

    def act(self, batch: Any, /) -> Any:
        upto = self.probabilities(batch).cumsum(axis=1)
        return (upto <= (batch.rng.random(len(batch)) * upto[:, -1])[:, None]).sum(axis=1)


RANDOM: Any = make_agent("random")
CLUB: Any = make_agent("club")
GREEDY: Any = make_agent("greedy")
SOFT: Any = Soft()


def played(rules: Any, players: list[Any], rows: int, plies: int, seed: int) -> tuple[Any, Any]:
    """Deals that stand after so many plies, and ln of the chance with which each seat did what it did: (N, seats)."""
    engine = make_engine(rules, rows, seed=seed)
    keys = row_keys(seed, np.arange(rows), salt=1)
    log = np.zeros((rows, rules.seats))
    for ply in range(plies):
        actions, mover = np.zeros(engine.num_envs, np.int64), engine.to_move()
        free = engine.legal_count() > 1
        for seat, player in enumerate(players):
            mine = np.flatnonzero(mover == seat)
            if len(mine):
                batch = decide(engine, player, Streams(keys, ply), mine)
                actions[mine] = player.act(batch)
                p = player.probabilities(batch)[np.arange(len(mine)), actions[mine]]
                log[mine, seat] += np.where(free[mine], np.log(np.maximum(p, 1e-300)), 0)
        _, done = engine.step(actions, autoreset=False)
        if ply + 1 < plies or done.any():
            keys, log, engine = keys[~done], log[~done], engine.take(~done)
    return engine, log


def deals_of(position: Any, row: int) -> Any:
    """All ways to give out the hidden tiles of a row: (D, seats) uint32."""
    seats, viewer = position.rules.seats, int(position.viewer[row])

    def give(seat: int, left: tuple[int, ...]) -> Any:
        if seat == seats:
            yield ()
        elif seat == viewer:
            for rest in give(seat + 1, left):
                yield (int(position.own[row]), *rest)
        else:
            for hand in itertools.combinations(left, int(position.sizes[row, seat])):
                for rest in give(seat + 1, tuple(tile for tile in left if tile not in hand)):
                    yield (mask_of(hand), *rest)

    return np.array(list(give(0, tuple(tiles_of(int(position.hidden[row]))))), np.uint32)


def by_enumeration(position: Any, row: int, models: Any, floor: float = 0, temperature: float = 1) -> tuple[Any, Any]:
    """All deals that fit a row, and their probability, by asking every past question of every deal."""
    one = position.take(np.array([row]))
    deals = deals_of(one, 0)
    rules = RulesBelief(one.take(np.zeros(len(deals), np.int64)))
    deals = deals[rules.fits(deals)]
    weight = np.ones(len(deals))
    for ply in past(one, deals[:1]):
        seat, action = int(ply.seat[0]), int(ply.action[0])
        if seat == one.viewer[0] or not ply.chosen[0] or models[seat] in (None, "rules"):
            continue
        asked = ply.ask(np.zeros(len(deals), np.int64), deals[:, seat], history=True)
        legal = asked.mask.sum(axis=1)
        p = 1 / legal if models[seat] == "uniform" else models[seat].probabilities(asked)[:, action]
        p = (1 - floor) * p + floor / legal
        weight *= np.where(legal > 1, p, 1) ** (1 / temperature)
    if not weight.any():
        weight[:] = 1
    return deals, weight / weight.sum()


def agree(belief: Any, row: int, deals: Any, p: Any, exact: float = 1e-12) -> None:
    """The belief about a row is what its deals and their probabilities say."""
    position = belief.position
    bits = (deals[:, :, None] >> np.arange(NUM_TILES, dtype=np.uint32) & 1).astype(float)
    tiles = np.einsum("d,dst->st", p, bits)
    hidden = int(position.hidden[row]) >> np.arange(NUM_TILES) & 1
    rest = hidden * (1 - tiles.sum(axis=0))
    assert np.abs(belief.marginals()[row] - np.concatenate([tiles, rest[None]])).max() < exact
    holds = np.einsum("d,dsk->sk", p, (deals[:, :, None] & SUIT_MASK != 0).astype(float))
    assert np.abs(belief.holds()[row] - holds).max() < exact
    some = p[p > 0]
    assert abs(belief.entropy()[row] + (some * np.log2(some)).sum()) < 100 * exact
    for number in np.random.default_rng(row).choice(len(deals), min(len(deals), 8), replace=False):
        said = belief.log2_probability(np.tile(deals[number], (len(belief), 1)))[row]
        assert said == -np.inf if p[number] == 0 else abs(said - np.log2(p[number])) < 100 * exact


MIXES = [
    ([RANDOM, CLUB, RANDOM, GREEDY], [RANDOM, CLUB, "uniform", GREEDY], 0.0, 1.0),
    ([SOFT, RANDOM, CLUB, RANDOM], [SOFT, "rules", CLUB, SOFT], 0.05, 0.6),
    ([CLUB] * 4, [None, "uniform", GREEDY, CLUB], 0.2, 2.0),
]


@pytest.mark.parametrize(("players", "models", "floor", "temperature"), MIXES)
@pytest.mark.parametrize(
    ("rules", "plies", "viewer"),
    [(TINY, 0, 1), (TINY, 2, None), (TINY, 4, PUBLIC), (TINY, 5, 0), (SMALL, 7, None), (SMALL, 8, 2), (DUEL, 5, None)],
)
def test_exact_beliefs_are_those_of_enumeration(rules, plies, viewer, players, models, floor, temperature) -> None:
    engine, _ = played(rules, players[: rules.seats], 60, plies, seed=plies + 1)
    position = position_at(engine, viewer).take(np.arange(2))
    models = models[: rules.seats]
    belief = ExactBelief(position, models, floor=floor, temperature=temperature)
    for row in range(len(position)):
        agree(belief, row, *by_enumeration(position, row, models, floor, temperature))


def test_a_whole_deal_of_the_small_set_by_playing_every_deal() -> None:
    """Every deal of `tiny_pairs` is played along a history; what remains, weighed by the play, is the belief."""
    deck = tuple(tiles_of(mask_of(TINY.tiles)))
    pairs = np.array([mask_of(pair) for pair in itertools.combinations(deck, 2)], np.uint32)
    deals = pairs[:, None]
    for _ in range(3):  # all ways to add one more disjoint hand
        held = np.bitwise_or.reduce(deals, axis=1)
        where, hand = np.nonzero(held[:, None] & pairs == 0)
        deals = np.concatenate([deals[where], pairs[hand][:, None]], axis=1)
    assert len(deals) == 113_400
    players = [SOFT, CLUB, RANDOM, CLUB]
    engine, _ = played(TINY, players, 8, 4, seed=11)
    engine = engine.take(np.array([0]))
    history = engine.history(0)[0]
    leader, actions = int(engine.leader()[0]), history[history >= 0] & 63
    every: Any = make_engine(TINY, len(deals), seed=0)
    every.deal(deals, np.full(len(deals), leader))
    weight = np.ones(len(deals))
    for action in actions:
        fits = every.legal_bits() >> np.uint64(action) & np.uint64(1) != 0
        deals, weight, every = deals[fits], weight[fits], every.take(fits)
        player = players[int(every.to_move()[0])]
        p = player.probabilities(decide(every, player))[:, action]
        _, done = every.step(np.full(len(deals), action), autoreset=False)
        keep = (p > 0) & ~done
        deals, weight, every = deals[keep], (weight * p)[keep], every.take(keep)
    hands = every.hands()
    assert len(hands) > 50
    for viewer in (PUBLIC, 0, 1, 2, 3):
        position = position_at(engine, viewer)
        mine = np.ones(len(hands), bool) if viewer < 0 else hands[:, viewer] == position.own[0]
        agree(ExactBelief(position, players), 0, hands[mine], weight[mine] / weight[mine].sum())


@pytest.mark.parametrize("game", ["sport_book", "kozyol", "tiny_pairs", "blitz", "blitz6"])
def test_the_likelihood_of_the_true_hands_is_the_chance_of_what_was_played(game: str) -> None:
    rules = get_rules("blitz", seats=6) if game == "blitz6" else get_rules(game)
    counter: Any = make_agent("counter")
    players = [SOFT, counter if rules.chains else CLUB, RANDOM, SOFT, RANDOM, SOFT][: rules.seats]
    engine, log = played(rules, players, 60, 3 if rules == TINY else 9, seed=4)
    position = position_at(engine, 3)
    hands = engine.hands()
    found = log_likelihood(position, players, np.stack([hands, hands], axis=1))
    log[:, 3] = 0
    assert len(log) > 20 and (log < -0.5).any()
    assert np.abs(found[:, 0] - log).max() < 1e-9 and np.array_equal(found[:, 0], found[:, 1])
    assert np.abs(log_likelihood(position, players, hands[:, None], floor=0.3)[:, 0] - log).max() > 0.01


@pytest.mark.parametrize(
    ("fields", "plies", "viewer"),
    [
        ({}, 20, None),
        ({"seats": 5, "hand_size": 2, "max_pip": 3}, 3, None),
        ({"hand_size": 2, "max_pip": 3}, 0, 1),  # who leads is seen, what with is not
        ({"hand_size": 2, "max_pip": 3, "chain": "one"}, 0, 2),
        ({"hand_size": 2, "max_pip": 3, "chain": "one"}, 4, PUBLIC),
    ],
)
def test_exact_beliefs_of_blitz_are_those_of_enumeration(fields: Any, plies: int, viewer: Any) -> None:
    rules = get_rules("blitz", **fields)
    counter: Any = make_agent("counter")
    engine, _ = played(rules, [SOFT, counter, RANDOM, RANDOM, SOFT][: rules.seats], 120, plies, seed=1)
    position = position_at(engine, viewer)
    total = RulesBelief(position).total()
    few = np.flatnonzero(total > 50)
    few = few[np.argsort(total[few], kind="stable")[:2]]
    position, models = position.take(few), [SOFT, counter, "uniform", None, SOFT][: rules.seats]
    belief = ExactBelief(position, models)
    keys = row_keys(0, np.arange(2))
    worlds = belief.sample(300, keys)
    for row in range(2):
        deals, p = by_enumeration(position, row, models)
        agree(belief, row, deals, p)
        can_be = {tuple(deal) for deal in deals[p > 0].tolist()}
        assert {tuple(deal) for deal in worlds[row].tolist()} <= can_be
        assert len(np.unique(worlds[row], axis=0)) > min(len(can_be), 300) / 4


def test_by_the_rules_alone_it_is_the_rules_belief() -> None:
    for rules, plies, viewer in ((BOOK, 12, None), (BOOK, 15, PUBLIC), (TINY, 2, None), (get_rules("kozyol"), 13, 3)):
        engine, _ = played(rules, [GREEDY] * 4, 40, plies, seed=2)
        position = position_at(engine, viewer)
        belief, base = ExactBelief(position, ["rules"] * 4), RulesBelief(position)
        assert np.abs(belief.marginals() - base.marginals()).max() < 1e-12
        assert np.abs(belief.holds() - base.holds()).max() < 1e-12
        assert np.abs(belief.entropy() - base.entropy()).max() < 1e-11
        assert not belief.fell_back.any() and np.isinf(belief.ess).all()


def test_hands_that_would_have_been_dealt_again_have_no_weight() -> None:
    engine, _ = played(BOOK, [RANDOM] * 4, 3000, 13, seed=5)
    position = position_at(engine)
    matters = RulesBelief(position, True).total() / RulesBelief(position, False).total()
    position = position.take(np.argsort(matters, kind="stable")[:3])
    assert (np.sort(matters)[:3] < 0.97).all()
    with_, without = (ExactBelief(position, [SOFT] * 4, redeal=redeal) for redeal in (True, False))
    base = RulesBelief(position, True)
    for belief in (with_, without):
        worlds = belief.sample(400, row_keys(1, np.arange(len(position))))
        barred = [not base.fits(worlds[:, k]).all() for k in range(400)]
        assert any(barred) == (belief is without)
    assert (np.abs(with_.marginals() - without.marginals()).max(axis=(1, 2)) > 1e-6).all()


def test_limits_of_floor_and_temperature() -> None:
    engine, _ = played(BOOK, [CLUB] * 4, 10, 14, seed=3)
    position, club = position_at(engine), [CLUB] * 4
    uniform = ExactBelief(position, ["uniform"] * 4)
    floored = ExactBelief(position, club, floor=1.0)
    assert np.abs(uniform.marginals() - floored.marginals()).max() < 1e-12
    for belief in (
        ExactBelief(position, club, temperature=np.inf),
        SampledBelief(position, club, temperature=np.inf, candidates=5),
    ):
        assert np.abs(belief.entropy() - RulesBelief(position).entropy()).max() < 1e-11
    assert (np.abs(uniform.marginals() - RulesBelief(position).marginals()).max(axis=(1, 2)) > 1e-3).all()
    assert (np.abs(ExactBelief(position, club).marginals() - uniform.marginals()).max(axis=(1, 2)) > 1e-3).all()
    hot = ExactBelief(position, ["uniform"] * 4, temperature=3.0)
    assert (hot.entropy() > uniform.entropy()).all()


def test_random_players_are_uniform_ones_and_as_played_is_certain() -> None:
    engine, _ = played(BOOK, [RANDOM] * 4, 12, 13, seed=3)
    position = position_at(engine)
    one, two = (ExactBelief(position, models) for models in ([RANDOM] * 4, ["uniform"] * 4))
    assert np.abs(one.marginals() - two.marginals()).max() < 1e-12
    hands = engine.hands()[:, None]
    certain = log_likelihood(position, [AsPlayed(CLUB)] * 4, hands)
    assert np.array_equal(certain, log_likelihood(position, [CLUB] * 4, hands))
    assert set(np.unique(certain)) == {-np.inf, 0}


def test_moves_that_no_deal_explains_fall_back_to_the_rules_row_by_row() -> None:
    engine, _ = played(BOOK, [CLUB, RANDOM, CLUB, CLUB], 40, 12, seed=6)
    position = position_at(engine)
    base = RulesBelief(position)
    exact, sampled = ExactBelief(position, [CLUB] * 4), SampledBelief(position, [CLUB] * 4, candidates=40)
    assert exact.fell_back.any() and not exact.fell_back.all()
    assert not (exact.fell_back & ~sampled.fell_back).any()
    off = exact.fell_back
    assert np.abs(exact.marginals() - base.marginals())[off].max() < 1e-12
    assert (np.abs(exact.marginals() - base.marginals()).max(axis=(1, 2))[~off] > 1e-6).all()
    assert np.allclose(sampled.ess[off], 40) and np.allclose(sampled.entropy()[off], base.entropy()[off])
    hands = base.sample(1, row_keys(3, np.arange(len(position))))[:, 0]
    assert np.allclose(exact.log2_probability(hands)[off], -base.entropy()[off])
    assert np.allclose(sampled.log2_probability(hands)[off], -base.entropy()[off])
    # A floor explains everything.
    assert not ExactBelief(position, [CLUB] * 4, floor=1e-3).fell_back.any()


def test_sampled_beliefs_agree_with_exact_ones() -> None:
    engine, _ = played(BOOK, [SOFT] * 4, 6, 16, seed=7)
    position = position_at(engine).take(np.arange(3))
    models, keys = [SOFT] * 4, row_keys(5, np.arange(3))
    exact = ExactBelief(position, models)
    sampled = SampledBelief(position, models, candidates=6000, keys=keys)
    p = exact.marginals()
    error = np.sqrt(p * (1 - p) / sampled.ess[:, None, None]) + 1e-9
    assert (np.abs(sampled.marginals() - p) < 5 * error).all()
    assert (np.abs(sampled.holds() - exact.holds()) < 5 * np.sqrt(0.25 / sampled.ess)[:, None, None]).all()
    assert np.abs(sampled.entropy() - exact.entropy()).max() < 0.15
    hands = engine.hands()[:3]
    assert np.abs(sampled.log2_probability(hands) - exact.log2_probability(hands)).max() < 0.1
    assert np.abs(sampled.weights.sum(axis=1) - 1).max() < 1e-12
    for row in range(3):
        deals = deals_of(position, row)
        deals = deals[RulesBelief(position.take(np.full(len(deals), row))).fits(deals)]
        weight = np.exp(log_likelihood(position.take(np.array([row])), models, deals[None])[0].sum(axis=1))
        worth = weight.sum() ** 2 / (weight**2).sum() / len(weight)
        assert abs(sampled.ess[row] / 6000 - worth) < 0.15 * worth
    drawn = sampled.sample(2000, keys)
    held = (drawn[:, :, :, None] >> np.arange(NUM_TILES, dtype=np.uint32) & 1).mean(axis=1)
    assert np.abs(held - sampled.marginals()[:, :4]).max() < 5 * np.sqrt(0.25 / 2000)
    assert np.array_equal(sampled.sample(7, keys, start=3), drawn[:, 3:10])


@pytest.mark.parametrize(("rules", "plies", "viewer"), [(TINY, 3, PUBLIC), (TINY, 2, None), (BOOK, 17, None)])
def test_draws_from_an_exact_belief_follow_it(rules: Any, plies: int, viewer: Any) -> None:
    engine, _ = played(rules, [SOFT, RANDOM, SOFT, RANDOM], 12, plies, seed=9)
    position = position_at(engine, viewer).take(np.arange(3))
    models = [SOFT, "uniform", SOFT, "uniform"]
    belief = ExactBelief(position, models)
    keys, count = row_keys(6, np.arange(3)), 20_000
    worlds = belief.sample(count, keys)
    assert np.array_equal(belief.sample(50, keys, start=100), worlds[:, 100:150])
    one = ExactBelief(position.take(np.array([2])), models).sample(50, keys[2:])
    assert np.array_equal(one[0], worlds[2, :50])
    for row in range(3):
        deals, p = by_enumeration(position, row, models)
        order = np.lexsort(deals.T)
        deals, p = deals[order], p[order]
        drawn, times = np.unique(worlds[row], axis=0, return_counts=True)
        place = {tuple(deal): number for number, deal in enumerate(deals.tolist())}
        seen = np.zeros(len(deals))
        for deal, often in zip(drawn.tolist(), times):
            seen[place[tuple(deal)]] = often  # a deal that cannot be is a KeyError
        large = count * p > 5
        chi = ((seen - count * p)[large] ** 2 / (count * p)[large]).sum()
        free = max(int(large.sum()) - 1, 1)
        assert chi < free + 5 * np.sqrt(2 * free)
        hands, chance = belief.hands_of(row, int(np.argmax(np.arange(4) != position.viewer[row])))
        assert abs(chance.sum() - 1) < 1e-12 and len(hands) == len(set(hands.tolist()))


@pytest.mark.parametrize(("rules", "plies", "viewer"), [(TINY, 3, PUBLIC), (BOOK, 17, None), ("blitz", 0, None)])
def test_hand_lists_are_those_of_single_hands_beside_each_other(rules: Any, plies: int, viewer: Any) -> None:
    if rules == "blitz":  # before the lead a row has several cases
        rules = get_rules("blitz", max_pip=3, hand_size=2)
    engine, _ = played(rules, [SOFT if rules.kind == "line" else RANDOM] * 4, 12, plies, seed=9)
    position = position_at(engine, viewer)
    belief, other = (ExactBelief(position, [model] * 4) for model in ("uniform", None))
    assert len(position) > 3
    seat = (position.viewer + 1 + np.arange(len(position)) % 3) % 4
    seat = np.where(position.viewer < 0, np.arange(len(position)) % 5, seat)
    row, hands, chance = belief.hand_lists(seat)
    assert (other.hand_lists(seat)[1] == hands).all() and row.dtype == np.int64 and hands.dtype == np.uint32
    for one in range(len(position)):
        expected, p = belief.hands_of(one, int(seat[one]))
        assert np.array_equal(hands[row == one], expected) and np.array_equal(chance[row == one], p)
    # Nothing is said of the viewer's own hand.
    assert not len(ExactBelief(position_at(engine), ["uniform"] * 4).hand_lists(engine.to_move())[0])


def test_log_factors_are_those_of_whole_hands() -> None:
    engine, _ = played(BOOK, [CLUB] * 4, 6, 17, seed=4)
    position = position_at(engine, PUBLIC)
    models = [SOFT, "uniform", None, RANDOM]
    whole = log_likelihood(position, models, engine.hands()[:, None], 0.1)[:, 0]
    row, seat = np.nonzero(np.ones((len(position), 4)))
    found = log_factors(position, models, row, seat, engine.hands()[row, seat], 0.1)
    assert np.array_equal(found.reshape(-1, 4), whole) and (whole < 0).any()
    with pytest.raises(ValueError, match="row, ascending, seat and hands must be of one length"):
        log_factors(position, models, row[::-1], seat, engine.hands()[row, seat])


def _bits(belief: Any, hands: Any) -> Any:
    """(N,) bits of surprise at the true hands."""
    return -belief.log2_probability(hands)


def _surprises(deals: int, plies: int) -> dict[str, Any]:
    players = [CLUB, RANDOM, CLUB, RANDOM]
    engine, _ = played(BOOK, players, deals, plies, seed=21)
    steps = ladder(position_at(engine, 0), GREEDY, players, floor=1e-3)
    return {name: _bits(belief, engine.hands()) for name, belief in steps.items()}


def _check_ladder(bits: dict[str, Any]) -> None:
    for low, high in (("true", "uniform"), ("true", "rules"), ("true", "reference"), ("uniform", "rules")):
        gap = bits[high] - bits[low]  # a deal is a row: the error is that of independent rows
        assert gap.mean() > 2 * gap.std() / np.sqrt(len(gap)), (low, high)


def test_the_ladder_goes_up() -> None:
    _check_ladder(_surprises(60, 14))


@pytest.mark.parametrize("redeal", [True, False])
def test_the_settings_hold_on_every_rung(redeal: bool) -> None:
    engine, _ = played(BOOK, [RANDOM] * 4, 4, 15, seed=2)
    rungs: Any = ladder(position_at(engine), GREEDY, RANDOM, floor=0.1, redeal=redeal)
    for belief in rungs.values():
        rules = belief if isinstance(belief, RulesBelief) else belief.rules_belief
        assert (rules.redeal == redeal).all()


@pytest.mark.slow
def test_the_ladder_goes_up_at_length() -> None:
    for plies in (8, 12, 16):
        _check_ladder(_surprises(200, plies))


def _check_calibration(rules: Any, deals: int, plies: int, precise: float) -> None:
    engine, _ = played(rules, [SOFT] * 4, deals, plies, seed=31)
    belief = policy_belief(position_at(engine, 2), [SOFT] * 4, method="exact")
    off = _bits(belief, engine.hands()) - belief.entropy()
    error = off.std() / np.sqrt(len(off))  # a deal is a row
    assert abs(off.mean()) < 3 * error < precise


@pytest.mark.parametrize(("rules", "deals", "plies", "precise"), [(TINY, 3000, 3, 0.05), (BOOK, 120, 15, 0.5)])
def test_what_is_believed_comes_true_as_often_as_it_is_believed(rules, deals, plies, precise) -> None:
    _check_calibration(rules, deals, plies, precise)


@pytest.mark.slow
def test_what_is_believed_comes_true_at_length() -> None:
    for plies in (9, 12, 15):
        _check_calibration(BOOK, 500, plies, 0.25)


def test_auto_is_exact_where_that_is_cheap() -> None:
    engine, _ = played(BOOK, [RANDOM] * 4, 8, 9, seed=2)
    viewer = np.where(np.arange(engine.num_envs) % 2, PUBLIC, engine.to_move())
    position = position_at(engine, viewer)
    keys, models = row_keys(0, np.arange(len(position))), ["uniform"] * 4
    late = join_terms(RulesBelief(position)) <= 1_000_000
    assert 0 < late.sum() < len(late) and (position.viewer[late] >= 0).all()
    seen, blind = position.take(np.flatnonzero(late)), position.take(np.flatnonzero(~late))
    assert isinstance(policy_belief(seen, models), ExactBelief)
    sampled = policy_belief(blind, models, candidates=200, keys=keys[~late])
    assert isinstance(sampled, SampledBelief) and (sampled.ess < 200).all()
    split = policy_belief(position, models, candidates=300, keys=keys)
    assert isinstance(split, SplitBelief) and np.array_equal(np.isinf(split.ess), late)
    worlds = split.sample(3, keys)
    base = RulesBelief(position)
    assert all(base.fits(worlds[:, k]).all() for k in range(3))
    for rows, method in ((np.flatnonzero(late), "exact"), (np.flatnonzero(~late), "sampled")):
        part = policy_belief(position.take(rows), models, method=method, candidates=300, keys=keys[rows])
        assert np.array_equal(part.marginals(), split.marginals()[rows])
        assert np.array_equal(part.holds(), split.holds()[rows])
        assert np.array_equal(part.entropy(), split.entropy()[rows])
        hands = worlds[:, 0]
        assert np.array_equal(part.log2_probability(hands[rows]), split.log2_probability(hands)[rows])


def test_a_network_reads_alike_in_any_company() -> None:
    torch = pytest.importorskip("torch")
    networks = pytest.importorskip("agents.networks")
    actor = networks.make_actor("mlp", BOOK, [32, 32], torch.Generator().manual_seed(0))
    with torch.no_grad():
        actor.head.weight.mul_(60)
    policy = networks.Policy(actor, BOOK, sample=True)

    class Slow:
        """The same network without the quick way."""

        name, needs_history, probabilities, act = "slow", False, policy.probabilities, policy.act

    engine, _ = played(BOOK, [policy] * 4, 5, 12, seed=1)
    position, models = position_at(engine), [policy] * 4
    hands = RulesBelief(position).sample(200, row_keys(0, np.arange(len(position))))
    found = log_likelihood(position, models, hands)
    assert found[found < 0].std() > 0.1
    assert np.abs(found - log_likelihood(position, [Slow()] * 4, hands)).max() < 1e-4
    with pytest.raises(ValueError, match="was trained for"):
        log_likelihood(position_at(played(TINY, [RANDOM] * 4, 2, 1, 0)[0]), models, np.zeros((2, 1, 4), np.uint32))
    some = log_likelihood(position.take(np.array([3])), models, hands[3:4, 50:61])
    assert np.array_equal(some[0], found[3, 50:61])


def test_how_the_work_is_cut_up_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, _ = played(BOOK, [CLUB, SOFT, CLUB, SOFT], 9, 11, seed=1)
    position, models = position_at(engine, 2), [CLUB, SOFT, "uniform", CLUB]
    hands = RulesBelief(position).sample(30, row_keys(0, np.arange(len(position))))
    whole = log_likelihood(position, models, hands, floor=0.1)
    for name, value in (("_PAIRS", 7), ("_ASKED", 5), ("_ROWS", 2), ("_WORLDS", 100)):
        monkeypatch.setattr(f"agents.search.reading.{name}", value)
    assert np.array_equal(log_likelihood(position, models, hands, floor=0.1), whole)
    order = np.arange(len(position))[::-1]
    assert np.array_equal(log_likelihood(position.take(order), models, hands[order], floor=0.1), whole[order])


def test_refusals() -> None:
    engine, _ = played(BOOK, [RANDOM] * 4, 2, 6, seed=1)
    position = position_at(engine)
    models: list[Any] = ["uniform"] * 4
    hands = engine.hands()[:, None]
    with pytest.raises(ValueError, match="list of 4"):
        log_likelihood(position, models[:3], hands)
    with pytest.raises(ValueError, match="unknown model 'club'"):
        log_likelihood(position, ["club"] * 4, hands)
    with pytest.raises(ValueError, match="floor"):
        log_likelihood(position, models, hands, floor=1.5)
    with pytest.raises(ValueError, match="hands must be"):
        log_likelihood(position, models, hands[:, 0])
    with pytest.raises(ValueError, match="counter plays"):
        log_likelihood(position, [make_agent("counter")] * 4, hands)
    with pytest.raises(ValueError, match="temperature"):
        policy_belief(position, models, temperature=0)
    with pytest.raises(ValueError, match="candidates"):
        policy_belief(position, models, method="sampled", candidates=0)
    with pytest.raises(ValueError, match="choose from auto, exact, sampled"):
        policy_belief(position, models, method="guess")
    with pytest.raises(ValueError, match="too many for method='exact'"):
        policy_belief(position_at(engine, PUBLIC), models, method="exact")
    with pytest.raises(ValueError, match="no events"):
        log_likelihood(dataclasses.replace(position, events=None), models, hands)
