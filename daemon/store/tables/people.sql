-- name: insert
INSERT INTO person (name, role, password, created_at) VALUES (?, ?, ?, ?);

-- name: list
SELECT id, name, role, created_at, disabled_at,
       coalesce((SELECT max(used_at) FROM session WHERE person_id = person.id), 0) AS seen_at FROM person ORDER BY name;

-- name: by_name
SELECT id, name, role, created_at, disabled_at, 0, password FROM person WHERE name = ?;

-- name: again
UPDATE person SET role = ?, password = ?, disabled_at = 0 WHERE name = ? AND disabled_at <> 0;

-- name: set_password
UPDATE person SET password = ? WHERE name = ? AND disabled_at = 0;

-- name: disable
UPDATE person SET disabled_at = ? WHERE name = ? AND disabled_at = 0;

-- name: end_sessions
DELETE FROM session WHERE person_id = (SELECT id FROM person WHERE name = ?);

-- name: open_session
INSERT INTO session (hash, person_id, opened_at, used_at, address) VALUES (?, ?, ?, ?, ?);

-- name: session
SELECT person.id AS person_id, person.name AS name, person.role AS role, session.opened_at AS opened_at, session.used_at AS used_at
  FROM session JOIN person ON person.id = session.person_id WHERE session.hash = ? AND person.disabled_at = 0;

-- name: touch
UPDATE session SET used_at = max(used_at, ?) WHERE hash = ?;

-- name: end_session
DELETE FROM session WHERE hash = ?;

-- name: end_idle
DELETE FROM session WHERE used_at < ?;

-- name: end_all_sessions
DELETE FROM session;
