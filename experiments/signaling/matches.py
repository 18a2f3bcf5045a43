"""Matches on the same duplicate boards: each is played once, and kept in a folder where one is given.

A match is a file named by all that it hangs on: who played, with the digests of their networks, the rules, the boards
and their seed. So a folder may serve several experiments, and going on after an interruption plays what is missing.
The same boards come with the same chance in all matches, so two matches are compared board by board.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.base import make_agent
from domino_env.rules import Rules, get_rules
from domino_env.tiles import is_whole
from experiments.evaluate import Player, Side, evaluate
from experiments.files import read_record, write_whole
from experiments.signaling.statistics import boards_needed, over_units
from experiments.tournament import networks

Floats = npt.NDArray[np.float64]
Show = Callable[[int, int], None]

BOARDS = 4000
_KIND, _VERSION = "domino signal match", 1


class Damaged(ValueError):
    """A file that was kept is no match, or not the one that it is named as; the line says which."""


@dataclass(frozen=True)
class Match:
    """What came of a match."""

    values: Floats  # (boards,) points a deal of the first side
    counts: Mapping[str, int] = field(default_factory=dict)  # what players counted that have an attribute `counts`


def players_of(side: Side) -> tuple[Player, ...]:
    """One player, or two partners."""
    return side if isinstance(side, tuple) else (side,)


def said(player: Player) -> str:
    """What a player is called: its name, and that it samples its moves where it is a network that does."""
    if isinstance(player, str):
        return player
    return f"{player.name} (sampled)" if getattr(player, "sample", False) is True else player.name


def side_name(side: Side) -> str:
    """What a side is called."""
    return "+".join(map(said, players_of(side)))


def _names(player: Any) -> Iterator[str]:
    """Names of a player and of all that it plays with, where folders of networks may be mentioned."""
    if isinstance(player, str):
        yield player
    elif player is not None:
        yield str(getattr(player, "name", ""))
        for part in ("agent", "values", "deaf"):  # of a network `deaf` is a bool, which has no name
            yield from _names(getattr(player, part, None))


class Matches:
    """Matches of one game on boards 0 .. boards - 1 of a seed."""

    def __init__(
        self,
        rules: str | Rules = "sport_book",
        boards: int = BOARDS,
        seed: int = 0,
        folder: str | Path | None = None,
    ) -> None:
        """folder: where matches are kept and looked for; it is made. None: they are kept in memory.

        Raises:
            ValueError: numbers out of range, an unknown game, a file in the folder's place.
        """
        for name, value, least in (("boards", boards, 2), ("seed", seed, 0)):
            if not is_whole(value) or value < least:
                raise ValueError(f"{name}={value!r} must be a whole number >= {least}")
        self.rules, self.boards, self.seed = get_rules(rules), int(boards), int(seed)
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None and self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{self.folder} is a file; matches are kept in a folder")
        self._kept: dict[str, Match] = {}
        self._known: dict[str, Player] = {}
        self._networks: dict[str, str] = {}

    def play_all(self, asked: Sequence[tuple[Side, Side]], progress: Show | None = None) -> list[Match]:
        """All of these matches, in this order.

        Args:
            asked: sides that meet. A player that is given by its name is made anew for each match; of one that is given
                itself the name has to tell what it plays: by it a match is found again.
            progress: called with (boards played, boards of all matches); what was kept counts as played.
        Raises:
            ValueError: a player that cannot be had or does not play the game, different players of one name, a network
                that changes meanwhile.
            Damaged: a file that is no such match.
            AgentError: a player failed; the matches before are kept.
        """
        for name in dict.fromkeys(one for pair in asked for side in pair for one in players_of(side)):
            self._meet(name)
        found, total = list[Match](), len(asked) * self.boards
        for number, (a, b) in enumerate(asked):
            done = number * self.boards
            if progress is not None:
                progress(done, total)

            def show(boards: int, _: int, done: int = done) -> None:
                if progress is not None:
                    progress(done + boards, total)

            found.append(self.play(a, b, show))
        if progress is not None:
            progress(total, total)
        return found

    def play(self, a: Side, b: Side, progress: Show | None = None) -> Match:
        """One match; arguments and errors as of `play_all`, progress in boards of this match."""
        head = self._head(a, b)
        key = hashlib.sha256(json.dumps(head, sort_keys=True).encode()).hexdigest()[:20]
        path = None if self.folder is None else self.folder / f"{key}.json"
        if key not in self._kept:
            if path is not None and path.exists():
                self._kept[key] = self._read(path, head)
            else:
                self._kept[key] = self._play(a, b, progress)
                if path is not None:
                    self._write(path, head, self._kept[key])
        return self._kept[key]

    def _meet(self, player: Player) -> None:
        """See that a player can be had, and that no other one has its name."""
        name = said(player)
        if name not in self._known:
            make_agent(player, self.rules)
            self._known[name] = player
        elif self._known[name] is not player and not (isinstance(player, str) and self._known[name] == player):
            raise ValueError(f"two different players are called {name!r}; give each a name of its own")

    def _head(self, a: Side, b: Side) -> dict[str, Any]:
        """All that a match hangs on."""
        players = [*players_of(a), *players_of(b)]
        for player in players:
            self._meet(player)
        digests = networks(name for player in players for name in _names(player))
        for name, digest in digests.items():
            if self._networks.setdefault(name, digest) != digest:
                raise ValueError(f"{name} is not the network that began these matches: it was trained on, or replaced")
        return {
            "record": _KIND,
            "version": _VERSION,
            "rules": self.rules.name,
            "rule_overrides": self.rules.overrides(),
            "boards": self.boards,
            "seed": self.seed,
            "a": [said(player) for player in players_of(a)],
            "b": [said(player) for player in players_of(b)],
            "networks": digests,
        }

    def _play(self, a: Side, b: Side, progress: Show | None) -> Match:
        counting = {id(one): one for one in (*players_of(a), *players_of(b)) if hasattr(one, "counts")}
        before, after = Counter[str](), Counter[str]()
        for one in counting.values():
            before.update(one.counts)
        result = evaluate(a, b, self.rules, self.boards, self.seed, progress=progress)
        for one in counting.values():
            after.update(one.counts)
        return Match(result.values, {key: int(number - before[key]) for key, number in after.items()})

    def _write(self, path: Path, head: Mapping[str, Any], match: Match) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = {**head, "counts": dict(match.counts), "values": match.values.tolist()}
        write_whole(path, json.dumps(whole, ensure_ascii=False) + "\n")

    def _read(self, path: Path, head: Mapping[str, Any]) -> Match:
        try:
            data = read_record(path, _KIND, _VERSION)
            values = np.array(data["values"], np.float64)
            counts = {str(key): int(number) for key, number in data["counts"].items()}
        except (KeyError, TypeError, ValueError, AttributeError):
            data, values, counts = {}, np.zeros(0), {}
        same = all(data.get(key) == value for key, value in head.items())
        if not same or values.shape != (self.boards,) or not np.isfinite(values).all():
            raise Damaged(f"{path} is no match of these players on these boards; remove it, and it is played again")
        return Match(values, counts)


def boards_lacking(values: Floats, claim: float) -> int | None:
    """How many boards it takes to see a difference that so many do not tell from 0.

    Args:
        values: (boards,) the difference on each; claim: its size, points a deal.
    Returns:
        None where the interval excludes 0, where the boards are enough for a difference of that size to be seen (in 80
        of 100 cases at 5 %), and where it is 0 on every board: more of them would not help.
    Raises:
        ValueError: a claim that is not above 0.
    """
    if not 0 < claim < math.inf:
        raise ValueError(f"claim={claim!r} must be points above 0")
    deviation = float(values.std(ddof=1))
    if deviation == 0:
        return None
    needed = boards_needed(deviation, claim)
    return None if len(values) >= needed or over_units(values).told else needed


def lacking_line(what: str, values: Floats, claim: float | None) -> list[str]:
    """What to say where boards are too few for a claim; nothing where they are enough or nothing is claimed."""
    if claim is None or (needed := boards_lacking(values, claim)) is None:
        return []
    return [
        f"{what}: {len(values):,} boards are too few for a claim of {claim:g} points a deal: it needs {needed:,} boards"
    ]
