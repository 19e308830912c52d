"""Runs every bench of the main job, one after another, and prints their tables."""

from __future__ import annotations

import os
import platform

import bench_array
import bench_commands
import bench_impossible
import bench_latency
import bench_resources


def main() -> None:
    print(f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} CPUs")
    bench_commands.main()
    bench_array.main()
    bench_latency.main()
    bench_impossible.main()
    bench_resources.main()


if __name__ == "__main__":
    main()
