-- As fast as this design gets: the number is the primary key, and no table refers to another. Every side has these tables
-- beside the service's own; only the peer uses them.

CREATE TABLE peer_application (id TEXT PRIMARY KEY, secret TEXT NOT NULL, webhook_url TEXT, next INTEGER NOT NULL);

CREATE TABLE peer_badge (
  number INTEGER PRIMARY KEY,
  application_id TEXT NOT NULL,
  udid TEXT NOT NULL,
  user_id TEXT NOT NULL,
  metadata TEXT,
  created_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX peer_badge_user_device ON peer_badge (application_id, udid, user_id);
CREATE INDEX peer_badge_page ON peer_badge (application_id, number);
