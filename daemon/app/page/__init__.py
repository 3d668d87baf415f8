"""What the shop's page needs of the box: its commands, its files, the first start."""
