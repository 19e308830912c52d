"""One module a version, `v0001_…`, in order."""
