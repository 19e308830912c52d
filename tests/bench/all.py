"""Runs every bench of the main job, one after another, and prints their tables."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence

import bench_api_load
import bench_array
import bench_commands
import bench_impossible
import bench_latency
import bench_newcomer
import bench_resources
import bench_watch
from measuring import parser_of


def main(arguments: Sequence[str] | None = None) -> None:
    parser_of(__doc__).parse_args(arguments)
    print(f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} CPUs")
    bench_newcomer.main([])
    bench_commands.main([])
    bench_array.main([])
    bench_latency.main([])
    bench_api_load.main([])
    bench_impossible.main([])
    bench_resources.main([])
    bench_watch.main([])


if __name__ == "__main__":
    main()
