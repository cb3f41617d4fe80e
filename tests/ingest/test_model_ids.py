"""A model may be written as its Hugging Face id where the catalog has it."""

from __future__ import annotations

import pytest

from capmodel import catalog
from capmodel.errors import IngestError
from capmodel.ingest.hf_config import load_model


def test_every_listed_id_names_its_model() -> None:
    ids = {
        name: catalog.raw_item("models", name).get("name", "") for name in catalog.names("models")
    }
    found = {name: load_model(text).name for name, text in ids.items() if "/" in text}
    assert len(found) > 30
    for name, text in ids.items():
        if list(ids.values()).count(text) == 1 and name in found:
            assert found[name] == catalog.model(name).name


def test_an_id_that_is_not_listed_is_a_missing_file() -> None:
    with pytest.raises(IngestError, match="cannot be read"):
        load_model("nobody/no-such-model")
