"""A game at the terminal: a person at one seat, agents at the others, every game, deal by deal.

All that is told, and all that may be typed, comes from the catalogue `domino_env.render.words`. The table is drawn from
what the person's seat may see. Nothing is taken back, and whole deals alone are recorded. Without a terminal the game
goes line by line: no colours, no asking but by a line of its own.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.text import Text

from agents.base import Agent, decide, make_agent
from domino_env import make_engine, render
from domino_env.deals import Deal, Streams, format_deal
from domino_env.engine import Engine
from domino_env.judge import THOUGHT, Violation, violation
from domino_env.judged import FALSE_BLOCK, Referee, make_referee
from domino_env.line import LineEngine
from domino_env.match import FOUR, Header, Played, Recorder, result
from domino_env.render.words import Words, side_names, words_of
from domino_env.rules import Rules, get_rules
from domino_env.tiles import DRAW, NUM_TILES, PASS, TURN, tile_index, tile_name

Snapshot = dict[str, Any]

STRONG = {"line": "club", "blitz": "counter", "blind": "memory"}  # who plays and gives hints where nobody is named
_ROW = np.zeros(1, np.int64)
_PLIES = 1 << 10  # room for the plies of a deal in the number of a random stream
_TILE = re.compile(r"([0-6])[-:|/]([0-6])\s*(\w?)")
_TERMS = ("tile", "suit", "double", "line", "end", "move", "lead", "pass", "out", "block", "deal", "four", "match")


class PlayerError(RuntimeError):
    """An agent failed in the midst of a game."""


class _Leaves(Exception):
    """The person ends the game, or the input does; the key of the text that tells it."""


@dataclass(frozen=True)
class Result:
    """What was played."""

    deals: int  # whole ones
    sums: tuple[int, ...]  # points of each side
    over: bool  # the deal or match that was asked for came to its end


@dataclass(frozen=True)
class _Player:
    """Who sits at a seat."""

    name: str
    agent: Agent | None  # None for the person


class _Voice:
    """Lines out and in: with colours and a prompt at a terminal, else one plain line after the other."""

    def __init__(self) -> None:
        self._source = sys.stdin or io.StringIO()  # None where it was closed by who called us
        self.terminal = self._source.isatty() and sys.stdout.isatty()
        if isinstance(self._source, io.TextIOWrapper):
            self._source.reconfigure(errors="replace")  # what cannot be read is not allowed, and asked again
        self._console = Console(highlight=False) if self.terminal else None
        self.colours = self._console is not None and self._console.color_system is not None

    def say(self, text: str, style: str = "") -> None:
        """Lines of text, which may hold terminal codes."""
        if self._console is None:
            print(text, flush=True)
        else:
            self._console.print(Text.from_ansi(text, style=style), soft_wrap=True)

    def ask(self, prompt: str) -> str:
        """The next line of input, without its end; EOFError after the last."""
        if self.terminal:
            try:
                return input(prompt)
            except EOFError:
                print()  # the prompt stands there yet
                raise
        self.say(prompt.rstrip())
        line = self._source.readline()
        if not line:
            raise EOFError
        return line


def play(
    seat: str = "seat_0",
    partner: str | None = None,
    opponents: str | None = None,
    rules: str | Rules = "sport_book",
    *,
    episode: str = "deal",
    fours: int | None = None,
    seed: int | None = None,
    lang: str = "en",
    record: str | Path | None = None,
    hint: str | None = None,
    name: str | None = None,
    judge: str | None = None,
) -> Result:
    """Play a deal or a match on standard input and output.

    Args:
        seat: the person's, "seat_0" and so on.
        partner: an agent's name or a checkpoint; only in pairs. None: a strong fixed player.
        opponents: the same for all other seats.
        rules: the game.
        episode: "deal" or "match".
        fours: length of a match; None: one.
        seed: of deals and of the agents' chance; None draws one, which is told.
        lang: language of all that is told, "en" or "ru".
        record: file of the match record, which must not be there yet; None: each deal is told as a line of text.
        hint: who is asked for hints; None: a strong fixed player.
        name: the person's in the record.
        judge: "book" or "club": wrong acts of the person are judged (J1-J4); None: they are not allowed.
    Raises:
        ValueError: what cannot be played, before anything is told or written.
        PlayerError: an agent failed.
        OSError: the record cannot be written.
    """
    words = words_of(lang)
    game = get_rules(rules)
    own = _seat(seat, game, words)
    if fours is not None and episode != "match":
        raise ValueError(words["bad_fours"].format(given=fours))
    if name is not None and not name.strip():
        raise ValueError(words["bad_name"].format(given=name))
    number = int.from_bytes(os.urandom(4)) if seed is None else seed
    engine = make_engine(game, 1, number, episode=episode, fours=fours or 1)
    players, helper = _players(game, own, partner, opponents, hint, name or words["person"], words)
    referee = make_referee(engine, judge, "continue", False, THOUGHT)
    table = _Table(words, lang, _Voice(), own, players, helper, engine, number, referee)
    names = tuple(player.name for player in players)
    header = Header(game, names, fours or 1, judge, info={"seed": number, "person": own})
    with _recorder(record, header) as recorder:
        return table.play(recorder)


@contextmanager
def _recorder(path: str | Path | None, header: Header) -> Iterator[Recorder | None]:
    if path is None:
        yield None
    else:
        with Recorder.create(path, header) as recorder:
            yield recorder


def _seat(text: str, rules: Rules, words: Words) -> int:
    names = [f"seat_{seat}" for seat in range(rules.seats)]
    if text not in names:
        raise ValueError(words["bad_seat"].format(given=text, rules=rules.name, first=names[0], last=names[-1]))
    return names.index(text)


def strong(rules: Rules) -> str:
    """The strong fixed player of a game."""
    return STRONG[rules.kind]


def _players(
    rules: Rules, own: int, partner: str | None, opponents: str | None, hint: str | None, person: str, words: Words
) -> tuple[list[_Player], _Player]:
    """Who sits where, and who gives hints. Each has been asked once, so that who cannot play is told beforehand."""
    if partner is not None and not rules.pairs:
        raise ValueError(words["bad_partner"].format(given=partner, rules=rules.name))
    made: dict[str, _Player] = {}

    def of(option: str, name: str | None) -> _Player:
        name = strong(rules) if name is None else name
        if name not in made:
            made[name] = _Player(name, make_agent(name, rules))
            _try(made[name], rules, option, words)
        return made[name]

    players = []
    for seat in range(rules.seats):
        if seat == own:
            players.append(_Player(person, None))
        elif rules.side_of(seat) == rules.side_of(own):
            players.append(of("--partner", partner))
        else:
            players.append(of("--opponents", opponents))
    return players, of("--hint", hint)


def _try(player: _Player, rules: Rules, option: str, words: Words) -> None:
    """Ask an agent once at a table of its own."""
    engine = make_engine(rules, 1, 0)
    try:
        _answer(player, engine, Streams.of(0, np.zeros(1, np.int64)), 0, words)
    except PlayerError as error:
        told = words["cannot_play"].format(option=option, name=player.name, rules=rules.name, why=error)
        raise ValueError(told) from error


def _answer(player: _Player, engine: Engine, chance: Streams, key: int, words: Words) -> int:
    """The legal action that an agent chooses for the mover; PlayerError where it has none."""
    assert player.agent is not None  # the person is not asked so
    question = decide(engine, player.agent, chance, key=np.array([key]))
    try:
        answer = np.asarray(player.agent.act(question))
    except Exception as error:  # an agent is someone else's code: whatever it raises is told
        raise PlayerError(f"{type(error).__name__}: {error}") from error
    legal = np.flatnonzero(question.mask[0]).tolist()
    if answer.shape != (1,) or answer.dtype.kind not in "iu" or int(answer[0]) not in legal:
        names = " ".join(engine.rules.action_name(action) for action in legal)
        raise PlayerError(words["answered"].format(given=answer, moves=names))
    return int(answer[0])


@dataclass(frozen=True)
class _Step:
    """What came of an action."""

    played: int | None  # what was done; None where the seat is asked again, or the deal was broken off
    after: Snapshot
    over: bool  # the deal
    recorded: dict[str, Any] | None = None  # its result by the judge, where there were sanctions
    verdicts: list[dict[str, Any]] = field(default_factory=list)  # on the action


def _done(one: Engine, action: int, recorded: dict[str, Any] | None = None, verdicts: Any = ()) -> _Step:
    """An action that is done at a table of one, which stays at the end of its deal."""
    one.step(np.array([action]), autoreset=False)
    return _Step(action, one.snapshot(0), bool(one.over()[0]), recorded, [*verdicts])


@dataclass
class _Table:
    """One game, from its first deal to its end."""

    words: Words
    lang: str
    voice: _Voice
    own: int  # the person's seat
    players: list[_Player]  # by seat
    helper: _Player  # gives hints
    engine: Engine  # of one row
    seed: int
    referee: Referee | None  # judges what the person does wrong; None: it is not allowed
    deals: int = 0  # whole ones so far
    sums: list[int] = field(default_factory=list)  # points of each side
    moves: list[tuple[int, int]] = field(default_factory=list)  # seat and action, of the deal that runs
    mover: int = 0  # the seat whose action is asked for or told

    @property
    def rules(self) -> Rules:
        return self.engine.rules

    # -- the game -----------------------------------------------------------------------------------------------------

    def play(self, recorder: Recorder | None) -> Result:
        self.sums = [0] * self.rules.num_sides
        self._greet()
        try:
            while not self.engine.over()[0]:
                played = self._deal()
                if recorder is None:
                    self.say("deal_text", text=format_deal(played.deal))
                else:
                    recorder.append(played)
        except _Leaves as why:
            self.say(str(why), deals=self.deals)
        over = bool(self.engine.over()[0])
        if over and self.engine.episode == "match":
            self._tell_match()
        if recorder is not None:
            self.say("recorded", path=recorder.path, deals=self.deals)
        return Result(self.deals, tuple(self.sums), over)

    def _deal(self) -> Played:
        """Play one deal to its end."""
        self.moves = []
        violations: list[Violation] = []
        self._begin_deal()
        before = self.engine.snapshot(0)
        if self.rules.memory == "peek":
            self._draw(before, self.own)  # R9: the own row is shown now and not again
        while True:
            self.mover = int(self.engine.to_move()[0])
            legal = np.flatnonzero(self.engine.legal()[0]).tolist()
            forced = self.mover == self.own and len(legal) == 1 and self.referee is None
            if self.mover != self.own:
                action = self._ask_agent()
            else:
                if self.rules.memory == "peek":
                    self._advice()  # who gives hints must see every position, as its row is shown but once (R9)
                action = legal[0] if forced else self._ask_person(before, legal)
            step = self._step(action, legal)
            if step.played is not None:
                self._tell(step.played, legal, before, step.after, forced)
                self.moves.append((self.mover, step.played))
            for verdict in step.verdicts:
                self._tell_verdict(verdict)
                violations.append(violation(verdict["violation"]))
            before = step.after
            if step.over:
                self._end_deal(before, step.recorded)
                return Played(self._record(before), tuple(violations))

    def _step(self, action: int, legal: list[int]) -> _Step:
        """Do an action. A copy of the table does it too and stays at the end of the deal; the game goes on."""
        one = self.engine.take(_ROW)
        one.episode = "deal"
        if self.referee is None:
            self.engine.step(np.array([action]), autoreset=False)
            return _done(one, action)
        assert isinstance(self.engine, LineEngine) and isinstance(one, LineEngine)  # the judge knows no others
        out = self.referee.step(self.engine, _ROW, np.array([action]))
        recorded, verdicts = out.recorded.get(0), out.verdicts.get(0, [])
        passed = action == PASS and not (verdicts and verdicts[-1]["violation"]["corrected"])
        if out.broken_off:  # a wrong pass was made; a tile that does not match was taken back
            return _Step(action if passed else None, one.snapshot(0), True, recorded, verdicts)
        if action not in legal:
            if passed:
                one.allow_pass(_ROW)
            elif len(out.finished) or int(self.engine.plies()[0]) > len(self.moves):
                action = legal[0]  # the judge has lost patience and lays a tile that matches
            else:
                return _Step(None, one.snapshot(0), False, None, verdicts)
        return _done(one, action, recorded, verdicts)

    def _record(self, last: Snapshot) -> Deal:
        """A deal that is over, as it was dealt and played."""
        hands = [[tile_index(tile) for tile in hand] for hand in last["dealt"]]
        stock = [tile_index(tile) for tile in last.get("dealt_stock", ())]
        return Deal(self.rules, last["leader"], hands, [action for _, action in self.moves], stock)

    def _ask_agent(self) -> int:
        player = self.players[self.mover]
        try:
            return _answer(player, self.engine, self._chance(), self.deals, self.words)
        except PlayerError as error:
            told = self.words["failed"].format(seat=f"seat_{self.mover}", name=player.name, why=error)
            raise PlayerError(told) from error

    def _chance(self) -> Streams:
        """Keyed on the deal and the ply, so that a hint that was asked for changes nothing after it."""
        return Streams.of(self.seed, np.array([self.deals * _PLIES + len(self.moves)]))

    # -- what the person does -----------------------------------------------------------------------------------------

    def _ask_person(self, snapshot: Snapshot, legal: list[int]) -> int:
        self._draw(snapshot, self.own)
        names = [self._name(action, legal) for action in legal]
        offered = [self.words["offered"].format(number=i, move=name) for i, name in enumerate(names, 1)]
        self._list(offered)
        while True:
            try:
                typed = self.voice.ask(self.words["your_move"]).strip()
            except EOFError:
                raise _Leaves("input_ended") from None
            action = self._chosen(typed, legal)
            if action is not None:
                return action
            if self._is(typed, "quit"):
                raise _Leaves("left_game")
            if self._is(typed, "undo"):
                self.say("no_undo")
            elif self._is(typed, "help"):
                self.say("help")
                if self.referee is not None:
                    self.say("help_judge")
            elif self._is(typed, "words"):
                self._tell_terms()
            elif self._is(typed, "table"):
                self._draw(snapshot, self.own)
                self._list(offered)
            elif self._is(typed, "hint"):
                self._hint(legal)
            elif len(ends := self._lays(typed, legal)) == 2:
                self.say("which_end", tile=tile_name(ends[0]), moves=" ".join(self._name(a, legal) for a in ends))
            else:
                self.say("not_allowed", given=typed[:20], moves=" ".join(names))

    def _chosen(self, typed: str, legal: list[int]) -> int | None:
        """The action that was typed: a number of the list, or its text; under a judge a wrong one may be meant."""
        if re.fullmatch(r"[0-9]{1,3}", typed) and 1 <= int(typed) <= len(legal):
            return legal[int(typed) - 1]
        for action, key in ((PASS, "pass"), (TURN, "turn"), (DRAW, "draw")):
            if self._is(typed, key):
                return action if action in legal or (action == PASS and self.referee is not None) else None
        if self.referee is not None and self._is(typed, "block"):
            return FALSE_BLOCK
        found = self._lays(typed, legal)
        return found[0] if len(found) == 1 else None

    def _lays(self, typed: str, legal: list[int]) -> list[int]:
        """The lays that a typed tile may mean: two where it names no end and fits both."""
        tile = _TILE.fullmatch(typed)
        if tile is None:
            return []
        number = tile_index(f"{tile[1]}-{tile[2]}")
        meant = [number, number + NUM_TILES]
        if tile[3]:
            meant = [action for action, side in zip(meant, ("left", "right")) if self._is(tile[3], side)]
        found = [action for action in meant if action in legal]
        left, right = self.engine.ends()[0].tolist()
        if not found and meant and left == right and number in legal and (left < 0 or self.rules.chain != "one"):
            return [number]  # on an empty line, and where the ends are equal, the two are the same
        if not found and self.referee is not None and int(self.engine.hands()[0, self.own]) >> number & 1:
            return meant[:1]  # a tile in the hand may be shown that does not match
        return found

    def _is(self, typed: str, key: str) -> bool:
        """Whether a command was typed, in English or in the language that is spoken."""
        english = words_of("en")
        return typed.casefold() in f"{english['type_' + key]} {self.words['type_' + key]}".split()

    def _advice(self) -> int:
        return _answer(self.helper, self.engine, self._chance(), self.deals, self.words)

    def _hint(self, legal: list[int]) -> None:
        try:
            self.say("hint", name=self.helper.name, move=self._name(self._advice(), legal))
        except PlayerError as error:
            self.say("cannot_play", option="--hint", name=self.helper.name, rules=self.rules.name, why=error)

    # -- what is told -------------------------------------------------------------------------------------------------

    def say(self, key: str, style: str = "", **gaps: Any) -> None:
        """A text of the catalogue."""
        self.voice.say(self.words[key].format(**gaps), style)

    def _who(self, seat: int) -> str:
        return self.words["you"] if seat == self.own else f"seat_{seat}"

    def _name(self, action: int, legal: list[int]) -> str:
        """An action of the person as it is offered."""
        return self.rules.action_name(action) if action < PASS else self.words[f"move_{self._kind(action, legal)}"]

    def _kind(self, action: int, legal: list[int]) -> str:
        """What an action without a tile is called: turn, draw, stop after a lay, decline where one may draw, pass."""
        if action != PASS:
            return "turn" if action == TURN else "draw"
        # A turn of several actions ends with one of these, so a lay just before was of the same turn.
        if self.rules.kind != "line" and self.moves and self.moves[-1][1] < PASS and self.moves[-1][0] == self.mover:
            return "stop"
        return "decline" if DRAW in legal else "pass"

    def _draw(self, snapshot: Snapshot, view: int | Literal["all"]) -> None:
        self.voice.say("")
        self.voice.say(render.text(snapshot, view, color=self.voice.colours, lang=self.lang).rstrip("\n"))

    def _list(self, offered: list[str]) -> None:
        """The moves one may choose from, on lines of 80 columns."""
        line = ""
        for move in offered:
            if line and len(line) + 2 + len(move) > 80:
                self.voice.say(line)
                line = ""
            line += f"  {move}" if line else move
        self.voice.say(line)

    def _greet(self) -> None:
        seat = f"seat_{self.own}"
        self.say("intro", "bold", rules=self.rules.title, seat=seat, seed=self.seed)
        for number, player in enumerate(self.players):
            partner = self.rules.side_of(number) == self.rules.side_of(self.own)
            key = "you" if number == self.own else "partner" if partner else "opponent"
            self.say("sits", seat=f"seat_{number}", name=self.words[key].format(name=player.name))
        self.say("begin")

    def _begin_deal(self) -> None:
        gaps = {"number": self.deals + 1, "seat": f"seat_{int(self.engine.leader()[0])}"}
        self.voice.say("")
        if self.engine.episode == "deal":
            self.say("deal_begins", "bold", **gaps)
        elif self.rules.match_to is not None:
            self.say("deal_to_begins", "bold", points=self.rules.match_to, **gaps)
        else:
            four = self.deals // FOUR + 1
            self.say("deal_of_begins", "bold", deals=FOUR * self.engine.fours, four=four, **gaps)

    def _tell(self, action: int, legal: list[int], before: Snapshot, after: Snapshot, forced: bool) -> None:
        """Tell what the mover did, and what everyone sees of it."""
        who = self._who(self.mover)
        if action < PASS:
            tile = tile_name(action % NUM_TILES)
            key = "lead" if before["ends"] is None else "on_left" if action < NUM_TILES else "on_right"
            move, (left, right) = self.words[key].format(tile=tile), after["ends"]
            told = self.words["told_ends"].format(who=who, move=move, left=left, right=right)
        else:
            told = self.words["told"].format(who=who, move=self._deed(action, legal, before, after))
        self.voice.say(self.words["only"].format(told=told) if forced else told)
        for seat, (was, now) in enumerate(zip(before.get("shown", ()), after.get("shown", ()))):
            if fresh := [tile for tile in now if tile not in was]:
                self.say("told", who=self._who(seat), move=self.words["opened"].format(tiles=" ".join(fresh)))

    def _deed(self, action: int, legal: list[int], before: Snapshot, after: Snapshot) -> str:
        """An action without a tile, in words."""
        kind = self._kind(action, legal)
        if kind == "turn":  # the rightmost tile: it lies turned now, or is back on the left
            key = "turned_fits" if after["turned"] else "turned_back"
            return self.words[key].format(tile=before["rows"][self.mover][-1])
        if kind == "draw":
            return self.words["drawn"].format(left=len(after["stock"]))
        return self.words[kind]

    def _tell_verdict(self, verdict: dict[str, Any]) -> None:
        """What a wrong act of the person costs."""
        price = [self.words["price_warning"].format(count=verdict["count"])] if verdict["warning"] else []
        price += [self.words["price_fine"].format(fine=verdict["fine"])] if verdict["fine"] else []
        price += [self.words["price_lost"]] if verdict["deal"] == "lost" else []
        price += [self.words["price_removed"]] if verdict["removed"] else []
        offence = self.words[f"offence_{verdict['violation']['kind']}"]
        self.say("verdict", "bold", clause=verdict["clause"], offence=offence, price=", ".join(price))

    def _end_deal(self, last: Snapshot, recorded: dict[str, Any] | None) -> None:
        """Count a deal that is over, and show its end with all hands open."""
        self.deals += 1
        points = (last["deal"] if recorded is None else recorded)["points"]
        self.sums = [before + more for before, more in zip(self.sums, points)]
        self._draw({**last, "score": self.sums}, "all")
        if recorded is not None:
            self.say("judged", "bold", points=" : ".join(map(str, points)))
        if self.engine.episode == "match":
            self.say("sums", number=self.deals, sums=self._sums())

    def _sums(self) -> str:
        """The points of each side."""
        sides = side_names(self.engine.snapshot(0), self.words)
        return ", ".join(self.words["sum"].format(side=side, sum=sum_) for side, sum_ in zip(sides, self.sums))

    def _tell_match(self) -> None:
        winner = result(self.sums)
        if winner is None:
            self.say("match_tied", "bold", sums=self._sums())
        else:
            side = side_names(self.engine.snapshot(0), self.words)[winner]
            won = self.words["pair_wins" if self.rules.pairs else "seat_wins"].format(side)
            self.say("match_won", "bold", won=won, sums=self._sums())

    def _tell_terms(self) -> None:
        """The words of this game, one a line."""
        terms = [*_TERMS]
        terms += ["pair"] if self.rules.pairs else []
        terms += ["stop"] if self.rules.kind != "line" else []
        terms += ["row", "turn", "stock"] if self.rules.rows else []
        for term in terms:
            self.say(f"term_{term}")
