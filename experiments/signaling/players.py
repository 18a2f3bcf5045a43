"""Who is measured and how it plays meanwhile, whom it is compared with, and who it is without ears.

A network is measured as it plays when it draws its moves by its own probabilities: then what its moves say is what the
beliefs read, and these are exact. A network that always plays its likeliest action tells more, and is another player;
it is measured as one that is certain of its moves (`AsPlayed`), with a small floor for what rounding turns round.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.base import folder_of, has_probabilities, make_agent, options_of
from agents.search.lookahead import Judge, Lookahead
from agents.search.position import mask_of_bits
from agents.search.reading import AsPlayed, Model
from domino_env.deals import row_keys
from domino_env.rules import Rules, get_rules
from experiments.evaluate import Player
from experiments.signaling import listening
from experiments.signaling.record import Moments
from experiments.tournament import networks

INNOCENT = "planted:strength=0"  # lays heavy tiles first, softly, and looks at no other seat
FLOOR = 0.02  # of players whose moves are certain, where they may be wrong or are compared
TINY = 1e-6  # of networks: what one hardly ever plays is not impossible
WORLDS = 200  # that a judge who hears nobody imagines for each decision
_SALT = 7  # the family of random streams of its worlds
_LEAVES = 1 << 16  # positions that it judges at once
_CERTAIN = ("greedy", "double_first", "club")  # of rule players; their moves have probability 0 or 1


def game_of(players: Iterable[str], rules: str | Rules | None = None) -> Rules:
    """The game: the one given, else that which the first network among the players was trained for, else sport_book.

    Raises:
        ValueError: an unknown game, or one with several tiles a turn, or without an open line.
    """
    game = get_rules("sport_book") if rules is None else get_rules(rules)
    if rules is None:
        named = (part for player in players for part in (player, *re.findall(r"[:,](?:model|critic)=([^,]+)", player)))
        folder = next((folder for part in named if (folder := folder_of(part)) is not None), None)
        if folder is not None:
            from agents.checkpoint import load, resolve

            game = load(resolve(folder)).rules
    if game.rows or game.chains:
        raise ValueError(f"signals are measured in games with one tile a turn on an open line, not in {game.title}")
    if not game.pairs:
        raise ValueError(f"signals are between partners, and {game.title} is played without")
    return game


@dataclass(frozen=True)
class Reference:
    """An innocent player, for whom the measured one may be taken."""

    name: str
    model: Model
    floor: float  # with which others are taken for it
    why: str  # why this one


@dataclass(frozen=True)
class Sitter:
    """A player as it is measured."""

    name: str
    agent: Any

    @property
    def network(self) -> Any:
        """The network that plays; None of a rule player or one that searches."""
        inner = self.agent.agent if isinstance(self.agent, AsPlayed) else self.agent
        return inner if _is_network(inner) else None

    @property
    def side(self) -> Player:
        """As it is told to a match: by its name where the name says how it plays."""
        return self.agent if getattr(self.agent, "sample", False) else self.name

    @property
    def certain(self) -> bool:
        """Whether its moves have probability 0 or 1."""
        return isinstance(self.agent, AsPlayed) or self.agent.name.partition(":")[0] in _CERTAIN

    @property
    def how(self) -> str:
        """How it plays while it is measured, in words."""
        if isinstance(self.agent, AsPlayed):
            return "its likeliest action, read as certain"
        if self.network is not None:
            return "drawn by its own probabilities"
        return "certain" if self.certain else "as it always plays"

    @property
    def reading_floor(self) -> float:
        """The floor with which its moves are read: none, for it plays what it says; but of `AsPlayed` a little."""
        return FLOOR if isinstance(self.agent, AsPlayed) else 0.0

    @property
    def floor(self) -> float:
        """The floor with which two answers are compared, or it is taken for another: more where moves are certain."""
        return FLOOR if self.certain else 0.0 if self.network is None else TINY

    @property
    def do(self) -> str:
        """How likely the moves are whose influence is looked at, as of `listening.influences`."""
        return "uniform" if self.certain else "policy"

    def as_reference(self, why: str) -> Reference:
        """As one for whom others may be taken."""
        return Reference(self.name, self.agent, self.floor, why)


class Seats:
    """Players of one game as they are measured, each made once: two of one name would be two players to a match."""

    def __init__(self, rules: Rules, greedy: bool = False) -> None:
        """rules: the game; greedy: networks play their likeliest action, else they draw by their probabilities."""
        self.rules, self.greedy = rules, greedy
        self._known: dict[str, Sitter] = {}

    def __call__(self, player: str) -> Sitter:
        """A player by its name.

        Raises:
            ValueError: as of `make_agent`.
        """
        if player not in self._known:
            agent: Any = make_agent(player, self.rules)
            if _is_network(agent):
                agent.sample = not self.greedy
                agent = AsPlayed(agent) if self.greedy else agent
            self._known[player] = Sitter(player, agent)
        return self._known[player]

    def asked(self, player: str) -> Sitter:
        """A player whose moves a belief can read.

        Raises:
            ValueError: as of `make_agent`; a player without probabilities, and then it says what may be done.
        """
        one = self(player)
        if not has_probabilities(one.agent):
            raise ValueError(
                f"{player} has no probabilities: its moves hang on worlds that it draws or on what it remembers, so no "
                "belief can ask what it would play with another hand; measure the network or rule player that it is "
                "built on, see whom it listens to by domino signal listen and e2, or write its deals down for domino "
                "signal probe"
            )
        return one

    def reference(self, player: Sitter, asked: str | None = None) -> Reference:
        """The reference that was asked for; else the player's own deaf twin where it has one, else a heuristic.

        Raises:
            ValueError: a reference that cannot be asked.
        """
        if asked == "uniform":
            return Reference(asked, asked, 0.0, "as asked: random play")
        if asked is not None:
            return self.asked(asked).as_reference("as asked")
        network = player.network
        if network is not None and 0 < network.deafness < 1 and not network.deaf:
            twin = self(f"deaf:model={player.name}")
            why = "its own deaf twin: the same network, told nothing of what others chose"
            return twin.as_reference(why)
        why = "a heuristic that looks at nobody"
        if network is not None:
            why += f", for this network has no deaf twin (deaf={network.deafness:g} in its training)"
        return self(INNOCENT).as_reference(why)

    def twins(self, player: Sitter) -> dict[str, Sitter]:
        """The player's deaf twins by whom they do not hear, as of `listening.twins`: "all", and maybe others.

        Raises:
            ValueError: there are none, as of a network trained without deaf seats: to blank its past would be out of
                distribution.
        """
        network = player.network
        if network is not None and network.deaf:
            raise ValueError(
                f"{player.name} is deaf: it hears nothing of what others choose, so nothing can be taken away"
            )
        return {who: self(name) for who, name in listening.twins(player.name).items()}


def _is_network(agent: Any) -> bool:
    return hasattr(agent, "deafness") and hasattr(agent, "sample")


class Blind:
    """What actions are worth to a judge who hears nobody: points that the mover's side is expected to win after them.

    The hidden hands are drawn by the rules alone: by what lies, who passed on what, and how many tiles each holds. A
    critic that sees all hands says in each such world what comes of an action, and the mean over the worlds counts.
    All actions of a decision are judged in the same worlds.
    """

    def __init__(
        self, critic: Judge | str, rules: Rules, worlds: int = WORLDS, seed: int = 0, *, name: str = "", why: str = ""
    ) -> None:
        """Takes the critic.

        Args:
            critic: one that sees all hands, or the folder of a run that has one; rules: the game.
            worlds: drawn for each decision; seed: of these.
            name: what the critic is called; why: why this one.
        Raises:
            ValueError: a run without such a critic, or of another game, and worlds out of range.
        """
        self.search = Lookahead(critic=critic, candidates=0, worlds=worlds)
        self.search.check(rules)
        self.worlds, self.seed, self.why = worlds, seed, why
        self.critic = name or str(getattr(self.search.judge, "name", critic))

    def __call__(self, moments: Moments, progress: Callable[[int, int], None] | None = None) -> npt.NDArray[np.float64]:
        """(M, actions) points, -inf where not legal; those of a decision hang on its deal and ply, not on the others.

        Args:
            moments: M decisions; progress: called with (decisions, decisions in all).
        """
        position, legal = moments.seen_by(0), mask_of_bits(moments.legal)
        keys, out = row_keys(self.seed, moments.number, _SALT), np.zeros(legal.shape)
        size = max(1, _LEAVES // (self.worlds * int(legal.sum(axis=1).max(initial=1))))
        for first in range(0, len(moments), size):
            rows = np.arange(first, min(first + size, len(moments)))
            out[rows] = self.search.search(position.take(rows), legal[rows], keys[rows]).mean
            if progress is not None:
                progress(int(rows[-1]) + 1, len(moments))
        return out

    def to_dict(self) -> dict[str, Any]:
        """For JSON: whose critic, why this one, and worlds."""
        return {"critic": self.critic, "why": self.why, "worlds": self.worlds}


def blind(player: Sitter, reference: Reference, rules: Rules, worlds: int = WORLDS, seed: int = 0) -> Blind:
    """The judge who hears nobody: by the critic of the reference where that was trained deaf, else by the player's own.

    Raises:
        ValueError: neither has a critic that sees all hands.
    """
    asked = []
    for one, what in ((Sitter(reference.name, reference.model), "reference"), (player, "player")):
        if one.network is not None and one.network.deafness == 1:
            asked.append((one.name, f"of the {what}, in whose training nobody heard: a critic of the deaf world"))
        elif one.network is not None and one is player:
            asked.append((one.name, "of the player's own training, for want of one of a deaf world"))
    if not asked:
        raise ValueError(
            f"{player.name} has no critic that sees all hands; runs have one, and so has a reference that is a run "
            "trained with deaf=1"
        )
    refused = ""
    for name, why in asked:
        folder = name if folder_of(name) is not None else str(options_of(name)["model"])  # a run, or deaf:model=RUN
        try:
            return Blind(folder, rules, worlds, seed, name=name, why=why)
        except ValueError as error:
            refused = refused or str(error)
    raise ValueError(refused)


def without_partner(twins: dict[str, Sitter]) -> Sitter:
    """Who does not read its partner; of a network who reads nobody."""
    return twins.get("partner", twins["all"])


def without_opponents(twins: dict[str, Sitter]) -> Sitter:
    """Who does not read its opponents; of a network who reads nobody."""
    return twins.get("opponents", twins["all"])


def deaf_to_mover(twins: dict[str, Sitter]) -> dict[int, Any]:
    """Who does not read the mover, by place of who answers, clockwise from the mover: what `conventions` asks for."""
    opponent, partner = without_opponents(twins).agent, without_partner(twins).agent
    return {1: opponent, 2: partner, 3: opponent}


def tiles_for(rules: Rules, every: bool = False) -> tuple[int, ...]:
    """Tiles on the line before the decisions that are measured: where beliefs are exact and cost little.

    Args:
        every: all such numbers, else every second one where there are many.
    """
    low = max(rules.num_tiles - 20, 1)
    high = max(rules.num_tiles - 12, min(low + 8, rules.num_tiles - rules.leftover - 1))
    found = range(low, high + 1)
    return tuple(found if every or len(found) < 8 else found[::2])


def others(player: Sitter, pool: Iterable[Sitter]) -> list[Sitter]:
    """The fixed opponents but for the player itself, against whom a match says nothing."""
    return [one for one in pool if one.side != player.side]


def each_once(players: Iterable[str], what: str = "training", why: str = "or its spread looks too small") -> None:
    """Refuse a player that stands twice, be it by another path to its run or as a copy of its network.

    Raises:
        ValueError: one does; `what` they are and `why` that is wrong go into its line.
    """
    known = dict[str, str]()
    for name in players:
        key = name
        for part, digest in networks([name]).items():
            key = re.sub(rf"(^|(?<=model=)|(?<=critic=)){re.escape(part)}(?=,|$)", digest, key)
        if key in known:
            both = name if known[key] == name else f"{known[key]} and {name} are one"
            raise ValueError(f"each {what} counts once, {why}; twice: {both}")
        known[key] = name


def split(words: Sequence[str]) -> list[str]:
    """Players from words with commas between them; a comma before an option of a player belongs to the player."""
    out: list[str] = []
    for word in words:
        for part in word.split(","):
            if out and part and re.match(r"\w+=", part) and ":" in out[-1]:
                out[-1] += f",{part}"
            elif part:
                out.append(part)
    return out
