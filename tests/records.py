"""A match record to read."""

from pathlib import Path

import numpy as np

from domino_env import get_rules
from domino_env.match import Header, Played, Recorder, lay_out, next_deal


def match_record(path: Path) -> None:
    """A match that was played at random."""
    rng = np.random.default_rng(0)
    with Recorder.create(path, Header(get_rules("sport_club"), ("Ann", "Bob", "Cid", "Dot"))) as recorder:
        while not recorder.standing.over:
            engine = lay_out([recorder.standing], [next_deal(recorder.standing, 1)])
            while not engine.over()[0]:
                engine.step(engine.sample_legal(rng), autoreset=False)
            recorder.append(Played(engine.record(0)))
