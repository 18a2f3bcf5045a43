"""Arrows between the rooms run one way (design.md): experiments -> agents -> domino_env; a drawing knows no engine."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("domino_env", "agents", "experiments")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
#: Files of agents/ that may need torch.
LEARNING = (
    "algorithms",
    "alternatives",
    "buffers",
    "checkpoint",
    "dqn",
    "expert",
    "imitation",
    "learner",
    "networks",
    "nfsp",
    "owner",
    "pool",
    "ppo",
    "recurrent",
    "rollout",
    "targets",
    "tasks",
)


def modules_in(source: str, package: str) -> set[str]:
    """Full names of the modules that a source text imports, wherever in it; `package` is where the file lies."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return found


def imports(path: Path) -> set[str]:
    """Modules that a file of the product imports."""
    return modules_in(path.read_text(encoding="utf-8"), ".".join(path.parent.relative_to(ROOT).parts))


def rooms(path: Path) -> set[str]:
    """Top-level packages that a file imports."""
    return {name.split(".")[0] for name in imports(path)}


def label(path: Path) -> str:
    """A readable test id."""
    return str(path.relative_to(ROOT))


def test_imports__are_found():
    source = "import a.b\nfrom c import d\ndef f():\n    from . import e\n    from ..g import h\n    import t.n as nn\n"
    assert modules_in(source, "p.q") == {"a.b", "c", "c.d", "p.q", "p.q.e", "p.g", "p.g.h", "t.n"}
    assert {path.parts[len(ROOT.parts)] for path in FILES} >= {"domino_env"}


@pytest.mark.parametrize("path", FILES, ids=label)
def test_arrows(path):
    forbidden = {
        "domino_env": {"agents", "experiments", "torch", "tests"},
        "agents": {"experiments", "tests"},
        "experiments": {"tests"},
    }
    room = path.relative_to(ROOT).parts[0]
    assert not rooms(path) & forbidden[room]


@pytest.mark.parametrize("path", [p for p in FILES if p.is_relative_to(ROOT / "domino_env" / "render")], ids=label)
def test_render__knows_no_engine(path):
    """It draws a plain snapshot; of the games it may know the tiles."""
    games = {name for name in imports(path) if name.startswith("domino_env")}
    allowed = ("domino_env.render", "domino_env.tiles")
    assert all(name == "domino_env" or name.startswith(allowed) for name in games), games
    assert not {"domino_env.make_engine", "domino_env.LineEngine"} & games


@pytest.mark.parametrize("path", [p for p in FILES if p.is_relative_to(ROOT / "agents")], ids=label)
def test_agents__only_learning_files_need_torch(path):
    if path.stem not in LEARNING:
        top = {
            name.split(".")[0]
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in modules_in(ast.unparse(node), "agents")
        }
        assert not top & {"torch", "safetensors"}


@pytest.mark.parametrize("path", FILES, ids=label)
def test_nothing_read_can_run_code(path):
    """No pickle, marshal, eval or exec in the product, and no `torch.load`."""
    assert not rooms(path) & {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            assert not (isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec"))
            assert ast.unparse(node.func) not in ("torch.load", "np.load", "numpy.load", "yaml.load")


@pytest.mark.parametrize("name", ["reference", "blitz_reference", "rows_reference"])
def test_reference__is_independent(name):
    """The second implementation of the rules imports nothing from the product, and no arrays."""
    modules = modules_in((ROOT / "tests" / f"{name}.py").read_text(encoding="utf-8"), "tests")
    assert {name.split(".")[0] for name in modules} <= {"__future__", "random", "dataclasses", "typing"}


HOT = "step _finish _begin _blocked legal sample_legal observe _words history hands".split()


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("line", "_checked _play _play_chain _move_on _chain_words _score_bits _shuffled".split()),
        ("rows", "_turn _lay _draw _open _end_turn _moves _wait _is_first".split()),
    ],
)
def test_engines__no_python_loop_over_rows(name, more):
    """No `for` statement of a step or a view runs over the batch."""
    tree = ast.parse((ROOT / "domino_env" / f"{name}.py").read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in {*HOT, *more}]
    assert {function.name for function in found} == {*HOT, *more}
    loops = [
        ast.unparse(node.iter)
        for function in found
        for node in ast.walk(function)
        if isinstance(node, ast.For | ast.comprehension)
    ]
    assert loops and all("num_envs" not in text and "rows" not in text for text in loops), loops
