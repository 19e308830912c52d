"""The only room that knows the drivers: it composes them for the command line and the server."""
