"""What the pages of a shop and of headquarters share: layout and style, words and numbers as people write them."""
