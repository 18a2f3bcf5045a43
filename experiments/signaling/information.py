"""What a move tells about the mover's hand, and to whom: bits that are exact where the belief is.

Who observes a decision believes `b` about the decider's hand, from its own hand and from all that was played so far, as
one who knows the policies at the table. Under that belief

* an action tells I = H(mean of pi under b) - mean of H(pi) bits of the hand: the mutual information of action and hand,
  given what the observer knows. Random play tells a lot, too, for what is legal is private. So what counts is the
  excess over a reference, asked under the same belief, and the floor is that of random play;
* G = KL(belief that knows the policy || belief that takes the reference for it) is what an observer loses that does not
  know the convention. Of the two beliefs, only the factor of the decider's own past moves differs; it is the belief
  before the decision.

The divergence itself is taken, not the log-ratio at the true hand, whose mean is the same and whose error is several
times as large. Excess is not secret yet: seats know different tiles, and even random play tells the partner other than
the opponents. Secrecy is therefore a difference of differences, of what is in excess for the partner, and for them.

Decisions with one legal move are no choices, and none are measured. That a seat has a choice is something that its
observers do not know; so a mean over decisions of the log-ratio at the true hand, which was selected for having one,
is not quite that of G.

(Mutual information as in Lowe, Foerster, Boureau, Pineau and Dauphin 2019, arXiv 1903.05168, and Strouse, Kleiman-
Weiner, Tenenbaum, Botvinick and Schwab 2018, arXiv 1808.02093; beliefs as in Foerster et al. 2019, arXiv 1811.01458.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from agents.search.asking import answers
from agents.search.position import PUBLIC, Position
from agents.search.reading import ExactBelief, Model, policy_belief
from domino_env.deals import row_keys
from domino_env.rules import Rules
from experiments.signaling.hands import each_part, factor, hands_of, pieces, put_in
from experiments.signaling.record import Moments, models_of
from experiments.signaling.statistics import ESS, NOTHING, Estimate, clustered, finite, plot

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Masks = npt.NDArray[np.uint32]
Progress = Callable[[int, int], None]

PLACES = {2: "partner", 1: "left", 3: "right", PUBLIC: "public"}  # of the observer, clockwise from who decides
SEATS = {"partner": "partner", "left": "left opponent", "right": "right opponent", "public": "public"}
FLOOR = 0.02  # of a reference: what it never plays is not impossible
CANDIDATES = 2000  # worlds of a sampled belief
LEVELS = ("rules", "uniform", "reference")  # whom a belief may take the decider for
_FIGURES = ("told", "reference", "uniform", "entropy", "options", "pointwise", "foreseen", "ess")


# -- beliefs about who decides --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sight:
    """What an observer of n decisions thinks that the decider holds, but for what the decider's own moves say.

    Of a sampled belief it is a list of worlds, in which hands stand several times: means and divergences are the same
    sums, for nothing but the decider's factor is put in or taken out.
    """

    row: Ints  # (K,) decision, ascending
    which: Ints  # (K,) number of the hand in the chunk's list
    weight: Floats  # (K,) rows add up to 1
    exact: npt.NDArray[np.bool_]  # (n,)
    lost: npt.NDArray[np.bool_]  # (n,) nothing explains what the others did


@dataclass(frozen=True)
class _Chunk:
    """Some decisions of one seat, the hands that it may hold in the eyes of any observer, and what each thinks."""

    rows: Ints  # (n,) of the moments
    moments: Moments  # (n,)
    seat: int
    row: Ints  # (U,) decision of each hand, ascending
    hand: Masks  # (U,)
    true: Ints  # (n,) number of the hand that is held
    sights: list[_Sight]  # one an observer

    def factors(self, model: Model, floor: float) -> Floats:
        """(U,) ln of the decider's factor with each hand, by a model of it."""
        if model is None or model == "rules":
            return np.zeros(len(self.row))  # hands that do not fit are not listed
        return factor(self.moments.position, self.seat, model, self.row, self.hand, floor)


def _chunks(
    moments: Moments, table: Sequence[Model], places: Sequence[int], floor: float, sampled: dict[str, Any], seed: int
) -> Iterator[_Chunk]:
    """All decisions, a few at a time; `sampled`: method and candidates as of `policy_belief`."""
    for rows in pieces(moments, places, sampled["candidates"]):
        yield _chunk(moments.take(rows), rows, int(moments.seat[rows[0]]), table, places, floor, sampled, seed)


def _chunk(
    moments: Moments,
    rows: Ints,
    seat: int,
    table: Sequence[Model],
    places: Sequence[int],
    floor: float,
    sampled: dict[str, Any],
    seed: int,
) -> _Chunk:
    models = [None if other == seat else model for other, model in enumerate(table)]
    parts = []
    for place in places:
        keys = row_keys(seed, moments.number * len(PLACES) + place % len(PLACES))
        parts.append(_look(_view(moments, place), seat, models, floor, sampled, keys))
    line = np.arange(len(moments))
    names = [row << 32 | hands.astype(np.int64) for row, hands, *_ in parts]
    held = line << 32 | moments.hand().astype(np.int64)
    every, back = np.unique(np.concatenate([*names, held]), return_inverse=True)
    bounds = np.cumsum([0, *map(len, names)])
    sights = [
        _Sight(row, back[begin:end], weight, exact, lost)
        for (row, _, weight, exact, lost), begin, end in zip(parts, bounds, bounds[1:])
    ]
    hand = (every & 0xFFFFFFFF).astype(np.uint32)
    return _Chunk(rows, moments, seat, every >> 32, hand, back[bounds[-1] :], sights)


def _view(moments: Moments, place: int) -> Position:
    return moments.position if place == PUBLIC else moments.seen_by(place)


def _look(
    view: Position, seat: int, models: Sequence[Model], floor: float, sampled: dict[str, Any], keys: Any
) -> tuple[Ints, Masks, Floats, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Rows, hands and weights of what one seat may hold; which rows are exact, and which are lost."""
    belief = policy_belief(view, models, floor=floor, keys=keys, **sampled)
    found, exact = [], np.zeros(len(view), np.bool_)
    for numbers, part in each_part(belief):
        row, hands, weight = hands_of(part, np.full(len(part), seat))
        exact[numbers] = isinstance(part, ExactBelief)
        some = weight > 0
        found.append((numbers[row[some]], hands[some], weight[some]))
    row, hands, weight = (np.concatenate(part) for part in zip(*found))
    order = np.argsort(row, kind="stable")
    return row[order], hands[order], weight[order], exact, belief.fell_back


def _believe(sight: _Sight, log: Floats) -> tuple[Floats, Floats]:
    """The belief with the decider's factor put in: (K,) probabilities, and (n,) ln of the sum it was divided by."""
    return put_in(sight.row, sight.weight, log[sight.which], len(sight.exact))


def _divergence(sight: _Sight, belief: Floats, logs: tuple[Floats, Floats], totals: tuple[Floats, Floats]) -> Floats:
    """KL in bits from the belief with one factor of the decider to that with another: (n,), infinite where it is.

    Args:
        belief: (K,) that with the first factor; logs: (U,) both factors; totals: (n,) both sums, as of `_believe`.
    """
    held = np.flatnonzero(belief > 0)
    one, other = (log[sight.which[held]] for log in logs)
    impossible = np.isinf(other)
    terms = belief[held] * np.where(impossible, 0.0, one - np.where(impossible, 0.0, other))
    with np.errstate(invalid="ignore"):
        out = np.bincount(sight.row[held], terms, minlength=len(sight.exact)) + totals[1] - totals[0]
    out = np.maximum(out, 0.0) / math.log(2)
    out[sight.row[held][impossible]] = np.inf
    return out


def _good(sight: _Sight, belief: Floats, total: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Effective worlds, infinite where exact, and whether the belief may be used: (n,) each."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ess = 1 / np.bincount(sight.row, belief**2, minlength=len(sight.exact))
    ess[sight.exact] = np.inf
    return ess, (ess >= ESS) & ~sight.lost & np.isfinite(total)


# -- what is measured -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Information:
    """What M decisions told, to each of P observers; nan where a belief is not good enough, all in bits.

    A belief is left out where too few sampled worlds bear it, or where no deal explains what was played by the models
    of the players: then they do not play as these say.
    """

    moments: Moments
    places: tuple[int, ...]  # of the observers, clockwise from who decides; -1 the public
    told: Floats  # (M, P) I of the players as they are
    reference: Floats  # (M, P) I of the reference under the same belief
    uniform: Floats  # (M, P) I of random play under the same belief: the floor
    entropy: Floats  # (M, P) of the expected action: no action tells more
    options: Floats  # (M, P) legal moves that the observer expects, not in bits
    gaps: dict[str, Floats]  # (M, P) KL of the belief to that which takes the decider for "rules", "uniform", …
    pointwise: Floats  # (M, P) log2 of the belief over that by the reference, at the hand that was held
    said: Floats  # (M,) log2 of how likely the decider was to do what it did
    foreseen: Floats  # (M, P) log2 of how likely the observer thought it
    ess: Floats  # (M, P) effective worlds of the belief, infinite where exact

    def __len__(self) -> int:
        return len(self.moments)

    @property
    def left_out(self) -> dict[str, int]:
        """Decisions without figures, by observer: too few worlds bear them."""
        lacking = np.isnan(self.told).sum(axis=0)
        return {PLACES.get(place, str(place)): int(count) for place, count in zip(self.places, lacking)}

    @property
    def least_ess(self) -> float | None:
        """Effective worlds that bear every figure at least; None where no belief that has one was sampled."""
        used = self.ess[~np.isnan(self.told) & np.isfinite(self.ess)]
        return float(used.min()) if used.size else None

    @property
    def excess(self) -> Floats:
        """(M, P) what the players tell beyond the reference; below 0 they hide."""
        return self.told - self.reference

    @property
    def gap(self) -> Floats:
        """(M, P) G: what an observer loses that takes the decider for the reference."""
        return self.gaps["reference"]

    def secrecy(self) -> dict[str, Floats]:
        """(M,) each: excess for the partner less that for the left, the right, and both opponents in the mean."""
        column = {place: number for number, place in enumerate(self.places)}
        if not {1, 2, 3} <= set(column):
            raise ValueError(f"secrecy needs the partner and both opponents as observers, not {self.places}")
        mine, left, right = (self.excess[:, column[place]] for place in (2, 1, 3))
        return {"left": mine - left, "right": mine - right, "opponents": mine - (left + right) / 2}

    def estimates(self, rows: npt.NDArray[Any] | None = None) -> dict[str, dict[str, Estimate]]:
        """Means over decisions with intervals over deals, by observer: "partner", "left", "right", "public".

        Args:
            rows: only these (indices or a bool mask).
        Returns:
            of each observer told, reference, uniform, excess, entropy, use (share of `entropy` that tells), room (share
            of log2 of the legal moves), gap, pointwise, gap_rules, gap_uniform, and surprise: bits by which the action
            surprised, less `entropy`. Where all decisions were looked at, and not those with a choice alone, its mean
            would be 0.

        Raises:
            ValueError: an infinite gap.
        """
        chosen = np.arange(len(self)) if rows is None else np.arange(len(self))[rows]
        deal = self.moments.deal[chosen]
        out = {}
        for number, place in enumerate(self.places):

            def of(values: Floats, number: int = number) -> Floats:
                return values[chosen, number]

            told, entropy, room = of(self.told), of(self.entropy), np.log2(of(self.options))
            values = {
                "told": told,
                "reference": of(self.reference),
                "uniform": of(self.uniform),
                "excess": of(self.excess),
                "floor_excess": told - of(self.uniform),
                "entropy": entropy,
                "gap": of(self.gap),
                "pointwise": of(self.pointwise),
                "gap_rules": of(self.gaps["rules"]),
                "gap_uniform": of(self.gaps["uniform"]),
                "surprise": -of(self.foreseen) - entropy,
            }
            found = {name: figure(value, deal) for name, value in values.items()}
            found["use"], found["room"] = (share(told, whole, deal) for whole in (entropy, room))
            out[PLACES.get(place, f"place {place}")] = found
        return out

    def to_dict(self) -> dict[str, Any]:
        """For JSON: figures by observer, in all and by tiles on the line, secrecy, and what they rest on."""

        def plain(figures: dict[str, dict[str, Estimate]]) -> dict[str, Any]:
            return {place: {name: one.to_dict() for name, one in row.items()} for place, row in figures.items()}

        tiles = self.moments.tiles
        out: dict[str, Any] = {
            "decisions": len(self),
            "deals": len(np.unique(self.moments.deal)),
            "left_out": self.left_out,
            "least_ess": self.least_ess,
            "observers": plain(self.estimates()),
            "by_tiles": {int(number): plain(self.estimates(tiles == number)) for number in np.unique(tiles)},
        }
        if {1, 2, 3} <= set(self.places):
            deal = self.moments.deal
            out["secrecy"] = {name: figure(values, deal).to_dict() for name, values in self.secrecy().items()}
        return out

    def rows(self) -> list[dict[str, Any]]:
        """One a decision, for JSON: who, when, what was done, and the figures of each observer; None for nan."""
        moments, out = self.moments, []
        figures = {name: getattr(self, name) for name in ("told", "reference", "uniform", "entropy", "gap", "foreseen")}
        options = np.bitwise_count(moments.legal)
        for m in range(len(self)):
            row: dict[str, Any] = {
                "deal": int(moments.deal[m]),
                "ply": int(moments.ply[m]),
                "seat": int(moments.seat[m]),
                "tiles": int(moments.tiles[m]),
                "action": int(moments.action[m]),
                "legal": int(options[m]),
                "said": finite(self.said[m]),
            }
            for number, place in enumerate(self.places):
                row[PLACES.get(place, str(place))] = {
                    name: finite(values[m, number]) for name, values in figures.items()
                }
            out.append(row)
        return out

    def draw(self, axes: Sequence[Any]) -> None:
        """Draw the excess on the first axes, the gap on the second: observer by observer, by tiles on the line."""
        numbers = np.unique(self.moments.tiles).tolist()
        each = [self.estimates(self.moments.tiles == number) for number in numbers]
        for shift, place in enumerate(self.places):
            name = PLACES.get(place, f"place {place}")
            for ax, what in zip(axes, ("excess", "gap")):
                values = [one[name][what] for one in each]
                plot(ax, np.array(numbers) + 0.15 * (shift - 1), values, SEATS.get(name, name))
        for ax, words in zip(axes, ("ΔI: bits beyond the reference", "G: bits of convention")):
            ax.axhline(0, color="black", linewidth=0.8)
            ax.set_xticks(numbers)
            ax.set_xlabel("tiles on the line")
            ax.set_ylabel(words)
        axes[0].legend(frameon=False, fontsize=8)


def figure(values: Floats, deal: npt.NDArray[Any], weights: Floats | None = None) -> Estimate:
    """`clustered` over the values that are there: nan are left out.

    Raises:
        ValueError: an infinite value.
    """
    if (endless := int(np.isinf(values).sum())) > 0:
        raise ValueError(
            f"a divergence is infinite in {endless} of {len(values)} decisions: the other model excludes hands that "
            "can be held; give it a floor above 0"
        )
    there = ~np.isnan(values)
    if not there.any():
        return NOTHING
    return clustered(values[there], deal[there], None if weights is None else weights[there])


def share(part: Floats, whole: Floats, deal: npt.NDArray[Any]) -> Estimate:
    """The sum of one thing over the sum of another, with its interval over deals."""
    some = whole > 1e-12
    return figure(part[some] / whole[some], deal[some], whole[some])


def observers(rules: Rules, places: Sequence[int] | None) -> tuple[int, ...]:
    """The places of observers, checked; None: all other seats, the partner first."""
    if places is None:
        return (2, 1, 3) if rules.seats == 4 else tuple(range(1, rules.seats))
    given = tuple(places)
    if not given or len(set(given)) < len(given) or not set(given) <= {PUBLIC, *range(1, rules.seats)}:
        raise ValueError(
            f"places={given!r} must be some of 1..{rules.seats - 1}, or {PUBLIC} for the public, each once"
        )
    return given


def measure(
    moments: Moments,
    table: Model | Sequence[Model],
    reference: Model | Sequence[Model],
    *,
    places: Sequence[int] | None = None,
    floor: float = 0.0,
    reference_floor: float = FLOOR,
    method: str = "auto",
    candidates: int = CANDIDATES,
    seed: int = 0,
    progress: Progress | None = None,
) -> Information:
    """What each decision told each observer.

    Args:
        moments: decisions of deals that `table` played (`record.play`).
        table: who sat there, as of `record.models_of`: agents with `probabilities`, or "uniform".
        reference: whom an observer without the convention takes the decider for, likewise.
        places: of the observers, clockwise from who decides, -1 the public; None: partner, left and right.
        floor: mixes the players' moves with random ones, in the belief and in what they answer: of networks that do not
            play exactly what they say. reference_floor: the same of the reference.
        method, candidates: of the beliefs, as of `policy_belief`; seed: of sampled ones.
        progress: called with (decisions done, decisions).

    Raises:
        ValueError: models that cannot be asked or settings that cannot be.
    """
    rules = moments.position.rules
    seen, players, others = observers(rules, places), models_of(table, rules), models_of(reference, rules)
    m = len(moments)
    out = {name: np.full((m, len(seen)), np.nan) for name in (*_FIGURES, *(f"gap {level}" for level in LEVELS))}
    said, done = np.full(m, np.nan), 0
    for chunk in _chunks(moments, players, seen, floor, {"method": method, "candidates": candidates}, seed):
        mine, rows = chunk.seat, chunk.rows
        said[rows] = _measure_chunk(chunk, players[mine], others[mine], (floor, reference_floor), out)
        done += len(rows)
        if progress is not None:
            progress(done, m)
    gaps = {name: out.pop(f"gap {name}") for name in LEVELS}
    return Information(moments=moments, places=seen, gaps=gaps, said=said, **out)


def _measure_chunk(
    chunk: _Chunk, player: Model, reference: Model, floors: tuple[float, float], out: dict[str, Floats]
) -> Floats:
    """Fill the figures of a chunk's rows; (n,) log2 of how likely the decider was to do what it did."""
    position, rows, line = chunk.moments.position, chunk.rows, np.arange(len(chunk.rows))
    models: dict[str, tuple[Model, float]] = {"true": (player, floors[0]), "reference": (reference, floors[1])}
    models |= {"uniform": ("uniform", 0.0), "rules": (None, 0.0)}
    logs = {name: chunk.factors(*model) for name, model in models.items()}
    says = {
        name: answers(position, model[0], chunk.row, chunk.hand, model[1]) for name, model in models.items() if model[0]
    }
    doubt = {name: entropy_of(p) for name, (p, _) in says.items()}
    options = np.bitwise_count(says["true"][1]).astype(np.float64)
    action = chunk.moments.action
    with np.errstate(divide="ignore"):
        said = np.log2(says["true"][0][chunk.true, action])
    for number, sight in enumerate(chunk.sights):
        belief, total = _believe(sight, logs["true"])
        ess, good = _good(sight, belief, total)
        shares = sparse.csr_array(
            (np.where(good[sight.row], belief, 0.0), (sight.row, sight.which)), (len(rows), len(chunk.row))
        )
        found = {"options": shares @ options}
        for name, (p, _) in says.items():
            expected = shares @ p
            found["told" if name == "true" else name] = np.maximum(entropy_of(expected) - shares @ doubt[name], 0.0)
            if name == "true":
                found["entropy"] = entropy_of(expected)
                with np.errstate(divide="ignore"):
                    found["foreseen"] = np.log2(expected[line, action])
        for name in LEVELS:
            other = _believe(sight, logs[name])[1]
            found[f"gap {name}"] = _divergence(sight, belief, (logs["true"], logs[name]), (total, other))
            if name == "reference":
                with np.errstate(invalid="ignore"):
                    ratio = logs["true"][chunk.true] - logs[name][chunk.true] + other - total
                found["pointwise"] = ratio / math.log(2)
        for name, values in found.items():
            out[name][rows, number] = np.where(good, values, np.nan)
        out["ess"][rows, number] = ess
    return said


def entropy_of(p: Floats) -> Floats:
    """Entropy of the rows in bits: (n, k) -> (n,)."""
    return -(p * np.log2(np.where(p > 0, p, 1.0))).sum(axis=1)


def entropy_of_lists(row: Ints, p: Floats, count: int) -> Floats:
    """Entropy in bits of distributions that are lists: (K,) rows and probabilities -> (count,)."""
    parts = -p * np.log2(np.where(p > 0, p, 1.0))
    return np.bincount(row, parts, minlength=count).astype(np.float64)


# -- distances ------------------------------------------------------------------------------------------------------


def divergences(
    moments: Moments,
    table: Model | Sequence[Model],
    others: Sequence[Model | Sequence[Model]],
    *,
    place: int = 2,
    floor: float = 0.0,
    other_floor: float = FLOOR,
    method: str = "auto",
    candidates: int = CANDIDATES,
    seed: int = 0,
    progress: Progress | None = None,
) -> Floats:
    """KL in bits from the belief about the decider to those that take it for others: (M, len(others)), nan as above.

    Only the decider's factor is exchanged; what the others at the table said is read by `table`. Arguments as of
    `measure`; `place`: of the observer, the partner unless said otherwise.
    """
    rules = moments.position.rules
    seen, players = observers(rules, [place]), models_of(table, rules)
    models = [models_of(other, rules) for other in others]
    out, done = np.full((len(moments), len(models)), np.nan), 0
    for chunk in _chunks(moments, players, seen, floor, {"method": method, "candidates": candidates}, seed):
        sight = chunk.sights[0]
        true = chunk.factors(players[chunk.seat], floor)
        belief, total = _believe(sight, true)
        _, good = _good(sight, belief, total)
        for number, model in enumerate(models):
            log = chunk.factors(model[chunk.seat], other_floor)
            found = _divergence(sight, belief, (true, log), (total, _believe(sight, log)[1]))
            out[chunk.rows, number] = np.where(good, found, np.nan)
        done += len(chunk.rows)
        if progress is not None:
            progress(done, len(moments))
    return out


def distances(
    moments: Moments, table: Model | Sequence[Model], others: Sequence[Model | Sequence[Model]], **settings: Any
) -> list[Estimate]:
    """How far the conventions of others are from those of a table: D = mean over its deals of KL, for each of them.

    It is what the partner loses that takes the decider for the other: a row of the matrix of tables against tables.
    The distance from i to j is measured where i played, and is not that from j to i. Arguments as of `divergences`.
    """
    found = divergences(moments, table, others, **settings)
    return [figure(column, moments.deal) for column in found.T]
