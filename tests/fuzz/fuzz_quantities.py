"""Fuzz amounts, names and indices as people write them; see `campaign`."""

import campaign

if __name__ == "__main__":
    campaign.run("quantities")
