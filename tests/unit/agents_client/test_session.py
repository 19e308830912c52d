"""The controller's end: requests side by side, news in order, and one clear end."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import hashlib
import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from fleetform.agents.client import blobs, session
from fleetform.agents.client.errors import (
    ConnectionLost,
    ContentChanged,
    HelloRejected,
    RequestRefused,
)
from fleetform.agents.client.session import Session, open_session
from fleetform.agents.protocol.frames import encode
from fleetform.agents.protocol.messages import (
    PROTOCOL_NEWEST,
    PROTOCOL_OLDEST,
    Acknowledge,
    Cursor,
    Event,
    FollowLog,
    Forget,
    Hello,
    JobKey,
    JobRecord,
    LogData,
    MakeVolume,
    Prepare,
    Probe,
    PutBlob,
    Rejected,
    RemoveVolume,
    Reply,
    Shutdown,
    SnapshotVolume,
    Start,
    StartJob,
    Stop,
)
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.providers.contract.hosts import Host
from unit.agents_client.memory_stream import HELLO, REPORT, WELCOME, AgentEnd

DATA = Path(__file__).parents[2] / "data" / "recorded"

KEY = JobKey("r", 1, 0)
JOB = StartJob("u", KEY, 1, "boot", "train", ("true",))


WELCOME_2 = dataclasses.replace(WELCOME, protocol=2)


def event(number: int) -> Event:
    return Event(number, JobRecord(KEY, "u", 1, "d", JobState.RUNNING))


def with_agent(story: Callable[[AgentEnd, Session], Awaitable[None]]) -> None:
    async def run() -> None:
        agent = AgentEnd()
        session = await agent.greeted_by()
        try:
            async with asyncio.timeout(60):
                await story(agent, session)
        finally:
            await session.close()

    asyncio.run(run())


async def settled() -> None:
    """Let everybody go on until nobody can, which takes no clock: the streams are in memory."""
    for _ in range(100):
        await asyncio.sleep(0)


class TestHello:
    def test_a_welcome_and_a_report_make_a_session(self) -> None:
        """Both are there before the first call."""

        async def story(agent, session) -> None:
            assert session.welcome == WELCOME
            assert session.report == REPORT

        with_agent(story)

    def test_a_rejection_is_raised_with_its_answer(self) -> None:
        """Whoever is rejected learns who owns the agent, and the stream is closed."""

        async def run() -> None:
            agent = AgentEnd()
            agent.say(Rejected("foreign_owner", "belongs to staging", owner="staging"))
            with pytest.raises(HelloRejected, match="belongs to staging") as caught:
                await open_session(agent.said, agent.heard, HELLO)
            assert caught.value.answer.owner == "staging"
            assert agent.heard.closed

        asyncio.run(run())

    def test_silence_ends_after_the_timeout(self) -> None:
        """An agent that hangs does not hang us."""

        async def run() -> None:
            agent = AgentEnd()
            with pytest.raises(ConnectionLost, match="does not answer"):
                await open_session(agent.said, agent.heard, HELLO, timeout_seconds=0.01)
            assert agent.heard.closed

        asyncio.run(run())

    @pytest.mark.parametrize(
        ("said", "reason"),
        [
            (b"", "closed the connection"),
            (b"SSH-2.0-OpenSSH_9.2\r\n", "does not follow the protocol: a frame claims"),
            (encode(Probe(1)), "the message Probe is unexpected"),
            (encode(WELCOME) * 2, "the message Welcome is unexpected"),
        ],
        ids=["nothing", "another protocol", "a request", "two welcomes"],
    )
    def test_anything_else_is_not_an_agent(self, said, reason) -> None:
        """What was said instead is part of the message."""

        async def run() -> None:
            agent = AgentEnd()
            agent.said.write(said)
            agent.said.close()
            with pytest.raises(ConnectionLost, match=reason):
                await open_session(agent.said, agent.heard, HELLO)

        asyncio.run(run())

    def test_it_offers_all_versions_that_it_speaks(self) -> None:
        """Under the name that version 1 reads, the oldest."""

        async def run() -> None:
            agent = AgentEnd()
            opening = asyncio.create_task(open_session(agent.said, agent.heard, HELLO))
            hello = await agent.hear()
            assert (hello.protocol, hello.protocol_newest) == (PROTOCOL_OLDEST, PROTOCOL_NEWEST)
            agent.say(dataclasses.replace(WELCOME, protocol=PROTOCOL_NEWEST + 1))
            with pytest.raises(ConnectionLost, match="answers in the unknown version 3"):
                await opening

        asyncio.run(run())

    def test_an_agent_of_version_1_is_understood(self) -> None:
        """What the release before sent: answers, output and news arrive as they always did."""
        recorded = (DATA / "protocol-1-to-controller.bin").read_bytes()

        async def run() -> None:
            agent = AgentEnd()
            welcome_bytes = 4 + int.from_bytes(recorded[:4], "big")
            agent.said.write(recorded[:welcome_bytes])
            opening = asyncio.create_task(open_session(agent.said, agent.heard, HELLO))
            assert [type(await agent.hear()) for _ in range(2)] == [Hello, Probe]
            agent.said.write(recorded[welcome_bytes:])
            session = await opening
            assert session.welcome.protocol == 1
            assert session.report.gpus[0].name == "A100"
            batches = [batch async for batch in session.news()]
            assert [type(item).__name__ for item in batches[0]] == [
                "Event", "LogData", "LogData", "Event",
            ]  # fmt: skip
            await session.close()

        asyncio.run(run())

    def test_a_report_without_sense_is_refused(self) -> None:
        """A host of unknown capacity cannot be given work."""

        async def run() -> None:
            agent = AgentEnd()
            opening = asyncio.create_task(open_session(agent.said, agent.heard, HELLO))
            await agent.hear()
            agent.say(WELCOME)
            probe = await agent.hear()
            agent.say(Reply(probe.id, ok=True, body={"host": {"hostname": 3}}))
            with pytest.raises(ConnectionLost, match="report of its host is invalid"):
                await opening

        asyncio.run(run())


class TestRequests:
    @pytest.mark.parametrize(
        ("call", "heard"),
        [
            (lambda s: s.prepare(JOB), Prepare(2, JOB)),
            (lambda s: s.start(KEY, 3, "boot"), Start(2, KEY, 3, "boot")),
            (
                lambda s: s.stop(KEY, "u", 4, cause=Cause.STOPPED, grace_seconds=5),
                Stop(2, KEY, "u", 4, Cause.STOPPED, 5),
            ),
            (lambda s: s.forget([KEY]), Forget(2, (KEY,))),
            (lambda s: s.make_volume("o", "v", "n", "/p"), MakeVolume(2, "o", "v", "n", "/p")),
            (
                lambda s: s.remove_volume("o", "v", "/p", delete_data=True),
                RemoveVolume(2, "o", "v", "/p", delete_data=True),
            ),
            (
                lambda s: s.snapshot_volume("o", "v", "n", "/p", "/p.s"),
                SnapshotVolume(2, "o", "v", "n", "/p", "/p.s"),
            ),
            (lambda s: s.shutdown(force=True), Shutdown(2, force=True)),
        ],
        ids=[
            "prepare",
            "start",
            "stop",
            "forget",
            "make volume",
            "remove volume",
            "snapshot",
            "shutdown",
        ],
    )
    def test_a_call_is_a_request_and_returns_its_reply(self, call, heard) -> None:
        """A refusal is an answer like any other: the caller decides what it means."""

        async def story(agent, session) -> None:
            calling = asyncio.create_task(call(session))
            assert await agent.hear() == heard
            reply = Reply(2, ok=False, code="stale", message="later", body={"x": 1})
            agent.say(reply)
            assert await calling == reply

        with_agent(story)

    def test_calls_without_answer_only_speak(self) -> None:
        """Nothing waits for what is not answered."""

        async def story(agent, session) -> None:
            await session.acknowledge(Cursor("log", 7))
            await session.follow_log("u", 9)
            assert await agent.hear() == Acknowledge(Cursor("log", 7))
            assert await agent.hear() == FollowLog("u", 9)

        with_agent(story)

    def test_replies_may_come_in_any_order(self) -> None:
        """Each caller gets the reply of its own number."""

        async def story(agent, session) -> None:
            calls = [asyncio.create_task(session.forget([KEY])) for _ in range(3)]
            ids = [(await agent.hear()).id for _ in calls]
            agent.say(*(Reply(number, ok=True, message=str(number)) for number in reversed(ids)))
            assert [(await call).message for call in calls] == [str(number) for number in ids]

        with_agent(story)

    def test_what_is_asked_at_once_leaves_at_once(self) -> None:
        """A thousand requests of one moment are one write, in the order of the calls."""

        async def story(agent, session) -> None:
            before = agent.heard.writes
            calls = [asyncio.create_task(session.start(KEY, n, "b")) for n in range(1000)]
            heard = [await agent.hear() for _ in calls]
            assert [message.gen for message in heard] == list(range(1000))
            assert agent.heard.writes == before + 1
            agent.say(*(Reply(message.id, ok=True) for message in heard))
            assert all(reply.ok for reply in await asyncio.gather(*calls))

        with_agent(story)

    def test_a_caller_that_gave_up_is_not_missed(self) -> None:
        """The reply to a cancelled call is dropped, and the session goes on."""

        async def story(agent, session) -> None:
            call = asyncio.create_task(session.forget([KEY]))
            first = await agent.hear()
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            other = asyncio.create_task(session.forget([KEY]))
            second = await agent.hear()
            agent.say(Reply(first.id, ok=True), Reply(second.id, ok=True), Reply(99, ok=True))
            assert (await other).id == second.id

        with_agent(story)

    def test_the_lacking_contents_are_returned(self) -> None:
        """An empty answer means that the host has them all."""

        async def story(agent, session) -> None:
            for missing in ([], ["b"]):
                call = asyncio.create_task(session.missing_blobs(["a", "b"]))
                agent.say(Reply((await agent.hear()).id, ok=True, body={"missing": missing}))
                assert await call == missing
            call = asyncio.create_task(session.missing_blobs(["a"]))
            agent.say(Reply((await agent.hear()).id, ok=False, code="io", message="disk is gone"))
            with pytest.raises(RequestRefused, match="disk is gone"):
                await call

        with_agent(story)

    @pytest.mark.parametrize("missing", [None, "a", ["z"], [{}]])
    def test_an_answer_without_sense_ends_the_session(self, missing) -> None:
        """Contents nobody asked about cannot be sent."""

        async def story(agent, session) -> None:
            call = asyncio.create_task(session.missing_blobs(["a"]))
            agent.say(Reply((await agent.hear()).id, ok=True, body={"missing": missing}))
            with pytest.raises(ConnectionLost, match="missing files is invalid"):
                await call

        with_agent(story)

    def test_it_has_all_calls_of_the_contract(self) -> None:
        """A provider can pass each of them on, with the same arguments."""
        own = ("volume_path", "look_again", "gpu_processes")
        for name, wanted in inspect.getmembers(Host, inspect.isfunction):
            # The provider knows where volumes lie, and makes two from the report of `probe`.
            if not name.startswith("_") and name not in own:
                ours = inspect.signature(getattr(Session, name)).parameters
                assert list(ours) == list(inspect.signature(wanted).parameters), name


class TestContents:
    @pytest.fixture(autouse=True)
    def small_pieces(self, monkeypatch) -> None:
        monkeypatch.setattr(blobs, "PIECE_BYTES", 4)

    @pytest.mark.parametrize("content", [b"", b"abc", b"abcd", b"abcde", b"0123456789" * 9])
    def test_a_file_arrives_piece_by_piece(self, tmp_path, content) -> None:
        """Offsets follow each other, the last piece is marked, few are under way at once."""
        path = tmp_path / "file"
        path.write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()

        async def story(agent, session) -> None:
            call = asyncio.create_task(session.put_blob(digest, str(path)))
            arrived, last = b"", False
            while not last:
                piece = await agent.hear()
                assert isinstance(piece, PutBlob)
                assert (piece.sha256, piece.offset) == (digest, len(arrived))
                arrived += base64.b64decode(piece.data)
                last = piece.last
                agent.say(Reply(piece.id, ok=True))
            await call
            assert arrived == content

        with_agent(story)

    def test_few_pieces_are_under_way(self, tmp_path) -> None:
        """A large file waits for the host instead of filling memory."""
        path = tmp_path / "file"
        path.write_bytes(bytes(100))
        digest = hashlib.sha256(bytes(100)).hexdigest()

        async def story(agent, session) -> None:
            call = asyncio.create_task(session.put_blob(digest, str(path)))
            pieces = [await agent.hear() for _ in range(4)]
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await agent.hear()
            agent.say(Reply(pieces[0].id, ok=True))
            assert (await agent.hear()).offset == 16
            agent.say(Reply(pieces[1].id, ok=False, code="no_space", message="disk is full"))
            with pytest.raises(RequestRefused, match="disk is full"):
                await call

        with_agent(story)

    def test_a_changed_file_is_never_finished(self, tmp_path) -> None:
        """The last piece, which makes a content real, is not sent."""
        path = tmp_path / "file"
        path.write_bytes(b"new content")

        async def story(agent, session) -> None:
            call = asyncio.create_task(session.put_blob("0" * 64, str(path)))
            with pytest.raises(ContentChanged, match="has changed"):
                await call
            await session.close()
            assert [(await agent.hear()).last for _ in range(2)] == [False, False]
            await agent.hear_end()

        with_agent(story)

    def test_a_missing_file_has_changed(self, tmp_path) -> None:
        """What cannot be read is not what was declared."""

        async def story(agent, session) -> None:
            with pytest.raises(ContentChanged, match="cannot be read: No such file"):
                await session.put_blob("0" * 64, str(tmp_path / "nowhere"))

        with_agent(story)


class TestNews:
    def test_news_come_in_order_and_in_batches(self) -> None:
        """What came since the last look is one batch; replies do not stand between."""

        async def story(agent, session) -> None:
            output = LogData("u", 0, "", complete=True)
            agent.say(event(1), output, Reply(77, ok=True), event(2))
            news = session.news()
            assert list(await anext(news)) == [event(1), output, event(2)]
            agent.say(event(3))
            assert list(await anext(news)) == [event(3)]

        with_agent(story)

    def test_news_from_before_the_end_are_not_lost(self) -> None:
        """They end after what had come, without an error."""

        async def story(agent, session) -> None:
            agent.say(event(1))
            agent.said.close()
            assert [list(batch) async for batch in session.news()] == [[event(1)]]

        with_agent(story)

    def test_an_agent_that_says_too_much_is_left_waiting(self, monkeypatch) -> None:
        """Reading stops while news pile up, and goes on as soon as they are taken."""
        monkeypatch.setattr(session, "_NEWS_BYTES_MAX", 100)

        async def story(agent, session) -> None:
            agent.say(event(1))
            await settled()
            agent.say(event(2))
            await settled()
            news = session.news()
            assert list(await anext(news)) == [event(1)]
            assert list(await anext(news)) == [event(2)]

        with_agent(story)

    def test_a_reply_behind_news_still_comes(self, monkeypatch) -> None:
        """Whoever takes in news may ask for something while doing so."""
        monkeypatch.setattr(session, "_NEWS_BYTES_MAX", 100)

        async def story(agent, session) -> None:
            agent.say(event(1))
            await settled()
            call = asyncio.create_task(session.forget([KEY]))
            request = await agent.hear()
            agent.say(event(2), Reply(request.id, ok=True))
            assert (await call).ok

        with_agent(story)

    def test_unknown_messages_do_not_end_the_session(self) -> None:
        """What a newer agent says unasked is ignored; what it answers still comes."""

        async def story(agent, session) -> None:
            body = b'{"type":"Weather","sky":"blue"}'
            agent.said.write(len(body).to_bytes(4, "big") + body)
            call = asyncio.create_task(session.forget([KEY]))
            agent.say(Reply((await agent.hear()).id, ok=True))
            assert (await call).ok

        with_agent(story)


class TestEnd:
    @pytest.mark.parametrize(
        ("end", "reason"),
        [
            (lambda agent: agent.said.close(), "closed the connection"),
            (lambda agent: agent.said.fail(ConnectionResetError("reset")), "is broken: reset"),
            (lambda agent: agent.said.write(b"\xff" * 4), "does not follow the protocol"),
            (lambda agent: agent.say(WELCOME), "the message Welcome is unexpected"),
        ],
        ids=["closed", "reset", "noise", "out of turn"],
    )
    def test_every_waiting_call_hears_of_the_end(self, end, reason) -> None:
        """All callers, and whoever calls later, get the same reason; news end."""

        async def story(agent, session) -> None:
            calls = [asyncio.create_task(session.forget([KEY])) for _ in range(3)]
            await agent.hear()
            end(agent)
            for call in calls:
                with pytest.raises(ConnectionLost, match=reason):
                    await call
            with pytest.raises(ConnectionLost, match=reason):
                await session.acknowledge(Cursor("log", 1))
            assert [batch async for batch in session.news()] == []
            assert agent.heard.closed

        with_agent(story)

    def test_a_stream_that_cannot_be_written_is_the_end(self) -> None:
        """A caller learns of it although nothing was read."""

        async def story(agent, session) -> None:
            agent.heard.broken = BrokenPipeError("broken pipe")
            with pytest.raises(ConnectionLost, match="cannot be written: broken pipe"):
                await session.forget([KEY])

        with_agent(story)

    def test_a_request_without_answer_ends_the_session(self) -> None:
        """A half-open connection shows in no other way."""

        async def run() -> None:
            agent = AgentEnd()
            session = await agent.greeted_by(timeout_seconds=0.05)
            with pytest.raises(ConnectionLost, match="did not answer the request Forget in time"):
                await session.forget([KEY])
            assert agent.heard.closed
            await session.close()

        asyncio.run(run())

    def test_who_is_superseded_is_told_by_whom(self) -> None:
        """A newer fence closes the older session with a reason that is no mere loss."""

        async def story(agent, session) -> None:
            call = asyncio.create_task(session.forget([KEY]))
            await agent.hear()
            agent.say(Rejected("old_fence", "fence 2 has come"))
            with pytest.raises(HelloRejected, match="fence 2 has come"):
                await call

        with_agent(story)

    def test_what_was_said_before_closing_is_sent(self) -> None:
        """An acknowledgement just before the end is not lost."""

        async def story(agent, session) -> None:
            await session.acknowledge(Cursor("log", 1))
            await session.close()
            await session.close()
            assert await agent.hear() == Acknowledge(Cursor("log", 1))
            await agent.hear_end()
            with pytest.raises(ConnectionLost, match="session was closed"):
                await session.forget([KEY])

        with_agent(story)
