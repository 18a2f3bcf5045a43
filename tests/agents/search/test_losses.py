"""Losses against double-dummy: they add up, agree with plain minimax, and are 0 for who plays exactly."""

import copy
import random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from agents.search import losses as module, solver
from agents.search.losses import Moves, deal_losses, joined, move_losses, moves_at
from domino_env import get_rules, make_engine
from domino_env.deals import Deal, boards, parse_deal
from domino_env.tiles import tiles_of
from tests import reference

GAMES = [  # (preset, overrides, deals): whole sets cost a hundred times what small ones do
    ("sport_book", {}, 8),
    ("sport_club", {}, 8),
    ("puerto_rico", {}, 8),
    ("kozyol", {}, 8),
    *(pytest.param(name, {}, 150, marks=pytest.mark.slow) for name in ("sport_book", "sport_club", "puerto_rico")),
    ("tiny_pairs", {}, 300),
    ("tiny_pairs", {"max_pip": 4, "hand_size": 3, "lone_blank": 10, "labelled_ends": True}, 200),
    ("sport_club", {"max_pip": 4, "hand_size": 3, "redeal": False}, 200),
    ("puerto_rico", {"max_pip": 5, "hand_size": 4}, 60),
    ("tiny_pairs", {"seats": 2, "pairs": False, "hand_size": 4}, 200),
]


def random_deals(rules: Any, count: int, seed: int) -> tuple[list[Deal], np.ndarray]:
    """Deals played at random to their end, and what they brought to each seat."""
    hands, leader = boards(rules, seed, 0, count)
    engine, rng = make_engine(rules, count, seed=0), np.random.default_rng(seed)
    engine.deal(hands, leader)
    deals = [Deal(rules, int(leader[i]), [tiles_of(int(hand)) for hand in hands[i]]) for i in range(count)]
    rewards, live = np.zeros((count, rules.seats)), np.arange(count)
    while len(live):
        actions = engine.sample_legal(rng)
        for row, action in zip(live, actions, strict=True):
            deals[row].moves.append(int(action))
        gain, done = engine.step(actions, autoreset=False)
        rewards[live[done]] = gain[done]
        live = live[~done]
        if len(live):
            engine = engine.take(~done)
    return deals, rewards


@pytest.mark.parametrize(("name", "overrides", "count"), GAMES, ids=str)
def test_losses_of_a_deal_add_up(name: str, overrides: dict[str, Any], count: int) -> None:
    """The lead's value less the result is what the leader's side lost more than the other; nothing is below 0."""
    rules = get_rules(name, **overrides)
    deals, rewards = random_deals(rules, count, 5)
    leader = np.array([deal.leader for deal in deals])
    hands = np.array([[sum(1 << tile for tile in hand) for hand in deal.hands] for deal in deals])
    value = solver.solve(hands, np.full((count, 2), -1), leader, rules).max(axis=1)
    losses = deal_losses(deals)
    assert min(loss.min() for loss in losses) == 0 and max(loss.max() for loss in losses) > 0
    own = np.array([loss[0::2].sum() - loss[1::2].sum() for loss in losses])  # seats move in turn, sides alternate
    assert (value - rewards[np.arange(count), leader] == own).all()


def minimax(table: reference.Table) -> int:
    """Net points of seat 0's side, all tried."""
    if table.result is not None:
        return int(table.rewards()[0])
    values = []
    for action in table.legal():
        after = copy.deepcopy(table)
        after.play(action)
        values.append(minimax(after))
    return min(values) if table.turn % 2 else max(values)


@pytest.mark.parametrize("name", ["sport_book", "sport_club", "puerto_rico"])
def test_losses_are_those_of_plain_minimax(name: str) -> None:
    changes: dict[str, Any] = {"max_pip": 3, "hand_size": 2, "redeal": False}
    rules, game, rng = get_rules(name, **changes), reference.make_game(name, **changes), random.Random(name)
    for _ in range(12):
        hands = reference.shuffled(game, rng)
        table = reference.Table(game, hands, rng.randrange(4))
        deal = Deal(rules, table.leader, [[reference.number(tile) for tile in hand] for hand in hands])
        expected = []
        while table.result is None:
            sign, legal, before = 1 - 2 * (table.turn % 2), table.legal(), minimax(table)
            deal.moves.append(rng.choice(legal))
            table.play(deal.moves[-1])
            expected.append(sign * (before - minimax(table)))
        (losses,) = deal_losses([deal])
        assert losses.tolist() == expected


def test_losses_by_hand() -> None:
    """Seat 0 should lay 0-0: seat 2 then blocks seat 3 with 0-3L, and 1-2 goes out for 6 + 5 + 2 = 13 pips.

    After 1-2R its side can only choose how seat 3 or 1 goes out: 3 pips at least (seat 2 lays 1-3R), 4 after 0-3L.
    """
    text = "tiny_pairs leader=3 | 0-0 1-2 | 2-3 3-3 | 0-3 1-3 | 0-1 0-2 | 0-1L "
    (wrong,) = deal_losses([parse_deal(text + "1-2R 2-3R 0-3L pass pass 3-3L")])
    assert wrong[1:].tolist() == [13 + 3, 0, 1, 0, 0, 0]
    right, begun = deal_losses([parse_deal(text + moves) for moves in ("0-0L pass 0-3L pass 1-2R", "1-2R")])
    assert right[1:].tolist() == [0, 0, 0, 0, 0]
    assert begun.tolist() == wrong[:2].tolist()  # what comes later does not matter


def test_deals_that_cannot_be_judged_are_refused() -> None:
    with pytest.raises(ValueError, match="not blitz"):
        deal_losses([Deal(get_rules("blitz"), 0, [])])
    book, club = (random_deals(get_rules(name), 1, 1)[0][0] for name in ("sport_book", "sport_club"))
    with pytest.raises(ValueError, match="one game"):
        deal_losses([book, club])
    engine = make_engine("sport_book", 2, seed=1)
    moves = moves_at(engine, np.array([56, 56]), np.arange(2), np.array([False, True]))
    assert moves.deal.tolist() == [1]
    with pytest.raises(ValueError, match="move 0, pass, is not legal"):
        move_losses(moves, engine.rules)
    assert deal_losses([]) == [] and deal_losses([Deal(book.rules, 0, book.hands)])[0].tolist() == []


def test_leads_are_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The values of a lead are kept, by rules and deal; what is kept gives what solving gives."""
    rules = get_rules("tiny_pairs", max_pip=4, hand_size=3)
    engine = make_engine(rules, 40, seed=3)
    first = engine.legal().argmax(axis=1)
    moves: Moves = moves_at(engine, first, np.arange(40), np.ones(40, bool))
    monkeypatch.setattr(module, "_leads", {})
    losses = move_losses(moves, rules)
    assert losses.any() and (move_losses(joined([moves, moves]), rules) == np.tile(losses, 2)).all()
    asked: list[int] = []
    whole = solver.solve

    def counted(hands: Any, *rest: Any, **options: Any) -> Any:
        asked.append(len(hands))
        return whole(hands, *rest, **options)

    monkeypatch.setattr(solver, "solve", counted)
    assert (move_losses(moves, rules) == losses).all() and asked == [0]
    other = get_rules("tiny_pairs", max_pip=4, hand_size=3, out_score="others")
    assert (move_losses(moves, other) != losses).any() and asked == [0, 40]
    monkeypatch.setattr(module, "_KEPT", 10)
    move_losses(moves, rules)
    assert len(module._leads) <= 10
