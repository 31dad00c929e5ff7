"""Tests keep their compiled signatures to themselves."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> object:
    patch = pytest.MonkeyPatch()
    cache: Path = tmp_path_factory.mktemp("cache")
    cache.chmod(0o700)
    patch.setenv("FORENSICS_CACHE_DIR", str(cache))
    patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    yield
    patch.undo()
