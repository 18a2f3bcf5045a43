"""Who listens: what changes in a player's play when it no longer hears what others chose, and the board stays.

In a game where every signal is a move the two have to be told apart. A move changes the ends, and with them what the
next seat may do at all: that the next seat then plays something else is no communication. So what a seat's choices said
is taken away, and nothing but that: which tiles lie, the ends, who passed on what and how many tiles each holds stay as
they are. The player without it, its deaf twin, is asked about the same decisions:

* a network that was trained with deaf seats, told nothing of the past but what the rules need (`deaf:model=RUN`);
* a player that weighs worlds by what the others' moves say (`pimc`, `lookahead`), with `reads` of fewer seats;
* a rule player without the rules that look at what others did.

`changes` compares the two, decision by decision: KL(pi(. | h, past) || pi(. | h, past without that seat's choices)) in
bits, total variation, and whether the likeliest action is another. Players that search have no probabilities; they are
asked twice with the same chance, and only whether they play the same is seen.

`influences` asks what comes of a speaker's move: for every action a that it may choose (Jaques et al. 2019, arXiv
1810.08647; Lowe et al. 2019, arXiv 1903.05168), with p(a) its policy with the hand that it holds,

* total = sum of p(a) KL(pi_i(. | do a) || mean over p of pi_i(. | do a)): through the board and through what it says;
* physical: the same with the deaf twin as listener: through the board alone;
* informational = sum of p(a) KL(pi_i(. | after a) || its deaf twin there): what it hears, the move a included.

The last is all that the twin does not hear. With one that hears nobody, the speaker is charged with what others told
the listener; what is its own shows with a twin that is deaf to it alone.

The total is no communication: it is large where nobody listens. Nor is it the sum of the other two. Given all hands, p
is known. Where the listener moves next, the informational part is in the mean over deals that under its forecast of a,
too: what stands behind the sum hangs on its hand and on what is public. Code that was published with the measure takes
a mean over the messages where the formula has a sum, which adds their logarithm to every figure: a listener that
ignores them all scores log n there. Here it scores 0.

Where other seats move between speaker and listener they do so by their own policies and with the hands that they hold:
a listener's answers are their mean over these moves, and what it hears is compared after each of them. A deal that ends
before the listener's turn is an answer of its own. Answers that are forced count: they are physical.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.base import Agent, folder_of, has_probabilities, make_agent, need_probabilities, options_of
from agents.search.asking import answers, standing
from agents.search.position import imagine, mask_of_bits, position_at
from domino_env.decisions import Decisions
from domino_env.observation import unpack
from experiments.signaling.record import Moments, Record, chance_of
from experiments.signaling.statistics import NOTHING, Estimate, clustered, share

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Progress = Callable[[int, int], None]

PLACES = {1: "left", 2: "partner", 3: "right"}  # of the listener, seats clockwise from who speaks
DO = ("policy", "uniform")
_AT_ONCE = 512  # decisions
_SEARCHED = 128  # decisions that are searched at once
#: Maxims of club that look at what others did, by whom they hear.
_CLUB = {"partner": ("repeat_partner", "spare_partner"), "opponents": ("cut_opponents", "starve_opponents")}
_READS = {"all": "none", "partner": "opponents", "opponents": "partner"}  # without them: who is still read
_NO_PAST = ("random", "greedy", "double_first")


# -- decision by decision -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Changes:
    """What M decisions owe to what was heard."""

    divergence: Floats | None  # (M,) bits; None: a player that has no probabilities
    variation: Floats | None  # (M,) total variation, 0..1
    flip: npt.NDArray[np.bool_]  # (M,) the likeliest action is another; without probabilities: what is played


def changes(
    moments: Moments,
    hearing: Agent,
    deaf: Agent,
    floor: float = 0.0,
    seed: int = 0,
    progress: Progress | None = None,
) -> Changes:
    """Ask a player and its deaf twin about the same decisions.

    Args:
        moments: M decisions; who made them does not matter.
        hearing, deaf: the two. Where both have `probabilities` these are compared, else what they play.
        floor: of both, mixes each answer with a random move.
        seed: of the record, whose chance the players are given that have no probabilities.
        progress: called with (decisions asked about, decisions).

    Raises:
        ValueError: players that do not play this game, that see all hands or play by the clock, or of which one has
            probabilities and one has not; or the deaf one never plays what the other does, and there is no floor.
    """
    kinds = has_probabilities(hearing), has_probabilities(deaf)
    if kinds[0] != kinds[1]:
        mute = deaf if kinds[0] else hearing
        raise ValueError(f"{hearing.name} and {deaf.name} cannot be compared: {mute.name} has no probabilities")
    if not kinds[0]:
        flip = np.zeros(len(moments), np.bool_)
        for first in range(0, len(moments), _SEARCHED):
            rows = np.arange(first, min(first + _SEARCHED, len(moments)))
            some = moments.take(rows)
            flip[rows] = _played(some, hearing, seed) != _played(some, deaf, seed)
            if progress is not None:
                progress(int(rows[-1]) + 1, len(moments))
        return Changes(None, None, flip)
    rows = np.arange(len(moments))
    p, q = (answers(moments.position, agent, rows, moments.hand(), floor)[0] for agent in (hearing, deaf))
    apart = np.abs(p - q).sum(axis=1) / 2
    return Changes(_finite(_divergence(p, q), hearing, deaf), apart, p.argmax(axis=1) != q.argmax(axis=1))


def _played(moments: Moments, agent: Agent, seed: int) -> Ints:
    """(M,) what a player does, with the chance that the deal had."""
    if getattr(agent, "sees_everything", False):
        raise ValueError(f"{agent.name} sees all hands: it has nothing to hear")
    if getattr(agent, "ms", None) is not None:
        raise ValueError(
            f"{agent.name} plays by the clock: give worlds=… in place of ms=…, so that only hearing differs"
        )
    engine = standing(moments.position)
    obs, legal = engine.suppose(np.arange(len(moments)), moments.hand())
    batch = Decisions(
        unpack(obs),
        mask_of_bits(legal),
        moments.seat,
        engine.history() if getattr(agent, "needs_history", False) else None,
        chance_of(seed, moments.deal, moments.ply),
        rules=moments.position.rules,
        key=moments.deal,
    )
    return agent.act(batch)


def _divergence(p: Floats, q: Floats) -> Floats:
    """(n,) KL(p || q) in bits of (n, A) each; infinite where q rules out what p plays."""
    some = p > 0
    with np.errstate(divide="ignore"):
        log = np.log2(np.where(some, p, 1)) - np.log2(np.where(some, q, 1))
    return np.maximum((p * log).sum(axis=1), 0)


def _finite(values: Floats, hearing: Agent, deaf: Agent) -> Floats:
    if (endless := int(np.isinf(values).sum())) > 0:
        raise ValueError(
            f"in {endless} of {len(values)} decisions {deaf.name} never plays what {hearing.name} does, and the "
            "divergence is infinite; give a floor above 0"
        )
    return values


# -- what comes of a move -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Influences:
    """What M moves did to what a later seat played, in bits: (M,) each."""

    total: Floats
    physical: Floats
    informational: Floats


def influences(
    table: Sequence[Agent],
    moments: Moments,
    hearing: Agent,
    deaf: Agent,
    place: int = 2,
    *,
    do: str = "policy",
    floor: float = 0.0,
) -> Influences:
    """What the speakers of M decisions do to a listener that acts after them.

    Args:
        table: who sits in each seat: these speak, and play between speaker and listener.
        moments: the speakers' decisions, with more than one legal action.
        hearing, deaf: the listener and its deaf twin.
        place: of the listener, seats clockwise from the speaker: 1 moves next, 2 is the partner.
        do: how likely the speaker's actions are: its own "policy", or all alike ("uniform"), for players whose moves
            are certain and who would never do otherwise.
        floor: of all answers, mixes them with a random move.

    Raises:
        ValueError: a player without probabilities, or numbers out of range; as of `changes`.
    """
    rules = moments.position.rules
    if not 1 <= place < rules.seats:
        raise ValueError(f"place={place!r} must be 1..{rules.seats - 1}, seats clockwise from who speaks")
    if do not in DO:
        raise ValueError(f"do={do!r} is unknown; choose from {', '.join(DO)}")
    for agent in (*table, hearing, deaf):
        need_probabilities(agent)
    parts = [
        _influences(table, moments.take(np.arange(i, min(i + _AT_ONCE, len(moments)))), hearing, deaf, place, do, floor)
        for i in range(0, len(moments), _AT_ONCE)
    ]
    return Influences(*(np.concatenate([part[k] for part in parts]) if parts else np.zeros(0) for k in range(3)))


def _influences(
    table: Sequence[Agent], moments: Moments, hearing: Agent, deaf: Agent, place: int, do: str, floor: float
) -> tuple[Floats, Floats, Floats]:
    rules = moments.position.rules
    if do == "uniform":
        p = answers(moments.position, "uniform", np.arange(len(moments)), moments.hand())[0]
    else:
        p = _by_seat(table, imagine(moments.position, np.arange(len(moments)), moments.hands), floor)
    row, action = np.nonzero(p)  # an arm for each action of each decision
    weight = p[row, action] / np.bincount(row, p[row, action])[row]
    engine = imagine(moments.position, row, moments.hands[row])
    arm, chance = np.arange(len(row)), np.ones(len(row))  # of each branch; those that are over are no longer here
    arm, chance, engine = _stepped(engine, action, arm, chance)
    for _ in range(place - 1):
        if engine is None:
            break
        p = _by_seat(table, engine, floor)
        branch, action = np.nonzero(p)
        arm, chance, engine = _stepped(engine.take(branch), action, arm[branch], chance[branch] * p[branch, action])
    heard, ignored = (np.zeros((len(row), rules.num_actions + 1)) for _ in range(2))
    informational = np.zeros(len(moments))
    if engine is not None:
        position, hands = position_at(engine), engine.hands()[np.arange(len(arm)), engine.to_move()]
        branch = np.arange(len(arm))
        p, q = (answers(position, agent, branch, hands, floor)[0] for agent in (hearing, deaf))
        apart = _finite(_divergence(p, q), hearing, deaf)
        informational += np.bincount(row[arm], weight[arm] * chance * apart, minlength=len(moments))
        np.add.at(heard[:, :-1], arm, chance[:, None] * p)
        np.add.at(ignored[:, :-1], arm, chance[:, None] * q)
    for answer in (heard, ignored):
        answer[:, -1] = np.maximum(1 - answer.sum(axis=1), 0)  # the deal is over
        answer[answer[:, -1] < 1e-12, -1] = 0
    return mutual(row, weight, heard), mutual(row, weight, ignored), informational


def _stepped(engine: Any, action: Ints, arm: Ints, chance: Floats) -> tuple[Ints, Floats, Any]:
    """The branches in which the deal goes on after these actions; None for an engine that has none."""
    _, done = engine.step(action, autoreset=False)
    going = np.flatnonzero(~done)
    return arm[going], chance[going], engine.take(going) if len(going) else None


def _by_seat(table: Sequence[Agent], engine: Any, floor: float) -> Floats:
    """(B, actions) what the movers of an engine's rows may do, each by who sits there."""
    position, seat = position_at(engine), engine.to_move()
    hands = engine.hands()[np.arange(len(seat)), seat]
    out = np.zeros((len(seat), position.rules.num_actions))
    for agent in {id(agent): agent for agent in table}.values():
        mine = np.flatnonzero(np.isin(seat, [place for place, one in enumerate(table) if one is agent]))
        if len(mine):
            out[mine] = answers(position, agent, mine, hands[mine], floor)[0]
    return out


def mutual(row: npt.NDArray[Any], weight: Floats, answer: Floats) -> Floats:
    """What an answer tells of the action before it: sum of p(a) KL(answer to a || mean answer), in bits.

    Args:
        row: (K,) which decision, ascending, each number from 0 on; weight: (K,) p(a), which add up to 1 in a row;
        answer: (K, C) probabilities.
    Returns:
        (M,) the mutual information of a decision's action and its answer. A sum over actions: with their mean in the
        place of the mean answer, log2 of their number too much would stand here.
    """
    first = np.flatnonzero(np.diff(row, prepend=-1))
    if not len(first):
        return np.zeros(0)
    mean = np.add.reduceat(weight[:, None] * answer, first)
    return np.add.reduceat(weight * _divergence(answer, mean[row]), first)


# -- in all ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Influence:
    """What moves did to what a later seat played, in bits a move; the total is not communication."""

    total: Estimate
    physical: Estimate
    informational: Estimate

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {name: getattr(self, name).to_dict() for name in ("total", "physical", "informational")}


@dataclass(frozen=True)
class Listening:
    """Whether a player listens, by means over decisions with deals as units."""

    hearing: str
    deaf: str
    divergence: Estimate  # bits; nothing where the player has no probabilities
    variation: Estimate  # 0..1, likewise
    flips: Estimate  # share of the decisions
    by_tiles: dict[int, Estimate]  # tiles on the line: divergence, or flips where there is none
    influence: dict[str, Influence]  # place of the listener from who speaks: "left", "partner", "right"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "hearing": self.hearing,
            "deaf": self.deaf,
            **{name: getattr(self, name).to_dict() for name in ("divergence", "variation", "flips")},
            "by_tiles": {str(tiles): one.to_dict() for tiles, one in self.by_tiles.items()},
            "influence": {place: one.to_dict() for place, one in self.influence.items()},
        }

    def rows(self) -> list[tuple[str, Estimate]]:
        """Lines of a table."""
        lines = [
            ("policy change, bits", self.divergence),
            ("total variation", self.variation),
            ("other action", self.flips),
        ]
        for place, one in self.influence.items():
            lines += [(f"{part} influence on {place}, bits", getattr(one, part)) for part in one.__dict__]
        return lines


def listening(
    record: Record,
    hearing: Agent,
    deaf: Agent,
    *,
    seats: Collection[int] | None = None,
    places: Collection[int] = (1, 2),
    do: str = "policy",
    floor: float = 0.0,
    progress: Progress | None = None,
) -> Listening:
    """Whether a player of a table listens to those whom its deaf twin does not hear.

    Args:
        record: of the table; its decisions are those that are looked at.
        hearing, deaf: the player and its twin.
        seats: whose decisions; None: where the player sits.
        places: of the listener from the speaker, for the influence of moves; left out where the table has players
            without probabilities. Where several seats listen, each is a listener.
        do, floor: as of `influences`.
        progress: called with (decisions asked about, all of them, each of the influences and the change one time each).

    Raises:
        ValueError: as of `changes` and `influences`, or a player that does not sit at the table.
    """
    rules = record.moments.position.rules
    sits = [n for n, one in enumerate(record.table) if one is hearing or one.name == hearing.name]
    chosen = sits if seats is None else sorted({*seats})
    if not chosen:
        raise ValueError(f"{hearing.name} does not sit at this table: say whose decisions by seats=[…]")
    if not set(chosen) <= set(range(rules.seats)):
        raise ValueError(f"seats={chosen} must be of 0..{rules.seats - 1}")
    asked = [*record.table, hearing, deaf]
    wanted = sorted({*places}) if all(map(has_probabilities, asked)) else []
    moments = record.moments.take(np.isin(record.moments.seat, chosen))
    total = max(len(moments), 1) * (1 + len(wanted))

    def told(done: int, _: int) -> None:
        if progress is not None:
            progress(done, total)

    found = changes(moments, hearing, deaf, floor, record.seed, told)
    told(len(moments), total)
    main, over = (found.flip, share) if found.divergence is None else (found.divergence, clustered)
    influence = {}
    for number, place in enumerate(wanted):
        spoken = record.moments.take(np.isin((record.moments.seat + place) % rules.seats, chosen))
        parts = influences(record.table, spoken, hearing, deaf, place, do=do, floor=floor)
        influence[PLACES.get(place, str(place))] = Influence(
            *(clustered(part, spoken.deal) for part in (parts.total, parts.physical, parts.informational))
        )
        told(len(moments) * (2 + number), total)
    tiles = moments.tiles
    return Listening(
        hearing.name,
        deaf.name,
        NOTHING if found.divergence is None else clustered(found.divergence, moments.deal),
        NOTHING if found.variation is None else clustered(found.variation, moments.deal),
        share(found.flip, moments.deal),
        {int(n): over(main[tiles == n], moments.deal[tiles == n]) for n in np.unique(tiles)},
        influence,
    )


def twins(player: str) -> dict[str, str]:
    """Names of a player's deaf twins, by whom they do not hear: "all" others, "partner", "opponents".

    Players that look at nobody are their own twins. Of a network there is the twin that hears nobody.

    Raises:
        ValueError: a player of which no twin is known.
    """
    if folder_of(player) is not None:
        return {"all": f"deaf:model={player}"}
    name, options = player.partition(":")[0], options_of(player)
    stem = name.rpartition("-")[0] or name

    def without(changed: dict[str, Any]) -> str:
        parts = ",".join(f"{key}={value}" for key, value in (options | changed).items())
        return f"{name}:{parts}" if parts else name

    if name in _NO_PAST:
        return {"all": player, "partner": player, "opponents": player}
    if name == "planted":
        quiet = {"noise": 0} if options.get("noise") else {}  # noise follows all that was done
        deaf = without(({"listen": 0} if options.get("listen") else {}) | quiet)
        return {"all": deaf, "partner": deaf, "opponents": without(quiet)}
    if name == "club":
        each = {who: dict.fromkeys(maxims, 0) for who, maxims in _CLUB.items()}
        return {"all": without({**each["partner"], **each["opponents"]})} | {
            who: without(one) for who, one in each.items()
        }
    if name in ("lookahead", "champion-search") or (stem == "pimc" and "model" in options):
        if options.get("reads", "all") != "all":
            raise ValueError(f"{player} does not read all others: compare it with a twin of your own")
        return {who: without({"reads": rest}) for who, rest in _READS.items()}
    if stem in ("pimc", "ismcts"):
        return {"all": player, "partner": player, "opponents": player}  # no model: worlds by the rules alone
    agent = make_agent(player)  # an unknown name says so
    if getattr(agent, "deafness", None) == 0:
        raise ValueError(
            f"no deaf twin of {player} is known: it is a network that never was deaf in its training, so what it does "
            "without its past would mean nothing; train one that was (domino train hearing), or hold trainings in "
            "which all hear against deaf ones (domino signal e2 --retrained RUN,RUN --deaf RUN,RUN)"
        )
    raise ValueError(
        f"no deaf twin of {player} is known: nothing shuts its ears to what others chose and leaves it the board; ask "
        "a run trained with deaf seats (domino train hearing), lookahead or pimc with model=RUN, planted or club"
    )
