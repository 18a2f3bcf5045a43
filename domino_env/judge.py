"""The judge: violations of a match -> warnings, fines, and the recorded result of a deal (J1-J6).

Pure bookkeeping for games in pairs. A :class:`Violation` is what happened, with the judge's decision in it;
:func:`verdict` says what it costs and what becomes of the deal; :func:`record` applies the verdicts of a deal to its
raw result, the plain dict of ``infos["deal"]``; :func:`judge` is the two in one. Nothing is remembered here: who calls
hands in the violations so far.

Where the clauses leave a question open:

* "Won" and "lost" of J1 are those of the raw result, or of a decree (J2, and J1 from the 4th warning) where there is
  one.
* J1 states what the deal of a warning is worth. So two warnings of a pair in one deal count once, by the higher rung, a
  pair that won a block is taken to hold 20 or 40 also where it held more, and a result stated as a score (0:10, 0:40)
  replaces the raw one also where more had been lost. Of two such scores against a pair the larger holds; where both
  pairs are decreed to have lost, each is credited with the other's sum.
* A 2nd or 3rd warning of a pair that wins only by decree costs the 10 or 20 points alone: the deal was not played out,
  so there is nothing to score anew. One of a pair that loses by J2 adds them to the 0:10, as to any lost deal.
* J1 and J2 name no tile that does not match and no false block. In `sport_book` the first, noticed at once, is a tile
  shown (as J3 has it), the second is talk. What else the book does not name it does not punish, and is refused here.
* J3 counts a tile that does not match, noticed at once, together with tiles shown.
* A deal lost by J3 keeps the points that the other pair made in it, if it was played at all.
* Of several verdicts that differ on the deal the gravest holds: lost, then replayed, ended, continued. A replayed deal
  has no result; its sanctions are counted in the deal that is played instead.
* A deal that is already over cannot be ended; its raw result stands, with the fine.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from domino_env.rules import Rules
from domino_env.scoring import score
from domino_env.tiles import is_whole

RULEBOOKS = ("book", "club")
DECISIONS = ("continue", "end", "replay")  # J5; the first is what holds where nothing was decided
THOUGHT = 15.0  # J1: seconds for a move, unless the tournament says otherwise
BARRED = "barred for the season or three entry fees"  # J6


WARNING = 0  # in the table of J3: no fine, a warning


@dataclass(frozen=True)
class Row:
    """One row of the table of J3."""

    fines: tuple[int, ...]  # points to the opponents: 1st, 2nd, and any later time in the match; empty: none
    deal: str = "continue"  # what becomes of the deal where the judge has no choice: continue, end, replay, lost
    choices: tuple[str, ...] = ()  # what the judge may decide; empty: nothing
    like: str = ""  # counted together with this violation


_ALWAYS = (25, 25, 25)
_AGAIN = (25, 50, 50)
_LENIENT = (WARNING, 25, 50)

CLUB: Mapping[str, Row] = {  # J3
    "redeal_undeclared": Row(_ALWAYS),  # a hand that S4 deals again was not declared: the deal stands
    "redeal_unshown": Row((50, 50, 50), deal="lost"),  # a re-deal was claimed and the hand not shown
    "no_rack": Row(_AGAIN),
    "wrong_pass": Row(_ALWAYS, choices=("continue", "end")),
    "false_block": Row(_ALWAYS),  # a block declared that is none: played to its result
    "time": Row(_LENIENT),
    "talk": Row(_LENIENT),
    "show": Row(_AGAIN, choices=DECISIONS),
    "signs": Row(_AGAIN, choices=DECISIONS),
    "misfit_at_once": Row(_AGAIN, choices=DECISIONS, like="show"),  # a tile that does not match
    "misfit_later": Row(_ALWAYS, deal="end"),
    "ambiguous": Row((WARNING, WARNING, WARNING)),  # nobody can tell on which end a tile lies
    "no_culprit": Row((), deal="replay"),  # it cannot be found out who was wrong
}


@dataclass(frozen=True)
class Rung:
    """One rung of the ladder of J1."""

    add: int = 0  # points to the opponents where the warned pair lost the deal, or it was drawn
    held: int | None = None  # where it won: what it is taken to hold in a block
    decree: int | None = None  # the deal is lost with so many points, whatever was played
    removed: bool = False  # the pair is out of the tournament


LADDER: tuple[Rung, ...] = (  # J1, by warnings in the tournament
    Rung(),  # none
    Rung(),  # noted only
    Rung(add=10, held=20),
    Rung(add=20, held=40),
    Rung(decree=40),
    Rung(decree=40, removed=True),  # the 5th, and whatever comes after
)
WRONG_PASS = 10  # J2

# The kinds that the book punishes, each with what it is to it: a warning (J1), or the wrong pass of J2.
BOOK: Mapping[str, str] = {
    "time": "time",
    "talk": "talk",
    "show": "show",
    "signs": "signs",
    "wrong_pass": "wrong_pass",
    "misfit_at_once": "show",
    "false_block": "talk",
}

KINDS = tuple(CLUB)
_GRAVITY = ("continue", "end", "replay", "lost")


@dataclass(frozen=True)
class Violation:
    """What happened, and what the judge decided.

    Raises ``ValueError`` on construction for what is no violation.
    """

    kind: str  # one of KINDS
    seat: int | None = None  # who did it; None exactly for no_culprit
    ply: int = 0  # actions of the deal before it
    decision: str = "continue"  # J5; one of DECISIONS
    corrected: bool = False  # J4: a wrong pass taken back before the next seat moved

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown violation {self.kind!r}; choose from {', '.join(KINDS)}")
        if (self.seat is None) != (self.kind == "no_culprit"):
            raise ValueError(f"seat={self.seat!r}: no_culprit has none, every other violation has one, not {self.kind}")
        if self.seat is not None and (not is_whole(self.seat) or not 0 <= self.seat < 4):
            raise ValueError(f"seat={self.seat!r} must be in 0..3")
        if not is_whole(self.ply) or self.ply < 0:
            raise ValueError(f"ply={self.ply!r} must be a whole number >= 0")
        if self.decision not in DECISIONS:
            raise ValueError(f"unknown decision {self.decision!r}; choose from {', '.join(DECISIONS)}")
        if not isinstance(self.corrected, bool) or (self.corrected and self.kind != "wrong_pass"):
            raise ValueError(f"corrected={self.corrected!r}: only a wrong_pass can be corrected (J4), not {self.kind}")

    @property
    def side(self) -> int | None:
        """The pair of the seat."""
        return None if self.seat is None else self.seat % 2

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON; :func:`violation` reads it back."""
        return asdict(self)


def violation(data: Mapping[str, Any]) -> Violation:
    """Read what :meth:`Violation.as_dict` writes.

    Raises:
        ValueError: no mapping, a key too many, no kind, or what is no violation.
    """
    known = {field.name for field in fields(Violation)}
    if not isinstance(data, Mapping) or "kind" not in data or not set(data) <= known:
        raise ValueError(f"a violation has a kind and may have {', '.join(sorted(known - {'kind'}))}, not {data!r}")
    return Violation(**data)


@dataclass(frozen=True)
class Verdict:
    """What a violation costs."""

    violation: Violation
    clause: str  # J1, J2, J3 or J4
    count: int  # the how-manieth: club: of its kind, by this pair, in the match; book: warning of the pair; else 1
    warning: bool  # a warning was given: it counts in the book (J1), it is all there is in the club (J3)
    fine: int  # points to the opponents (J3)
    deal: str  # what becomes of the deal: continue, end, replay, lost
    removed: bool = False  # the pair is out of the tournament (J1)
    must_lay: bool = False  # the culprit must now lay a tile that matches
    chooser: int | None = None  # the seat that chooses the end of a tile laid ambiguously

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Recorded:
    """The result of a deal as it stands in the record."""

    points: tuple[int, int]  # of each pair, fines included
    fines: tuple[int, int]  # the part of them that are fines of the other pair (J3)
    winner: int | None  # the pair that won the deal, fines aside; None: drawn, or no result
    deal: str  # what became of it: continue (played to its result), end, replay (no result), lost
    removed: tuple[int, ...] = ()  # pairs that are now out of the tournament (J1)

    @property
    def rewards(self) -> tuple[int, int, int, int]:
        """Points of the own pair less those of the other, by seat (S9)."""
        net = self.points[0] - self.points[1]
        return net, -net, net, -net

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "points": [*self.points], "fines": [*self.fines], "removed": [*self.removed]}


def _book_or_club(rulebook: str) -> str:
    if rulebook not in RULEBOOKS:
        raise ValueError(f"unknown rulebook {rulebook!r}; choose from {', '.join(RULEBOOKS)}")
    return rulebook


def overtime(seconds: float, limit: float = THOUGHT) -> bool:
    """Whether a move took longer than the limit of thought; exactly the limit is within it.

    Raises:
        ValueError: a time that is negative or no number, a limit that is not positive.
    """
    if not seconds >= 0 or not limit > 0:
        raise ValueError(f"seconds={seconds!r} must be >= 0 and limit={limit!r} > 0")
    return seconds > limit


def choices(rulebook: str, kind: str) -> tuple[str, ...]:
    """What the judge may decide on a violation, the default first (J1, J3, J5); empty where nothing is left to him.

    Raises:
        ValueError: an unknown rulebook, or a violation that it does not name.
    """
    if _book_or_club(rulebook) == "book":
        if kind not in BOOK:
            raise ValueError(f"the book does not name {kind!r}; it names {', '.join(BOOK)}")
        return ("continue", "replay") if BOOK[kind] == "show" else ()  # J1: the chief judge, after a tile was shown
    if kind not in CLUB:
        raise ValueError(f"unknown violation {kind!r}; choose from {', '.join(KINDS)}")
    return CLUB[kind].choices


def warnings(rulebook: str, violations: Sequence[Violation], carried: Sequence[int] = (0, 0)) -> tuple[int, int]:
    """Warnings of the two pairs after these violations of a match (J1); in the club they do not add up: as carried.

    Args:
        rulebook: "book" or "club".
        violations: of the match, in order.
        carried: of each pair, from its earlier matches of the tournament.
    """
    counts = [int(number) for number in carried]
    if _book_or_club(rulebook) == "book":
        for one in violations:
            if one.side is not None and BOOK.get(one.kind) in ("time", "talk", "show", "signs"):
                counts[one.side] += 1
    return counts[0], counts[1]


def verdict(
    rulebook: str, so_far: Sequence[Violation], violation: Violation, carried: Sequence[int] = (0, 0)
) -> Verdict:
    """What one violation costs, at the moment when it happens.

    Args:
        rulebook: "book" (J1, J2) or "club" (J3, J4).
        so_far: violations earlier in the match.
        violation: this one.
        carried: warnings of each pair from earlier matches of the tournament (J1).

    Raises:
        ValueError: an unknown rulebook, a violation that it does not name, or a decision that the clause does not leave
            to the judge.
    """
    if _book_or_club(rulebook) == "book":
        return _by_the_book(so_far, violation, carried)
    return _by_the_club(so_far, violation)


def _decide(violation: Violation, clause: str, choices: Sequence[str], otherwise: str = "continue") -> str:
    """The judge's decision, where the clause leaves one; else what the clause says."""
    if violation.decision in choices:
        return violation.decision
    if violation.decision != DECISIONS[0]:
        allowed = f"the judge may choose {', '.join(choices)}" if choices else "the judge has nothing to decide"
        raise ValueError(f"decision={violation.decision!r} on {violation.kind}: {allowed} ({clause})")
    return otherwise


def _by_the_book(so_far: Sequence[Violation], violation: Violation, carried: Sequence[int]) -> Verdict:
    allowed = choices("book", violation.kind)
    assert violation.side is not None  # the book names nothing that nobody did
    if violation.corrected:
        raise ValueError("corrected=True: only the club lets a wrong pass be corrected (J4)")
    if violation.kind == "wrong_pass":
        _decide(violation, "J2", allowed)
        return Verdict(violation, "J2", count=1, warning=False, fine=0, deal="lost")
    deal = _decide(violation, "J1", allowed)
    count = warnings("book", so_far, carried)[violation.side] + 1
    rung = LADDER[min(count, len(LADDER) - 1)]
    return Verdict(
        violation,
        "J1",
        count=count,
        warning=True,
        fine=0,
        deal="lost" if rung.decree is not None else deal,
        removed=rung.removed,
        must_lay=violation.kind == "misfit_at_once" and deal == "continue",
    )


def _by_the_club(so_far: Sequence[Violation], violation: Violation) -> Verdict:
    row = CLUB[violation.kind]
    clause = "J4" if violation.corrected else "J3"
    deal = _decide(violation, clause, () if violation.corrected else choices("club", violation.kind), row.deal)
    counted = row.like or violation.kind
    earlier = [one for one in so_far if one.side == violation.side and (CLUB[one.kind].like or one.kind) == counted]
    count = len(earlier) + 1
    fine = row.fines[min(count, len(row.fines)) - 1] if row.fines else None
    return Verdict(
        violation,
        clause,
        count=count,
        warning=fine == WARNING,
        fine=fine or 0,
        deal=deal,
        must_lay=violation.kind == "misfit_at_once" and deal == "continue",
        chooser=None if violation.seat is None or violation.kind != "ambiguous" else (violation.seat + 1) % 4,
    )


def verdicts(
    rulebook: str, so_far: Sequence[Violation], violations: Sequence[Violation], carried: Sequence[int] = (0, 0)
) -> list[Verdict]:
    """Verdicts on the violations of one deal, in order. Arguments and errors as of :func:`verdict`."""
    return [verdict(rulebook, [*so_far, *violations[:i]], one, carried) for i, one in enumerate(violations)]


def fate(verdicts: Sequence[Verdict]) -> str:
    """What becomes of a deal by all its verdicts: the gravest of lost, replay, end, continue."""
    return max((one.deal for one in verdicts), key=_GRAVITY.index, default="continue")


def record(raw: Mapping[str, Any] | None, verdicts: Sequence[Verdict], pending: Sequence[Verdict] = ()) -> Recorded:
    """The recorded result of a deal.

    Args:
        raw: its result by the rules (``infos["deal"]``), or :func:`stopped` where the judge ended it; None where it was
            lost or is replayed before it had one.
        verdicts: on its violations.
        pending: on those of the deals that it replaces, after a replay: what they cost is counted here.

    Raises:
        ValueError: no result of two pairs, or none where one is needed.
    """
    deal = fate(verdicts)
    sanctions = [*pending, *verdicts]
    fines = [0, 0]
    for one in sanctions:
        if one.violation.side is not None:
            fines[1 - one.violation.side] += one.fine
    removed = tuple(sorted({side for one in sanctions if one.removed and (side := one.violation.side) is not None}))
    if deal == "replay":
        return Recorded((0, 0), (0, 0), None, deal, removed)
    if raw is None and deal != "lost":
        raise ValueError(f"a deal needs a raw result unless it is lost or replayed; this one's fate is {deal}")
    if raw is not None and not (len(raw["points"]) == 2 and len(raw["pips_left"]) == 4):
        raise ValueError(
            f"the judge knows games in pairs, not points {raw['points']!r} of {len(raw['pips_left'])} seats"
        )
    points, winner = _sanctioned(raw, sanctions)
    return Recorded((points[0] + fines[0], points[1] + fines[1]), (fines[0], fines[1]), winner, deal, removed)


def _sanctioned(raw: Mapping[str, Any] | None, verdicts: Sequence[Verdict]) -> tuple[list[int], int | None]:
    """Points and winner of the deal without the fines: decrees first (J1, J2, J3), then the 2nd and 3rd warning."""
    points = [0, 0] if raw is None else [int(number) for number in raw["points"]]
    winner = None if raw is None else raw["winner"]
    rungs = [LADDER[0], LADDER[0]]
    decrees: list[list[int]] = [[], []]
    forfeited: set[int] = set()
    for one in verdicts:
        side = one.violation.side
        if side is None:
            continue
        if one.clause == "J1":
            rungs[side] = LADDER[min(one.count, len(LADDER) - 1)]  # the count only grows
            decree = rungs[side].decree
            decrees[side] += [] if decree is None else [decree]
        elif one.clause == "J2":
            decrees[side].append(WRONG_PASS)
        elif one.deal == "lost":
            forfeited.add(side)
    for side in forfeited:
        points[side] = 0
    if forfeited:
        winner = None if len(forfeited) == 2 else 1 - min(forfeited)
    decreed = any(decrees)
    if decreed:
        points = [max(decrees[1], default=0), max(decrees[0], default=0)]
        winner = None if all(decrees) else int(bool(decrees[0]))
    for side in (0, 1):  # a deal that was won first, as scoring anew replaces the points
        held = rungs[side].held
        if held is not None and winner == side and not decreed and raw is not None:
            points = _anew(raw, side, held)
    for side in (0, 1):
        if winner != side or decreed:
            points[1 - side] += rungs[side].add
    if any(rung.add for rung in rungs) or decreed:
        winner = None if points[0] == points[1] else int(points[1] > points[0])
    return points, winner


def _anew(raw: Mapping[str, Any], side: int, held: int) -> list[int]:
    """J1: a won deal as a block in which the warned pair holds so much and the others what they have left."""
    others = sum(raw["pips_left"][seat] for seat in range(4) if seat % 2 != side)
    points = [0, 0]
    points[side] = max(others - held, 0)
    points[1 - side] = max(held - others, 0)
    return points


def judge(
    rulebook: str,
    so_far: Sequence[Violation],
    raw: Mapping[str, Any] | None,
    violations: Sequence[Violation],
    carried: Sequence[int] = (0, 0),
    pending: Sequence[Verdict] = (),
) -> Recorded:
    """The recorded result of a deal with these violations: :func:`verdicts`, then :func:`record`."""
    return record(raw, verdicts(rulebook, so_far, violations, carried), pending)


def stopped(rules: Rules, hands: Sequence[int], plies: int, by: int | None = None) -> dict[str, Any]:
    """The raw result of a deal that the judge ended: a block on the tiles then in hand (J5; S7, S8).

    Args:
        rules: of a game in pairs.
        hands: a mask a seat.
        plies: actions played.
        by: the seat that laid the last tile, None where nobody had.

    Raises:
        ValueError: a game without pairs, or a hand that is empty: that deal was over.
    """
    if not rules.pairs:
        raise ValueError(f"the judge knows games in pairs; in {rules.name} with pairs=False each seat plays for itself")
    masks = np.array([[hand] for hand in hands], np.uint32)
    if masks.shape != (4, 1) or not masks.all():
        raise ValueError(f"hands {list(hands)!r} must be four masks of the tiles in hand, none of them empty")
    none = np.zeros(1, np.int64)
    return {**score(rules, none, masks, none, none + plies).info(0), "by": by}


@dataclass(frozen=True)
class Withdrawal:
    """A player left the tournament without leave (J6)."""

    seat: int  # the player's
    note: str = BARRED

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def withdraw(rulebook: str, seat: int) -> Withdrawal:
    """A player leaves without leave: the pair stands as withdrawn from here on (J6); see :func:`matches_left`.

    Raises:
        ValueError: the book, which has no such clause, or an unknown seat.
    """
    if _book_or_club(rulebook) != "club":
        raise ValueError("leaving without leave is a violation of the club (J6); the book does not name it")
    if not is_whole(seat) or not 0 <= seat < 4:
        raise ValueError(f"seat={seat!r} must be in 0..3")
    return Withdrawal(seat)


@dataclass(frozen=True)
class Fixture:
    """A match of a tournament, as far as it has come."""

    pairs: tuple[str, str]
    deals: int  # of the whole match
    played: int = 0  # of them, with their results in the record


def matches_left(fixtures: Sequence[Fixture], out: Collection[str]) -> list[str]:
    """What the standings make of each match once some pairs are out (J1: the 5th warning; J6: withdrawn).

    J1 does not say what becomes of the matches of a removed pair; it is treated as J6 has it for a withdrawn one, so
    that both rulebooks have one rule: deals that were played count, what remains is void for all, nobody gains by it.

    Returns:
        for each match "counted" (played to its end), "cut" (its played deals count, the rest is void), "void" (not
        begun, and never will be) or "open" (goes on).
    Raises:
        ValueError: a pair that does not exist, a pair against itself, or more deals played than a match has.
    """
    known = {name for fixture in fixtures for name in fixture.pairs}
    for name in out:
        if name not in known:
            raise ValueError(f"pair {name!r} does not exist; pairs are {', '.join(sorted(known))}")
    fates = []
    for fixture in fixtures:
        if fixture.pairs[0] == fixture.pairs[1] or not 0 <= fixture.played <= fixture.deals or not fixture.deals:
            raise ValueError(f"{fixture} must be of two pairs, with 0..deals of its deals played")
        if fixture.played == fixture.deals:
            fates.append("counted")
        elif not set(fixture.pairs) & set(out):
            fates.append("open")
        else:
            fates.append("cut" if fixture.played else "void")
    return fates
