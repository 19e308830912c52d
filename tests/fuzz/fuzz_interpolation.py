"""Fuzz expressions in texts; see `campaign`."""

import campaign

if __name__ == "__main__":
    campaign.run("interpolation")
