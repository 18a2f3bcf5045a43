"""What was measured, as tables in words: the same for the terminal and for the page of a report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from experiments.duplicate import labels
from experiments.signaling.consistency import CELLS, Agreement, Consistency
from experiments.signaling.conventions import ANY, LEVEL, MEANINGS, NOISE, OPEN, Conventions
from experiments.signaling.cross_play import CrossPlay
from experiments.signaling.decoding import Decoding
from experiments.signaling.ends import FreeChannel
from experiments.signaling.information import SEATS, Information, figure
from experiments.signaling.ladder import STEPS, Ladder
from experiments.signaling.listening import Listening
from experiments.signaling.maxims import Maxims
from experiments.signaling.moves import MOVES
from experiments.signaling.page import NONE, Sheet
from experiments.signaling.statistics import Estimate
from experiments.signaling.validity import Validity
from experiments.signaling.value import Square, Worlds
from experiments.signaling.worth import Worths

if TYPE_CHECKING:
    from experiments.signaling.probe import Probe  # it needs torch

UNHEARD = {"all": "all others", "partner": "the partner", "opponents": "the opponents"}  # by a deaf twin
_LINKS = 15  # that are shown though they may be chance
_BITS = ", bits a decision (95 % over deals)"
_STEP = {"rules": "rules", "uniform": "legal moves", "reference": "reference", "true": "own way", "left": "unknown yet"}
_OPEN_NOTE = (
    "open: what would decide was not measured, for want of decisions, of a deaf twin, or, where the kind hangs on the "
    "mover's hand, since nobody can close its ears to what it cannot see, so that it has no points"
)
_INFLUENCE_NOTES = (
    "the total is not the sum of the other two, nor is it communication: it is large where nobody listens",
    "without hearing all others: a move is charged with all that others told the listener, too; what is its own shows "
    "without hearing the mover alone",
)
_NOISE_NOTE = "noise may be want of data: an interval that covers 0 counts as nothing found"


def short(one: Estimate) -> str:
    """An estimate in few letters."""
    return NONE if math.isnan(one.mean) else f"{one.mean:+.3f}"


def half(one: Estimate) -> str:
    """An estimate with half the width of its interval."""
    if math.isnan(one.mean) or math.isnan(one.low):
        return short(one)
    return f"{one.mean:+.3f} ±{(one.high - one.low) / 2:.3f}"


def bare(one: Estimate) -> str:
    """An estimate of what is never below 0."""
    return str(one).removeprefix("+")


def percent(one: Estimate) -> str:
    """An estimate of a share."""
    if math.isnan(one.low):
        return NONE if math.isnan(one.mean) else f"{one.mean:.1%}"
    return f"{one.mean:.1%} [{one.low:.1%}, {one.high:.1%}]"


def of_validity(found: Validity) -> list[Sheet]:
    """All controls."""
    rows = [
        (
            one.name,
            f"{one.estimate.mean:.3g}" if one.estimate.error == 0 else str(one.estimate),
            one.expected,
            {True: "yes", False: "NO", None: "open"}[one.holds],
        )
        for one in found.controls
    ]
    title = f"controls, {found.rules}, {found.deals:,} deals of each table"
    notes = []
    if found.open:
        notes.append(
            f"open: {found.deals:,} deals of each table are too few to decide; domino signal e0 --deals 300 takes more"
        )
    return [Sheet(title, ("control", "found (95 %)", "has to be", "holds"), rows, notes)]


def of_ladders(found: Sequence[Ladder]) -> list[Sheet]:
    """What each step tells, in all positions."""
    rows = []
    for one in found:
        figures = one.estimates()
        rows.append(
            (
                labels([one.player])[0],
                {1: "left opponent", 2: "partner", 3: "right opponent"}.get(one.of, str(one.of)),
                f"{len(one.tiles):,}",
                *(half(figures[step]) for step in (*STEPS, "left")),
            )
        )
    head = ("player", "hand of", "positions", *(_STEP[step] for step in (*STEPS, "left")))
    return [Sheet("what is known of another hand, step by step, bits (± 95 % over deals)", head, rows)]


def left_out(decisions: Mapping[str, int]) -> str:
    """How many decisions have no figure, by observer; "" where all have one."""
    some = (f"{count:,} decisions for the {SEATS.get(place, place)}" for place, count in decisions.items() if count)
    return ", ".join(some)


def of_information(found: Information) -> list[Sheet]:
    """What actions tell, to whom, and the secrecy."""
    rows = []
    for place, figures in found.estimates().items():
        rows.append(
            (
                SEATS.get(place, place),
                bare(figures["told"]),
                *(f"{figures[name].mean:.3f}" for name in ("uniform", "reference")),
                str(figures["excess"]),
                percent(figures["use"]),
                bare(figures["gap"]),
            )
        )
    head = ("observer", "I", "random play", "reference", "ΔI", "I of what could be told", "G")
    notes = []
    if left := left_out(found.left_out):
        notes.append(f"left out, for their beliefs are worth too few worlds: {left}")
    sheets = [Sheet(f"what a move tells of the mover's hand{_BITS}", head, rows, notes)]
    if {1, 2, 3} <= set(found.places):
        deal = found.moments.deal
        against = {"left": "left opponent", "right": "right opponent", "opponents": "both, mean"}
        lines = [(against[name], str(figure(values, deal))) for name, values in found.secrecy().items()]
        sheets.append(Sheet("secrecy S: ΔI for the partner less that for the opponents, bits", ("", "S"), lines))
    return sheets


def of_listening(found: Mapping[str, Listening]) -> list[Sheet]:
    """Change of policy and influence, by whom the twin does not hear."""
    rows, parts = [], []
    for who, one in found.items():
        rows.append((UNHEARD[who], one.deaf, bare(one.divergence), percent(one.variation), percent(one.flips)))
        for place, influence in one.influence.items():
            figures = (influence.total, influence.physical, influence.informational)
            parts.append((UNHEARD[who], SEATS[place], *map(bare, figures)))
    head = ("without hearing", "deaf twin", "Listen, bits", "total variation", "other likeliest move")
    own = [UNHEARD[who] for who, one in found.items() if one.deaf == one.hearing]
    notes = [f"it does not read {', '.join(own)}: without hearing them it is itself, so 0 is what it is"] if own else []
    sheets = [Sheet("what changes in the play (95 % over deals)", head, rows, notes)]
    if parts:
        head = ("without hearing", "listener, from the mover", "total", "through the board", "through what it hears")
        sheets.append(Sheet("what a move does to a later seat's play, bits a move", head, parts, _INFLUENCE_NOTES))
    return sheets


def of_square(found: Square | Worlds) -> list[Sheet]:
    """Cells and figures of the square of values."""
    rows = [(name, str(one)) for name, one in found.rows()]
    if isinstance(found, Worlds):
        title = f"points a deal, {len(found.squares)} trainings (95 % over trainings)"
    else:
        title = f"points a deal, {found.boards:,} boards a cell (95 % over boards)"
    return [Sheet(title, ("", "points a deal"), rows, found.notes)]


def of_decoding(found: Decoding) -> list[Sheet]:
    """Log loss, and gains over the rules and the reference."""
    rows = []
    losses = ("loss by the rules", "loss by the reference", "loss as they play")
    for row in found.rows():
        if row["target"] == "void" and "holds" in found.targets:  # its complement, and the same to the last digit
            continue
        rows.append(
            (
                row["target"],
                *(f"{row[name].mean:.3f}" for name in losses),
                str(row["gain over the rules"]),
                str(row["gain over the reference"]),
                NONE if math.isnan(row["z"]) else f"{row['z']:+.1f}",
            )
        )
    head = ("question", "loss: rules", "reference", "as they play", "gain over rules", "over the reference", "z")
    who = {1: "left neighbour", 2: "partner", 3: "right neighbour"}[found.of]
    title = f"the hand of the {who}, {found.decisions:,} decisions of {found.deals:,} deals, bits, seven suits together"
    notes = [f"{found.left_out:,} decisions left out: their beliefs are worth too few worlds"] if found.left_out else []
    if {"holds", "void"} <= set(found.targets):
        notes.append("void is the complement of holds: all its figures are those of holds")
    if found.fell_back:
        notes.append(f"at {found.fell_back:,} decisions no deal explains the moves by the players' models")
    return [Sheet(title, head, rows, notes)]


def of_probe(found: Probe) -> list[Sheet]:
    """What a probe found."""
    rows = [(row["figure"], str(row["value"])) for row in found.rows()]
    learn, stop, test = found.deals
    title = f"probe of {found.target!r}, bits a decision on {test:,} deals that it has not seen"
    return [Sheet(title, ("", "bits (95 %)"), rows, [f"learned from {learn:,} deals, stopped by {stop:,}"])]


def of_conventions(found: Conventions, brief: bool = False) -> list[Sheet]:
    """Kinds of moves with their verdicts, and what they say; `brief`: by their names and without intervals, for narrow
    places."""
    rows, lifts, said = [], [], short if brief else half
    for row in found.table:
        text = row.kind.replace("_", " ") if brief else row.text
        reply = f"{MOVES[row.reply].text} ({row.rise.mean:+.1%})" if row.reply else NONE
        frequency = NONE if math.isnan(row.frequency.mean) else f"{row.frequency.mean:.0%}"
        figures = (row.told, row.excess, row.convention, row.partner, row.opponents)
        heard = [said(one) for one in figures]
        points = said(row.value) + ("*" if row.p < LEVEL else "")
        rows.append((text, f"{row.count:,}", frequency, *heard, reply, said(row.price), points, row.verdict))
        cells = []
        for cell in row.cells:
            mark = ("*" if cell.found else "") + (" natural" if cell.natural else "")
            cells.append(NONE if math.isnan(cell.lift.mean) else f"×{cell.lift.mean:.2f}{mark}")
        lifts.append((text, *cells))
    head = (
        "kind of move", "made", "where it could be", "I", "ΔI", "G", "partner listens", "opponents listen",
        "the partner's reply", "price", "points", "verdict",
    )  # fmt: skip
    notes = [f"no figure stands where there were fewer than {found.least} such decisions"]
    if any(not math.isnan(row.value.mean) for row in found.table):
        notes.append("points a deal, lost where the partner's ears are closed to it; * at 5 % false discoveries")
    if any(row.verdict == OPEN for row in found.table):
        notes.append(_OPEN_NOTE)
    if any(row.verdict == NOISE for row in found.table):
        notes.append(_NOISE_NOTE)
    if brief:
        notes.append("verdicts rest on intervals: they are in --json, and on the page of domino signal report")
    title = f"kinds of moves, {found.decisions:,} decisions of {found.deals:,} deals, bits"
    words = [f"{one.name.replace('_', ' ')}: {one.text}" for one in MEANINGS]
    says = [
        "* at 5 % false discoveries in the table; natural: the move of the reference says the same",
        *words,
    ]
    names = tuple(one.name.replace("_", " ") for one in MEANINGS)
    lift_title = "what they say of the mover's hand: how much likelier than by the rules alone"
    title += "" if brief else " (± 95 %)"
    return [Sheet(title, head, rows, notes), Sheet(lift_title, ("kind of move", *names), lifts, says)]


def of_consistency(found: Consistency, brief: bool = False) -> list[Sheet]:
    """What choices of kinds tell by counts: the first few and all that was found; `brief` as of `of_conventions`."""
    rows, words = list[tuple[str, ...]](), found.rows()
    for one, row in zip(found.ranked, words):
        if brief:
            row |= {"move": one.kind.replace("_", " "), "bits": half(one.bits) + ("*" if one.found else "")}
        if len(rows) < _LINKS or one.found:
            rows.append(tuple(row.values()))
    head = ("kind of move", *list(words[0])[1:]) if words else ("kind of move",)
    notes = [
        "read bits beside chance: beyond it is what they are above those of shuffled decisions; * at 5 % false "
        "discoveries; stability 1: the same in all contexts"
    ]
    if more := len(words) - len(rows):
        notes.append(f"{more} more, none of which has a star, are in the JSON")
    if not words:
        notes = [f"no kind could be chosen, or left, in {found.least} decisions: nothing is counted"]
    title = f"what the choice of a kind tells, {found.decisions:,} decisions of {found.deals:,} deals, bits by counts"
    return [Sheet(f"{title}, {found.draws:,} shuffles", head, rows, notes)]


def of_agreement(found: Agreement) -> Sheet:
    """Whether moves of trainings say the same, two by two."""
    words = found.rows()
    off = found.cells[~np.eye(len(words), dtype=np.bool_)]
    common = f"{off.min()}" if off.min() == off.max() else f"{off.min()} to {off.max()}"
    over = "" if math.isnan(found.mean.low) else ", 95 % over trainings"
    notes = [f"mean over pairs: {found.mean}{over}; {common} kinds and meanings have numbers in both"]
    if np.isnan(found.matrix).any():
        notes.append(f"no correlation of fewer than {CELLS}, nor where all are alike: more deals have more of them")
    what = {"lift": "lifts", "over_reference": "lifts over the reference", "alone": "lifts of choices alone"}
    title = f"whether moves say the same: rank correlation of the {what[found.figure]} of two trainings"
    return Sheet(title, tuple(words[0]), [tuple(row.values()) for row in words], notes)


def of_worth(found: Worths) -> list[Sheet]:
    """What is lost where one kind of moves is not heard, and how often it was not."""
    deals = 2 * found.boards * len(found.pool)
    rows = []
    for one in found.kinds:
        text = "any move" if one.kind == ANY else MOVES[one.kind].text
        changed = f"{one.changed / one.deaf:.0%}" if one.deaf else NONE
        rows.append((text, str(one.points), f"{one.deaf / deals:.2f}", changed))
    title = f"ears closed to one kind of moves, {found.boards:,} boards against {', '.join(found.pool)}"
    head = ("kind of move", "points a deal lost (95 %)", "deaf decisions a deal", "of these, played otherwise")
    note = "kinds that hang on the mover's hand are left out: no hearer sees them"
    return [Sheet(title, head, rows, [note])]


def of_cross_play(found: CrossPlay) -> list[Sheet]:
    """Self-play, cross-play and gaps of methods, the matrices, and whether distances and gaps go together."""
    rows = [(name, str(one)) for name, one in found.rows()]
    for one in found.methods:
        rows.append((f"{one.name}: middle half of all pairs", f"{one.middle:+.3f}"))
        rows.append((f"{one.name}: worst as a partner, {one.worst}", f"{one.worst_points:+.3f}"))
    notes = found.notes
    for name, both in found.agreement.items():
        if both["correlation"] is not None and both["p"] is not None:
            r, p = f"{both['correlation']:+.2f}", f"{both['p']:.3f}"
            notes.append(f"distances and gaps, {name}: rank correlation {r}, p = {p}")
    title = f"{len(found.players)} trainings against {', '.join(found.pool)}, {found.boards:,} boards a match"
    over = "95 % over trainings, where not said otherwise"
    sheets = [Sheet(f"partners of {title}, points a deal ({over})", ("", "points a deal"), rows, notes)]
    names = labels(found.players)
    for what, table in (("points a deal", found.points), ("distances D, bits", found.distances)):
        if table is not None:
            words = [[NONE if math.isnan(one) else f"{one:.3f}" for one in row] for row in table]
            cells = [(name, *row) for name, row in zip(names, words)]
            sheets.append(Sheet(f"{what}, row and column", ("", *names), cells))
    return sheets


def of_channel(found: FreeChannel, control: FreeChannel | None = None) -> list[Sheet]:
    """The free channel, beside the same of a control."""
    rows: list[tuple[str, ...]] = [(row["what"], row["bits"]) for row in found.rows()]
    head = ["", " and ".join(dict.fromkeys(found.players))]
    if control is not None:
        rows = [(*row, other["bits"]) for row, other in zip(rows, control.rows())]
        head.append(" and ".join(dict.fromkeys(control.players)))
    title = f"{found.measured:,} decisions with both ends alike, {found.deals:,} deals (95 % over deals)"
    return [Sheet(title, head, rows)]


def of_maxims(found: Maxims) -> list[Sheet]:
    """What maxims are worth, and who follows them."""
    kinds = {True: "taught", False: "weight of club"}
    worths = [(one.text, kinds[one.taught], str(one.kept), str(one.left)) for one in found.worths]
    head: tuple[str, ...] = ("maxim", "", "always, or alone", "never, or without")
    title = f"points a deal, {found.boards:,} boards, {found.base} that … against {found.base} as it is"
    note = (
        "taught: the player that always, or never, follows it, against the player as it is; a weight of club: alone "
        "beside heavy tiles first, against heavy tiles first, and club without it, against club"
    )
    sheets = [Sheet(title, head, worths, [note])]
    if found.answers:
        names = list(found.answers[0].rates)
        rows: list[tuple[str, ...]] = []
        for one in found.answers:
            few = f"unknown, {one.count:,} of {found.least:,} decisions" if one.count < found.least else ""
            against = (NONE if few else f"{one.compared(name)} {short(one.differences[name])}" for name in names)
            unless = f"{one.unless}: {one.knows_when}" if one.unless else ""
            if unless and not few and one.free < found.least:
                unless += f", {one.free:,} of {found.least:,} decisions"
            rows.append((one.text, f"{one.count:,}", few or percent(one.rate), *against, unless))
        head = ("maxim", "decisions", "follows it", *(f"than {name}" for name in names), "and where it may be broken")
        notes = []
        if any("unknown" in cell for row in rows for cell in row):
            notes.append(f"unknown: it takes {found.least:,} such decisions; more --deals have more of them")
        title = f"{' and '.join(dict.fromkeys(found.players))}: how often it follows them"
        sheets.append(Sheet(title, head, rows, notes))
    return sheets
