"""Frames: what one end says, the other hears; and noise is told from messages."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import typing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.agents.protocol import frames, messages
from fleetform.agents.protocol.frames import (
    FRAME_BYTES_MAX,
    Decoder,
    FrameError,
    Message,
    decode,
    encode,
    ignored_fields,
    job_digest,
    read_value,
)
from fleetform.agents.protocol.host_report import GpuProcess, GpuReport, HostReport
from fleetform.agents.protocol.messages import (
    Event,
    Hello,
    JobKey,
    JobRecord,
    LogData,
    Prepare,
    Probe,
    Reply,
    StartJob,
    Stop,
    Unknown,
    Welcome,
    to_json,
)
from fleetform.agents.protocol.states import JobState

DATA = Path(__file__).parents[2] / "data" / "recorded"
"""Bytes that the release before wrote, whose newest version was 1."""

KINDS = sorted(
    {
        *typing.get_args(typing.Union[messages.ToAgent, messages.ToController]),  # noqa: UP007 -- flattens
    },
    key=lambda kind: kind.__name__,
)

_integers = st.integers(-(1 << 63), (1 << 63) - 1)
_json = st.recursive(
    st.none() | st.booleans() | _integers | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
st.register_type_strategy(int, _integers)


@functools.cache  # an example draws from it, and to make it takes longer than to draw
def message_of(kind: type[Message]) -> st.SearchStrategy[Message]:
    """Fill every field, the optional ones too: from the annotations, which frames never reads."""
    hints = typing.get_type_hints(kind)
    return st.builds(
        kind, **{field.name: value_of(hints[field.name]) for field in dataclasses.fields(kind)}
    )


def value_of(hint: object) -> st.SearchStrategy[object]:
    if dataclasses.is_dataclass(hint):
        return message_of(hint)
    if typing.get_origin(hint) is tuple:
        return st.lists(value_of(typing.get_args(hint)[0]), max_size=3).map(tuple)
    if type(None) in typing.get_args(hint):
        return st.none() | value_of(typing.get_args(hint)[0])
    if hint == dict[str, typing.Any]:
        return st.dictionaries(st.text(max_size=4), _json, max_size=3)
    return st.from_type(hint)


any_message = st.one_of([message_of(kind) for kind in KINDS])


def bodies_of(stream: bytes) -> list[bytes]:
    """Cut a recorded stream by the frames' lengths."""
    bodies = []
    while stream:
        length = int.from_bytes(stream[:4], "big")
        bodies.append(stream[4 : 4 + length])
        stream = stream[4 + length :]
    return bodies


def frame_of(value: object) -> bytes:
    body = json.dumps(value).encode()
    return len(body).to_bytes(4, "big") + body


class TestRoundTrip:
    @pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
    @given(data=st.data())
    def test_every_message_arrives_as_it_was_sent(self, kind, data) -> None:
        """Each class of message, with any values, is equal on the other side."""
        message = data.draw(message_of(kind))
        assert Decoder().feed(encode(message)) == [message]

    @given(sent=st.lists(any_message, max_size=5), sizes=st.lists(st.integers(1, 200), min_size=1))
    def test_a_stream_may_be_cut_anywhere(self, sent, sizes) -> None:
        """Messages do not depend on where the pieces of the stream begin and end."""
        stream = b"".join(map(encode, sent))
        decoder, heard, begin, turn = Decoder(), [], 0, 0
        while begin < len(stream):
            size = sizes[turn % len(sizes)]
            heard += decoder.feed(stream[begin : begin + size])
            begin, turn = begin + size, turn + 1
        assert heard == sent
        assert not decoder.within_frame

    @given(message=any_message)
    def test_a_frame_says_what_to_json_says(self, message) -> None:
        """The two ways to turn a message into JSON agree."""
        said = json.loads(encode(message)[4:])
        assert said == {"type": type(message).__name__, **to_json(message)}

    def test_a_file_name_that_is_not_utf8_survives(self) -> None:
        """A lone surrogate, as Python shows such a name, comes back."""
        message = LogData("u", 0, "", complete=False)
        odd = dataclasses.replace(message, job_uid=b"\xff".decode("utf-8", "surrogateescape"))
        assert Decoder().feed(encode(odd)) == [odd]

    def test_every_message_has_a_reader(self) -> None:
        """The table of readers and the unions of messages name the same classes."""
        assert sorted(frames._MESSAGES) == [kind.__name__ for kind in KINDS]


class TestOtherReleases:
    def test_a_field_nobody_knows_is_passed_over(self) -> None:
        """A newer end may say more than we understand."""
        assert decode(b'{"type": "Probe", "id": 1, "depth": "all"}') == Probe(1)

    def test_a_missing_optional_field_takes_its_default(self) -> None:
        """An older end may say less than we do; mutable defaults are not shared."""
        one = decode(b'{"type": "Reply", "id": 1, "ok": true}')
        two = decode(b'{"type": "Reply", "id": 1, "ok": true}')
        assert one == two == Reply(1, ok=True)
        assert one.body is not two.body

    @pytest.mark.parametrize("kind", ["Surprise", "JobRecord"])
    def test_an_unknown_message_is_named(self, kind) -> None:
        """Its number stays readable, so that a request can be answered; others follow it."""
        stream = frame_of({"type": kind, "id": 7, "depth": "all"}) + encode(Probe(8))
        unknown, probe = Decoder().feed(stream)
        assert unknown == Unknown(7, f'the message "{kind}" is unknown')
        assert probe == Probe(8)
        assert decode(json.dumps({"type": kind}).encode()).id is None

    def test_an_unknown_enum_value_is_named(self) -> None:
        """The answer says which values this release knows."""
        value = {**to_json(Stop(1, JobKey("r", 1, 0), "u", 1)), "type": "Stop"}
        unknown = decode(json.dumps({**value, "cause": "boredom"}).encode())
        assert isinstance(unknown, Unknown)
        assert unknown.id == 1
        assert "Stop.cause must be one of exited, signal, oom" in unknown.problem
        assert unknown.problem.endswith('not "boredom"')

    def test_a_record_with_an_unknown_state_is_named(self) -> None:
        """Also inside of what a message contains."""
        record = to_json(JobRecord(JobKey("r", 1, 0), "u", 1, "d", JobState.RUNNING))
        said = {"type": "Event", "number": 3, "record": {**record, "state": "asleep"}}
        unknown = decode(json.dumps(said).encode())
        assert isinstance(unknown, Unknown)
        assert unknown.problem.startswith("Event.record JobRecord.state must be one of waiting")

    @pytest.mark.parametrize("direction", ["to-agent", "to-controller"])
    def test_version_1_is_still_read(self, direction) -> None:
        """What the release before wrote is understood to the last frame, and says the same again."""
        recorded = (DATA / f"protocol-1-{direction}.bin").read_bytes()
        messages = Decoder().feed(recorded)
        assert len(messages) == {"to-agent": 14, "to-controller": 11}[direction]
        assert not [one for one in messages if isinstance(one, Unknown)]
        for body, message in zip(bodies_of(recorded), messages, strict=True):
            said = json.loads(encode(message)[4:])
            assert {name: said[name] for name in json.loads(body)} == json.loads(body)

    def test_a_missing_required_field_is_named(self) -> None:
        """What has no default must be said."""
        with pytest.raises(FrameError, match=r"Hello\.epoch is missing"):
            decode(b'{"type": "Hello", "environment_uid": "e", "ledger_id": "l"}')


class TestNoise:
    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            (b"", "not JSON"),
            (b"\xff\xfe", "not JSON"),
            (b"{", "not JSON"),
            (b"[" * 100_000, "not JSON"),
            (b'{"type": "Probe", "id": NaN}', "NaN is not a number"),
            (b'"Probe"', "unknown type null"),
            (b'{"type": ["Probe"]}', r'unknown type \["Probe"\]'),
            (b'{"type": "Surprise", "id": "1"}', "must be a whole number"),
            (b'{"type": "Probe", "id": true}', r"Probe\.id must be a whole number"),
            (b'{"type": "Probe", "id": 1.0}', r"Probe\.id must be a whole number"),
            (b'{"type": "Probe", "id": 9223372036854775808}', "64 bits"),
            (b'{"type": "Shutdown", "id": 1, "force": 1}', "must be true or false"),
            (b'{"type": "Forget", "id": 1, "keys": {}}', "must be a list"),
            (b'{"type": "Forget", "id": 1, "keys": [["r", 1]]}', "must be .run uid, attempt, rank"),
            (b'{"type": "Acknowledge", "cursor": {"log_id": 3}}', r"cursor Cursor\.log_id must be"),
            (b'{"type": "Reply", "id": 1, "ok": true, "body": []}', "must be an object"),
            (b'{"type": "Event", "number": 1, "record": {"state": "asleep"}}', r"JobRecord\.key"),
        ],
    )
    def test_what_is_no_message_is_refused_with_a_reason(self, body, reason) -> None:
        """Every kind of garbage raises FrameError, whose sentence says where it is."""
        with pytest.raises(FrameError, match=reason):
            Decoder().feed(len(body).to_bytes(4, "big") + body)

    @given(noise=st.binary(max_size=200))
    def test_nothing_else_is_ever_raised(self, noise) -> None:
        """Whatever bytes arrive, the decoder returns or raises FrameError."""
        for read in (Decoder().feed, decode):
            with contextlib.suppress(FrameError):
                read(noise)

    @given(kind=st.sampled_from([kind.__name__ for kind in KINDS]), data=st.data())
    def test_a_known_type_with_any_fields_is_safe(self, kind, data) -> None:
        """A frame of a known type whose fields are nonsense raises FrameError at most."""
        names = [field.name for field in dataclasses.fields(getattr(messages, kind))]
        value = {name: data.draw(_json) for name in names}
        with contextlib.suppress(FrameError):
            decode(json.dumps({**value, "type": kind}).encode())

    def test_a_length_beyond_the_bound_is_refused_before_it_is_read(self) -> None:
        """Four bytes are enough to refuse; no memory is set aside for the rest."""
        with pytest.raises(FrameError, match="claims 16777217 bytes"):
            Decoder().feed((FRAME_BYTES_MAX + 1).to_bytes(4, "big"))

    def test_a_broken_stream_stays_broken(self) -> None:
        """After noise nobody knows where the next frame begins."""
        decoder = Decoder()
        for noise in (frame_of({"type": 7}), encode(Probe(1))):
            with pytest.raises(FrameError, match="unknown type 7"):
                decoder.feed(noise)

    def test_a_message_too_long_is_not_sent(self) -> None:
        """The bound holds on the way out as well."""
        with pytest.raises(FrameError, match=r"LogData of .* too long"):
            encode(LogData("u", 0, "x" * FRAME_BYTES_MAX))

    def test_the_longest_frame_passes(self) -> None:
        """A frame of exactly the bound is a message."""
        spare = FRAME_BYTES_MAX - (len(encode(LogData("u", 0, ""))) - 4)
        message = LogData("u", 0, "x" * spare)
        assert Decoder().feed(encode(message)) == [message]


class TestDigest:
    job = StartJob("u", JobKey("r", 1, 0), 1, "boot", "train", ("true",), env={"A": "1", "B": "2"})

    def test_it_covers_every_field_but_gen_and_go(self) -> None:
        """Commits and the start leave the digest; any other change makes another."""
        same = dataclasses.replace(self.job, gen=9, go=True)
        assert job_digest(same) == job_digest(self.job)
        for field in dataclasses.fields(StartJob):
            if field.name not in {"gen", "go"}:
                other = dataclasses.replace(self.job, **{field.name: ["another"]})
                assert job_digest(other) != job_digest(self.job), field.name

    def test_it_survives_the_way_to_the_agent(self) -> None:
        """Ledger and agent compute the same, however the environment was ordered."""
        shuffled = dataclasses.replace(self.job, env={"B": "2", "A": "1"})
        arrived = Decoder().feed(encode(Prepare(1, shuffled)))[0]
        assert job_digest(arrived.job) == job_digest(self.job)

    def test_it_ignores_what_has_its_default(self) -> None:
        """A field that one release has and another lacks does not make a conflict."""
        assert job_digest(dataclasses.replace(self.job, shell="sh")) == job_digest(self.job)

    def test_it_is_this_number(self) -> None:
        """The digest is kept in ledgers and on hosts: it must not change with a release."""
        assert (
            job_digest(self.job)
            == "872fa5e0cfa6f133cda4bb842dea6e76ca3099129c9e18f27314d2c9a0aebc61"
        )


def test_a_field_of_this_release_is_sent_to_agents_that_know_it() -> None:
    """Its default is not sent; another value is named as ignored by an agent without the capability."""
    plain = TestDigest.job
    other = dataclasses.replace(plain, account="ada")
    assert b"account" not in encode(Prepare(1, plain))
    assert b'"account":"ada"' in encode(Prepare(1, other))
    assert ignored_fields(plain, ()) == []
    assert ignored_fields(other, ()) == ["account"]
    assert ignored_fields(other, messages.CAPABILITIES) == []


class TestValues:
    def test_a_host_report_is_read_from_a_reply(self) -> None:
        """What a reply's body carries as JSON comes back as the value."""
        report = HostReport(
            hostname="h",
            cpu_millicores=2000,
            memory_bytes=1,
            disk_bytes=2,
            disk_free_bytes=3,
            memory_free_bytes=4,
            load_1m_milli=5,
            gpus=(
                GpuReport(0, "GPU-1", "A100", 80 << 30),
                GpuReport(1, "GPU-2", "A100", 80 << 30, used_by=GpuProcess(7, "ada", "python")),
            ),
            python="3.9",
            kernel="6.1",
        )
        reply = Decoder().feed(encode(Reply(1, ok=True, body={"host": to_json(report)})))[0]
        assert read_value(HostReport, reply.body["host"]) == report

    def test_a_value_of_the_wrong_kind_is_refused(self) -> None:
        """No report at all is no report."""
        with pytest.raises(FrameError, match="must be an object, not null"):
            read_value(HostReport, None)

    def test_a_snapshot_keeps_its_records(self) -> None:
        """None and no records are different things in a welcome."""
        record = JobRecord(JobKey("r", 2, 1), "u", 4, "d", JobState.RUNNING)
        for records in (None, (), (record,)):
            welcome = Welcome(None, "l", 1, "i", "b", "m", "log", 1, 0, records, "0.1")
            assert Decoder().feed(encode(welcome)) == [welcome]
        assert decode(encode(Event(1, record))[4:]) == Event(1, record)
        assert decode(encode(Hello("e", "l", 1, 1))[4:]).cursor is None
