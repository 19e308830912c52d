"""Fuzz files to what they declare; see `campaign`."""

import campaign

if __name__ == "__main__":
    campaign.run("tree")
