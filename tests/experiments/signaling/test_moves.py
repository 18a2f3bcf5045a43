"""Kinds of moves at tables that are laid out by hand."""

import numpy as np
import pytest

from agents.base import decide
from agents.search.asking import answers
from agents.search.position import position_from
from domino_env import get_rules, make_engine
from domino_env.tiles import mask_of, tile_index
from experiments.signaling.moves import MOVES, Situation, asked, kinds, made, of_game, open_to, situation, touched
from experiments.signaling.record import play

LABELLED = get_rules("sport_book", labelled_ends=True)


def stands(moves: str, hand: str, rules="sport_book", leader: int = 0) -> Situation:
    """What the seat to move with this hand stands before."""
    game = get_rules(rules) if isinstance(rules, str) else rules
    own = [tile_index(name) for name in hand.split()]
    done = [game.action_index(name) for name in moves.split()]
    mover = int(position_from(game, leader, done, -1).to_move[0])
    position = position_from(game, leader, done, mover, own)
    _, legal = answers(position, "uniform", np.zeros(1, int), np.array([mask_of(own)], np.uint32))
    return Situation(position, np.array([mask_of(own)], np.uint32), legal)


def words(s: Situation, only_legal: bool = True) -> dict[str, set[str]]:
    """By kind the names of its moves, of kinds that have any."""
    name = s.position.rules.action_name
    out = {}
    for kind, which in kinds(s).items():
        some = which[0] & (s.legal[0] >> np.arange(57, dtype=np.uint64) & np.uint64(1) != 0) if only_legal else which[0]
        if some.any():
            out[kind] = {name(action) for action in np.flatnonzero(some).tolist()}
    return out


def names(**sets: str) -> dict[str, set[str]]:
    return {kind: set(text.split()) for kind, text in sets.items()}


TABLES = {
    "lead": (
        ("", "6-6 0-6 3-3 1-2 0-1 0-2 2-4"),
        names(
            lead_double="3-3L 6-6L",
            lead_accompanied="6-6L",
            lead_bare="3-3L",
            lead_mixed="0-6L 1-2L 0-1L 0-2L 2-4L",
        ),
    ),
    "third hand": (  # ends 5 and 6: the partner's lead, and what the right opponent made of it
        ("6-6L 5-6L", "0-6 1-6 0-5 5-5 2-5 1-1 3-4"),
        names(
            covers_partner="0-6R 1-6R",
            leaves_right="0-6R 1-6R",
            double_at_once="5-5L",
            holds_double="0-6R 1-6R 0-5L 2-5L",
            first_exposure="0-6R 1-6R 0-5L 2-5L",
            covers_by_choice="0-6R 1-6R 0-5L 2-5L",
        ),
    ),
    "both ends": (  # ends 0, opened by the partner, and 3, just opened by the right opponent; own suit 6
        ("6-6L 5-6L 0-5L 3-6R", "0-3 0-6 3-3 0-0 3-5 0-1"),
        names(
            repeats_partner="0-3R",
            covers_partner="0-3L 0-6L 0-1L",
            squares="0-3L 0-3R",
            reopens_own="0-6L",
            leaves_right="0-3L 0-6L 0-0L 0-1L",
            double_at_once="3-3R 0-0L",
            holds_double="0-3L 0-3R 0-6L 3-5R 0-1L",
            first_exposure="0-1L",
            covers_by_choice="0-3L 0-3R 0-6L 3-5R 0-1L",
        ),
    ),
    "left opponent": (  # ends 5, of the left opponent, and 4
        ("6-6L 5-6L 0-6R 0-4R", "1-5 4-6 2-4 0-0 0-1 0-2"),
        names(
            reopens_own="4-6R",
            covers_left="1-5L",
            leaves_right="1-5L",
            first_exposure="1-5L 2-4R",
            covers_by_choice="1-5L 4-6R 2-4R",
        ),
    ),
    "doubles": (  # 5 lay at an end in its last turn, 1 did not
        ("6-6L 5-6L 0-6R 0-4R 4-4R 1-4R", "5-5 1-1 1-6 4-5 2-2 2-3"),
        names(
            repeats_partner="1-6R 4-5L",
            leaves_right="4-5L 5-5L",
            double_at_once="1-1R",
            double_late="5-5L",
            holds_double="1-6R 4-5L",
            covers_by_choice="1-6R 4-5L",
        ),
    ),
    "near a block": (  # both ends 4, and four more of them
        ("6-6L 5-6L 4-6R 4-5L 4-4L", "0-4 1-4 0-0 1-1 2-2 3-3"),
        names(breaks_block="0-4L 1-4L", first_exposure="0-4L 1-4L"),
    ),
    "a pass": (  # the partner has led 5-6 and passed on 5 since: only 6 is still its suit
        ("5-6L 6-6R 5-5L 4-6R pass 3-4R", "1-5 3-6 0-0 0-1 0-2 1-1"),
        names(
            repeats_partner="3-6R",
            leaves_right="1-5L",
            first_exposure="1-5L",
            covers_by_choice="1-5L 3-6R",
        ),
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_kinds(name):
    (moves, hand), expected = TABLES[name]
    assert words(stands(moves, hand)) == expected


def test_every_kind_is_there():
    assert {kind for _, expected in TABLES.values() for kind in expected} == set(MOVES) - {"chooses_end"}
    assert [*MOVES] == of_game(LABELLED) and {*MOVES} - {*of_game(get_rules())} == {"chooses_end"}
    assert all(kind.text and kind.name == name for name, kind in MOVES.items())


def test_public_kinds__do_not_hang_on_the_hand():
    for (moves, hand), _ in TABLES.values():
        one = stands(moves, hand)
        other = Situation(one.position, np.zeros(1, np.uint32), np.array([1 << 56], np.uint64))
        for kind, which in kinds(one).items():
            if MOVES[kind].public:
                assert (which == kinds(other)[kind]).all()
    wide = words(stands(*TABLES["third hand"][0]), only_legal=False)
    assert wide["covers_partner"] == {"0-6R", "1-6R", "2-6R", "3-6R", "4-6R"}


@pytest.mark.parametrize(("moves", "rest"), [("6-6L", " 1-2"), ("6-6L 5-6L 5-5L 4-5L 4-6L", "")])  # both ends 6
def test_labelled_ends__are_a_choice(moves, rest):
    equal = moves, "3-6 2-6 0-0 0-1 0-2 1-1" + rest
    assert "chooses_end" not in words(stands(*equal))
    labelled = words(stands(*equal, rules=LABELLED))
    assert labelled["chooses_end"] == {"3-6L", "3-6R", "2-6L", "2-6R"}


def test_labelled_ends__what_fits_both_ends_chooses_none_where_these_differ():
    """It makes both ends the same suit at either, and has a name for that."""
    (moves, hand), expected = TABLES["both ends"]
    assert words(stands(moves, hand, rules=LABELLED)) == expected and expected["squares"] == {"0-3L", "0-3R"}
    lead = words(stands(*TABLES["lead"][0], rules=LABELLED))
    assert "chooses_end" not in lead


def test_made_and_open_to():
    s = stands(*TABLES["both ends"][0])
    action = np.array([s.position.rules.action_index("0-3R")])
    found = kinds(s)
    assert {kind for kind in found if made(found[kind], action)[0]} == {
        *("repeats_partner", "squares", "holds_double", "covers_by_choice")
    }
    assert open_to(found["squares"], s.legal)[0] and not open_to(found["covers_left"], s.legal)[0]
    every = stands(*TABLES["near a block"][0])
    assert not open_to(kinds(every)["breaks_block"], every.legal)[0]  # it has nothing else to lay


def test_touched():
    s = stands(*TABLES["both ends"][0])
    for name, opened, covered, left in [("0-3R", 0, 3, 0), ("3-3R", 3, None, 0), ("0-6L", 6, 0, 3)]:
        found = touched(s, np.array([s.position.rules.action_index(name)]))
        sets = [0 if suit is None else 1 << suit for suit in (opened, covered, left, 0)]
        assert [int(part[0]) for part in (found.opened, found.covered, found.left, found.partner)] == sets
    lead = stands(*TABLES["lead"][0])
    found = touched(lead, np.array([lead.position.rules.action_index("1-2L")]))
    assert (found.opened[0], found.covered[0], found.left[0]) == (0b110, 0, 0)


def test_moves_of_a_record__and_of_an_agents_question():
    """The same decision has the same kinds, whether it stands in a record or is put to an agent."""
    moments = play("club", LABELLED, deals=20, seed=4).moments
    found = kinds(situation(moments))
    assert all(which.any() for which in found.values())
    assert not any((which[:, :56] & ~situation(moments).possible).any() for which in found.values())
    engine = make_engine(LABELLED, 50, seed=2)
    for _ in range(9):
        engine.step(engine.legal().argmax(axis=1), autoreset=False)
    batch = decide(engine)
    s = asked(batch)
    for name, which in kinds(s).items():
        for row in range(0, 50, 7):
            one = engine.take(np.array([row]))
            assert (kinds(asked(decide(one)))[name] == which[row]).all()
    assert (s.legal == engine.legal_bits()).all() and (s.hand == engine.hands()[np.arange(50), engine.to_move()]).all()


def test_errors():
    s = stands("", TABLES["lead"][0][1], rules=get_rules("sport_book", pairs=False))
    with pytest.raises(ValueError, match="pairs=False has none"):
        kinds(s)
    engine = make_engine("sport_book", 1, seed=0)
    batch = decide(engine)
    batch.history = None
    with pytest.raises(ValueError, match="need the past"):
        asked(batch)
