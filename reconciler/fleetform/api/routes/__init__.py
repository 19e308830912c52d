"""What can be asked, one file a noun; `app` puts them together."""
