"""The run folder, the TensorBoard writer, and the one list of tags.

A run is a folder `<runs_dir>/<config>-<seed>-<time>/`, complete in itself: events, config as text, checkpoints.
A tag that is not in `TAGS` is an error: two names for one thing is how dashboards rot.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.summary.writer.record_writer import RecordWriter
from torch.utils.tensorboard import SummaryWriter
from torch.utils.tensorboard.summary import hparams as hparams_summary

#: Every tag there is, and what it means. `<…>` stands for one name without a slash.
TAGS: dict[str, str] = {
    # CleanRL's names, so that its dashboards and scripts fit.
    "charts/SPS": "decisions a second since the run's start",
    "charts/episodic_return": "mean reward of a deal to its leader",
    "charts/episodic_length": "mean actions of a deal, passes included",
    "charts/learning_rate": "learning rate of this update",
    "charts/entropy_coef": "weight of the entropy bonus in this update",
    "losses/policy_loss": "clipped surrogate",
    "losses/value_loss": "squared error of the critic, in scaled rewards",
    "losses/entropy": "mean entropy of the policy at decisions, nats",
    "losses/approx_kl": "mean (ratio - 1) - log ratio of the last epoch",
    "losses/clipfrac": "part of the ratios outside the clip range",
    "losses/explained_variance": "1 - var(returns - values) / var(returns)",
    "losses/grad_norm": "gradient norm before clipping",
    "losses/q_values": "mean value of the action taken, in scaled rewards (DQN)",
    "losses/td_loss": "mean Huber loss of the temporal difference (DQN)",
    "charts/epsilon": "part of the decisions that explore (DQN)",
    "losses/average_loss": "mean -log probability that the average policy gives the best response's action (NFSP)",
    "losses/owner_loss": "mean cross-entropy of who holds a hidden tile, in deals not yet learned from, nats (owner)",
    "losses/owner_gain": "bits a hidden tile by which it is less than of all owners that may be alike (owner)",
    # How it fares with the members of its pool; all past selves together are the member `past`.
    "pool/<member>/share": "part of the tables of this update at which it sat (pool)",
    "pool/<member>/win_rate": "part of the deals won against it, of late; a tie is half a win (pool)",
    "pool/<member>/points_per_deal": "mean points a deal against it, in this update (pool)",
    "pool/<member>/partner_points_per_deal": "mean points a deal of the learner as its partner, in this update (pool)",
    "pool/past_selves": "past selves in the pool (pool)",
    "losses/imitation_loss": "cross-entropy with the moves, or the values, that are learned from, nats (imitation)",
    "losses/label_regret": "points a decision that the likeliest move loses by fresh labels (expert)",
    "losses/held_out_loss": "the same on deals that are held out (imitation)",
    "losses/held_out_accuracy": "part of the held-out decisions in which the likeliest move is the target (imitation)",
    "losses/held_out_regret": "points that the likeliest move costs there by double-dummy values (imitation)",
    # Evaluation on duplicate boards, points a deal from the learner's side; 95 % interval over boards.
    "eval/<opponent>/points_per_deal": "mean points a deal over this opponent",
    "eval/<opponent>/points_per_deal_low": "lower end of its interval",
    "eval/<opponent>/points_per_deal_high": "upper end of its interval",
    "eval/<opponent>/dd_loss_per_deal": "points a deal that its moves lose against double-dummy, on the first boards",
    # How the deals of self-play went.
    "domino/out_rate": "part of the deals that ended with a seat out",
    "domino/block_rate": "part of the deals that ended blocked",
    "domino/guard_rate": "part of the deals that the guard broke off (R8; blind games only)",
    "domino/pass_rate": "part of the actions that were passes; in a turn with a lay 56 is a stop, and none",
    "domino/rolled_rate": "part of the lays after whose turn the next seat laid nothing in its own",
    "domino/points": "mean points of the winner of a deal",
    # Words of the game (domino_env/words.py) in deals that the policy plays against itself, at every evaluation.
    "words/rolls_per_deal": "lays of a deal after whose turn an opponent passed",
    "words/end_on_rate": "part of the positions with an end on some suit",
    "words/long_end_rate": "part of the positions with a long end on some suit",
    "words/cut_off_double_rate": "part of the positions with a cut-off double",
    "words/fewest_holder_share": "part of the positions of won deals whose fewest-holder was of the side that went out",
    # Late moves of deals that the policy plays against itself, at every evaluation (experiments/signaling/watching.py).
    "signaling/decisions": "late decisions that the figures below are means of",
    "signaling/information": "bits that a move tells the partner about the mover's hand, exactly",
    "signaling/excess_over_uniform": "the same, less what random play would tell under the same belief",
    "signaling/excess_over_deaf": "the same, less what the player would tell if it heard nothing (deaf)",
    "signaling/convention_over_uniform": "bits the partner loses that takes the mover for a random player",
    "signaling/convention_over_deaf": "bits the partner loses that takes the mover for one that hears nothing (deaf)",
    "signaling/belief_entropy": "bits of the partner's belief about the mover's hand, before the move",
    "signaling/belief_entropy_rules": "the same by the rules alone",
    "signaling/listening": "bits by which what was heard changes the answer: KL of it from the deaf answer (deaf)",
    # Where the time goes, seconds of this update (evaluation: of this evaluation).
    "time/rollout_seconds": "playing",
    "time/labels_seconds": "labelling (expert)",
    "time/learning_seconds": "gradient steps",
    "time/evaluation_seconds": "duplicate boards against the fixed opponents",
    "time/total_minutes": "minutes of training since the run's start",
    # Histograms, texts and pictures.
    "weights/<name>": "histogram of one parameter tensor",
    "policy/entropy": "histogram of the policy's entropy over decisions, nats",
    "config": "the config as YAML, once",
    "deal": "a drawn sample deal, at every evaluation",
    "tournament/<player>/rating": "rating of a pair among all that met on the same boards (tournament)",
    "tournament/matrix": "points a deal of every pair against every other, as a picture (tournament)",
    # Learning curves of a group of runs, as `domino compare` writes them; a group is a run of TensorBoard's.
    "compare/<opponent>/points_per_deal": "points a deal over this opponent, mean over the group's runs (compare)",
    "compare/<opponent>/points_per_deal_low": "lower end of its interval over runs (compare)",
    "compare/<opponent>/points_per_deal_high": "upper end of its interval over runs (compare)",
    "signaling/<experiment>/<figure>": "what the signal experiments measure",
}

_PATTERNS = [re.compile(re.sub(r"<\w+>", r"[^/]+", tag)) for tag in TAGS]


def check_tag(tag: str) -> str:
    """The tag itself; ValueError for one that is not in the list."""
    if not any(pattern.fullmatch(tag) for pattern in _PATTERNS):
        raise ValueError(f"unknown tag {tag!r}; allowed: {', '.join(TAGS)}")
    return tag


def opponent_tag(name: str, figure: str = "points_per_deal") -> str:
    """The tag of an evaluation figure; an agent's name may hold what a tag may not (`runs/x/checkpoints/latest`)."""
    return check_tag(f"eval/{_part(name)}/{figure}")


def rating_tag(name: str) -> str:
    """The tag of a pair's rating in a tournament."""
    return check_tag(f"tournament/{_part(name)}/rating")


def _part(name: str) -> str:
    """A name as one part of a tag."""
    return re.sub(r"[^A-Za-z0-9_.=,-]+", "_", name).strip("_")


def run_folder(runs_dir: str | Path, config: str, seed: int, now: float | None = None) -> Path:
    """Makes the new folder `<runs_dir>/<config>-<seed>-<time>`; one of the same second gets a number."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
    stem = Path(runs_dir) / f"{config}-{seed}-{stamp}"
    stem.parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        folder = stem if number == 1 else stem.with_name(f"{stem.name}.{number}")
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            number += 1


class _Events:
    """An event file. What does not fit on a full disk is left out with one warning: a log never costs a run.

    TensorBoard's own file is written by a thread, which dies of a full disk with a traceback and takes the log along.
    """

    def __init__(self, folder: Path) -> None:
        stem, number = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}", 0
        while True:
            self._path = folder / f"{stem}.{number}"
            try:
                self._file = io.FileIO(self._path, "x")
                break
            except FileExistsError:
                number += 1
        self._warned = False
        self.add_event(Event(file_version="brain.Event:2"))

    def add_event(self, event: Any, step: int | None = None, walltime: float | None = None) -> None:
        """Appends an event, whole or not at all."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        record = io.BytesIO()
        RecordWriter(record).write(event.SerializeToString())
        end = self._file.tell()
        try:
            if self._file.write(record.getvalue()) != len(record.getvalue()):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.seek(end)
                self._file.truncate()
            if not self._warned:
                self._warned = True
                print(f"warning: {self._path}: {error.strerror}; what cannot be logged is left out", file=sys.stderr)

    def add_summary(self, summary: Any, step: int | None = None, walltime: float | None = None) -> None:
        """Appends a summary of this step."""
        self.add_event(Event(summary=summary), step, walltime)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Closes the file; may be called twice."""
        self._file.close()


class _Writer(SummaryWriter):
    """TensorBoard's writer, which turns figures into summaries, on an event file of ours."""

    def __init__(self, folder: Path) -> None:
        self.events = _Events(folder)
        super().__init__(str(folder))

    def _get_file_writer(self) -> _Events:
        self.all_writers = {self.log_dir: self.events}  # type: ignore[assignment]
        return self.events


class Metrics:
    """TensorBoard events of one run. Refuses unknown tags, and figures that are no numbers."""

    def __init__(self, folder: str | Path, *, purge_step: int | None = None) -> None:
        """Opens a new event file in `folder`; a resumed run gives its first step, to hide what came later."""
        self.folder = Path(folder)
        self._writer = _Writer(self.folder)
        if purge_step is not None:
            self._writer.events.add_event(Event(session_log=SessionLog(status=SessionLog.START)), purge_step)

    def scalar(self, tag: str, value: float, step: int) -> None:
        """One figure."""
        self._writer.add_scalar(check_tag(tag), float(value), step)

    def scalars(self, values: Mapping[str, float], step: int) -> None:
        """Several figures of one step, by tag."""
        for tag, value in values.items():
            self.scalar(tag, value, step)

    def histogram(self, tag: str, values: Any, step: int) -> None:
        """A distribution: an array or a tensor of any shape; without finite values nothing is written."""
        if hasattr(values, "detach"):
            values = values.detach().float().cpu().numpy()
        flat = np.asarray(values, dtype=np.float64).ravel()
        flat = flat[np.isfinite(flat)]
        check_tag(tag)
        if flat.size:
            self._writer.add_histogram(tag, flat, step)

    def text(self, tag: str, text: str, step: int = 0) -> None:
        """A text, shown as it is (as a code block)."""
        self._writer.add_text(check_tag(tag), "```\n" + text.rstrip("\n") + "\n```", step)

    def image(self, tag: str, picture: np.ndarray, step: int) -> None:
        """A picture, uint8 (height, width, 3)."""
        if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
            raise ValueError(f"a picture is uint8 (height, width, 3), got {picture.dtype} {picture.shape}")
        self._writer.add_image(check_tag(tag), picture, step, dataformats="HWC")

    def hparams(self, params: Mapping[str, Any], results: Mapping[str, float]) -> None:
        """The run's settings beside what it reached, once, at its end, in the same event file: one run."""
        plain = {
            key: value if isinstance(value, (bool, int, float, str)) else str(value) for key, value in params.items()
        }
        for tag in results:
            check_tag(tag)
        for summary in hparams_summary(plain, dict(results)):
            self._writer.events.add_summary(summary)

    def flush(self) -> None:
        """Writes out what is still held back."""
        self._writer.flush()

    def close(self) -> None:
        """Flushes and closes; may be called twice."""
        self._writer.close()

    def __enter__(self) -> Metrics:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
