-- As fast as this design gets: the number is the primary key, and no table refers to another.

CREATE TABLE application (
  id TEXT PRIMARY KEY,
  secret TEXT NOT NULL,
  webhook_url TEXT,
  private_key TEXT NOT NULL,
  public_key TEXT NOT NULL
);

CREATE TABLE counter (application_id TEXT PRIMARY KEY, next INTEGER NOT NULL);

CREATE TABLE badge (
  number INTEGER PRIMARY KEY,
  application_id TEXT NOT NULL,
  udid TEXT NOT NULL,
  user_id TEXT NOT NULL,
  metadata TEXT,
  created_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX badge_user_device ON badge (application_id, udid, user_id);
CREATE INDEX badge_page ON badge (application_id, number);

CREATE TABLE invitation (
  token TEXT PRIMARY KEY,
  application_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  expires_at TEXT NOT NULL,
  claimed_at INTEGER
);
