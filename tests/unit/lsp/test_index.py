from __future__ import annotations

from fleetform.lsp.index import Index
from fleetform.lsp.references import index_file
from fleetform.lsp.text import Text
from fleetform.spec.desired import ResourceKey

DATA = ResourceKey("volume", "data")
VOLUME = "type: volume\nname: data\nfleet: local\npath: data\n"
TASK = "type: task\nname: train\nvolumes: [data:/mnt]\n"


def index(**files):
    """An index of files by their stem."""
    made = Index()
    for stem, source in files.items():
        put(made, stem, source)
    return made


def put(made, stem, source):
    made.put(f"{stem}.yaml", index_file(Text(source), f"{stem}.yaml"))


def places(made, key=DATA):
    return [(one.file, one.text.slice(one.mention.extent)) for one in made.mentions(key)]


def test_a_name_is_found_in_all_files():
    """Its declaration and its references, in order of file."""
    made = index(volume=VOLUME, train=TASK)
    assert places(made) == [("train.yaml", "data"), ("volume.yaml", "data")]
    assert [file for file, _ in made.declarations(DATA)] == ["volume.yaml"]


def test_a_file_that_is_gone_is_forgotten():
    """With all that it said."""
    made = index(volume=VOLUME, train=TASK)
    made.remove("volume.yaml")
    made.remove("volume.yaml")
    assert made.declarations(DATA) == []
    assert made.names("volume") == []
    assert places(made) == [("train.yaml", "data")]


def test_a_file_that_breaks_keeps_what_its_text_still_says():
    """Whoever types a quote has not removed the rest of the file."""
    made = index(volume=f"fleet: [\n{VOLUME}", train=TASK)
    assert made.declarations(DATA) == []
    put(made, "volume", VOLUME)
    put(made, "volume", f'fleet: "\n{VOLUME}')
    assert [file for file, _ in made.declarations(DATA)] == ["volume.yaml"]
    assert places(made) == [("train.yaml", "data"), ("volume.yaml", "data")]
    put(made, "volume", "fleet: [\n")
    assert made.declarations(DATA) == []
    put(made, "volume", f'fleet: "\n{VOLUME}')
    assert made.names("volume") == [DATA], "the last sound text is still known"


def test_a_broken_file_that_has_the_name_is_told():
    """A rename would leave it behind."""
    made = index(
        volume=VOLUME, train=f"{TASK}fleets: [", other="type: task\nname: metadata\nenv: ["
    )
    assert made.unsound_with(DATA) == ["train.yaml"]


def test_names_follow_edits():
    """The sorted names are those of now, also when an edit only swaps one for another."""
    made = index(volume=VOLUME)
    assert made.names("volume") == [DATA]
    put(made, "volume", VOLUME.replace("name: data", "name: corpus"))
    assert made.names("volume") == [ResourceKey("volume", "corpus")]
    put(made, "other", VOLUME)
    assert [key.name for key in made.names("volume")] == ["corpus", "data"]
    assert made.names("run") == []
