"""Fuzz bytes to nodes and findings; see `campaign`."""

import campaign

if __name__ == "__main__":
    campaign.run("documents")
