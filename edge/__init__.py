"""Where connections come in, at a box and at its headquarters: counted from TCP accept on, their TLS records looked at one by one."""
