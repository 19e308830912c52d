"""
Amounts as people write them, as integers: bytes, millicores, seconds, counts.

Every parser takes what YAML gives (text, number, mapping) and raises `ValueError` with a
sentence that says what is wrong and what was probably meant. Every formatter writes text that
its parser reads back to the same value.
"""

from fleetform.spec.quantities.cpu import (
    Cpu,
    cpu_document,
    format_cpu,
    format_millicores,
    parse_cpu,
)
from fleetform.spec.quantities.duration import OFF, format_duration, parse_duration
from fleetform.spec.quantities.gpu import Gpu, format_gpu, gpu_document, parse_gpu
from fleetform.spec.quantities.memory import (
    format_bytes,
    parse_disk,
    parse_memory,
    parse_memory_range,
)
from fleetform.spec.quantities.ranges import Range, format_range, parse_int_range

__all__ = [
    "OFF",
    "Cpu",
    "Gpu",
    "Range",
    "cpu_document",
    "format_bytes",
    "format_cpu",
    "format_duration",
    "format_gpu",
    "format_millicores",
    "format_range",
    "gpu_document",
    "parse_cpu",
    "parse_disk",
    "parse_duration",
    "parse_gpu",
    "parse_int_range",
    "parse_memory",
    "parse_memory_range",
]
