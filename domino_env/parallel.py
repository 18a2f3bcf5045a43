"""The games of `domino_env.aec` as a native PettingZoo ParallelEnv: all seats step at once, the mover's action counts.

Seats off turn may send anything, or nothing: they can only pass. Agents, spaces, rewards, infos and the judge are those
of the AEC env; infos hold what one step brought. Action spaces sampled without a mask give a legal action, for drivers
that know no masks.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from pettingzoo import ParallelEnv

from domino_env.judge import THOUGHT
from domino_env.judged import act, action_space, make_referee, observation, observation_space
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


class parallel_env(ParallelEnv[str, Observation, int]):
    """The games as a ParallelEnv; arguments as those of `domino_env.aec_env`.

    Raises:
        ValueError: unknown rules, fields, episode or render mode, or a combination that cannot be played or judged.
    """

    metadata: dict[str, Any] = {"render_modes": RENDER_MODES, "name": "domino_v0", "render_fps": 2}  # noqa: RUF012

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
        check_render_mode(render_mode)
        self._table = make_table(rules, episode=episode, fours=fours, **rule_overrides)
        self._referee = make_referee(self._table, judge, decision, clock, thought)
        self.rules = self._table.rules
        self.metadata = {**self.metadata, "name": f"{self.rules.name}_v0", "render_modes": list(RENDER_MODES)}
        self.render_mode = render_mode
        self._history = history
        self._window = Window(self.rules.name, self.metadata["render_fps"])
        self.possible_agents = seat_names(self.rules)
        self.observation_spaces = {
            agent: observation_space(seat_space(self._table, history), self._referee) for agent in self.possible_agents
        }
        self.action_spaces = {
            agent: action_space(self._table, self._referee, partial(self._legal, seat))
            for seat, agent in enumerate(self.possible_agents)
        }
        self.state_space = table_space(self._table)
        self.agents: list[str] = []  # nobody plays before the first reset
        self._first_seed: int | None = fresh_seed()

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Dict space of what an agent observes."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """As in the AEC env; sampled without a mask it draws a legal action."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
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
        return self._views(), {agent: {} for agent in self.agents}

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Make the action, with a clock (action, seconds), of the seat whose turn it is; the others' are ignored.

        Returns:
            observations, rewards, terminations, truncations, infos, each keyed by agent.

        Raises:
            ValueError: no action, or a wrong one, of the mover, or after the end; nothing is changed.
        """
        if not self.agents:
            raise ValueError("a step after the end of the episode (or before the first): call reset()")
        mover = self.possible_agents[self._table.mover()]
        if not isinstance(actions, Mapping) or mover not in actions:
            raise ValueError(f"actions must be a dict with one of {mover}, whose turn it is, not {actions!r}")
        rewards, done, told = act(self._table, self._referee, actions[mover])
        agents = self.agents
        broken = done and bool(broken_off(self._table)[0])
        if done:
            self.agents = []
        if self.render_mode == "human":
            self.render()
        return (
            self._views(),
            dict(zip(agents, rewards or [0.0] * len(agents), strict=True)),
            dict.fromkeys(agents, done and not broken),
            dict.fromkeys(agents, done and broken),
            {agent: dict(told) for agent in agents},
        )

    def state(self) -> npt.NDArray[np.uint8]:
        """The whole table: seat_0's observation and 28 bits for the hand of each further seat."""
        return table_state(self._table)

    def render(self) -> Any:
        """The table with all hands open: text, (height, width, 3) uint8, or None after showing it in a window."""
        return draw(self._table, 0, self.render_mode, None, self._window)

    def close(self) -> None:
        """Close the window, if there is one."""
        self._window.close()

    def _views(self) -> dict[str, Observation]:
        return {
            agent: observation(seat_view(self._table, seat, self._history), self._referee)
            for seat, agent in enumerate(self.possible_agents)
        }

    def _legal(self, seat: int) -> npt.NDArray[np.int8]:
        return observation({"action_mask": self._table.see(seat)[1]}, self._referee)["action_mask"]
