"""Messages between box and headquarters: shapes, signatures, the chain of closures.

Both sides import it and it imports neither, so that no field and no rule of proof stands in two places."""
