"""What every provider of hosts promises, tried on real agents with real jobs: a site of each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from contract.host_site import LocalSite, Site

SITES = {"local": LocalSite}

Story = Callable[[Site], Awaitable[None]]


@pytest.fixture(params=SITES)
def tell(request, tmp_path) -> Iterator[Callable[[Story], None]]:
    """Run a story on a fresh site of each provider and end everything it started."""
    site = SITES[request.param](tmp_path)

    async def run(story: Story) -> None:
        try:
            async with asyncio.timeout(60):
                await story(site)
        finally:
            await site.close()

    return lambda story: asyncio.run(run(story))
