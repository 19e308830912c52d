"""What is wrong between runs and the queues, quotas, volumes and secrets that they name."""

from __future__ import annotations

import pytest

from unit.spec.trees import load

RUN = "---\ntype: task\nname: train\ncommands: [echo]\n"
LOCAL = "---\ntype: fleet\nname: local\nlocal: true\nnodes: 8\n"


def told(loaded, code: str) -> list[str]:
    """The details of one code; notes on what is not carried out are another matter."""
    return [finding.detail for finding in loaded.findings if finding.code == code]


def levels(loaded, code: str) -> set[str]:
    return {finding.level for finding in loaded.findings if finding.code == code}


QUEUE = "---\ntype: queue\nname: short\n"


@pytest.mark.parametrize(
    ("queue", "run", "detail"),
    [
        (
            "max_duration: 4h",
            "max_duration: 5h",
            "takes runs of 4h at most, and this one may take 5h.",
        ),
        ("max_duration: 4h", "max_duration: 4h", ""),
        ("max_duration: 4h", "max_duration: off", ""),
        ("max_duration: 4h", "", ""),
        ("max_duration: off", "max_duration: 9d", ""),
        ("nodes: ..2", "nodes: 3", "takes runs on 2 nodes at most, and this one is on 3."),
        ("nodes: 2..", "", "takes runs on 2 nodes at least, and this one is on 1."),
        ("nodes: 1..4", "nodes: 4", ""),
        ("fleets: [local]", "fleets: [other]", "leads to `local` only."),
        ("fleets: [local, other]", "fleets: [other]", ""),
        ("fleets: [local]", "", ""),
    ],
)
def test_queue_refuses(tmp_path, queue, run, detail):
    """What a queue would never take is a warning, with both amounts."""
    other = "---\ntype: fleet\nname: other\nlocal: true\nnodes: 8\n"
    loaded = load(tmp_path, f"{LOCAL}{other}{QUEUE}{queue}\n{RUN}queue: short\n{run}\n")
    found = told(loaded, "queue-refuses")
    assert found == ([f"`short` {detail}"] if detail else [])
    assert not loaded.errors


def test_two_defaults(tmp_path):
    """Two default queues, or gateways, are an error at both; one of each is right."""
    second = QUEUE.replace("short", "long")
    text = f"{LOCAL}{QUEUE}default: true\n{second}"
    assert told(load(tmp_path, text), "two-defaults") == []
    found = told(load(tmp_path, f"{text}default: true\n"), "two-defaults")
    assert [detail.partition(" (")[0] for detail in found] == [
        "The queue `long`",
        "The queue `short`",
    ]


QUOTA = "---\ntype: quota\nname: small\n"


@pytest.mark.parametrize(
    ("quota", "run", "detail"),
    [
        (
            "gpus: 8",
            "resources: {gpu: 16}",
            "It needs 16 GPUs, and the quota `small` (tree.yaml:{}) allows 8",
        ),
        ("gpus: 8", "nodes: 4\nresources: {gpu: 4}", "It needs 16 GPUs"),
        ("gpus: 8", "nodes: 4\nresources: {gpu: 2}", ""),
        ("gpus: 8", "resources: {gpu: 4..16}", ""),
        ("gpus: {H100: 2, any: 8}", "resources: {gpu: 'H100:4'}", "It needs 4 H100"),
        ("gpus: {H100: 2, any: 8}", "resources: {gpu: 'A100:4'}", ""),
        ("gpus: {H100: 2, any: 8}", "resources: {gpu: {name: [A100, H100], count: 4}}", ""),
        ("gpus: {H100: 2}", "resources: {gpu: 4}", ""),
        ("cpus: 8", "nodes: 2\nresources: {cpu: 4.5}", "It needs 9 CPUs"),
        ("cpus: 8", "nodes: 2\nresources: {cpu: 4}", ""),
        ("memory: 64GB", "nodes: 2\nresources: {memory: 48GB}", "It needs 96GB of memory"),
        ("nodes: 1", "nodes: 2", "It needs 2 nodes"),
        ("jobs: 1", "nodes: 2", "It needs 2 jobs"),
        ("jobs: 0", "", "It needs 1 job,"),
        ("max_duration: 1h", "max_duration: 2h", "It needs 2h"),
        ("gpu_hours: 5", "resources: {gpu: 16}", ""),
    ],
)
def test_larger_than_a_quota(tmp_path, quota, run, detail):
    """A run that a quota of everybody can never hold is told with both amounts."""
    loaded = load(tmp_path, f"{LOCAL}{QUOTA}each: user\n{quota}\n{RUN}{run}\n")
    found = told(loaded, "beyond-quota")
    assert len(found) == bool(detail)
    assert all(text.startswith(detail.format(7)) for text in found)
    assert levels(loaded, "beyond-quota") <= {"warning"}


PROJECT = "---\ntype: project\nname: {}\n"


@pytest.mark.parametrize(
    ("whose", "around", "holds"),
    [
        ("each: user", "", True),
        ("each: project", "", True),
        ("queue: short", "", True),
        ("queue: long", "", False),
        ("queue: long\neach: user", "", False),
        ("user: ada", "---\ntype: user\nname: ada\n", False),
        ("project: vision", PROJECT.format("vision"), True),
        ("project: vision", PROJECT.format("vision") + PROJECT.format("speech"), False),
    ],
)
def test_whose_quota_it_is(tmp_path, whose, around, holds):
    """Only quotas that are sure to hold for a run are compared with it."""
    queues = QUEUE + QUEUE.replace("short", "long")
    text = f"{LOCAL}{queues}{around}{QUOTA}{whose}\ngpus: 1\n"
    loaded = load(tmp_path, f"{text}{RUN}queue: short\nresources: {{gpu: 2}}\n")
    assert bool(told(loaded, "beyond-quota")) == holds


VOLUME = "---\ntype: volume\nname: {}\nfleet: {}\npath: {}\n"


@pytest.mark.parametrize(
    ("mounts", "detail", "level"),
    [
        ("['one:/data', 'two:/data/in']", "", ""),
        ("['one:/data', 'two:/database']", "", ""),
        (
            "[{name: one, path: /data, read_only: true}, 'two:/data/in']",
            "`/data/in` is inside of `/data`, which is read-only",
            "warning",
        ),
        (
            "['one:data', 'two:data/in']",
            "`data/in` would be a link inside of the volume at `data`",
            "error",
        ),
        (
            "['one:train.py']",
            "`files` puts `train.py` where a volume is mounted, at `train.py`.",
            "error",
        ),
        (
            "['one:conf']",
            "`files` puts `conf/a.yaml` where a volume is mounted, at `conf`.",
            "error",
        ),
        ("['one:train.py/x']", "`files` puts `train.py` where a volume is mounted, at", "error"),
        ("['one:configuration']", "", ""),
        ("['one:/train.py']", "", ""),
    ],
)
def test_mounts_in_the_way(tmp_path, mounts, detail, level):
    """Mounts that cannot be made beside each other, or beside files, are told at their volume."""
    volumes = VOLUME.format("one", "local", "a") + VOLUME.format("two", "local", "b")
    loaded = load(
        tmp_path,
        f"{LOCAL}{volumes}{RUN}files: [train.py, 'a.txt:conf/a.yaml']\nvolumes: {mounts}\n",
        **{"train.py": "pass\n", "a.txt": "a: 1\n"},
    )
    found = told(loaded, "mount-in-the-way")
    assert len(found) == bool(detail)
    assert all(text.startswith(detail) for text in found)
    assert levels(loaded, "mount-in-the-way") <= {level}


@pytest.mark.parametrize(
    ("fleets", "mounts", "detail"),
    [
        ("", "['one:/a', 'three:/b']", ""),
        ("", "['one:/a', 'two:/b']", "The volume `two` is on the hosts of `other`, and `one` on those of `local`; no host has both."),
        ("fleets: [local]", "['two:/b']", "The volume `two` is on the hosts of `other`, and the run may be placed on `local` only."),
        ("fleets: [local, other]", "['two:/b']", ""),
        ("", "[{name: [one, two], path: /a}, 'two:/b']", ""),
    ],
)  # fmt: skip
def test_volumes_of_other_fleets(tmp_path, fleets, mounts, detail):
    """Volumes that no host has together, or none where the run may be placed, are told."""
    volumes = "".join(
        VOLUME.format(name, fleet, name)
        for name, fleet in (("one", "local"), ("two", "other"), ("three", "local"))
    )
    other = LOCAL.replace("name: local", "name: other")
    loaded = load(tmp_path, f"{LOCAL}{other}{volumes}{RUN}{fleets}\nvolumes: {mounts}\n")
    assert told(loaded, "never-placed") == ([detail] if detail else [])


@pytest.mark.parametrize(
    ("one", "two", "is_same"),
    [
        ("fleet: local\npath: /data", "fleet: local\npath: /data/", True),
        ("fleet: local\npath: /data", "fleet: local\npath: /data2", False),
        ("backend: gcp\nregion: a\nvolume_id: v1", "backend: gcp\nregion: a\nvolume_id: v1", True),
        ("backend: gcp\nregion: a\nvolume_id: v1", "backend: gcp\nregion: b\nvolume_id: v1", False),
        ("backend: kubernetes\nclaim_name: c", "backend: kubernetes\nclaim_name: c", True),
        ("backend: aws\nregion: a\nsize: 1GB", "backend: aws\nregion: a\nsize: 1GB", False),
    ],
)
def test_one_volume_under_two_names(tmp_path, one, two, is_same):
    """Two documents that mean one directory, disk or claim are told, and name each other."""
    volume = "---\ntype: volume\nname: {}\n{}\n"
    loaded = load(tmp_path, LOCAL + volume.format("one", one) + volume.format("two", two))
    found = told(loaded, "path-claimed-twice")
    assert len(found) == is_same
    assert all(text.startswith("The volume `one` (tree.yaml:") for text in found)


SECRET = "---\ntype: secret\nname: {}\nenv: TOKEN\n"


@pytest.mark.parametrize(
    ("declared", "named", "code"),
    [
        ("hf_token", "hf_token", ""),
        ("hf_token", "hf_tokne", "unknown-reference"),
        ("hf_token", "wandb_key", "undeclared-reference"),
        ("openai_api_key", "wandb_api_key", "undeclared-reference"),
        ("token_1", "token_2", "undeclared-reference"),
    ],
)
@pytest.mark.parametrize(
    "field",
    [
        "env: ['A=${{{{ secrets.{} }}}}']",
        "env: {{A: 'x ${{{{secrets.{}}}}} y'}}",
        "image: x\nregistry_auth: {{username: u, password: '${{{{ secrets.{} }}}}'}}",
        "matrix: {{lr: [1, 2]}}\nenv: ['A=${{{{ secrets.{} }}}}', 'B=${{{{ matrix.lr }}}}']",
    ],
)
def test_secrets_in_texts(tmp_path, field, declared, named, code):
    """A secret is known wherever an expression names it; a slip is an error at the expression."""
    loaded = load(tmp_path, SECRET.format(declared) + RUN + field.format(named) + "\n")
    found = [one for one in loaded.findings if one.code.endswith("-reference")]
    assert [one.code for one in found] == ([code] if code else [])
    for one in found:
        assert one.text[one.place.column - 1 :].startswith("${{")
        assert one.detail.startswith(f"No document declares the secret `{named}`.")
    assert told(loaded, "unused") == []


def test_two_braces_of_a_text_name_no_secret(tmp_path):
    """`$${{` is what a program is to read, such as a template of another tool."""
    fields = "env: {A: '$${{ secrets.none }}'}\ndescription: 'as $${{ secrets.none }}'\n"
    loaded = load(tmp_path, RUN + fields)
    assert [one.code for one in loaded.findings if one.code.endswith("-reference")] == []


def test_unused_secrets(tmp_path):
    """A secret that nothing mentions is a note; what a project may have does not count as use."""
    grants = "---\ntype: project\nname: vision\ngrants: {secrets: [hf_token]}\n"
    loaded = load(tmp_path, SECRET.format("hf_token") + grants)
    assert told(loaded, "unused") == ["No document mentions `${{ secrets.hf_token }}`."]
    assert levels(loaded, "unused") == {"note"}


@pytest.mark.parametrize(
    ("text", "kind", "name", "code"),
    [
        ("type: queue\nname: qq\nfleets: [nowhere]", "fleet", "nowhere", "unknown-reference"),
        ("type: quota\nname: qq\nqueue: nowhere\ngpus: 1", "queue", "nowhere", "unknown-reference"),
        ("type: quota\nname: qq\nuser: nobody\ngpus: 1", "user", "nobody", "undeclared-reference"),
        ("type: quota\nname: qq\nproject: none\ngpus: 1", "project", "none", "undeclared-reference"),
        (
            "type: reservation\nname: rr\nfleet: nowhere\nusers: ada\nbegin: 2026-12-01T00:00Z",
            "fleet", "nowhere", "unknown-reference",
        ),
        ("type: project\nname: pp\nmembers: [nobody]", "user", "nobody", "undeclared-reference"),
        ("type: project\nname: pp\ndefault_queue: qq", "queue", "qq", "unknown-reference"),
        ("type: project\nname: pp\ndefault_profile: qq", "profile", "qq", "unknown-reference"),
        ("type: project\nname: pp\ngrants: {secrets: [ss]}", "secret", "ss", "undeclared-reference"),
        ("type: secret\nname: ss\nenv: A\nprojects: none", "project", "none", "undeclared-reference"),
        ("type: policy\nname: pp\nwarn: x\nmatch: {projects: none}", "project", "none", "undeclared-reference"),
        ("type: policy\nname: pp\napproval: {users: nobody}", "user", "nobody", "undeclared-reference"),
        ("type: profile\nname: pp\nfleets: nowhere", "fleet", "nowhere", "unknown-reference"),
        ("type: fleet\nname: ff\nbackends: [awz]", "backend", "awz", "unknown-reference"),
        ("type: fleet\nname: ff\nkubernetes: {backend: mine}", "backend", "mine", "unknown-reference"),
        ("type: volume\nname: vv\nbackend: mine\nsize: 1GB", "backend", "mine", "unknown-reference"),
        ("type: gateway\nname: gg\nbackend: gpc\nregion: a", "backend", "gpc", "unknown-reference"),
        ("type: task\nname: tt\ncommands: x\nqueue: qq", "queue", "qq", "unknown-reference"),
        ("type: service\nname: tt\ncommands: x\nport: 80\ngateway: gg", "gateway", "gg", "undeclared-reference"),
    ],
)  # fmt: skip
def test_unknown_names(tmp_path, text, kind, name, code):
    """Each field that names something is told when nothing of the name is there."""
    loaded = load(tmp_path, f"---\n{text}\n")
    found = [
        one
        for one in loaded.findings
        if one.code == code and one.detail == f"No document declares the {kind} `{name}`."
    ]
    assert len(found) == 1
    assert name in found[0].text


@pytest.mark.parametrize("backend", ["aws", "slurm", "datacrunch"])
def test_types_of_backends_need_no_document(tmp_path, backend):
    """A backend is named by its type without a document, or by the name of one."""
    fleet = "---\ntype: fleet\nname: ff\nbackends: [{}]\n"
    assert load(tmp_path, fleet.format(backend)).errors == ()
    aws = "---\ntype: aws\nname: aws-research\n"
    assert load(tmp_path, fleet.format("aws-research") + aws).errors == ()
