"""
The read-only API: what the CLI shows, for programs, under `/api/v1`.

Needs the extra `server`. It answers from the ledger and the logs through ports, changes
nothing, and is asked for: without `serve --listen` no port is open.
"""
