"""
# Dominoes on an open line

The sport games of the rulebooks (`sport_book`, `sport_club`) and their relatives (`puerto_rico`, `kozyol`,
`tiny_pairs`). Blitz and the blind games, in which a turn may have several actions, have cards of their own:
`docs/blitz.md` and `docs/blind.md`.

| Import             | `import domino_env; domino_env.aec_env(rules="sport_book")`  |
|--------------------|--------------------------------------------------------------|
| Creation           | `pettingzoo.make("aec", "domino/sport_book-v0")`             |
| Actions            | Discrete                                                     |
| Parallel API       | Yes, native: `domino_env.parallel_env`                       |
| Manual Control     | No                                                           |
| Agents             | `agents= ['seat_0', 'seat_1', 'seat_2', 'seat_3']`           |
| Agents             | 4 (2 with `seats=2, pairs=False`)                            |
| Action Shape       | Discrete(57)                                                 |
| Action Values      | Discrete(57)                                                 |
| Observation Shape  | (256,) for four seats                                        |
| Observation Values | [0, 1]                                                       |

Four players sit clockwise, partners face each other: seats 0 and 2 against seats 1 and 3. Each is dealt seven of the
28 tiles. The leader lays any tile; then each seat in turn lays a tile on either end of the line where the pips match,
or passes if it holds none that matches. A deal ends at once when a seat lays its last tile (an out), or when no tile
of any hand matches an end (a block).

### Arguments

```python
domino_env.aec_env(rules="sport_book", episode="deal", fours=1, render_mode=None, history=False, **rule_overrides)
```

`rules`: the name of a preset, or a `domino_env.Rules`.

`episode`: `"deal"`, one deal an episode, or `"match"`, `fours` times four deals in a row (in `kozyol`: to 101
points).

`fours`: how many fours a match has.

`render_mode`: `"ansi"` (text), `"rgb_array"`, or `"human"` (a window, where a display exists).

`history`: adds the ordered public events to the observation.

`judge`, `decision`, `clock`, `thought`: see "Judge" below.

`**rule_overrides`: any field of the rules, e.g. `labelled_ends=True`.

`aec_env` wraps the game as PettingZoo's classic environments do; `raw_aec_env` is the bare game, in which a wrong
action raises a `ValueError` and changes nothing, unless there is a judge. `reset` takes a `seed` and the options
`hands` (a list of tile names per seat, like `"0-6"`), `leader` and `deal_index`. A reset without a seed deals the next
deal of the stream.

### Observation Space

The observation is a dictionary: `'observation'` is described below, `'action_mask'` holds the legal moves, and with
`history=True` `'history'` lists the public events of the deal.

`'observation'` is a vector of bits, all of them relative to the seat that looks ("left" is the next seat clockwise):
own hand, then what is public. It never depends on hands that the seat cannot see. The table is that of four seats
with seven tiles each; bits that it leaves out are always 0. `domino_env.make_engine(rules).layout` holds the slices of
any rules by name.

| slice | bits | meaning |
|---|---|---|
| `hand` | 0..27 | tile t is in the own hand |
| `leader` | 28..31 | who led this deal: the seat itself, then clockwise |
| `played_me` | 32..59 | tile t was laid by the seat itself |
| `deal` | 60..63 | deal of the four, where the episode is a match; else 0 |
| `played_left` | 64..91 | tile t was laid by the left neighbour |
| `played_partner` | 96..123 | tile t was laid by the partner |
| `played_right` | 128..155 | tile t was laid by the right neighbour |
| `end_left` | 160..166 | suit of the left end; all 0 before the first tile |
| `end_right` | 167..173 | suit of the right end |
| `score_ahead` | 174..182 | ahead in the match by at least 1, 5, 10, 20, 35, 50, 75, 100, 150; 0 in single deals |
| `score_behind` | 183..191 | the same, behind |
| `passed_me` | 192..198 | suit k was an end when the seat itself passed |
| `passed_left` | 200..206 | suit k was an end when the left neighbour passed |
| `passed_partner` | 208..214 | suit k was an end when the partner passed |
| `passed_right` | 216..222 | suit k was an end when the right neighbour passed |
| `size_me` | 224..230 | the seat itself holds at least 1, 2, … tiles |
| `size_left` | 232..238 | the left neighbour holds at least 1, 2, … tiles |
| `size_partner` | 240..246 | the partner holds at least 1, 2, … tiles |
| `size_right` | 248..254 | the right neighbour holds at least 1, 2, … tiles |

`'history'` is a vector of int16, oldest event first, then -1: `relative_seat << 12 | left_end << 9 | right_end << 6 |
action`, with the ends before the action (7 and 7 before the lead) and seats counted clockwise from the seat that
looks. Passes stand in it.

`state()` is the observation of `seat_0` followed by 28 bits for the hand of each further seat.

#### Legal Actions Mask

`'action_mask'` is an int8 vector of 57 zeros and ones. For the seat whose turn it is, it marks the legal actions; for
every other seat, and for all seats after the end, it marks only the pass, so it is never all zeros. An illegal action
ends the game with -10 for the seat that made it and 0 for the others.

### Action Space

| Action ID | Action                                         |
|:---------:|------------------------------------------------|
|  0 - 27   | Lay tile 0 - 27 on the left end                |
|  28 - 55  | Lay tile 0 - 27 on the right end               |
|    56     | Pass; legal only where no tile can be laid     |

Tiles are numbered 0-0, 0-1, ..., 0-6, 1-1, ..., 6-6. The first tile a-b is laid by its left action and makes the ends
a and b. Where both ends are equal only the left action is legal (unless `labelled_ends=True`).

### Rewards

|                       Winners                        |       Losers       |
| :--------------------------------------------------: | :----------------: |
| points of the own pair minus points of the opponents | the same, negative |

Given once, at the end of a deal, to all seats at the same moment; they sum to zero. An out scores the pips left in
both hands of the losing pair; a block is won by the pair with fewer pips, which scores the difference (`sport_book`)
or the loser's total (`sport_club`). `infos[agent]["deal"]` then tells the outcome, the winner, the points, the pips
left, who laid the last tile and how many plies were made; in a match a seat keeps it until its next turn.

### Judge

With `judge="book"` or `judge="club"` a wrong act is judged by that rulebook (J1-J5) instead of being refused; this is
for games in pairs but `kozyol`. Seats that never err see no difference but the one action more.

| What a seat does | `judge="book"` | `judge="club"` |
|---|---|---|
| pass, though it can lay | the deal is lost 0:10 at once | fine of 25; the pass stands, or the deal is ended |
| lay a tile that does not match | a warning | fine of 25, then 50, as for showing a tile |
| declare a block (action 57) | a warning | fine of 25 |
| think for more than `thought` seconds (`clock=True`) | a warning | a warning, then 25, then 50 |

After a tile that does not match, and after a declared block, the same seat is to move again; after ten wrong acts at
one decision the judge has a tile laid for it. Warnings of a pair add up as in J1: the fourth loses the deal 0:40 at
once, the fifth also ends the match. Warnings and fines are counted over the episode.

`decision` is what the judge decides wherever the rulebook leaves it to him (J5): `"continue"`, `"end"` (the deal is
counted as a block on the tiles in hand) or `"replay"` (it is dealt anew, once).

The action space is then `Discrete(58)`, and `'action_mask'` has 58 places; it still marks what is legal, so never 57.
With `clock=True` the action space is a tuple of that and a `Box`: an action is `(action, seconds)`, the seconds of
thought before it. `thought` is 15 seconds.

All seats are told: `infos[agent]["verdicts"]` lists the verdicts since the seat's last turn; at the end of a deal with
sanctions `infos[agent]["judge"]` is its record: `points`, `fines` (the part of them that are fines), `winner`, `deal`
(what became of it: `"continue"`, `"end"` or `"lost"`), `removed` pairs, and `sanctions`. Rewards, and the score of a
match, are those of the record; `infos[agent]["deal"]` remains the result by play, and is missing where a deal was lost
before it had one.

### Version History

* v0: Initial version (0.1.0)

"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from pettingzoo import AECEnv
from pettingzoo.utils import wrappers

from domino_env.judge import THOUGHT
from domino_env.judged import act, action_space, make_referee, observation, observation_space, told_more
from domino_env.rules import Rules
from domino_env.solo import make_table
from domino_env.view import (
    RENDER_MODES,
    Observation,
    Window,
    broken_off,
    check_render_mode,
    check_reset,
    draw,
    fresh_seed,
    seat_names,
    seat_space,
    seat_view,
    table_space,
    table_state,
)

ILLEGAL_REWARD = -10  # J2: a wrong pass loses the deal 0:10


def aec_env(
    rules: str | Rules = "sport_book",
    episode: str = "deal",
    fours: int = 1,
    render_mode: str | None = None,
    history: bool = False,
    *,
    judge: str | None = None,
    decision: str = "continue",
    clock: bool = False,
    thought: float = THOUGHT,
    **rule_overrides: Any,
) -> AECEnv[str, Observation, int]:
    """The game with PettingZoo's usual wrappers; arguments as in the env card above.

    Raises:
        ValueError: unknown rules, fields, episode or render mode, or a combination that cannot be played or judged.
    """
    judged: dict[str, Any] = {"judge": judge, "decision": decision, "clock": clock, "thought": thought}
    env: AECEnv[str, Observation, int] = raw_aec_env(
        rules, episode, fours, render_mode, history, **judged, **rule_overrides
    )
    if judge is None:  # a judge lets the game go on after an illegal action
        env = wrappers.TerminateIllegalWrapper(env, illegal_reward=ILLEGAL_REWARD)
    env = wrappers.AssertOutOfBoundsWrapper(env)
    return wrappers.OrderEnforcingWrapper(env)


class raw_aec_env(AECEnv[str, Observation, int]):
    """The game as an AECEnv without wrappers: a wrong action is judged, or raises and leaves everything as it was."""

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": RENDER_MODES,
        "name": "domino_v0",
        "is_parallelizable": False,  # one seat moves at a time; parallel_env is native
        "render_fps": 2,
    }

    def __init__(
        self,
        rules: str | Rules = "sport_book",
        episode: str = "deal",
        fours: int = 1,
        render_mode: str | None = None,
        history: bool = False,
        *,
        judge: str | None = None,
        decision: str = "continue",
        clock: bool = False,
        thought: float = THOUGHT,
        **rule_overrides: Any,
    ) -> None:
        super().__init__()
        check_render_mode(render_mode)
        self._table = make_table(rules, episode=episode, fours=fours, **rule_overrides)
        self._referee = make_referee(self._table, judge, decision, clock, thought)
        self.rules = self._table.rules
        self.metadata = {**self.metadata, "name": f"{self.rules.name}_v0", "render_modes": list(RENDER_MODES)}
        self.render_mode = render_mode
        self._history = history
        self._window = Window(self.rules.name, self.metadata["render_fps"])
        self.possible_agents = seat_names(self.rules)
        self._seats = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        self.observation_spaces = {
            agent: observation_space(seat_space(self._table, history), self._referee) for agent in self.possible_agents
        }
        self.action_spaces = {agent: action_space(self._table, self._referee) for agent in self.possible_agents}
        self.state_space = table_space(self._table)
        self.agents: list[str] = []  # nobody plays before the first reset
        self._first_seed: int | None = fresh_seed()

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Dict space of what an agent observes."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Discrete(57), in the blind games Discrete(59); with a judge Discrete(58), with a clock that and seconds."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin an episode: deal 0 of a seed, or the next deal of the stream.

        Raises:
            ValueError: a bad seed or option, or no window to open; the game is then as it was.
        """
        check_reset(seed, options, self.render_mode)
        self._table.reset(seed=self._first_seed if seed is None else seed, options=options)
        self._first_seed = None
        if self._referee is not None:
            self._referee.forget()
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._skip_agent_selection = None  # left behind by a reset in the middle of the dead steps
        self._told = False  # whether rewards and infos hold anything
        self.agent_selection = self.possible_agents[self._table.mover()]

    def observe(self, agent: str) -> Observation:
        """What an agent sees now, in new arrays: observation, action_mask and, if asked for, history."""
        view = seat_view(self._table, self._seats[agent], self._history)
        return view if self._referee is None else observation(view, self._referee)

    def state(self) -> npt.NDArray[np.uint8]:
        """The whole table: seat_0's observation and 28 bits for the hand of each further seat."""
        return table_state(self._table)

    def step(self, action: Any) -> None:
        """Make the action of the selected agent, with a clock (action, seconds); None for one whose game is over.

        Raises:
            ValueError: an action of a wrong type, out of range or, without a judge, illegal, or after the end; nothing
                is changed.
        """
        if not self.agents:
            raise ValueError(f"action {action!r} after the end of the episode (or before the first): call reset()")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        rewards, done, told = act(self._table, self._referee, action)
        self._cumulative_rewards[agent] = 0.0
        if self._told:
            self.rewards = dict.fromkeys(self.agents, 0.0)
            self.infos[agent] = {}
        if told:
            self._told = True
            self.infos = {one: told_more(info, told) for one, info in self.infos.items()}
        if rewards is not None:
            self._score(rewards, done)
        self.agent_selection = self.possible_agents[self._table.mover()]
        if self.render_mode == "human":
            self.render()

    def _score(self, rewards: list[float], done: bool) -> None:
        """Hand the result of a deal to all seats; all of them end together."""
        self.rewards = dict(zip(self.agents, rewards, strict=True))
        self._accumulate_rewards()
        if done:
            broken = bool(broken_off(self._table)[0])
            self.terminations = dict.fromkeys(self.agents, not broken)
            self.truncations = dict.fromkeys(self.agents, broken)

    def render(self) -> Any:
        """The table with all hands open: text, (height, width, 3) uint8, or None after showing it in a window."""
        return draw(self._table, 0, self.render_mode, None, self._window)

    def close(self) -> None:
        """Close the window, if there is one."""
        self._window.close()


env = aec_env
raw_env = raw_aec_env
