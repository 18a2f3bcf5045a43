"""The games of `domino_env.aec` as a native PettingZoo ParallelEnv: all seats step at once, only the mover's action counts.

Seats off turn may send anything, or nothing: they can only pass. Agents, spaces, rewards and infos are those of the AEC env.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from pettingzoo import ParallelEnv

from domino_env.engine import make_engine
from domino_env.rules import Rules
from domino_env.tiles import NUM_ACTIONS
from domino_env.view import (
    RENDER_MODES,
    Observation,
    Window,
    action_id,
    check_render_mode,
    draw,
    seat_names,
    seat_space,
    seat_view,
    table_space,
    table_state,
)


class TurnActions(spaces.Discrete):
    """Discrete(57) of one seat; sampled without a mask it draws among what the seat may do now.

    Drivers that know no masks (PettingZoo's own parallel_seed_test is one) then play the game instead of breaking it.
    """

    def __init__(self, legal: Callable[[], npt.NDArray[np.int8]]) -> None:
        super().__init__(NUM_ACTIONS)
        self._legal = legal

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        """One action, by the mask or probabilities given, else uniformly among the seat's legal actions."""
        if mask is None and probability is None:
            mask = self._legal()
        return super().sample(mask, probability)


class parallel_env(ParallelEnv[str, Observation, int]):
    """The games as a ParallelEnv; arguments as those of `domino_env.aec_env`.

    Raises:
        ValueError: unknown rules, fields, episode or render mode, or a combination that cannot be played.
    """

    metadata: dict[str, Any] = {"render_modes": RENDER_MODES, "name": "domino_v0", "render_fps": 2}

    def __init__(
        self,
        rules: str | Rules = "sport_book",
        episode: str = "deal",
        fours: int = 1,
        render_mode: str | None = None,
        history: bool = False,
        **rule_overrides: Any,
    ) -> None:
        check_render_mode(render_mode)
        self._engine = make_engine(rules, 1, episode=episode, fours=fours, **rule_overrides)
        self.rules = self._engine.rules
        self.metadata = {**self.metadata, "name": f"{self.rules.name}_v0", "render_modes": list(RENDER_MODES)}
        self.render_mode = render_mode
        self._history = history
        self._window = Window(self.rules.name, self.metadata["render_fps"])
        self.possible_agents = seat_names(self.rules)
        self.observation_spaces = {agent: seat_space(self._engine, history) for agent in self.possible_agents}
        self.action_spaces = {
            agent: TurnActions(partial(self._legal, seat)) for seat, agent in enumerate(self.possible_agents)
        }
        self.state_space = table_space(self._engine)
        self.agents = []  # nobody plays before the first reset

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Dict space of what an agent observes."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Discrete(57); sampled without a mask it draws a legal action."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Begin an episode: deal 0 of a seed, or the next deal of the stream.

        Raises:
            ValueError: a bad seed or option; the game is then as it was.
        """
        self._engine.reset(seed=seed, options=options)
        self.agents = self.possible_agents[:]
        return self._views(), {agent: {} for agent in self.agents}

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[
        dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
    ]:
        """Make the action of the seat whose turn it is; the others' actions are ignored.

        Returns:
            observations, rewards, terminations, truncations, infos, each keyed by agent.

        Raises:
            ValueError: no action, or a wrong one, of the mover, or after the end; nothing is changed.
        """
        if not self.agents:
            raise ValueError("a step after the end of the episode (or before the first): call reset()")
        mover = self.possible_agents[self._engine.to_move()[0]]
        if mover not in actions:
            raise ValueError(f"no action of {mover}, whose turn it is; there were actions of {sorted(actions)}")
        rewards, done = self._engine.step(np.array([action_id(actions[mover])]), autoreset=False)
        agents = self.agents
        deal = {"deal": self._engine.finished.info(0)} if len(self._engine.finished.rows) else {}
        if done[0]:
            self.agents = []
        if self.render_mode == "human":
            self.render()
        return (
            self._views(),
            dict(zip(agents, rewards[0].tolist(), strict=True)),
            dict.fromkeys(agents, bool(done[0])),
            dict.fromkeys(agents, False),
            {agent: dict(deal) for agent in agents},
        )

    def state(self) -> npt.NDArray[np.uint8]:
        """The whole table: seat_0's observation and 28 bits for the hand of each further seat."""
        return table_state(self._engine)

    def render(self) -> Any:
        """The table with all hands open: text, (height, width, 3) uint8, or None after showing it in a window."""
        return draw(self._engine, 0, self.render_mode, None, self._window)

    def close(self) -> None:
        """Close the window, if there is one."""
        self._window.close()

    def _views(self) -> dict[str, Observation]:
        return {
            agent: seat_view(self._engine, seat, self._history) for seat, agent in enumerate(self.possible_agents)
        }

    def _legal(self, seat: int) -> npt.NDArray[np.int8]:
        return self._engine.legal(seat)[0]
