"""What a box and its headquarters do in the same way: passwords, the limits of logins, cookies of sessions, cells of a spreadsheet.

It knows neither of the two, so that what guards both stands in one place."""
