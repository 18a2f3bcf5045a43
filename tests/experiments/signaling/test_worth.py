"""What kinds of moves are worth: players whose worth is known; and the judge of prices."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents import make_agent
from agents.base import Decisions, load_network
from agents.moves import make_moves
from agents.search.asking import standing
from agents.search.beliefs import RulesBelief
from agents.search.position import imagine, mask_of_bits, past, position_at
from domino_env import get_rules
from domino_env.deals import Streams
from domino_env.observation import unpack
from domino_env.tiles import PASS, PIPS
from experiments.evaluate import evaluate
from experiments.signaling import matches
from experiments.signaling.conventions import ANY, LEVEL, NOISE, conventions, costs
from experiments.signaling.moves import MOVES, Situation, kinds, of_game
from experiments.signaling.players import Blind, Reference, Seats, Sitter, blind, game_of, others
from experiments.signaling.record import Moments, play
from experiments.signaling.statistics import NOTHING
from experiments.signaling.worth import KINDS, Deafened, after, worth

SPEAKER, LISTENER, QUIET = (make_agent(f"planted:{words}") for words in ("strength=4", "listen=3", "strength=0"))
HIDDEN = tuple(name for name, kind in MOVES.items() if not kind.public)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def asked(moments: Moments) -> Decisions:
    """The same decisions as they were put to who made them."""
    engine = standing(moments.position)
    obs, legal = engine.suppose(np.arange(len(moments)), moments.hand())
    chance, rules = Streams.of(3, moments.number), moments.position.rules
    return Decisions(unpack(obs), mask_of_bits(legal), moments.seat, engine.history(), chance, rules=rules)


# -- whose ears are closed, and when --------------------------------------------------------------------------------


@pytest.mark.parametrize("game", ["sport_book", "sport_book labelled", "tiny_pairs"])
def test_after__is_the_kind_of_what_the_partner_did(game: str) -> None:
    """The deals are played once more, with all hands open, and the partner's turn is looked at when it was made."""
    name, _, labelled = game.partition(" ")
    moments = play("random", get_rules(name, labelled_ends=bool(labelled)), 12).moments
    plies = moments.position.plies
    expected = {kind: np.zeros(len(moments), np.bool_) for kind in (*MOVES, ANY)}
    forced = 0
    for ply in past(moments.position, moments.hands):
        here = np.flatnonzero(plies[ply.rows] == ply.number + 2)
        if not len(here):
            continue
        rows, action = ply.rows[here], ply.action[here]
        assert (ply.seat[here] == (moments.seat[rows] + 2) % 4).all()
        position, lays = position_at(ply.engine).take(here), action != PASS
        which = kinds(Situation(position, position.own, ply.engine.legal_bits()[here]))
        forced += int((lays & (ply.engine.legal_count()[here] == 1)).sum())
        expected[ANY][rows] = lays
        for kind, may in which.items():
            expected[kind][rows[lays]] = may[np.flatnonzero(lays), action[lays]]
    batch = asked(moments)
    for kind in KINDS:
        assert (after(batch, kind) == expected[kind]).all(), kind
    assert forced > 2 and expected[ANY].any()
    if name == "sport_book":
        there = {kind for kind in KINDS if expected[kind].any()}
        assert there == set(KINDS) & {ANY, *of_game(moments.position.rules)}
        assert expected[ANY].sum() < (plies >= 2).sum()  # some passed
    assert set(KINDS) | set(HIDDEN) == {ANY, *MOVES} and len(HIDDEN) == 4
    batch.history = None
    with pytest.raises(ValueError, match="have no history"):
        after(batch, ANY)


def test_deafened__is_its_twin_there_and_itself_elsewhere_with_the_same_chance() -> None:
    moments = play(LISTENER, deals=20).moments
    own, other = LISTENER.act(asked(moments)), QUIET.act(asked(moments))
    player = Deafened(LISTENER, QUIET, "covers_left")
    there = after(asked(moments), "covers_left")
    assert (player.act(asked(moments)) == np.where(there, other, own)).all()
    assert 0 < (own != other)[there].sum() < there.sum() < len(moments)
    assert player.counts == {"asked": len(moments), "deaf": there.sum(), "changed": (own != other)[there].sum()}
    assert player.name == "deafened:kind=covers_left,deaf=planted:strength=0(planted:strength=4,listen=3)"
    assert player.needs_history and not hasattr(player, "batch_hint")


@pytest.mark.parametrize("kind", HIDDEN)
def test_kinds_that_no_hearer_sees_are_refused(kind: str) -> None:
    with pytest.raises(
        ValueError, match=f"kind='{kind}' hangs on the mover's hand, which no hearer sees; choose from any"
    ):
        worth("club", "greedy", ["random"], boards=2, kinds=[kind])


# -- players whose worth is known -----------------------------------------------------------------------------------


class Light:
    """Lays its lightest tile, which is bad play."""

    name = "light"

    def act(self, batch: Decisions) -> Any:
        return np.where(batch.mask != 0, np.append(np.tile(PIPS, 2), 99), 100).argmin(axis=1)


class Heeds:
    """Plays well right after its partner made a move of one kind, and else as `Light`."""

    needs_history = True

    def __init__(self, kind: str) -> None:
        self.kind, self.name = kind, f"heeds {kind}"
        self.well, self.ill = make_agent("greedy"), Light()

    def act(self, batch: Decisions) -> Any:
        return np.where(after(batch, self.kind), self.well.act(batch), self.ill.act(batch))


def test_worth__of_a_kind_that_is_heeded_and_of_one_that_is_not() -> None:
    """To close its ears to what it heeds, or to all, takes the good play away; to what it does not heed, nothing."""
    asked_for = [ANY, "leaves_right", "lead_mixed"]
    pool = ["greedy", "club"]
    heeds, light = Heeds("leaves_right"), Light()
    found = worth(heeds, light, pool, boards=250, kinds=asked_for, least=50)
    values = found.values
    assert values["leaves_right"].low > 1 and values[ANY] == values["leaves_right"]
    assert values["lead_mixed"].mean == 0 == values["lead_mixed"].error  # a lead is never one that leaves something
    by_name = {one.kind: one for one in found.kinds}
    assert by_name["lead_mixed"].changed == 0 < by_name["leaves_right"].changed < by_name["leaves_right"].deaf
    assert by_name[ANY].deaf > by_name["leaves_right"].deaf > by_name["lead_mixed"].deaf > 50

    one = np.mean([evaluate(heeds, b, boards=250).values for b in pool], axis=0)
    closed = [evaluate(Deafened(heeds, light, "leaves_right"), b, boards=250).values for b in pool]
    assert values["leaves_right"].mean == pytest.approx((one - np.mean(closed, axis=0)).mean(), abs=1e-12)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["pool"] == pool and plain["kinds"][1]["points"]["low"] == values["leaves_right"].low


def test_worth__of_who_ignores_its_partner_is_exactly_0_and_no_signal() -> None:
    seats = Seats(get_rules("sport_book"))
    player = seats("planted:strength=4")
    twin = seats.twins(player)["partner"]
    found = worth(player.side, twin.side, ["greedy"], boards=60, kinds=[ANY, "squares"], least=20)
    for one in found.kinds:
        assert (one.points.mean, one.points.error, one.changed) == (0, 0, 0) and one.deaf > 20
    table = conventions(play(SPEAKER, deals=12), QUIET, tiles=[16], least=5, examples=0, value=found.values)
    row = table.row(ANY)
    assert row.p == 1 and row.valuable is False and row.verdict == NOISE
    assert table.row("holds_double").valuable is None


def test_a_verdict_needs_points_that_stand_out_among_the_kinds() -> None:
    """An interval above 0 is not enough where many were looked at."""
    record, points = play(SPEAKER, deals=8), np.random.default_rng(0).normal(size=100)
    some = matches.over_units(points - points.mean() + 0.23)
    assert some.low > 0 and 0.01 < (alone := conventions_of(record, {ANY: some}).p) < LEVEL
    nothing = {kind: matches.over_units(np.r_[-1.0, 1.0]) for kind in KINDS if kind != ANY}
    among = conventions_of(record, {ANY: some, **nothing})
    assert among.value == some and among.p == pytest.approx(min(1.0, alone * len(KINDS)))
    assert conventions_of(record, {ANY: some}).valuable is True and among.valuable is False
    assert conventions_of(record, {ANY: NOTHING}).valuable is None
    assert conventions_of(record, {ANY: matches.over_units(-np.ones(9))}).valuable is False
    assert among.to_dict()["valuable"] is False and among.to_dict()["p"] == among.p


def conventions_of(record: Any, value: Any) -> Any:
    return conventions(record, QUIET, tiles=[18], least=5, examples=0, value=value).row(ANY)


def test_too_few_deaf_decisions_give_no_figure() -> None:
    found = worth(LISTENER.name, QUIET.name, ["greedy"], "tiny_pairs", 40, kinds=["any", "squares"], least=30)
    (every, squares) = found.kinds
    assert every.deaf >= 30 > squares.deaf and math.isnan(squares.points.mean) and not math.isnan(every.points.low)
    assert found.to_dict()["kinds"][1]["points"]["mean"] is None


def test_kinds_are_those_of_the_game() -> None:
    """Without labelled ends nobody chooses between two that are alike, and no match is played for it."""
    found = worth("planted:listen=3", "planted:listen=0", ["greedy"], "tiny_pairs", 2)
    assert {*KINDS} - {one.kind for one in found.kinds} == {"chooses_end"}


def test_matches_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words: Any = ("planted:listen=3", "planted:listen=0", ["greedy"], "tiny_pairs", 6)
    found = worth(*words, kinds=["any", "squares"], least=2, folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 3

    def never(*words: Any, **more: Any) -> Any:
        raise AssertionError("a match was played again")

    monkeypatch.setattr(matches, "evaluate", never)
    assert worth(*words, kinds=["any", "squares"], least=2, folder=tmp_path) == found


def test_opponents_are_others(hearing: str) -> None:
    game = game_of([hearing])
    latest = str(Path(hearing) / "checkpoints" / "latest")
    for opponent in (hearing, latest, f"deaf:model={latest}", ("greedy", latest)):
        with pytest.raises(ValueError, match=r"cannot be an opponent of .* wins 0 on every board"):
            worth(hearing, f"deaf:model={hearing}", ["greedy", opponent], game, 2)
    with pytest.raises(ValueError, match="club cannot be an opponent"):
        worth("club", "greedy", ["club"], boards=2)
    with pytest.raises(ValueError, match="a list of opponents, at least one"):
        worth("club", "greedy", [], boards=2)
    with pytest.raises(ValueError, match="listens to a partner, and sport_book pairs=False has none"):
        worth("club", "greedy", ["random"], get_rules("sport_book", pairs=False), 2)
    seats = Seats(game)
    assert others(seats("club"), [seats("greedy"), seats("club")]) == [seats("greedy")]
    found = worth(seats(hearing).side, seats(f"deaf:model={hearing}").side, ["greedy"], game, 4, kinds=["any"], least=2)
    assert found.player == f"{hearing} (sampled)" and found.kinds[0].deaf > 2


# -- the judge of prices --------------------------------------------------------------------------------------------


class Heavy:
    """A critic that thinks that the side of the mover wins its pips, less those of the others."""

    name = "heavy"

    def values(self, engine: Any) -> Any:
        hands, mover = engine.hands(), engine.to_move()
        sizes = np.array([[int(hand).bit_count() ** 2 + int(hand) % 7 for hand in row] for row in hands])
        sides = sizes[:, ::2].sum(axis=1) - sizes[:, 1::2].sum(axis=1)
        return np.where(mover % 2 == 0, sides, -sides).astype(np.float32)


def test_blind__is_the_mean_over_all_that_the_rules_leave_open() -> None:
    """Late in a deal every world is looked at, one by one, and nothing of what others chose."""
    game = get_rules("tiny_pairs")
    moments = play("random", game, 60, tiles=[3, 4]).moments.take(np.arange(12))
    found = Blind(Heavy(), game, worlds=3000)(moments)
    legal = mask_of_bits(moments.legal) != 0
    assert np.isneginf(found[~legal]).all() and np.isfinite(found[legal]).all()
    view = moments.seen_by(0)
    for row in range(len(moments)):
        one = view.take(np.array([row]))
        worlds = np.unique(RulesBelief(one).sample(500, np.arange(1, dtype=np.uint64))[0], axis=0)
        for action in np.flatnonzero(legal[row]):
            engine = imagine(dataclasses.replace(one, events=None), np.zeros(len(worlds), int), worlds)
            rewards, over = make_moves(engine, np.full(len(worlds), action))
            points = rewards[:, int(moments.seat[row])].astype(float)
            if not over.all():
                left = engine.take(np.flatnonzero(~over))
                mine = (left.to_move() - moments.seat[row]) % 2 == 0
                points[~over] = np.where(mine, 1, -1) * Heavy().values(left)
            assert found[row, action] == pytest.approx(points.mean(), abs=0.05 + 0.1 * points.std())


def test_blind__hears_nobody_and_does_not_hang_on_the_batch(hearing: str) -> None:
    moments = play(hearing, game_of([hearing]), 20).moments
    judge = Blind(hearing, game_of([hearing]), worlds=20)
    found, rows = judge(moments), np.arange(3, len(moments), 4)
    assert (judge(moments.take(rows)) == found[rows]).all()
    deaf = dataclasses.replace(moments, position=dataclasses.replace(moments.position, events=None))
    assert (judge(deaf) == found).all()
    assert not (Blind(hearing, game_of([hearing]), worlds=20, seed=1)(moments) == found).all()
    best = dataclasses.replace(moments, action=found.argmax(axis=1))
    assert (costs(found, best) == 0).all() and (costs(found, moments) >= 0).all() and costs(found, moments).max() > 0
    assert judge.to_dict() == {"critic": hearing, "why": "", "worlds": 20}


def test_whose_critic_judges(hearing: str, plain: str) -> None:
    game = game_of([hearing])
    seats = Seats(game)
    own = blind(seats(hearing), seats.reference(seats(hearing)), game, 5)
    assert own.critic == hearing and own.why.startswith("of the player's own training")
    never = load_network(hearing)
    never.deafness = 1.0  # as of a run in which nobody hears
    world = Reference(hearing, never, 0.0, "as asked")
    for player in (seats("planted:strength=4"), seats(hearing)):
        assert "a critic of the deaf world" in blind(player, world, game, 5).why
    assert (
        "of the player, in whose training nobody heard"
        in blind(Sitter(hearing, never), seats.reference(seats("club")), game, 5).why
    )
    with pytest.raises(ValueError, match="club has no critic that sees all hands; runs have one"):
        blind(seats("club"), seats.reference(seats("club")), game, 5)
    with pytest.raises(ValueError, match="was trained for tiny_pairs, not for tiny_pairs labelled_ends=True"):
        Blind(plain, game)
    with pytest.raises(ValueError, match="worlds=0"):
        Blind(hearing, game, 0)


def test_costly_signals__cost_points_and_add_bits() -> None:
    record = play(SPEAKER, deals=10, seed=1)

    def flat(moments: Moments) -> Any:
        return np.zeros((len(moments), 57))

    def dear(moments: Moments) -> Any:
        values = flat(moments)
        values[np.arange(len(moments)), moments.action] = -1
        return values

    words: dict[str, Any] = {"tiles": [16, 17], "least": 5, "examples": 0}
    found = conventions(record, QUIET, price=dear, **words)
    assert 0 < found.costly.mean < 1 and found.costly.count == found.decisions - found.left_out
    assert found.row(ANY).price.mean == 1 and found.to_dict()["costly"]["price_above"] == 0.5
    assert conventions(record, QUIET, price=flat, **words).costly.mean == 0
    assert conventions(record, SPEAKER, price=dear, **words, floor=0.0).costly.mean == 0  # nothing is added
    assert math.isnan(conventions(record, QUIET, **words).costly.mean)
