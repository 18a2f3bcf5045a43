"""The judge (J1-J6): every row and column of the club's table, every rung of the book's ladder, and edge cases."""

import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from domino_env import get_rules, make_engine
from domino_env.judge import (
    BARRED,
    BOOK,
    CLUB,
    DECISIONS,
    KINDS,
    LADDER,
    Fixture,
    Violation,
    Withdrawal,
    choices,
    fate,
    judge,
    matches_left,
    overtime,
    record,
    stopped,
    verdict,
    verdicts,
    violation,
    warnings,
    withdraw,
)
from domino_env.tiles import mask_of, tile_index

PAIRS = st.integers(0, 40)


def out(winner, pips, by=None):
    """The raw result of an out: the winners' points are the pips that the others have left (S6)."""
    lost = sum(pips[seat] for seat in range(4) if seat % 2 != winner)
    points = [lost, 0] if winner == 0 else [0, lost]
    return raw("out", winner, points, pips, winner if by is None else by)


def raw(outcome, winner, points, pips, by=0):
    """A raw result as the engine gives it."""
    return {"outcome": outcome, "winner": winner, "points": points, "pips_left": list(pips), "by": by, "plies": 30}


def tied(total=30, credit=True):
    """An equal block: both are credited in the club, nothing in the book (S7)."""
    return raw("block", None, [total, total] if credit else [0, 0], [total - 10, 5, 10, total - 5])


LOST = out(1, [9, 0, 6, 11])  # pair 0 lost 0:15
WON = out(0, [0, 9, 4, 8])  # pair 0 won 17:0


def times(kind, n, seat=0, **fields):
    """The same violation n times."""
    return [Violation(kind, seat, **fields)] * n


def book(n, raw, so_far=0, seat=0, **fields):
    """A deal with n warnings of a seat in it, after so many before."""
    return judge("book", times("talk", so_far, seat), raw, times("talk", n, seat), **fields)


# ----------------------------------------------------------------------------------------------------------- J3, fines

# The table of rules.md, row by row: 1st, 2nd, 3rd, 4th time.
FINES = {
    "redeal_undeclared": (25, 25, 25, 25),
    "redeal_unshown": (50, 50, 50, 50),
    "no_rack": (25, 50, 50, 50),
    "wrong_pass": (25, 25, 25, 25),
    "false_block": (25, 25, 25, 25),
    "time": (0, 25, 50, 50),
    "talk": (0, 25, 50, 50),
    "show": (25, 50, 50, 50),
    "signs": (25, 50, 50, 50),
    "misfit_at_once": (25, 50, 50, 50),
    "misfit_later": (25, 25, 25, 25),
    "ambiguous": (0, 0, 0, 0),
    "no_culprit": (0, 0, 0, 0),
}
WARNED = {"time": (True, False, False, False), "talk": (True, False, False, False), "ambiguous": (True,) * 4}
FATES = {  # what becomes of the deal by each decision; None: the judge has no such choice
    "redeal_undeclared": ("continue", None, None),
    "redeal_unshown": ("lost", None, None),
    "no_rack": ("continue", None, None),
    "wrong_pass": ("continue", "end", None),
    "false_block": ("continue", None, None),
    "time": ("continue", None, None),
    "talk": ("continue", None, None),
    "show": ("continue", "end", "replay"),
    "signs": ("continue", "end", "replay"),
    "misfit_at_once": ("continue", "end", "replay"),
    "misfit_later": ("end", None, None),
    "ambiguous": ("continue", None, None),
    "no_culprit": ("replay", None, None),
}


def test_table__every_row_is_tested():
    assert set(FINES) == set(FATES) == set(CLUB) == set(KINDS)


@pytest.mark.parametrize("earlier", range(4))
@pytest.mark.parametrize("kind", FINES)
def test_fine__by_occurrence(kind, earlier):
    """J3: 1st, 2nd, 3rd and later occurrence of the pair in the match; the fine is added to the opponents' points."""
    seat = None if kind == "no_culprit" else 1
    before = times(kind, earlier, seat)
    found = verdict("club", before, Violation(kind, seat))
    assert (found.fine, found.warning) == (FINES[kind][earlier], WARNED.get(kind, (False,) * 4)[earlier])
    assert found.count == earlier + 1 and found.clause == "J3" and not found.removed
    recorded = record(WON, [found])
    if kind == "no_culprit":
        assert recorded.deal == "replay" and recorded.points == (0, 0) and recorded.winner is None
    else:
        assert recorded.points == (17 + FINES[kind][earlier], 0) and recorded.fines == (FINES[kind][earlier], 0)
        assert recorded.winner == 0


@pytest.mark.parametrize("earlier", range(4))
@pytest.mark.parametrize("decision", range(3), ids=DECISIONS)
@pytest.mark.parametrize("kind", FATES)
def test_deal__by_decision(kind, decision, earlier):
    """J3, J5: what becomes of the deal, each time, and what the judge may decide."""
    seat = None if kind == "no_culprit" else 2
    before, one = times(kind, earlier, seat), Violation(kind, seat, decision=DECISIONS[decision])
    expected = FATES[kind][decision]
    if expected is None:
        with pytest.raises(ValueError, match=rf"{DECISIONS[decision]}.*{kind}.*J3"):
            verdict("club", before, one)
    else:
        assert verdict("club", before, one).deal == expected


def test_choices__are_what_the_judge_may_decide():
    """J1, J3, J5: the decisions that a verdict takes, besides the default where there is nothing to decide."""
    for rulebook, kinds in (("club", KINDS), ("book", BOOK)):
        for kind in kinds:
            allowed = []
            for decision in DECISIONS:
                try:
                    verdict(rulebook, [], Violation(kind, None if kind == "no_culprit" else 0, decision=decision))
                    allowed.append(decision)
                except ValueError:
                    continue
            assert tuple(allowed) == (choices(rulebook, kind) or ("continue",))
    assert choices("book", "show") == ("continue", "replay") and choices("book", "wrong_pass") == ()
    with pytest.raises(ValueError, match="does not name 'no_rack'"):
        choices("book", "no_rack")
    with pytest.raises(ValueError, match="unknown violation 'cough'"):
        choices("club", "cough")
    with pytest.raises(ValueError, match="choose from book, club"):
        choices("home", "show")


def test_decision__is_to_continue_by_default():
    """J5."""
    assert Violation("show", 0).decision == "continue" and verdict("club", [], Violation("show", 0)).deal == "continue"


def test_fine__counts_the_pair_not_the_player_nor_the_other_pair():
    """J3: partners count together, opponents apart, kinds apart."""
    before = [Violation("show", 2), Violation("show", 1), Violation("signs", 0), Violation("signs", 0)]
    assert verdict("club", before, Violation("show", 0)).count == 2
    assert verdict("club", before, Violation("show", 3)).fine == 50
    assert verdict("club", before, Violation("time", 0)).warning


def test_fine__a_tile_that_does_not_match_is_as_showing_a_tile():
    """J3: noticed at once, it counts with the tiles shown, both ways, and a tile that matches must then be laid."""
    assert verdict("club", times("show", 1), Violation("misfit_at_once", 2)).fine == 50
    assert verdict("club", times("misfit_at_once", 1), Violation("show", 2)).fine == 50
    assert verdict("club", times("misfit_later", 1), Violation("misfit_at_once", 2)).fine == 25
    assert verdict("club", [], Violation("misfit_at_once", 2)).must_lay
    assert not verdict("club", [], Violation("misfit_at_once", 2, decision="end")).must_lay
    assert not verdict("club", [], Violation("show", 2)).must_lay


@pytest.mark.parametrize("seat", range(4))
def test_ambiguous__the_left_opponent_chooses(seat):
    """J3: a warning each time; who sits to the left of the culprit chooses the end."""
    found = verdict("club", times("ambiguous", 5, seat), Violation("ambiguous", seat))
    assert found.warning and not found.fine and found.chooser == (seat + 1) % 4
    assert verdict("club", [], Violation("show", seat)).chooser is None


def test_redeal_unshown__the_deal_is_lost_and_50():
    """J3: nothing was played, so 0:50; if it was, what the opponents made in it is theirs too and the rest is gone."""
    one = [Violation("redeal_unshown", 3)]
    recorded = judge("club", [], None, one)
    assert (recorded.points, recorded.winner, recorded.deal) == ((50, 0), 0, "lost")
    assert judge("club", [], WON, one).points == (67, 0)
    assert judge("club", [], LOST, one).points == (50, 0)
    assert judge("club", [], tied(30), one).points == (80, 0)


def test_redeal_unshown__by_both_pairs():
    """J3: both have lost the deal, and each has the other's fine."""
    recorded = judge("club", [], None, [Violation("redeal_unshown", 0), Violation("redeal_unshown", 1)])
    assert (recorded.points, recorded.winner) == ((50, 50), None)


def test_fine__in_a_tied_block():
    """J3, S7 club: both are credited with the total; the fine goes to the opponents on top; the deal stays drawn."""
    recorded = judge("club", [], tied(30), [Violation("show", 1)])
    assert recorded.points == (55, 30) and recorded.fines == (25, 0) and recorded.winner is None
    assert recorded.rewards == (25, -25, 25, -25)


def test_fine__of_a_winner_does_not_turn_the_deal():
    """J3: fines are added; who won the deal is another matter."""
    recorded = judge("club", [], WON, [Violation("no_rack", 0), Violation("no_rack", 2)])
    assert recorded.points == (17, 75) and recorded.winner == 0


def test_fines__of_a_deal_add_up():
    """J3: several violations in one deal, each counted after the one before."""
    found = verdicts("club", times("talk", 1), [*times("talk", 2), Violation("show", 1)])
    assert [one.fine for one in found] == [25, 50, 25]
    assert record(LOST, found).points == (25, 15 + 75)


# -------------------------------------------------------------------------------------------------------------- J4, J5


def test_wrong_pass__corrected_before_the_next_move():
    """J4: it costs the fine and play goes on, whatever the judge would say."""
    one = Violation("wrong_pass", 0, ply=4, corrected=True)
    found = verdict("club", [], one)
    assert (found.fine, found.deal, found.clause) == (25, "continue", "J4")
    assert judge("club", [], WON, [one]).points == (17, 25)
    assert verdict("club", [one, replace(one, corrected=False)], one).count == 3, "it counts as any other wrong pass"
    with pytest.raises(ValueError, match="nothing to decide"):
        verdict("club", [], replace(one, decision="end"))


def test_wrong_pass__corrected_is_the_club_s_alone():
    """J4: the book has no such clause."""
    with pytest.raises(ValueError, match="J4"):
        verdict("book", [], Violation("wrong_pass", 0, corrected=True))


@pytest.mark.parametrize(
    "rules, points, winner",
    [("sport_book", [8, 0], 0), ("sport_club", [24, 0], 0)],
)
def test_stopped__a_block_on_the_tiles_in_hand(rules, points, winner):
    """J5: pair 0 holds 16, pair 1 holds 24."""
    hands = [mask_of([tile_index(name) for name in hand.split()]) for hand in ("6-6", "5-5 1-1", "1-3", "6-6")]
    hands[3] = mask_of([tile_index("5-6"), tile_index("0-1")])
    found = stopped(get_rules(rules), hands, plies=17, by=2)
    assert found == {
        "outcome": "block",
        "winner": winner,
        "points": points,
        "pips_left": [12, 12, 4, 12],
        "by": 2,
        "plies": 17,
    }
    json.dumps(found)


def test_stopped__equal_and_a_lone_blank():
    """J5, S7, S8: a block as any other."""
    hands = [mask_of([tile_index(name)]) for name in ("0-0", "1-4", "2-3", "0-0")]
    hands[3] = mask_of([tile_index("4-6")])
    assert stopped(get_rules("sport_book"), hands, 8)["points"] == [0, 0], "10 + 5 against 5 + 10"
    assert stopped(get_rules("sport_club"), hands, 8)["points"] == [15, 0], "0 + 5 against 5 + 10"
    hands[0] = mask_of([tile_index("5-5")])
    assert stopped(get_rules("sport_club"), hands, 8)["points"] == [15, 15]


def test_stopped__as_the_engine_counts_a_block():
    """J5: the same hands, blocked by play, score the same."""
    rules = get_rules("sport_club")
    engine = make_engine(rules, 2_000, seed=3)
    rng = np.random.default_rng(1)
    compared = 0
    while compared < 50:
        engine.step(engine.sample_legal(rng), autoreset=False)
        over = engine.over()
        if over.any():
            hands, plies, done = engine.hands(), engine.plies(), engine.finished
            for j in np.flatnonzero(~done.out)[:20]:
                row, info = done.rows[j], done.info(j)
                assert stopped(rules, hands[row].tolist(), int(plies[row]), info["by"]) == info
                compared += 1
            engine.reset_rows(np.flatnonzero(over))


@pytest.mark.parametrize("hands", [[0, 1, 2, 4], [1, 2, 4]], ids=["an empty hand", "three hands"])
def test_stopped__is_for_deals_that_run(hands):
    with pytest.raises(ValueError, match="four masks"):
        stopped(get_rules("sport_book"), hands, 3)


def test_stopped__is_for_pairs():
    with pytest.raises(ValueError, match="pairs"):
        stopped(get_rules("sport_book", pairs=False), [1, 2, 4, 8], 3)


def test_end__scores_the_tiles_in_hand_and_the_fine():
    """J5, J3: a wrong pass after which the judge ends the deal."""
    hands = [mask_of([tile_index(name)]) for name in ("6-6", "1-1", "0-1", "0-2")]
    recorded = judge(
        "club", [], stopped(get_rules("sport_club"), hands, 24, 3), [Violation("wrong_pass", 1, ply=21, decision="end")]
    )
    assert (recorded.points, recorded.winner, recorded.deal) == ((25, 13), 1, "end")


def test_replay__has_no_result_and_its_sanctions_wait():
    """J5: a replayed deal scores nothing; the fine is counted with the deal that is played instead, which is not
    replayed on its account, and the occurrence counts on."""
    first = verdicts("club", [], [Violation("show", 0, decision="replay")])
    again = record(WON, first)
    assert (again.points, again.fines, again.winner, again.deal) == ((0, 0), (0, 0), None, "replay")
    second = verdicts("club", [one.violation for one in first], [Violation("show", 2)])
    recorded = record(LOST, second, first)
    assert recorded.points == (0, 15 + 75) and recorded.fines == (0, 75) and recorded.deal == "continue"


def test_replay__of_a_shown_tile_in_the_book():
    """J1: the chief judge may have the deal replayed after a tile shown; the warning stands and hits the new deal."""
    first = verdicts("book", times("talk", 1), [Violation("show", 0, decision="replay")])
    assert first[0].deal == "replay" and first[0].count == 2
    assert record(None, first).deal == "replay"
    assert record(LOST, [], first).points == (0, 25)
    for kind in ("time", "talk", "signs"):
        with pytest.raises(ValueError, match="nothing to decide"):
            verdict("book", [], Violation(kind, 0, decision="replay"))
    with pytest.raises(ValueError, match="continue, replay"):
        verdict("book", [], Violation("show", 0, decision="end"))


def test_fate__the_gravest_verdict_holds():
    """J5: lost before replayed before ended before continued."""
    end = Violation("wrong_pass", 1, decision="end")
    replayed = Violation("show", 0, decision="replay")
    lost = Violation("redeal_unshown", 2)
    for several, expected in [
        ([], "continue"),
        ([end], "end"),
        ([end, replayed], "replay"),
        ([lost, replayed], "lost"),
    ]:
        assert fate(verdicts("club", [], several)) == expected


# ------------------------------------------------------------------------------------------------------------------ J1


@pytest.mark.parametrize(
    "number, lost, won, drawn",
    [
        (1, (0, 15), (17, 0), (0, 0)),
        (2, (0, 25), (0, 3), (0, 10)),
        (3, (0, 35), (0, 23), (0, 20)),
        (4, (0, 40), (0, 40), (0, 40)),
        (5, (0, 40), (0, 40), (0, 40)),
        (6, (0, 40), (0, 40), (0, 40)),
    ],
)
def test_warning__every_rung(number, lost, won, drawn):
    """J1: noted; +10 and 20 held; +20 and 40 held; lost 0:40; lost 0:40 and out. A drawn deal counts as lost."""
    for result, expected in ((LOST, lost), (WON, won), (tied(credit=False), drawn)):
        recorded = book(1, result, so_far=number - 1)
        assert recorded.points == expected and recorded.fines == (0, 0)
        assert recorded.removed == ((0,) if number >= 5 else ())
        assert recorded.deal == ("lost" if number >= 4 else "continue")
        mirrored = raw(
            result["outcome"],
            None if result["winner"] is None else 1 - result["winner"],
            result["points"][::-1],
            [result["pips_left"][seat ^ 1] for seat in range(4)],
        )
        assert book(1, mirrored, so_far=number - 1, seat=3).points == expected[::-1]


@pytest.mark.parametrize("kind", ["time", "talk", "show", "signs"])
def test_warning__every_kind(kind):
    """J1: time, talk, showing a tile and signs count together, for both players of a pair."""
    before = [Violation("time", 0), Violation("talk", 2), Violation("signs", 1), Violation("wrong_pass", 0)]
    found = verdict("book", before, Violation(kind, 2))
    assert found.warning and found.count == 3 and found.clause == "J1"


def test_warning__second_flips_a_won_deal():
    """J1: won 17:0 becomes a block of 20 against 17, which the others win by 3."""
    recorded = book(1, WON, so_far=1)
    assert recorded.points == (0, 3) and recorded.winner == 1


@pytest.mark.parametrize("left, points, winner", [(33, (13, 0), 0), (20, (0, 0), None), (7, (0, 13), 1)])
def test_warning__second_scores_a_won_deal_anew(left, points, winner):
    """J1: it may still be won, by less, or be drawn."""
    recorded = book(1, out(0, [0, left, 9, 0]), so_far=1)
    assert (recorded.points, recorded.winner) == (points, winner)


def test_warning__second_in_a_won_block():
    """J1: the pair holds 20, whatever it really held; a lone blank of the others counts 10 (S8)."""
    block = raw("block", 0, [6, 0], [5, 10, 9, 10])
    assert book(1, block, so_far=1).points == (0, 0)
    assert book(1, block, so_far=2).points == (0, 20)


def test_warning__fourth_in_a_deal_already_lost():
    """J1: the score is 0:40, neither added to what was lost nor less where that was more."""
    assert book(1, LOST, so_far=3).points == (0, 40)
    assert book(1, out(1, [30, 0, 25, 3]), so_far=3).points == (0, 40)
    assert book(1, None, so_far=3).points == (0, 40), "it need not be played on"


def test_warning__carried_over_the_tournament():
    """J1: the count goes on from match to match; the club's does not."""
    assert book(1, WON, carried=(1, 0)).points == (0, 3)
    assert book(1, WON, so_far=2, carried=(2, 0)).removed == (0,)
    assert book(1, WON, carried=(0, 4)).points == (17, 0), "the other pair's warnings"
    assert warnings("book", [Violation("talk", 1), Violation("wrong_pass", 0)], (2, 1)) == (2, 2)
    assert warnings("club", times("talk", 3), (1, 1)) == (1, 1)


def test_warning__two_in_one_deal_count_by_the_higher_rung():
    """J1: a rung says what the deal is worth; it is not added to the rung below."""
    assert book(2, LOST, so_far=1).points == (0, 35)
    assert book(3, WON, so_far=0).points == book(1, WON, so_far=2).points
    assert book(5, LOST).removed == (0,)


def test_warning__of_both_pairs():
    """J1: the winner's deal is scored anew, the loser's costs 10 on top; won and lost are the raw result's."""
    both = [Violation("talk", 0), Violation("talk", 1)]
    assert judge("book", both, WON, both).points == (10, 3)
    assert judge("book", both, tied(credit=False), both).points == (10, 10)
    assert judge("book", both, tied(credit=False), both).winner is None
    assert judge("book", both * 3, WON, both).points == (40, 40)
    assert judge("book", times("talk", 3) + times("talk", 1, 1), WON, both).points == (10, 40)


# -------------------------------------------------------------------------------------------------------------- J2, J6


@pytest.mark.parametrize("result", [LOST, WON, tied(credit=False), None], ids=["lost", "won", "drawn", "not played on"])
def test_wrong_pass__in_the_book(result):
    """J2: the deal is lost 0:10, whatever was played."""
    recorded = judge("book", [], result, [Violation("wrong_pass", 2, ply=9)])
    assert (recorded.points, recorded.winner, recorded.deal) == ((0, 10), 1, "lost")
    assert verdict("book", [], Violation("wrong_pass", 2)).clause == "J2"
    with pytest.raises(ValueError, match="J2"):
        verdict("book", [], Violation("wrong_pass", 2, decision="end"))


def test_wrong_pass__is_no_warning():
    """J2: it does not climb the ladder; with a warning in the same deal that one's points are added to a lost deal."""
    assert book(1, LOST, so_far=0).points == judge("book", times("wrong_pass", 3), LOST, times("talk", 1)).points
    assert judge("book", times("talk", 1), WON, [Violation("wrong_pass", 0), Violation("talk", 0)]).points == (0, 20)
    assert judge("book", times("talk", 3), WON, [Violation("wrong_pass", 0), Violation("talk", 0)]).points == (0, 40)
    assert judge("book", [], None, [Violation("wrong_pass", 0), Violation("wrong_pass", 1)]).points == (10, 10)


def test_book__a_tile_that_does_not_match_is_shown_and_a_false_block_is_talk():
    """J1: our reading; the book does not name them."""
    assert verdict("book", times("talk", 1), Violation("misfit_at_once", 0)).count == 2
    assert verdict("book", [], Violation("misfit_at_once", 0)).must_lay
    assert verdict("book", [], Violation("misfit_at_once", 0, decision="replay")).deal == "replay"
    assert verdict("book", times("talk", 1), Violation("false_block", 0)).count == 2


@pytest.mark.parametrize("kind", sorted(set(KINDS) - set(BOOK)))
def test_book__refuses_what_it_does_not_name(kind):
    with pytest.raises(ValueError, match=f"does not name '{kind}'; it names time"):
        verdict("book", [], Violation(kind, None if kind == "no_culprit" else 0))


def test_thought__15_seconds_unless_said_otherwise():
    """J1: a parameter, in both rulebooks."""
    assert not overtime(15.0) and overtime(15.01) and not overtime(20, limit=30) and overtime(6, limit=5)
    for seconds, limit in ((-1, 15), (float("nan"), 15), (3, 0)):
        with pytest.raises(ValueError):
            overtime(seconds, limit)


def test_withdrawal__is_noted_for_the_player():
    """J6: barred for the season or three entry fees; in the club."""
    assert withdraw("club", 3) == Withdrawal(3, BARRED)
    assert withdraw("club", 3).as_dict() == {"seat": 3, "note": "barred for the season or three entry fees"}
    with pytest.raises(ValueError, match="J6"):
        withdraw("book", 3)
    with pytest.raises(ValueError, match=r"0\.\.3"):
        withdraw("club", 4)


FIXTURES = [
    Fixture(("A", "B"), 8, 8),
    Fixture(("C", "D"), 8, 8),
    Fixture(("A", "C"), 8, 3),
    Fixture(("B", "D"), 8, 5),
    Fixture(("D", "A"), 8),
    Fixture(("B", "C"), 8),
]


def test_standings__of_a_pair_that_is_out():
    """J6, and J1's 5th warning alike: played deals count, what remains is void for all, other matches go on."""
    assert matches_left(FIXTURES, []) == ["counted", "counted", "open", "open", "open", "open"]
    assert matches_left(FIXTURES, ["A"]) == ["counted", "counted", "cut", "open", "void", "open"]
    assert matches_left(FIXTURES, ["A", "C"]) == ["counted", "counted", "cut", "open", "void", "void"]


def test_standings__fifth_warning_ends_the_match_and_counts_its_deal():
    """J1: the deal of the 5th warning is lost 0:40 and is one of the deals that count."""
    recorded = book(1, WON, so_far=4)
    assert recorded.removed == (0,) and recorded.points == (0, 40)
    names = ("A", "C")
    assert matches_left([Fixture(names, 4, 1)], [names[side] for side in recorded.removed]) == ["cut"]
    assert matches_left([Fixture(names, 4, 4)], ["A"]) == ["counted"], "it was the last deal of the match"


def test_standings__bad_input():
    with pytest.raises(ValueError, match="'E' does not exist; pairs are A, B, C, D"):
        matches_left(FIXTURES, ["E"])
    for bad in (Fixture(("A", "A"), 4), Fixture(("A", "B"), 4, 5), Fixture(("A", "B"), 0), Fixture(("A", "B"), 4, -1)):
        with pytest.raises(ValueError):
            matches_left([bad], [])


# --------------------------------------------------------------------------------------------------data and bad input


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "cough", "seat": 0},
        {"kind": "talk"},
        {"kind": "no_culprit", "seat": 0},
        {"kind": "talk", "seat": 4},
        {"kind": "talk", "seat": True},
        {"kind": "talk", "seat": 0, "ply": -1},
        {"kind": "talk", "seat": 0, "decision": "stop"},
        {"kind": "talk", "seat": 0, "corrected": True},
        {"kind": "wrong_pass", "seat": 0, "corrected": 1},
    ],
)
def test_violation__bad_input(fields):
    with pytest.raises(ValueError):
        Violation(**fields)


def test_rulebook__unknown():
    for call in (
        lambda: verdict("home", [], Violation("talk", 0)),
        lambda: warnings("home", []),
        lambda: withdraw("home", 0),
    ):
        with pytest.raises(ValueError, match="choose from book, club"):
            call()


def test_record__needs_a_result_of_pairs():
    with pytest.raises(ValueError, match="needs a raw result"):
        record(None, [])
    with pytest.raises(ValueError, match="pairs"):
        record({**WON, "points": [1, -1, 0, 0]}, [])


def test_records__are_frozen_and_plain():
    one = Violation("wrong_pass", 1, ply=3, corrected=True)
    found = verdict("club", [], one)
    for value in (one, found, record(WON, [found]), CLUB["talk"], LADDER[2], FIXTURES[0]):
        with pytest.raises(FrozenInstanceError):
            value.deal = "x"
    assert violation(json.loads(json.dumps(one.as_dict()))) == one
    assert json.loads(json.dumps(found.as_dict()))["violation"] == one.as_dict()
    assert json.loads(json.dumps(record(WON, [found]).as_dict())) == {
        "points": [42, 0],
        "fines": [25, 0],
        "winner": 0,
        "deal": "continue",
        "removed": [],
    }
    for bad in ({"seat": 1}, {"kind": "talk", "seat": 1, "why": "x"}, "talk"):
        with pytest.raises(ValueError):
            violation(bad)


@st.composite
def deals(draw):
    """A rulebook, what came before, a raw result and some violations that the rulebook names."""
    rulebook = draw(st.sampled_from(("book", "club")))
    kinds = sorted(BOOK if rulebook == "book" else set(CLUB) - {"no_culprit"})
    some = st.lists(st.builds(Violation, st.sampled_from(kinds), st.integers(0, 3)), max_size=5)
    pips = draw(st.lists(PAIRS, min_size=4, max_size=4))
    result = draw(st.sampled_from((out(0, pips), out(1, pips), tied(credit=rulebook == "club"))))
    return rulebook, draw(some), result, draw(some)


@settings(max_examples=300, deadline=None)
@given(deals())
def test_judge__properties(deal):
    """No violations, no change; points are never negative; what a pair does costs no other pair a fine; both pairs are
    treated alike; by the club's table nobody gains by an own violation."""
    rulebook, before, result, found = deal
    clean = judge(rulebook, before, result, [])
    assert clean.points == tuple(result["points"]) and clean.winner == result["winner"] and clean.deal == "continue"
    recorded = judge(rulebook, before, result, found)
    assert min(recorded.points) >= 0 and sum(recorded.rewards) == 0
    swapped = raw(
        result["outcome"],
        None if result["winner"] is None else 1 - result["winner"],
        result["points"][::-1],
        [result["pips_left"][seat ^ 1] for seat in range(4)],
    )
    mirrored = judge(
        rulebook,
        [replace(one, seat=one.seat ^ 1) for one in before],
        swapped,
        [replace(one, seat=one.seat ^ 1) for one in found],
    )
    assert mirrored.points == recorded.points[::-1] and mirrored.fines == recorded.fines[::-1]
    for side in (0, 1):
        if all(one.side == side for one in found):  # this pair alone did wrong, if anyone did
            assert recorded.fines[side] == 0
            if rulebook == "club":
                assert recorded.points[side] <= clean.points[side]
                assert recorded.points[1 - side] >= clean.points[1 - side]
