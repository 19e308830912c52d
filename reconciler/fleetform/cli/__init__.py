"""The command line: what people type, what they see, and the exit code that scripts read."""
