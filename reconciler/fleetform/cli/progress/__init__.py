"""Who watches an apply: a live screen on a terminal, plain lines elsewhere, JSON lines for scripts."""
