"""What single kinds of moves are worth in points: what a team loses whose ears are closed to one kind.

Both members of team A play as ever, but for a seat's decision right after a move of that kind by its partner, in which
it plays as its deaf twin. The worth of the kind is what A wins a deal with open ears less what it wins so, board by
board on the same duplicate boards and with the same chance: a board on which nobody answers otherwise counts 0.

How far the ears are closed is the twin's. One that does not read its partner is deaf to it alone. A network's twin
hears nobody, so in that decision it is deaf to the opponents and to all earlier moves, too, and the worth is that of
hearing at all after such a move. How many decisions were deaf, and in how many of these another move came out, is
counted (`Worth`): a kind that comes often is worth more than one that seldom comes, even if both say as much.

A hearer can close its ears to what it sees. Whether a move is of a kind that hangs on the mover's own hand it does not
see, so such a kind has no worth. Nor does it see whether the mover had a choice: forced moves count.

The opponents are fixed players, never the same network. Against itself a team wins 0 on every board whatever it hears,
so no luck of the deals falls out; and there the deaf team is less well read, too, and the figure would hang on that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from agents.base import Agent, Decisions, make_agent
from agents.search.position import Position, position_of
from domino_env.rules import Rules
from domino_env.tiles import NUM_TILES, PASS
from experiments.evaluate import Player, Side
from experiments.signaling.conventions import ANY, LEAST
from experiments.signaling.matches import Match, Matches, Show, players_of, said, side_name
from experiments.signaling.moves import MOVES, Situation, of_game
from experiments.signaling.statistics import NOTHING, Estimate, over_units
from experiments.tournament import networks

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BOARDS = 4000
KINDS = (ANY, *(name for name, kind in MOVES.items() if kind.public))  # those that a hearer sees
_PARTNER = 2  # seats clockwise, and plies since its last turn


class Deafened:
    """An agent that plays as its deaf twin right after a move of one kind by its partner, and else as itself."""

    sees_everything = False
    needs_history = True  # to see what the partner did

    def __init__(self, agent: Agent, deaf: Agent, kind: str) -> None:
        """Takes the two players and the kind.

        Args:
            agent: who plays; deaf: its twin, which is asked only where it is to answer: it must not remember.
            kind: one of `KINDS`; "any" are all moves of the partner, but no passes.

        Raises:
            ValueError: another kind.
        """
        if kind not in KINDS:
            why = "hangs on the mover's hand, which no hearer sees" if kind in MOVES else "is unknown"
            raise ValueError(f"kind={kind!r} {why}; choose from {', '.join(KINDS)}")
        self.agent, self.deaf, self.kind = agent, deaf, kind
        self.name = f"deafened:kind={kind},deaf={said(deaf)}({said(agent)})"
        if hints := [hint for one in (agent, deaf) if (hint := getattr(one, "batch_hint", None))]:
            self.batch_hint = min(hints)
        self.counts = {"asked": 0, "deaf": 0, "changed": 0}  # see `Worth`

    def check(self, rules: Rules) -> None:
        """Refuses what the two refuse, and a game without partners."""
        if not rules.pairs:
            raise ValueError(f"{self.name} listens to a partner, and {rules.title} has none")
        for one in (self.agent, self.deaf):
            if (check := getattr(one, "check", None)) is not None:
                check(rules)

    def act(self, batch: Decisions) -> Ints:
        """(N,) int64 legal actions. The twin has the chance that the agent would have had."""
        rows = np.flatnonzero(after(batch, self.kind))
        unheard = batch.take(rows)  # with its chance as it stands now
        answer = self.agent.act(batch)
        self.counts["asked"] += len(batch)
        self.counts["deaf"] += len(rows)
        if len(rows):
            answer = answer.copy()
            other = self.deaf.act(unheard)
            self.counts["changed"] += int((answer[rows] != other).sum())
            answer[rows] = other
        return answer


def after(batch: Decisions, kind: str) -> Bools:
    """Whether the partner of each decider made a move of a kind in its last turn.

    Args:
        batch: N decisions with history, of a game of pairs.
        kind: of `KINDS`.
    Returns:
        (N,) bool; False where it passed, or has not been to move.
    Raises:
        ValueError: a batch without history.
    """
    if batch.history is None:
        raise ValueError("what the partner did is not known: these decisions have no history")
    plies = (batch.history >= 0).sum(axis=1)
    last = batch.history[np.arange(len(batch)), np.maximum(plies - _PARTNER, 0)].astype(np.int64)
    out = (plies >= _PARTNER) & (last & 63 != PASS)
    rows = np.flatnonzero(out)
    if kind != ANY and len(rows):
        s = _before(position_of(batch.take(rows)))
        out[rows] = MOVES[kind].holds(s)[np.arange(len(rows)), last[rows] & 63]
    return out


def _before(position: Position) -> Situation:
    """The partner's last turns, as all saw them: without the last two events, and nobody's hand known.

    Args:
        position: N rows with at least two events each.
    """
    events = cast(Ints, position.events)
    rows, number = np.arange(len(position)), position.plies - _PARTNER
    event = events[rows, number]
    past = np.where(np.arange(events.shape[1]) < number[:, None], events, -1)
    action, ends = past & 63, np.stack([past >> 9 & 7, past >> 6 & 7])
    tiles = (np.uint32(1) << (action % NUM_TILES).astype(np.uint32)).astype(np.uint32)
    suits = np.bitwise_or.reduce(1 << ends, axis=0).astype(np.uint8)
    played, voids = position.played.copy(), position.voids.copy()
    for seat in range(position.rules.seats):
        theirs = (past >= 0) & (past >> 12 == seat)
        played[:, seat] = np.bitwise_or.reduce(np.where(theirs & (action != PASS), tiles, 0), axis=1)
        voids[:, seat] = np.bitwise_or.reduce(np.where(theirs & (action == PASS), suits, 0), axis=1)
    stood = np.stack([event >> 9 & 7, event >> 6 & 7], axis=1)
    laid = np.bitwise_count(position.played).astype(np.int64) - np.bitwise_count(played)
    nothing = np.zeros(len(position), np.uint32)
    return Situation(
        Position(
            position.rules, np.full(len(position), -1), nothing, played, voids, position.sizes + laid,
            np.where(stood < 7, stood, -1), position.leader, event >> 12, past,
        ),
        nothing,
        np.zeros(len(position), np.uint64),
    )  # fmt: skip


@dataclass(frozen=True)
class Worth:
    """What hearing one kind of moves is worth, and how often it was not heard."""

    kind: str
    points: Estimate  # a deal, over boards; nothing where too few decisions were deaf
    asked: int  # decisions of the team
    deaf: int  # of these, right after such a move: made as the twin
    changed: int  # of these, those in which it would have played another move with open ears

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "points": self.points.to_dict()}


@dataclass(frozen=True)
class Worths:
    """What the kinds are worth that a hearer sees."""

    player: str
    deaf: str
    pool: tuple[str, ...]
    rules: str
    seed: int
    boards: int
    least: int  # deaf decisions below which there is no figure
    kinds: tuple[Worth, ...]

    @property
    def values(self) -> dict[str, Estimate]:
        """Points by kind, as `conventions` takes them."""
        return {one.kind: one.points for one in self.kinds}

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "pool": list(self.pool), "kinds": [one.to_dict() for one in self.kinds]}


def worth(
    player: Player,
    deaf: Player,
    pool: Sequence[Side],
    rules: str | Rules = "sport_book",
    boards: int = BOARDS,
    seed: int = 0,
    *,
    kinds: Sequence[str] | None = None,
    least: int = LEAST,
    folder: str | Path | None = None,
    progress: Show | None = None,
) -> Worths:
    """Close a team's ears to one kind of moves after another, and see what it loses.

    Args:
        player: who sits at both seats of the team; deaf: its twin, as of `players.Seats.twins`.
        pool: opponents, fixed, each alike in the mean.
        rules: a game of pairs; boards: of each match; seed: of deals and chance.
        kinds: of `KINDS`, None: all of them that the game has; least: deaf decisions below which a kind has no figure.
        folder: matches are kept there, and those that are there are not played again.
        progress: called with (boards played, boards of all matches).
    Raises:
        ValueError: a kind that a hearer does not see, no opponents or the player among them, and what
            `Matches.play_all` refuses.
        AgentError: a player failed.
    """
    table = Matches(rules, boards, seed, folder)
    if not pool or isinstance(pool, str):
        raise ValueError("what kinds of moves are worth is measured against a list of opponents, at least one")
    _check_others((player, deaf), pool)
    agent, twin = make_agent(player, table.rules), make_agent(deaf, table.rules)
    if kinds is None:
        kinds = [kind for kind in KINDS if kind in (ANY, *of_game(table.rules))]
    teams: list[Player] = [player, *(Deafened(agent, twin, kind) for kind in kinds)]
    played = table.play_all([(team, opponents) for team in teams for opponents in pool], progress)
    each = [played[i : i + len(pool)] for i in range(0, len(played), len(pool))]
    won = [np.mean([one.values for one in matches], axis=0) for matches in each]
    found = [_worth(kind, won[0] - less, matches, least) for kind, less, matches in zip(kinds, won[1:], each[1:])]
    return Worths(
        said(player), said(deaf), tuple(map(side_name, pool)), table.rules.title, table.seed, table.boards, least,
        tuple(found),
    )  # fmt: skip


def _worth(kind: str, lost: Floats, played: Sequence[Match], least: int) -> Worth:
    """One kind: (boards,) points that were lost, and what the matches counted."""
    asked, deaf, changed = (sum(one.counts.get(key, 0) for one in played) for key in ("asked", "deaf", "changed"))
    return Worth(kind, over_units(lost) if deaf >= least else NOTHING, asked, deaf, changed)


def _check_others(own: Sequence[Player], pool: Sequence[Side]) -> None:
    """Refuse opponents that are the player itself."""
    names = [said(one) for one in own]
    mine = {*networks(_plain(one) for one in own).values()}
    for side in pool:
        for one in players_of(side):
            if said(one) in names or mine & {*networks([_plain(one)]).values()}:
                raise ValueError(
                    f"{said(one)} cannot be an opponent of {names[0]} here: against itself a team wins 0 on every "
                    "board whatever it hears; choose other opponents"
                )


def _plain(player: Player) -> str:
    return player if isinstance(player, str) else player.name
