"""What the shop's page needs from the box: commands, files, the first start."""
