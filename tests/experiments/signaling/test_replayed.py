"""Deals that were written down come back as the decisions that were made."""

import dataclasses

import numpy as np
import pytest

from domino_env.deals import Deal, format_deal
from domino_env.judge import Violation
from domino_env.match import Header, Played, Recorder, lay_out, next_deal
from domino_env.rules import get_rules
from domino_env.tiles import PASS, tiles_of
from experiments.signaling.record import play
from experiments.signaling.replayed import read_deals, replayed
from tests.records import match_record


def deals_of(moments):
    """The deals up to their last decision: hands and moves stand in it."""
    last = np.flatnonzero(np.diff(moments.deal, append=-1))
    hands = moments.hands[last] | moments.position.played[last]
    found = []
    for row, dealt in zip(last.tolist(), hands):
        events = moments.position.events[row]
        moves = [*(events[events >= 0] & 63).tolist(), int(moments.action[row])]
        rules, leader = moments.position.rules, int(moments.position.leader[row])
        found.append(Deal(rules, leader, [tiles_of(int(hand)) for hand in dealt], moves))
    return found


def same(one, other):
    fields = [field.name for field in dataclasses.fields(one) if field.name != "position"]
    assert all((getattr(one, name) == getattr(other, name)).all() for name in fields)
    for name in ("played", "voids", "sizes", "ends", "leader", "to_move", "events"):
        assert (getattr(one.position, name) == getattr(other.position, name)).all()


def test_replayed__as_it_was_played(tmp_path):
    moments = play("club", deals=9, seed=4).moments
    deals = deals_of(moments)
    lines = tmp_path / "deals.txt"
    lines.write_text("\n".join(map(format_deal, deals)))
    again = replayed(read_deals(lines))
    same(again, moments)
    some = replayed(deals, tiles=[5, 9], start=100)
    assert set(some.tiles.tolist()) == {5, 9} and some.deal.min() >= 100


def test_replayed__leads_that_were_bound():
    """Where 6-6 leads its lay is no choice (K1): not as it is played, nor as it is read from what was written."""
    moments = play("greedy", get_rules("sport_book", lead="double_six"), deals=12, seed=4).moments
    deals = deals_of(moments)
    assert all(deal.moves[0] % 28 == 27 for deal in deals) and moments.ply.min() > 0
    assert len(replayed(deals)) == len(moments)


def test_read_deals__of_a_match(tmp_path):
    path = tmp_path / "match.jsonl"
    match_record(path)
    deals = read_deals(path)
    assert deals and all(deal.moves for deal in deals)
    moments = replayed(deals)
    assert len(np.unique(moments.deal)) == len(deals)
    assert (moments.legal >> moments.action.astype(np.uint64) & np.uint64(1) == 1).all()


def test_read_deals__leaves_out_those_in_which_the_rules_were_broken(tmp_path):
    rng, path = np.random.default_rng(1), tmp_path / "judged.jsonl"
    head = Header(get_rules("sport_club"), ("Ann", "Bob", "Cid", "Dot"), judge="club")
    with Recorder.create(path, head) as recorder:
        for wrong in (False, True):
            engine = lay_out([recorder.standing], [next_deal(recorder.standing, 1)])
            while not engine.over()[0]:
                engine.step(engine.sample_legal(rng), autoreset=False)
            deal, broken = engine.record(0), ()
            if wrong:
                ply = next(i for i in range(1, len(deal.moves)) if deal.moves[i] != PASS)
                deal = dataclasses.replace(deal, moves=[*deal.moves[:ply], PASS])
                broken = (Violation("wrong_pass", (deal.leader + ply) % 4, ply, "end"),)
            recorder.append(Played(deal, broken))
            if not wrong:
                clean = deal
    assert read_deals(path) == [clean]


def test_errors():
    deal = deals_of(play("club", deals=1, seed=4).moments)[0]
    with pytest.raises(ValueError, match="no deals"):
        replayed([])
    with pytest.raises(ValueError, match="one game"):
        replayed([deal, dataclasses.replace(deal, rules=get_rules("sport_club"))])
    with pytest.raises(ValueError, match="have no moves"):
        replayed([dataclasses.replace(deal, moves=[])])
    with pytest.raises(ValueError, match=r"deal 0, move 2: .* is not legal there"):
        replayed([dataclasses.replace(deal, moves=[deal.moves[0], deal.moves[0]])])
    with pytest.raises(ValueError, match="one tile a turn"):
        replayed([dataclasses.replace(deal, rules=get_rules("blitz"))])
