"""What people see in a browser: rendered on the server, without a script, French first."""
