"""Maxims: what follows them at tables laid out by hand, players made to follow them, rates, and points."""

import json
import math

import numpy as np
import pytest

from agents import make_agent
from agents.base import decide
from agents.baselines import MAXIMS as CLUB
from domino_env import get_rules, make_engine
from experiments.evaluate import evaluate
from experiments.signaling.maxims import ALIKE, LESS, MORE, TAUGHT, Follower, follows, maxims, worths
from experiments.signaling.moves import situation
from experiments.signaling.record import play
from tests.experiments.signaling.test_moves import TABLES, stands

LEADS = "6-6 0-6 3-3 2-2 1-2 0-1 0-4"


def told(name: str, moves: str, hand: str) -> tuple[set[str], bool, bool]:
    """The legal moves that follow a maxim, whether it is open to be followed or broken, and whether that is free."""
    s, maxim = stands(moves, hand), TAUGHT[name]
    which = maxim.follows(s) & maxim.within(s) & s.legal_lays
    named = {s.position.rules.action_name(action) for action in np.flatnonzero(which[0]).tolist()}
    return named, bool(maxim.open_to(s)[0]), bool(maxim.free(s)[0])


@pytest.mark.parametrize(
    ("name", "moves", "hand", "expected", "open_to", "free"),
    [
        ("repeat_partner", *TABLES["both ends"][0], "0-3R", True, False),
        ("repeat_partner", *TABLES["left opponent"][0], "", False, False),
        ("lead_high_double", "", LEADS, "6-6L", True, False),
        ("lead_high_double", "", "6-6 0-0 3-3 0-3 1-2 2-4 2-5", "3-3L", True, False),  # 6-6 is bare
        ("lead_high_double", "", "6-6 0-1 0-3 0-4 1-2 2-4 2-5", "", False, False),
        ("no_bare_double", "", LEADS, "6-6L 0-6L 2-2L 1-2L 0-1L 0-4L", True, False),
        ("no_bare_double", "", "0-1 0-3 0-4 0-0 1-2 2-4 2-5", "0-1L 0-3L 0-4L 0-0L 1-2L 2-4L 2-5L", False, False),
        ("mixed_lead", "", LEADS, "0-1L 0-4L", True, False),  # 6-6, 2-2 and 3-3 are its own
        ("respect_lead", *TABLES["third hand"][0], "0-5L 5-5L 2-5L", True, False),
        ("respect_lead", "6-6L 5-6L", "0-6 0-1 0-5 0-2 2-5 0-3 3-4", "0-5L 2-5L", True, True),  # five of 0
        ("respect_lead", *TABLES["both ends"][0], "0-3L 0-3R 0-6L 3-3R 0-0L 3-5R 0-1L", False, False),  # its own lead
        ("cover_lead", "6-6L 5-6L 0-5L", "1-6 2-6 0-1 0-2 1-1 2-2 3-3", "1-6R 2-6R", True, False),
        ("cover_lead", "6-6L 5-6L 0-5L", "1-6 2-6 3-6 0-2 1-1 2-2 3-3", "1-6R 2-6R 3-6R", True, True),
        ("cover_lead", *TABLES["third hand"][0], "0-6R 1-6R", False, False),  # the partner's lead
    ],
)
def test_what_follows_a_maxim(name, moves, hand, expected, open_to, free):
    assert told(name, moves, hand) == (set(expected.split()), open_to, free)


@pytest.mark.parametrize("name", TAUGHT)
def test_followers__do_as_they_are_told(name):
    """Always and never, wherever that can be; and where it cannot, as they play otherwise."""
    club, maxim = make_agent("club"), TAUGHT[name]
    for follow in (True, False):
        moments = play(Follower(make_agent("random"), name, follow), deals=60, seed=7).moments
        s, lay = situation(moments), (np.arange(len(moments)), moments.action % 56)
        bound, within = maxim.open_to(s) & ~maxim.free(s), (maxim.within(s) & s.legal_lays)[lay]
        assert (bound & within).sum() >= 5 and (maxim.follows(s)[lay] == follow)[bound & within].all()
        if name == "mixed_lead":  # it says which of these, and not that no double be led
            assert (bound & ~within).sum() >= 5
    engine = make_engine("sport_book", 200, seed=3)
    batch = decide(engine, club)
    s, player = situation(play("club", deals=1).moments), Follower(club, "repeat_partner")
    assert (player.act(batch) == club.act(batch)).all()  # nobody has opened anything
    assert np.allclose(player.probabilities(batch), club.probabilities(batch)) and len(s)


def test_rates__beside_those_of_others():
    player = Follower(make_agent("club"), "repeat_partner")
    record = play(player, deals=60, seed=2)
    others = {"itself": player, "never": Follower(make_agent("club"), "repeat_partner", False), "uniform": "uniform"}
    (answer,) = follows(record, others, taught=["repeat_partner"], least=20)
    assert answer.rate.mean == 1 and answer.rates["never"].mean == 0 and answer.count > 50
    s, maxim = situation(record.moments), TAUGHT["repeat_partner"]
    some = maxim.open_to(s)
    share = [
        (maxim.follows(s)[row] & s.legal_lays[row]).sum() / s.legal_lays[row].sum() for row in np.flatnonzero(some)
    ]
    assert answer.rates["uniform"].mean == pytest.approx(np.mean(share)) and answer.count == len(share)
    assert answer.differences["uniform"].mean == pytest.approx(1 - np.mean(share))
    assert {name: answer.compared(name) for name in others} == {"itself": ALIKE, "never": MORE, "uniform": MORE}
    (few,) = follows(record, others, taught=["repeat_partner"], least=10_000)
    assert math.isnan(few.rate.mean) and few.compared("never") == "unknown" and few.knows_when == ""


def test_rates__within_what_a_maxim_chooses_among():
    """Of mixed leads, which; a player that hardly leads any is not held to be against it."""
    record = play("random", deals=300, seed=4)
    (answer,) = follows(record, {"uniform": "uniform"}, taught=["mixed_lead"], least=20)
    s, maxim = situation(record.moments), TAUGHT["mixed_lead"]
    some = maxim.open_to(s)
    mixed = maxim.within(s)[some] & s.legal_lays[some]
    expected = (mixed & maxim.follows(s)[some]).sum(axis=1) / s.legal_lays[some].sum(axis=1)
    under = mixed.sum(axis=1) / s.legal_lays[some].sum(axis=1)
    assert answer.rate.mean == pytest.approx(expected.sum() / under.sum())
    assert answer.compared("uniform") == ALIKE


def test_the_clause__is_asked_for():
    """Who covers an opponent's lead unless it holds three of it does so less often where it does."""
    record = play(Follower(make_agent("random"), "cover_lead"), deals=400, seed=5)
    (knows,) = follows(record, {}, taught=["cover_lead"], least=20)
    assert knows.rate.mean == 1 and knows.split.high < 0 and knows.knows_when == "yes"
    (blind,) = follows(play("random", deals=400, seed=5), {}, taught=["respect_lead"], least=20)
    assert blind.unless and blind.knows_when in ("no", "unknown")
    never = play(Follower(make_agent("random"), "cover_lead", False), deals=400, seed=5)
    (other,) = follows(never, {"uniform": "uniform"}, taught=["cover_lead"], least=20)
    assert other.compared("uniform") == LESS and other.knows_when == "no"


def test_worths():
    player = Follower(make_agent("club"), "repeat_partner")
    (same,) = worths("sport_book", 20, 1, base=player, taught=["repeat_partner"], weights=[])
    assert same.kept.mean == 0 == same.kept.error  # it follows it anyway
    (lead,) = worths("sport_book", 20, 1, taught=["mixed_lead"], weights=[])
    for one in (lead.kept, lead.left):
        assert one.mean == 0 == one.error  # club leads no mixed tile where it says which
    done = []
    found = maxims(
        "sport_book",
        20,
        1,
        taught=["lead_high_double"],
        weights=["play_heavy", "stop_next"],
        record=play("club", deals=20),
        least=5,
        progress=lambda *now: done.append(now),
    )
    assert done[-1] == (6, 6) and [one.maxim for one in found.worths] == ["lead_high_double", "play_heavy", "stop_next"]
    assert all(one.kept.units == 20 and one.left.error > 0 for one in found.worths)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["worths"][1]["kept"]["mean"] == found.worths[1].kept.mean and plain["answers"][0]["count"] > 5


def test_worths__are_points_of_the_player_with_the_maxim():
    words = ("sport_book", 60, 2)
    taught, stop, heavy = worths(*words, taught=["repeat_partner"], weights=["stop_next", "play_heavy"])
    club, alone = make_agent("club"), ",".join(f"{name}=0" for name in CLUB if name not in ("stop_next", "play_heavy"))
    never = ",".join(f"{name}=0" for name in CLUB)
    for found, a, b in (
        (taught.kept, Follower(club, "repeat_partner"), club),
        (taught.left, Follower(club, "repeat_partner", False), club),
        (stop.kept, f"club:{alone}", f"club:{alone},stop_next=0"),
        (stop.left, "club:stop_next=0", "club"),
        (heavy.kept, f"club:{alone},stop_next=0", f"club:{never}"),
        (heavy.left, "club:play_heavy=0", "club"),
    ):
        assert found.mean == pytest.approx(evaluate(a, b, *words).points_per_deal) and found.mean != 0


def test_errors():
    with pytest.raises(ValueError, match="unknown maxim 'wink'"):
        Follower(make_agent("club"), "wink")
    with pytest.raises(ValueError, match="club has no maxim 'wink'"):
        worths(boards=2, weights=["wink"])
    alone = get_rules("sport_book", pairs=False)
    with pytest.raises(ValueError, match="pairs=False has none"):
        Follower(make_agent("club"), "mixed_lead").check(alone)
    with pytest.raises(ValueError, match="pairs=False has none"):
        follows(play("random", alone, deals=1), {})
    with pytest.raises(ValueError, match="the record is of sport_book"):
        maxims("sport_club", 2, record=play("random", deals=1))
