"""Configs: what is not a key, not of the type, or not possible is an error that names the key and where it stands."""

import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from experiments import config


@dataclass(frozen=True)
class Net:
    width: int = 256
    layers: tuple[int, ...] = (256, 256)
    kind: Literal["mlp", "public"] = "mlp"

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError("width", f"must be at least 1, got {self.width}")


@dataclass(frozen=True)
class Run:
    seed: int = 1
    learning_rate: float = 1e-3
    batch_size: int = 1024
    runs_dir: str = "runs"
    device: str | None = None
    bf16: bool = False
    size: tuple[int, float] = (1, 2.0)
    options: dict[str, float] = field(default_factory=dict)
    folder: Path = Path("here")
    network: Net = field(default_factory=Net)

    def validate(self) -> None:
        if self.batch_size < 1:
            raise ValueError("batch_size", f"must be at least 1, got {self.batch_size}")
        if self.learning_rate > self.batch_size:
            raise ValueError("learning_rate cannot exceed batch_size")


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(text: str) -> Path:
        path = tmp_path / "run.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_defaults_file_and_words_in_this_order(write: Any) -> None:
    path = write("seed: 3\nlearning_rate: 1\nnetwork:\n  width: 64\n  layers: [64]\n")
    run = config.load(path, ["seed=4", "network.kind=public", "bf16=true", "size=[2, 3]"], Run)
    assert run == Run(
        seed=4, learning_rate=1.0, bf16=True, size=(2, 3.0), network=Net(width=64, layers=(64,), kind="public")
    )
    assert isinstance(run.learning_rate, float)
    assert config.load(None, [], Run) == Run()


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-3", 1e-3), ("1E+2", 100.0), ("2.5e-4", 2.5e-4), ("3", 3.0), ("-.5", -0.5), ("+1.e1", 10.0)],
)
def test_numbers_as_people_write_them(text: str, value: float, write: Any) -> None:
    assert config.load(None, [f"learning_rate={text}"], Run).learning_rate == value
    assert config.load(write(f"learning_rate: {text}"), [], Run).learning_rate == value


@pytest.mark.parametrize(
    "run", [Run(), Run(device="cpu", options={"a": 1.5}, size=(3, 4.0), network=Net(layers=(8, 9)))]
)
def test_dump_is_read_back(run: Run, write: Any) -> None:
    assert config.load(write(config.dump(run)), [], Run) == run
    assert config.as_dict(run)["network"]["layers"] == list(run.network.layers)
    assert config.flat(run)["network.width"] == 256


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("learning_rat: 1", 'unknown key "learning_rat"; did you mean "learning_rate"?'),
        ("network:\n  widht: 3", 'unknown key "network.widht"; did you mean "network.width"?'),
        ("width: 3", 'unknown key "width"; did you mean "network.width"?'),
        ("zzz: 3", 'unknown key "zzz"; known: seed, learning_rate, '),
        ("3: 3", 'unknown key "3"'),
        ("seed: '3'", 'seed: expected a whole number, got "3" (text)'),
        ("seed: three", 'seed: expected a whole number, got "three" (text)'),
        ("seed: 3.0", "seed: expected a whole number, got 3.0"),
        ("seed: true", "seed: expected a whole number, got true"),
        ("seed: null", "seed: expected a whole number, got null"),
        ("seed: [1]", "seed: expected a whole number, got a list"),
        ("learning_rate: true", "learning_rate: expected a number, got true"),
        ("learning_rate: '1e-3'", 'learning_rate: expected a number, got "1e-3" (text)'),
        ("learning_rate: .nan", "learning_rate: expected a finite number, got nan"),
        ("learning_rate: .inf", "learning_rate: expected a finite number, got inf"),
        ("bf16: 1", "bf16: expected true or false, got 1"),
        ("runs_dir: 1", "runs_dir: expected text, got 1"),
        ("device: 1", "device: expected text or null, got 1"),
        ("network: 3", "network: expected the keys width, layers, kind, got 3"),
        ("network:\n  layers: 3", "network.layers: expected a list of a whole number, got 3"),
        ("network:\n  layers: [a]", 'network.layers: expected a whole number, got "a" (text)'),
        ("network:\n  kind: mlpp", 'expected one of mlp, public, got "mlpp" (text); did you mean "mlp"?'),
        ("size: [1]", "size: expected a list of 2: a whole number, a number, got a list"),
        ("options: [1]", "options: expected a mapping to a number, got a list"),
        ("options: {a: b}", 'options: expected a number, got "b" (text)'),
        ("batch_size: -4", "batch_size: must be at least 1, got -4"),
        ("network:\n  width: 0", "network.width: must be at least 1, got 0"),
        ("learning_rate: 5000", "learning_rate cannot exceed batch_size"),
        ("- 1", "expected keys and values, got a list"),
        ("just text", 'expected keys and values, got "just text" (text)'),
        ("seed: 1\nseed: 2", 'line 2, column 1: key "seed" stands twice'),
        ("seed: [1", "while parsing a flow sequence"),
        ("seed: !!python/object/apply:os.system [ls]", "line 1, column 7: could not determine a constructor"),
        ("\tseed: 1", "line 1, column 1: "),
        ("a: 1\n---\nb: 2", "expected a single document"),
        ("? [1, 2]\n: 3", "line 1, column 3: a key is one word"),
        ("layers: " + "[" * 3000 + "]" * 3000, "nested too deeply"),
    ],
)
def test_mistakes_name_file_and_key(text: str, says: str, write: Any) -> None:
    path = write(text)
    with pytest.raises(config.ConfigError) as error:
        config.load(path, [], Run)
    assert str(error.value).startswith(f"{path}: ") or f"{path}:" in str(error.value)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("seed", 'command line "seed": expected key=value; did you mean "seed"?'),
        ("=3", 'command line "=3": expected key=value'),
        ("sed=3", 'command line "sed=3": unknown key "sed"; did you mean "seed"?'),
        ("seed=x", 'command line "seed=x": seed: expected a whole number, got "x" (text)'),
        ("seed=", 'command line "seed=": seed: expected a whole number, got null'),
        ("network=3", 'command line "network=3": network: expected the keys width, layers, kind, got 3'),
        (
            "network.width.x=3",
            'command line "network.width.x=3": network.width: expected a whole number, got a mapping',
        ),
        ("batch_size=-1", 'command line "batch_size=-1": batch_size: must be at least 1, got -1'),
        ("seed=[", 'command line "seed=[": line 1'),
    ],
)
def test_mistakes_name_the_word(word: str, says: str, write: Any) -> None:
    with pytest.raises(config.ConfigError) as error:
        config.load(write("batch_size: 2"), [word], Run)
    assert says in str(error.value)


def test_a_word_clears_the_file_of_blame(write: Any) -> None:
    path = write("batch_size: -1")
    assert config.load(path, ["batch_size=5"], Run).batch_size == 5


def test_missing_key_and_unreadable_files(tmp_path: Path) -> None:
    @dataclass
    class Must:
        seed: int

    with pytest.raises(config.ConfigError, match='defaults: missing key "seed"'):
        config.load(None, [], Must)
    with pytest.raises(OSError):
        config.load(tmp_path / "none.yaml", [], Run)
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(config.ConfigError, match="not a text file in UTF-8"):
        config.load(tmp_path / "bytes.yaml", [], Run)


def test_saved_values_stand_in_for_a_file() -> None:
    saved = config.as_dict(Run(seed=3, network=Net(layers=(8,))))
    assert config.load(None, ["batch_size=2"], Run, saved=saved) == Run(seed=3, batch_size=2, network=Net(layers=(8,)))
    with pytest.raises(config.ConfigError, match=r"^there: batch_size: must be at least 1, got 0$"):
        config.load(None, ["seed=2"], Run, saved={**saved, "batch_size": 0}, source="there")
    with pytest.raises(config.ConfigError, match=r'^there: unknown key "sed"'):
        config.load(None, [], Run, saved={"sed": 0}, source="there")


def test_an_installed_copy_brings_its_configs(tmp_path: Path) -> None:
    """The wheel puts them beside config.py, and there they are looked for first."""
    root = Path(config.__file__).parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    placed = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert placed == {"configs": "experiments/configs"}
    site = tmp_path / "site-packages"
    (site / "experiments").mkdir(parents=True)
    for name in ("__init__.py", "config.py"):
        shutil.copy(root / "experiments" / name, site / "experiments")
    for source, target in placed.items():
        shutil.copytree(root / source, site / target)
    (site / "configs").mkdir()
    (site / "configs" / "quick.yaml").write_text("somebody: else")
    code = "from experiments import config; print(config.find('quick')); print(*config.shipped())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(site)}, capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.stdout.split("\n")[:2] == [
        str(site / "experiments" / "configs" / "quick.yaml"),
        " ".join(sorted(file.stem for file in (root / "configs").glob("*.yaml"))),
    ]


def test_find(tmp_path: Path, write: Any) -> None:
    path = write("seed: 1")
    assert config.find(path) == path
    assert {"quick", "ppo", "smoke"} <= set(config.shipped())
    for name in ("quick", "quick.yaml", "configs/quick.yaml"):
        assert config.find(name).name == "quick.yaml"
    with pytest.raises(config.ConfigError, match='did you mean "quick"'):
        config.find("quik")
    with pytest.raises(config.ConfigError, match="is a folder"):
        config.find(tmp_path)
    with pytest.raises(config.ConfigError, match="no config file"):
        config.find(tmp_path / "quick.yaml")
