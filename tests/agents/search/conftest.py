"""What the tests of search players share."""

from pathlib import Path

import pytest

from tests.agents.search.test_critic import saved, trained


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that has hardly learned."""
    trainer = trained()
    trainer.update()
    trainer.close()
    return saved(trainer, tmp_path_factory.mktemp("run"))
