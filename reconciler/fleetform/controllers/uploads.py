"""
Sends contents to hosts: one upload for each connection and content, however many jobs need it.

An agent takes the pieces of a content in order and keeps one unfinished copy of it, so two uploads
of the same content over one connection destroy each other. The first job that needs a content
sends it and the others wait. If that job is cancelled, the next one sends it from the beginning. If
the host refuses it, as with a full disk, all of them get the refusal: each of them sending it again
would fail the same way.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Sequence

from fleetform.model.ports import BlobStore
from fleetform.providers.contract.errors import ProviderError
from fleetform.providers.contract.hosts import Host


class _Contents:
    """
    What is known of one connection's host.

    `under_way` has a future for each upload. It gets the error that the host or the connection
    ended it with, or nothing if it succeeded or its sender was cancelled.
    """

    def __init__(self) -> None:
        self.there: set[str] = set()
        self.under_way: dict[str, asyncio.Future[None]] = {}


class Uploads:
    """Uploads of one manager; what it knows of a host ends with the connection to it."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._contents: weakref.WeakKeyDictionary[Host, _Contents] = weakref.WeakKeyDictionary()

    async def ensure(self, host: Host, digests: Sequence[str]) -> None:
        """
        Return once the host has all of these contents.

        Raises:
            ProviderError: What ended the upload of one of them, whichever job sent it.
        """
        contents = self._contents.setdefault(host, _Contents())
        wanted = [digest for digest in dict.fromkeys(digests) if digest not in contents.there]
        if not wanted:
            return
        missing = await host.missing_blobs(wanted)
        contents.there.update(set(wanted).difference(missing))
        for digest in missing:
            while digest not in contents.there:
                if (upload := contents.under_way.get(digest)) is None:
                    await self._send(host, contents, digest)
                else:
                    # Shielded: the cancellation of one waiting job is not the end of the upload.
                    await asyncio.shield(upload)

    async def _send(self, host: Host, contents: _Contents, digest: str) -> None:
        upload = asyncio.get_running_loop().create_future()
        contents.under_way[digest] = upload
        try:
            await host.put_blob(digest, self._blobs.path(digest))
            contents.there.add(digest)
        except ProviderError as problem:
            upload.set_exception(problem)
            upload.exception()  # Read here: often no other job waits for it.
            raise
        finally:
            del contents.under_way[digest]
            if not upload.done():
                upload.set_result(None)
