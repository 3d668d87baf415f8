"""What a screen shows of the box in words, colours and pictures, worked out before the template."""
