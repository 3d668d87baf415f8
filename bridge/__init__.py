"""One serial line: frames, commands, replies, retries. Knows the protocol and nothing of mcfd."""
