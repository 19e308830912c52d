"""One file a verb; `cli.main` loads each when it is used and never before."""
