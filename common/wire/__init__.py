"""What a box and its headquarters have to agree on: the shapes of what is sent, its signatures, and the chain of closures.

Both sides import it and it imports neither, so that no field and no rule of proof stands in two places."""
